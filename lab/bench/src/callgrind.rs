//! Instructions of a process of this program, counted by valgrind's callgrind in functions that are
//! told by a part of their names. They must not be inlined. Calls and returns inside are counted.
//!
//! Valgrind runs a program without restartable sequences: what uses them shows here what it does
//! where there are none.

use core::fmt::Display;
use std::env;
use std::process::{Command, Stdio};

use anyhow::{Context, bail};
use brickyard_report::Metric;

use crate::progress::Progress;

/// What is counted of a side of a pair.
pub(crate) const fn metric(side: &'static str) -> Metric<'static> {
    Metric::lower(side, "instructions")
}

/// Is there valgrind? Where not, `progress` is told why.
pub(crate) fn is_there(progress: &dyn Progress) -> bool {
    let version = Command::new("valgrind").arg("--version").output();
    if let Err(error) = &version {
        progress.warn(&format!(
            "skipped: --instructions needs valgrind, which does not start ({error}); install it"
        ));
    }
    version.is_ok()
}

/// What starts this program so that the instructions of `function` are counted.
pub(crate) fn launcher(function: impl Display) -> Vec<String> {
    vec![
        "valgrind".to_owned(),
        "--tool=callgrind".to_owned(),
        "--callgrind-out-file=/dev/null".to_owned(),
        format!("--toggle-collect=*{function}*"),
    ]
}

/// This program once more, by way of `launcher` if that is not empty.
///
/// # Errors
/// Where this program cannot be found.
pub(crate) fn this_program(launcher: &[String]) -> anyhow::Result<Command> {
    let this = env::current_exe().context("cannot find this program")?;
    Ok(match launcher.split_first() {
        Some((launcher, arguments)) => {
            let mut command = Command::new(launcher);
            command.args(arguments).arg(this);
            command
        }
        None => Command::new(this),
    })
}

/// What one of `times` repetitions costs, by processes that do so many of them and twice as many:
/// neither the start of a process nor what is done once is in the difference.
///
/// # Errors
/// Where a process fails.
pub(crate) fn of_one(
    times: usize,
    process: impl Fn(usize) -> anyhow::Result<Command>,
) -> anyhow::Result<f64> {
    let (once, twice) = (counted(process(times)?)?, counted(process(2 * times)?)?);
    Ok(twice.saturating_sub(once) as f64 / times as f64)
}

/// The same of what surely costs something.
///
/// # Errors
/// Also where nothing was counted: it would pass for a gain.
pub(crate) fn of_one_that_costs(
    times: usize,
    process: impl Fn(usize) -> anyhow::Result<Command>,
) -> anyhow::Result<f64> {
    something(of_one(times, process)?)
}

fn something(each: f64) -> anyhow::Result<f64> {
    if each <= 0.0 {
        bail!("nothing was counted: the functions were inlined, or have another name");
    }
    Ok(each)
}

/// The instructions that valgrind has collected when `command` has ended.
fn counted(mut command: Command) -> anyhow::Result<u64> {
    let out = command.stdin(Stdio::null()).output();
    let out = out.context("cannot start valgrind")?;
    let said = String::from_utf8_lossy(&out.stderr);
    if !out.status.success() {
        bail!("valgrind ended with {}: {}", out.status, last_line(&said));
    }
    collected(&said).with_context(|| format!("valgrind said {:?}", last_line(&said)))
}

fn last_line(text: &str) -> &str {
    text.trim_end().lines().next_back().unwrap_or("")
}

/// The number of instructions that callgrind says it has collected.
fn collected(said: &str) -> Option<u64> {
    let line = said.lines().find(|line| line.contains("Collected : "))?;
    line.rsplit("Collected : ").next()?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_number_is_found_in_what_callgrind_says() {
        let said = "==7== \n==7== Events    : Ir\n==7== Collected : 1234567\n==7== \n";
        assert_eq!(collected(said), Some(1_234_567));
        assert_eq!(collected("==7== nothing"), None);
        assert_eq!(last_line(said), "==7==");
    }

    #[test]
    fn nothing_collected_is_no_figure() {
        assert_eq!(something(15.0).unwrap(), 15.0);
        assert!(something(0.0).is_err());
    }
}
