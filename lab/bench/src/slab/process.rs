//! Starting the process of a turn, looking at it when it asks, and hearing what it measured.

use core::time::Duration;
use std::collections::HashMap;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::thread;
use std::time::Instant;

use anyhow::{Context, bail};

use super::contestant::Contestant;
use super::mark;
use super::resident::Resident;
use super::work::Work;
use crate::callgrind::this_program;
use crate::stop;

/// The subcommand of `bench` by which a process of this program is told that it is to do a turn,
/// and no more.
pub(crate) const TURN: &str = "slab-turn";

/// How often a process at rest is looked at.
const LOOK: Duration = Duration::from_millis(100);

/// So much given back is all: the rest of the time is not waited for.
const ALL: f64 = 0.995;

/// What came out of a process.
#[derive(Debug, Default)]
pub(crate) struct Said {
    /// What it measured itself, by name.
    pub(crate) values: HashMap<String, f64>,
    /// What it had resident at each mark, by name.
    pub(crate) looks: HashMap<String, Resident>,
    /// The same at the end of the rest, for a mark at rest.
    pub(crate) rested: HashMap<String, Resident>,
}

/// A command that does a contestant's work in a process of its own, by way of `launcher` if that is
/// not empty.
pub(crate) fn command(
    launcher: &[String],
    contestant: &Contestant,
    work: &Work,
) -> anyhow::Result<Command> {
    let mut command = this_program(launcher)?;
    command.args(["bench", TURN, "--heap", &contestant.heap]);
    command.args(work.arguments());
    // What the columns say is what is loaded, and nothing else.
    command.env_remove("LD_PRELOAD");
    if let Some(library) = &contestant.library {
        command.arg("--library").arg(library);
        command.env("LD_PRELOAD", library);
    }
    Ok(command)
}

/// Does the work in a process of its own. One that asks to be watched at rest is watched for
/// `rest`.
pub(crate) fn run(contestant: &Contestant, work: &Work, rest: Duration) -> anyhow::Result<Said> {
    let mut command = command(&[], contestant, work)?;
    let child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
    let mut child = child.context("cannot start this program again")?;
    let said = listen(&mut child, rest);
    if said.is_err() {
        // It may have ended by itself.
        let _ = child.kill();
    }
    let status = child.wait().context("cannot wait for a turn")?;
    // How it ended says more than what it then failed to say.
    if !status.success() && !stop::asked() {
        bail!("its process ended with {status}");
    }
    said
}

fn listen(child: &mut Child, rest: Duration) -> anyhow::Result<Said> {
    let process = child.id();
    let mut answers = child.stdin.take().context("a turn has an input")?;
    let lines = BufReader::new(child.stdout.take().context("a turn has an output")?).lines();
    let mut said = Said::default();
    for line in lines {
        let line = line.context("cannot hear a turn")?;
        let Some((what, value)) = line.split_once(' ') else {
            bail!("a turn said {line:?}");
        };
        match what {
            mark::NOW | mark::AT_REST => {
                let look = Resident::of(process)?;
                said.looks.insert(value.into(), look);
                if what == mark::AT_REST {
                    let before = said.looks.get("before").copied().unwrap_or_default();
                    let live = said.looks.get("live").copied().unwrap_or_default();
                    let rested = at_rest(process, rest, given_back_at(&before, &live))?;
                    said.rested.insert(value.into(), rested);
                }
                answer(&mut answers)?;
            }
            name => {
                let value = value.parse();
                let value = value.with_context(|| format!("a turn said {line:?}"))?;
                said.values.insert(name.into(), value);
            }
        }
    }
    Ok(said)
}

fn answer(to: &mut ChildStdin) -> anyhow::Result<()> {
    to.write_all(b"\n").context("a turn does not listen")?;
    Ok(to.flush()?)
}

/// What is resident when all that came since `before` was given back.
fn given_back_at(before: &Resident, live: &Resident) -> u64 {
    let came = live.now.saturating_sub(before.now) as f64;
    before.now + (came * (1.0 - ALL)) as u64
}

/// What a process has after so long a rest, or once it has no more than `enough`.
fn at_rest(process: u32, rest: Duration, enough: u64) -> anyhow::Result<Resident> {
    let begun = Instant::now();
    loop {
        let look = Resident::of(process)?;
        let left = rest.saturating_sub(begun.elapsed());
        if left.is_zero() || look.now <= enough {
            return Ok(look);
        }
        if stop::asked() {
            bail!("interrupted");
        }
        thread::sleep(left.min(LOOK));
    }
}
