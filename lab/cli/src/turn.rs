//! `brickyard turn`: what a process of this program does that an experiment starts.

use std::io::{self, Write};

use brickyard::Mobility;
use brickyard_bench::conditions::Conditions;
use brickyard_bench::contestant::Contestant;
use brickyard_bench::instructions::Turn as Counted;
use brickyard_bench::machine::{FRAME_BYTES, Level, Slots};
use brickyard_bench::masking::Masking;
use brickyard_bench::peer::Peer;
use brickyard_bench::slab::{Loop, Turn as OnHeap};
use brickyard_measure::amount::zone_bytes;
use brickyard_measure::command::choice::choice;
use brickyard_measure::mobility::MOBILITIES;
use clap::{Args, Subcommand};

/// A turn.
#[derive(Debug, Subcommand)]
pub(crate) enum Turn {
    /// Rounds of `pagealloc`, for valgrind to count.
    Pagealloc(PageAlloc),
    /// A loop on a heap, for the experiment of 2008. Prints a line `name value` for each value.
    Slab(Slab),
}

#[derive(Debug, Args)]
pub(crate) struct PageAlloc {
    #[arg(long)]
    config: String,
    #[arg(long)]
    level: Level,
    #[arg(long)]
    slots: Slots,
    #[arg(long)]
    batch: usize,
    #[arg(long)]
    rounds: usize,
    #[arg(long, value_parser = zone_bytes)]
    memory: usize,
    #[arg(long, value_parser = choice(MOBILITIES))]
    mobility: Mobility,
    #[arg(long)]
    masking: Masking,
}

#[derive(Debug, Args)]
pub(crate) struct Slab {
    #[arg(long)]
    heap: String,
    #[arg(long)]
    of: Loop,
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..))]
    threads: u32,
    #[arg(long)]
    sample_us: u64,
}

impl Turn {
    pub(crate) fn run(&self, peers: &[&'static dyn Peer]) -> anyhow::Result<()> {
        match self {
            Self::Pagealloc(turn) => turn.run(peers),
            Self::Slab(turn) => turn.run(),
        }
    }
}

impl PageAlloc {
    fn run(&self, peers: &[&'static dyn Peer]) -> anyhow::Result<()> {
        let conditions = Conditions {
            frames: self.memory / FRAME_BYTES,
            mobility: self.mobility,
            masking: self.masking,
            ..Conditions::USUAL
        };
        let turn = Counted {
            level: self.level,
            slots: self.slots,
            batch: self.batch,
            rounds: self.rounds,
        };
        for contestant in Contestant::named(core::slice::from_ref(&self.config), peers)? {
            turn.run(&contestant, &conditions)?;
        }
        Ok(())
    }
}

impl Slab {
    fn run(&self) -> anyhow::Result<()> {
        let turn = OnHeap {
            of: self.of,
            threads: self.threads as usize,
            sample_us: self.sample_us,
        };
        let taken = turn.run(&self.heap)?;
        let mut out = io::stdout().lock();
        write!(out, "{taken}")?;
        Ok(out.flush()?)
    }
}
