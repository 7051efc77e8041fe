//! `bench pagealloc --instructions`: the cost of allocating and freeing a page in instructions, by
//! the level that requests enter at and by batch. The loop around the calls is included.
//!
//! Each figure is from two processes, see `callgrind.rs`: one allocates and frees a batch some
//! times, the other twice as often.

use std::process::Command;

use anyhow::bail;
use brickyard_report::{Host, Metric, Results, Row};

use super::batch::HALVES;
use super::conditions::Conditions;
use super::contestant::Contestant;
use super::machine::{FRAME_BYTES, Level, Slots};
use super::rounds::{Pace, Rounds};
use super::schedule::{Setting, Workload};
use brickyard_measure::callgrind;
use brickyard_measure::choice::Choice;
use brickyard_run::interrupt;
use brickyard_run::progress::Progress;

/// The subcommand of `bench` with which a process of this program does only the counted rounds.
pub const TURN: &str = "pagealloc-turn";

/// The batches that are counted: only hits, one that fits into a stash, and one that does not.
const BATCHES: [usize; 3] = [1, 64, LARGEST_BATCH];

/// The largest of them.
pub const LARGEST_BATCH: usize = 16384;

/// The pages that the first process allocates and frees; the second does twice as many.
const PAGES: usize = 1 << 15;

/// What is counted.
#[derive(Debug)]
pub struct Instructions<'a> {
    /// The columns.
    pub contestants: &'a [Contestant],
    /// The levels that requests enter at.
    pub levels: &'a [Level],
    /// How a CPU accesses its slot.
    pub slots: &'a [Slots],
    /// The largest batch.
    pub most_batch: usize,
    /// The machine. Locks, and how long they are held, are the defaults.
    pub conditions: Conditions,
}

/// The rounds of one process.
#[derive(Debug, Clone, Copy)]
pub struct Turn {
    /// The level that requests enter at.
    pub level: Level,
    /// How a CPU accesses its slot.
    pub slots: Slots,
    /// Pages that are allocated before they are freed.
    pub batch: usize,
    /// How many rounds.
    pub rounds: usize,
}

impl Instructions<'_> {
    /// Counts, and returns the results as rows; `None`, with a warning, if there is no valgrind.
    ///
    /// # Errors
    /// Nothing could be counted.
    pub fn count(&self, progress: &dyn Progress) -> anyhow::Result<Option<Results>> {
        if !callgrind::is_installed(progress) {
            return Ok(None);
        }
        let turns = self.turns();
        progress.begin((turns.len() * self.contestants.len()) as u64);
        let mut results = Results::new("pagealloc", Host::read());
        let mut failed = 0;
        'all: for turn in turns {
            for contestant in self.contestants {
                progress.at(contestant.name());
                let pair = self.pair(contestant, turn);
                if interrupt::asked() {
                    break 'all;
                }
                progress.advance(1);
                let pair = match pair {
                    Ok(pair) => pair,
                    Err(error) => {
                        failed += 1;
                        progress.warn(&format!("{}: {error:#}", contestant.name()));
                        continue;
                    }
                };
                let sides = HALVES.map(|(side, _)| side).into_iter().zip(pair);
                for (side, each) in sides.chain([("pair", pair.iter().sum())]) {
                    let name = self.conditions.name(&turn.workload());
                    let metric = Metric::lower(side, "instructions");
                    let row = Row::new(contestant.name(), name, metric, vec![each])?;
                    results.push(row.exact())?;
                }
            }
        }
        progress.end();
        if results.rows().is_empty() {
            bail!("nothing could be counted ({failed} runs failed)");
        }
        Ok(Some(results))
    }

    fn turns(&self) -> Vec<Turn> {
        let mut turns = Vec::new();
        for &slots in self.slots {
            for &level in self.levels {
                let batches = BATCHES.iter().filter(|batch| **batch <= self.most_batch);
                turns.extend(batches.map(|&batch| Turn {
                    level,
                    slots,
                    batch,
                    rounds: PAGES / batch,
                }));
            }
        }
        turns
    }

    /// Returns the instructions of an allocation and of a free.
    fn pair(&self, contestant: &Contestant, turn: Turn) -> anyhow::Result<[f64; 2]> {
        let mut pair = [0.0; 2];
        for (each, (_, function)) in pair.iter_mut().zip(HALVES) {
            let launcher = callgrind::launcher(function);
            let rounds = |rounds| self.process(&launcher, contestant, Turn { rounds, ..turn });
            *each = callgrind::of_one_that_costs(turn.rounds, rounds)? / turn.batch as f64;
        }
        Ok(pair)
    }

    fn process(
        &self,
        launcher: &[String],
        contestant: &Contestant,
        turn: Turn,
    ) -> anyhow::Result<Command> {
        let mut command = callgrind::this_program(launcher)?;
        command.args(["bench", TURN, "--config", contestant.name()]);
        let Conditions {
            frames,
            mobility,
            masking,
            ..
        } = self.conditions;
        for (option, value) in [
            ("--level", turn.level.name()),
            ("--slots", turn.slots.name()),
            ("--mobility", mobility.name()),
            ("--masking", masking.name()),
            ("--batch", &turn.batch.to_string()),
            ("--rounds", &turn.rounds.to_string()),
            ("--memory", &(frames * FRAME_BYTES).to_string()),
        ] {
            command.args([option, value]);
        }
        Ok(command)
    }
}

impl Turn {
    /// Runs the rounds, for valgrind to count.
    ///
    /// # Errors
    /// The machine cannot be built, or has too little memory for a batch.
    pub fn run(&self, contestant: &Contestant, conditions: &Conditions) -> anyhow::Result<()> {
        let rounds = Rounds {
            workloads: &[self.workload()],
            pace: Pace::Counted(self.rounds),
            step: &|| {},
        };
        match conditions.turn(contestant, &rounds)?.0[..] {
            [Some(_)] => Ok(()),
            _ => bail!("there are too few free pages for batches of {}", self.batch),
        }
    }

    /// Returns the row's workload: single pages, freed by the thread that allocated them.
    fn workload(&self) -> Workload {
        let setting = Setting {
            slots: self.slots,
            fill: 0,
            level: self.level,
        };
        Workload::plain(setting, self.batch)
    }
}
