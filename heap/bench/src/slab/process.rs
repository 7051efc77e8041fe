//! Starts the process of a turn, measures its memory when it requests that, and reads its results.

use core::time::Duration;
use std::collections::HashMap;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::thread;
use std::time::Instant;

use anyhow::{Context, bail};

use super::contestant::Contestant;
use super::mark;
use super::work::SlabWork;
use brickyard_measure::callgrind::this_program;
use brickyard_measure::resident::Resident;
use brickyard_run::interrupt;

/// The subcommand with which a process of this program does only a turn.
pub(crate) const TURN: &str = "slab-turn";

/// The interval at which an idle process is measured.
const POLL: Duration = Duration::from_millis(100);

/// This share of memory returned counts as all: then the wait ends early.
const ALL: f64 = 0.995;

/// The results of a process.
#[derive(Debug, Default)]
pub(crate) struct Output {
    /// What it measured itself, by name.
    pub(crate) values: HashMap<String, f64>,
    /// Its resident memory at each mark, by name.
    pub(crate) looks: HashMap<String, Resident>,
    /// The same at the end of the idle time, for marks of an idle process.
    pub(crate) rested: HashMap<String, Resident>,
}

/// Returns a command that does a contestant's work in a process of its own, through `launcher` if
/// that is not empty.
pub(crate) fn command(
    launcher: &[String],
    contestant: &Contestant,
    work: &SlabWork,
) -> anyhow::Result<Command> {
    let mut command = this_program(launcher)?;
    command.args([TURN, "--heap", &contestant.heap]);
    command.args(work.arguments());
    // Only the contestant's library is loaded.
    command.env_remove("LD_PRELOAD");
    if let Some(library) = &contestant.library {
        command.arg("--library").arg(library);
        command.env("LD_PRELOAD", library);
    }
    Ok(command)
}

/// Does the work in a process of its own. If it requests to be watched while idle, it is watched
/// for `rest`.
pub(crate) fn run(
    contestant: &Contestant,
    work: &SlabWork,
    rest: Duration,
) -> anyhow::Result<Output> {
    let mut command = command(&[], contestant, work)?;
    let child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
    let mut child = child.context("cannot start this program again")?;
    let output = listen(&mut child, rest);
    if output.is_err() {
        // It may have ended by itself.
        let _ = child.kill();
    }
    let status = child.wait().context("cannot wait for a turn")?;
    // Its exit status says more than the output that it then failed to write.
    if !status.success() && !interrupt::asked() {
        bail!("its process ended with {status}");
    }
    output
}

fn listen(child: &mut Child, rest: Duration) -> anyhow::Result<Output> {
    let process = child.id();
    let mut answers = child.stdin.take().context("a turn has an input")?;
    let lines = BufReader::new(child.stdout.take().context("a turn has an output")?).lines();
    let mut output = Output::default();
    for line in lines {
        let line = line.context("cannot read the output of a turn")?;
        let Some((what, value)) = line.split_once(' ') else {
            bail!("unexpected output of a turn: {line:?}");
        };
        match what {
            mark::NOW | mark::AT_REST => {
                let look = Resident::of(process)?;
                output.looks.insert(value.into(), look);
                if what == mark::AT_REST {
                    let before = output.looks.get("before").copied().unwrap_or_default();
                    let live = output.looks.get("live").copied().unwrap_or_default();
                    let rested = at_rest(process, rest, given_back_at(&before, &live))?;
                    output.rested.insert(value.into(), rested);
                }
                answer(&mut answers)?;
            }
            name => {
                let value = value.parse();
                let value =
                    value.with_context(|| format!("unexpected output of a turn: {line:?}"))?;
                output.values.insert(name.into(), value);
            }
        }
    }
    Ok(output)
}

fn answer(to: &mut ChildStdin) -> anyhow::Result<()> {
    to.write_all(b"\n").context("cannot write to a turn")?;
    Ok(to.flush()?)
}

/// Returns the resident memory at which all that was added since `before` counts as returned.
fn given_back_at(before: &Resident, live: &Resident) -> u64 {
    let came = live.now.saturating_sub(before.now) as f64;
    before.now + (came * (1.0 - ALL)) as u64
}

/// Returns the resident memory of a process after `rest`, or as soon as it is at most `enough`.
fn at_rest(process: u32, rest: Duration, enough: u64) -> anyhow::Result<Resident> {
    let begun = Instant::now();
    loop {
        let look = Resident::of(process)?;
        let left = rest.saturating_sub(begun.elapsed());
        if left.is_zero() || look.now <= enough {
            return Ok(look);
        }
        if interrupt::asked() {
            bail!("interrupted");
        }
        thread::sleep(left.min(POLL));
    }
}
