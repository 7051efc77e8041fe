//! The lab of the page allocator: the command `brickyard`, and a library for programs that add
//! allocators to its comparisons. There is one file per subcommand; each prints a table for people,
//! or CSV or JSON for programs.
//!
//! [`main`] is the whole command. `peers/` calls it too, with other people's allocators as
//! [`Peer`]s, so that they are in the same table, measured in the same rounds by the same loop.
//!
//! Exit codes: 0 success, 1 failure, 2 wrong usage; `record` passes on that of the command it ran.
//! A closed pipe on standard output is not a failure.

#![forbid(unsafe_code)]

mod compare;
mod explore;
mod fidelity;
mod filming;
mod help;
mod history;
mod import;
mod info;
mod moved;
mod page_kinds;
mod record;
mod replay;
mod reproduce;
mod run;
mod serve;
mod sheet;
mod snapshot;
mod turn;
mod watch;

use std::process::ExitCode;

use brickyard_bench::peer::Peer;
use brickyard_experiments::refusal::Refusal;
use brickyard_measure::command::misuse::Misuse;
use brickyard_run::terminal;
use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};

/// Measures page allocators: the designs of twenty years of Linux, side by side.
#[derive(Debug, Parser)]
#[command(
    name = "brickyard",
    version,
    arg_required_else_help = true,
    disable_help_subcommand = true
)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Tries random schedules of the real allocator on a simulated multiprocessor: every operation
    /// concurrently, every result checked; a seed that fails is shrunk.
    Explore(Box<explore::Explore>),
    /// Runs an experiment with parameters of your choice, on this host or a simulated machine.
    Run(run::Run),
    /// Repeats the experiments of the five source documents, and writes a report.
    #[command(after_long_help = reproduce::rules())]
    Reproduce(Box<reproduce::Reproduce>),
    /// Replays a trace through several configurations, side by side.
    Replay(replay::Replay),
    /// Tells how true the configurations are to the kernel that a trace was recorded on: the end of
    /// a replay beside the host's, and decision by decision.
    Fidelity(fidelity::Fidelity),
    /// Compares two result documents: what got better, what got worse, with an exit code for CI.
    Compare(compare::Compare),
    /// Records every page allocation and free of this host in a trace file.
    Record(record::Record),
    /// Converts the text output of ftrace, perf or trace-cmd to a trace file.
    Import(import::Import),
    /// Summarizes a trace: which processes allocated what, for how long, how fast; which mixed page
    /// blocks; the host at the start and the end.
    Info(info::Info),
    /// Shows this host's memory as it is now: huge pages, fragmentation, mixed blocks, and a
    /// picture.
    Snapshot(snapshot::Snapshot),
    /// Shows this host's memory live in the terminal.
    Watch(watch::Watch),
    /// Watches this host's memory: metrics for Prometheus, a history on the disk, a page for the
    /// browser.
    #[command(after_help = serve::EXAMPLES)]
    Serve(Box<serve::Serve>),
    /// Shows what `serve --history` kept of a host: huge pages and fragmentation over time, as a
    /// table or a page.
    #[command(after_help = history::EXAMPLES)]
    History(history::History),
    /// Prints the help of a command, the parameters of an experiment, the list of designs; manual
    /// pages and completions.
    Help(help::Help),
    /// A part of an experiment, in a process that it starts.
    #[command(subcommand, hide = true)]
    Turn(turn::Turn),
}

/// Returns the command with all its arguments, for completions, manual pages and tests.
#[must_use]
pub fn command() -> clap::Command {
    help::grouped(Cli::command())
}

/// Runs the command given on the command line. `peers` can be named in `run pagealloc`.
pub fn main(peers: &[&'static dyn Peer]) -> ExitCode {
    let words = std::env::args_os().skip(1);
    let words: Vec<String> = words
        .map(|word| word.to_string_lossy().into_owned())
        .collect();
    if let Some(line) = moved::instead(&words) {
        terminal::tell(line);
        return ExitCode::from(2);
    }
    let command =
        Cli::from_arg_matches(&command().get_matches()).unwrap_or_else(|error| error.exit());
    let done = match command.command {
        Command::Turn(turn) => turn.run(peers),
        Command::Explore(explore) => explore.run(),
        Command::Run(run) => run.run(peers),
        Command::Help(help) => help.run(),
        Command::Reproduce(reproduce) => reproduce.run(),
        Command::Replay(replay) => replay.run(),
        Command::Fidelity(fidelity) => fidelity.run(),
        Command::Compare(compare) => compare.run(),
        Command::Record(record) => return exit_code(record.run()),
        Command::Import(import) => import.run(),
        Command::Info(info) => info.run(),
        Command::Snapshot(snapshot) => snapshot.run(),
        Command::Watch(watch) => watch.run(),
        Command::Serve(serve) => serve.run(),
        Command::History(history) => history.run(),
    };
    exit_code(done.map(|()| 0))
}

fn exit_code(done: anyhow::Result<u8>) -> ExitCode {
    // A refusal of the experiments is wrong usage too.
    let done = done.map_err(|error| match error.is::<Refusal>() {
        true => Misuse::new(format!("{error:#}")).into(),
        false => error,
    });
    brickyard_measure::command::exit_code("brickyard", done)
}
