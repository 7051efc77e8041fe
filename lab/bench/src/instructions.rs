//! `bench pagealloc --instructions`: what a page costs to allocate and to free, in instructions, by
//! where the request enters and by the batch. The loop around the calls is counted with them.
//!
//! Each figure is of two processes, see `callgrind.rs`: a batch is allocated and freed some times
//! in one and twice as many times in the other.

use std::process::Command;

use anyhow::bail;
use brickyard_report::{Host, Results, Row};

use super::batch::HALVES;
use super::choice::Choice;
use super::conditions::Conditions;
use super::contestant::Contestant;
use super::machine::{FRAME_BYTES, Level, Slots};
use super::progress::Progress;
use super::rounds::{Pace, Rounds};
use super::schedule::{Setting, Workload};
use super::{callgrind, stop};

/// The subcommand of `bench` by which a process of this program is told that it is to do the rounds
/// that are counted, and no more.
pub const TURN: &str = "pagealloc-turn";

/// The batches that are counted: nothing but hits, what a stash holds, and what none can hold.
const BATCHES: [usize; 3] = [1, 64, LARGEST_BATCH];

/// The largest of them.
pub const LARGEST_BATCH: usize = 16384;

/// Pages that a process allocates and frees, at least; the other twice as many.
const PAGES: usize = 1 << 15;

/// What is counted.
#[derive(Debug)]
pub struct Instructions<'a> {
    /// The columns.
    pub contestants: &'a [Contestant],
    /// Where requests enter.
    pub levels: &'a [Level],
    /// How a CPU reaches its slot.
    pub slots: &'a [Slots],
    /// The largest batch.
    pub most_batch: usize,
    /// The machine. Locks and how long they are held are the usual ones.
    pub conditions: Conditions,
}

/// The rounds of one process.
#[derive(Debug, Clone, Copy)]
pub struct Turn {
    /// Where requests enter.
    pub level: Level,
    /// How a CPU reaches its slot.
    pub slots: Slots,
    /// Pages that are allocated before they are freed.
    pub batch: usize,
    /// How often.
    pub rounds: usize,
}

impl Instructions<'_> {
    /// Counts. None where there is no valgrind, and it is said why.
    ///
    /// # Errors
    /// Where nothing could be counted.
    pub fn count(&self, progress: &dyn Progress) -> anyhow::Result<Option<Results>> {
        if !callgrind::is_there(progress) {
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
                if stop::asked() {
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
                    let metric = callgrind::metric(side);
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

    /// An allocation and a free, in instructions.
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
            frames, mobility, ..
        } = self.conditions;
        for (option, value) in [
            ("--level", turn.level.name()),
            ("--slots", turn.slots.name()),
            ("--mobility", mobility.name()),
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
    /// Does the rounds. What they cost is for valgrind to say.
    ///
    /// # Errors
    /// Where the machine cannot be built, or has not the memory for a batch.
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

    /// The row's workload: single pages, freed by who has allocated them.
    fn workload(&self) -> Workload {
        let setting = Setting {
            slots: self.slots,
            fill: 0,
            level: self.level,
        };
        Workload::plain(setting, self.batch)
    }
}
