//! The process of one turn. The lab starts itself again for each: so what is resident is the contestant's alone, a library can be loaded before the system's, and no
//! turn finds what another has left.
//!
//! It is told its work on the command line, and answers on its standard output: a line `name value` for each value, and in between the lines of `mark.rs`, at which it
//! waits to be looked at.

use std::io::{self, Write};
use std::path::PathBuf;

use anyhow::Context;
use clap::Args;

use super::contestant::heap;
use super::preload;
use super::turn::{HeapPeer, HeapTurn};
use super::work::Work;

/// The options of the process of one turn.
#[derive(Debug, Args)]
pub(crate) struct SlabTurn {
    /// Which heap.
    #[arg(long)]
    heap: String,
    /// A library that must have been loaded.
    #[arg(long)]
    library: Option<PathBuf>,
    #[command(flatten)]
    work: Work,
}

/// What the subcommand is called.
pub(crate) const NAME: &str = "slab-turn";

impl SlabTurn {
    pub(crate) fn run(&self, peers: &[&'static dyn HeapPeer]) -> anyhow::Result<()> {
        if let Some(library) = &self.library {
            preload::is_loaded(library)?;
        }
        let name = &self.heap;
        let heap = heap(name, peers).with_context(|| format!("nothing is called {name:?}"))?;
        let taken = heap.measure(&HeapTurn { work: &self.work })?;
        let mut out = io::stdout().lock();
        write!(out, "{taken}")?;
        Ok(out.flush()?)
    }
}
