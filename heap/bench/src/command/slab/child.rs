//! The process of one turn. The program starts itself again for each turn, so that the resident
//! memory is the contestant's alone, a library can be loaded before the system's, and no turn is
//! affected by the one before.
//!
//! The command line says what to do. The process prints a line `name value` for each value, and in
//! between the lines of `mark.rs`, at which it waits for the parent to measure its memory.

use std::io::{self, Write};
use std::path::PathBuf;

use crate::slab::contestant::heap;
use crate::slab::preload;
use crate::slab::turn::{HeapPeer, HeapTurn};
use crate::slab::work::{SlabWork, Workload};
use anyhow::Context;
use brickyard_measure::objects::crowd::Clock;
use clap::Args;

use brickyard_measure::command::choice::choice;
use brickyard_results::bytes_of;

/// The options of the process of one turn.
#[derive(Debug, Args)]
pub(crate) struct SlabTurn {
    /// The heap to measure.
    #[arg(long)]
    heap: String,
    /// A library that must be loaded.
    #[arg(long)]
    library: Option<PathBuf>,
    #[arg(long, value_parser = choice(Workload::NAMES))]
    workload: Workload,
    /// How many threads do the same work.
    #[arg(long)]
    threads: usize,
    /// How many objects are allocated before they are freed.
    #[arg(long)]
    batch: usize,
    /// The size of the objects in bytes, for workloads without sizes of their own.
    #[arg(long)]
    size: u32,
    /// How much memory is live in the memory workloads.
    #[arg(long, value_parser = bytes_of)]
    live: usize,
    /// The approximate time of a sample, in microseconds.
    #[arg(long)]
    sample_us: u64,
    /// The clock of workloads whose threads do not wait for each other.
    #[arg(long, value_parser = choice(Clock::NAMES))]
    clock: Clock,
}

impl SlabTurn {
    pub(crate) fn run(&self, peers: &[&'static dyn HeapPeer]) -> anyhow::Result<()> {
        if let Some(library) = &self.library {
            preload::is_loaded(library)?;
        }
        let name = &self.heap;
        let heap = heap(name, peers).with_context(|| format!("there is no heap {name:?}"))?;
        let work = SlabWork {
            workload: self.workload,
            threads: self.threads,
            batch: self.batch,
            size: self.size,
            live: self.live,
            sample_us: self.sample_us,
            clock: self.clock,
        };
        let taken = heap.measure(&HeapTurn { work: &work })?;
        let mut out = io::stdout().lock();
        write!(out, "{taken}")?;
        Ok(out.flush()?)
    }
}
