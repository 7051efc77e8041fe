//! The lab of the page allocator, as the command `brickyard` and as whoever brings more to compare
//! runs it. One file a subcommand; each prints a table for people, or CSV or JSON for programs.
//!
//! [`main`] is the whole command. `peers/` calls it too, with other people's allocators as
//! [`Peer`]s and [`HeapPeer`]s, so that they stand in the same table, measured in the same rounds
//! by the same loop.
//!
//! Exit codes: 0 done, 1 failed, 2 asked for wrongly. A reader that goes away (a closed pipe) is no
//! failure.

#![forbid(unsafe_code)]

mod amount;
mod antifrag;
mod bench;
mod choice;
mod compare;
mod completions;
mod configs;
mod filming;
mod how;
mod import;
mod info;
mod interrupt;
mod man;
mod misuse;
mod output;
mod page_kinds;
mod progress;
mod record;
mod replay;
mod reproduce;
mod say;
mod sheet;
mod simulate;
mod snapshot;
mod watch;

use std::io::{self, Write as _};
use std::process::ExitCode;

use brickyard_bench::peer::Peer;
use brickyard_bench::slab::turn::HeapPeer;
use brickyard_experiments::refusal::Refusal;
use clap::{CommandFactory, Parser, Subcommand};

/// Measures page allocators: the designs of twenty years of Linux, side by side.
#[derive(Debug, Parser)]
#[command(name = "brickyard", version, arg_required_else_help = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Runs a benchmark on real threads.
    #[command(subcommand)]
    Bench(bench::Bench),
    /// Runs an experiment on a simulated multiprocessor: the allocator's own source, on 1 to 256
    /// CPUs.
    #[command(subcommand)]
    Simulate(simulate::Simulate),
    /// Repeats the experiments of the five source documents, and makes a report of them.
    Reproduce(Box<reproduce::Reproduce>),
    /// Replays a trace through several configurations, side by side.
    Replay(replay::Replay),
    /// Asks for huge pages under load and at rest, by the protocol of 2005 and 2007.
    Antifrag(antifrag::Antifrag),
    /// Holds two documents of results against each other: what got better, what worse, with an exit
    /// code for CI.
    Compare(compare::Compare),
    /// Lists the configurations: what each rebuilds, and what its metadata costs (64 GiB, 8 CPUs).
    Configs(configs::Configs),
    /// Records what this host asks of its page allocator, as a trace file.
    Record(record::Record),
    /// Makes a trace file of the text that ftrace, perf or trace-cmd print.
    Import(import::Import),
    /// Tells what a trace has: who allocated what, for how long, how fast; who mixed blocks; the
    /// host at both ends.
    Info(info::Info),
    /// Shows this host's memory as it is now: huge pages, fragmentation, mixed blocks, and a
    /// picture.
    Snapshot(snapshot::Snapshot),
    /// Shows this host's memory live in the terminal.
    Watch(watch::Watch),
    /// Prints a completion script for a shell.
    Completions(completions::Completions),
    /// Prints the manual page of a command, or writes those of all.
    Man(man::Page),
}

/// The command with all its arguments, as completions, manual pages and tests see it.
#[must_use]
pub fn command() -> clap::Command {
    Cli::command()
}

/// Runs the command that the process was started with; `bench pagealloc` knows `peers` by their
/// names, `bench slab` knows `heaps`.
pub fn main(peers: &[&'static dyn Peer], heaps: &[&'static dyn HeapPeer]) -> ExitCode {
    let done = match Cli::parse().command {
        Command::Bench(bench) => bench.run(peers, heaps),
        Command::Simulate(simulate) => simulate.run(),
        Command::Reproduce(reproduce) => reproduce.run(),
        Command::Replay(replay) => replay.run(),
        Command::Antifrag(antifrag) => antifrag.run(),
        Command::Compare(compare) => compare.run(),
        Command::Configs(configs) => configs.run(),
        Command::Record(record) => record.run(),
        Command::Import(import) => import.run(),
        Command::Info(info) => info.run(),
        Command::Snapshot(snapshot) => snapshot.run(),
        Command::Watch(watch) => watch.run(),
        Command::Completions(completions) => completions.run(),
        Command::Man(page) => page.run(),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) if is_closed_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            // Who closed standard error too is told by the exit code alone.
            let _ = writeln!(io::stderr(), "brickyard: {error:#}");
            if error.is::<misuse::Misuse>() || error.is::<Refusal>() {
                ExitCode::from(2)
            } else {
                ExitCode::FAILURE
            }
        }
    }
}

fn is_closed_pipe(error: &anyhow::Error) -> bool {
    error.chain().any(|cause| {
        cause
            .downcast_ref::<io::Error>()
            .is_some_and(|cause| cause.kind() == io::ErrorKind::BrokenPipe)
    })
}
