//! A loop on a heap, for the experiment of 2008: a process that `reproduce` starts. It prints a line
//! `name value` for each value.

use std::io::{self, Write};

use brickyard_bench::slab::{Loop, Turn};
use brickyard_measure::choice::Choice;
use brickyard_measure::command::choice::choice;
use clap::Args;

/// The options of that process.
#[derive(Debug, Args)]
pub(crate) struct SlabTurn {
    /// The heap to measure.
    #[arg(long)]
    heap: String,
    /// What is done.
    #[arg(long, value_parser = choice(Loop::ALL))]
    of: Loop,
    /// How many threads do it.
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..))]
    threads: u32,
    /// The approximate time of a sample, in microseconds.
    #[arg(long)]
    sample_us: u64,
}

impl SlabTurn {
    pub(crate) fn run(&self) -> anyhow::Result<()> {
        let turn = Turn {
            heap: &self.heap,
            of: self.of,
            threads: self.threads as usize,
            sample_us: self.sample_us,
        };
        let taken = turn.run()?;
        let mut out = io::stdout().lock();
        write!(out, "{taken}")?;
        Ok(out.flush()?)
    }
}
