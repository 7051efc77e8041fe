//! The command `brickyard-heap`: the options of each subcommand, and how its results are printed.

mod latency;
mod libraries;
mod programs;
mod slab;

use std::io::{self, Write as _};
use std::process::ExitCode;

use brickyard_measure::command::exit_code;
use clap::{CommandFactory, Parser, Subcommand};

use crate::programs::task;
use crate::slab::turn::HeapPeer;

/// Measures heaps and malloc libraries, Brickyard's beside others.
#[derive(Debug, Parser)]
#[command(name = "brickyard-heap", version, arg_required_else_help = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Heaps for small objects: ours, the system's, preloaded ones and peers; time, memory,
    /// instructions.
    Slab(Box<slab::Slab>),
    /// Known loads of malloc and real programs under several malloc libraries; time and memory.
    Programs(Box<programs::Programs>),
    /// How long single allocations and frees take under several malloc libraries: percentiles and
    /// the worst of a mixed load, with page faults.
    Latency(latency::Latency),
    /// Lists the loads and programs that `programs --load` names, with what each is.
    Loads,
    /// One turn of `slab`, in a process that it starts.
    #[command(hide = true)]
    SlabTurn(slab::SlabTurn),
}

/// Returns the command with all its arguments, for tests.
#[must_use]
pub fn command() -> clap::Command {
    Cli::command()
}

/// Runs the command given on the command line. `peers` can be named in `slab --config`.
pub fn main(peers: &[&'static dyn HeapPeer]) -> ExitCode {
    let done = match Cli::parse().command {
        Command::Slab(bench) => bench.run(peers),
        Command::Programs(bench) => bench.run(),
        Command::Latency(bench) => bench.run(),
        Command::Loads => list(),
        Command::SlabTurn(turn) => turn.run(peers),
    };
    exit_code("brickyard-heap", done.map(|()| 0))
}

fn list() -> anyhow::Result<()> {
    let mut out = io::stdout().lock();
    for (name, what) in task::names() {
        writeln!(out, "{name:<16} {what}")?;
    }
    Ok(())
}
