//! The instructions of `pagealloc`: the cost of allocating and freeing a page in instructions, by
//! the level that requests enter at and by batch. The loop around the calls is included.
//!
//! Each figure is from two processes, see `callgrind.rs`: one allocates and frees a batch some
//! times, the other twice as often.

use std::process::Command;

use anyhow::bail;
use brickyard_results::Metric;

use super::batch::HALVES;
use super::conditions::Conditions;
use super::contestant::Contestant;
use super::machine::{FRAME_BYTES, Level, Slots};
use super::rounds::{Pace, Rounds};
use super::schedule::{Setting, Workload};
use brickyard_measure::callgrind;
use brickyard_measure::mobility::MOBILITIES;
use brickyard_run::named::name_of;

/// The command with which a process of this program does only the counted rounds.
const TURN: [&str; 2] = ["turn", "pagealloc"];

/// The batches that are counted: only hits, one that fits into a stash, and one that does not.
const BATCHES: [usize; 3] = [1, 64, LARGEST_BATCH];

/// The largest of them.
pub const LARGEST_BATCH: usize = 16384;

/// The pages that the first process allocates and frees; the second does twice as many.
const PAGES: usize = 1 << 15;

/// What is counted.
#[derive(Debug, Clone)]
pub struct Instructions {
    /// The levels that requests enter at.
    pub levels: Vec<Level>,
    /// How a CPU accesses its slot.
    pub slots: Vec<Slots>,
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

impl Instructions {
    /// Returns the name of a turn's rows.
    #[must_use]
    pub fn name(&self, turn: Turn) -> String {
        self.conditions.name(&turn.workload())
    }

    /// Returns the turns, in the order of the table.
    #[must_use]
    pub fn turns(&self) -> Vec<Turn> {
        let mut turns = Vec::new();
        for &slots in &self.slots {
            for &level in &self.levels {
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
}

impl Conditions {
    /// Counts a contestant's turn: the instructions of an allocation, of a free, and of both.
    ///
    /// # Errors
    /// There is no valgrind, a process fails, or nothing was counted.
    pub fn count(
        &self,
        contestant: &Contestant,
        turn: Turn,
    ) -> anyhow::Result<[(Metric<'static>, f64); 3]> {
        let mut pair = [0.0; 2];
        for (each, (_, function)) in pair.iter_mut().zip(HALVES) {
            let launcher = callgrind::launcher(function);
            let rounds = |rounds| self.process(&launcher, contestant, Turn { rounds, ..turn });
            *each = callgrind::of_one_that_costs(turn.rounds, rounds)? / turn.batch as f64;
        }
        let [alloc, free] = pair;
        Ok([
            (instructions("alloc"), alloc),
            (instructions("free"), free),
            (instructions("pair"), alloc + free),
        ])
    }

    fn process(
        &self,
        launcher: &[String],
        contestant: &Contestant,
        turn: Turn,
    ) -> anyhow::Result<Command> {
        let mut command = callgrind::this_program(launcher)?;
        command.args(TURN).args(["--config", contestant.name()]);
        for (option, value) in [
            ("--level", turn.level.name()),
            ("--slots", turn.slots.name()),
            ("--mobility", name_of(MOBILITIES, &self.mobility)),
            ("--masking", self.masking.name()),
            ("--batch", &turn.batch.to_string()),
            ("--rounds", &turn.rounds.to_string()),
            ("--memory", &(self.frames * FRAME_BYTES).to_string()),
        ] {
            command.args([option, value]);
        }
        Ok(command)
    }
}

/// The metric of a side of a pair.
const fn instructions(side: &'static str) -> Metric<'static> {
    Metric::lower(side, "instructions")
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
