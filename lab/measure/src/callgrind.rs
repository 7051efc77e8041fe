//! Instructions of a process of this program, counted by valgrind's callgrind in functions that are
//! selected by a part of their names. They must not be inlined. Calls and returns inside are
//! counted.
//!
//! Valgrind does not support restartable sequences, so code that uses them is counted on its
//! fallback path.

use core::fmt::Display;
use std::env;
use std::process::{Command, Stdio};

use anyhow::{Context, bail};

use brickyard_run::progress::Progress;

/// Returns true if valgrind is installed; otherwise warns on `progress`.
pub fn is_installed(progress: &dyn Progress) -> bool {
    let version = Command::new("valgrind").arg("--version").output();
    if let Err(error) = &version {
        progress.warn(&format!(
            "skipped: --instructions needs valgrind, which cannot be started ({error}); install it"
        ));
    }
    version.is_ok()
}

/// Returns the command that runs this program so that the instructions of `function` are counted.
pub fn launcher(function: impl Display) -> Vec<String> {
    vec![
        "valgrind".to_owned(),
        "--tool=callgrind".to_owned(),
        "--callgrind-out-file=/dev/null".to_owned(),
        format!("--toggle-collect=*{function}*"),
    ]
}

/// Returns a command that runs this program again, through `launcher` if that is not empty.
///
/// # Errors
/// This program cannot be found.
pub fn this_program(launcher: &[String]) -> anyhow::Result<Command> {
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

/// Returns the cost of one of `times` repetitions, from two processes that do so many and twice as
/// many: the start of a process and one-time work cancel out.
///
/// # Errors
/// A process fails.
pub fn of_one(
    times: usize,
    process: impl Fn(usize) -> anyhow::Result<Command>,
) -> anyhow::Result<f64> {
    let (once, twice) = (counted(process(times)?)?, counted(process(2 * times)?)?);
    Ok(twice.saturating_sub(once) as f64 / times as f64)
}

/// Does the same for work that must have a cost.
///
/// # Errors
/// Also if nothing was counted, which would look like a gain.
pub fn of_one_that_costs(
    times: usize,
    process: impl Fn(usize) -> anyhow::Result<Command>,
) -> anyhow::Result<f64> {
    not_zero(of_one(times, process)?)
}

fn not_zero(each: f64) -> anyhow::Result<f64> {
    if each <= 0.0 {
        bail!("no instructions were counted: the functions were inlined or renamed");
    }
    Ok(each)
}

/// Runs `command`; returns the instructions that valgrind has counted.
fn counted(mut command: Command) -> anyhow::Result<u64> {
    let out = command.stdin(Stdio::null()).output();
    let out = out.context("cannot start valgrind")?;
    let output = String::from_utf8_lossy(&out.stderr);
    if !out.status.success() {
        bail!("valgrind ended with {}: {}", out.status, last_line(&output));
    }
    collected(&output).with_context(|| format!("valgrind printed {:?}", last_line(&output)))
}

fn last_line(text: &str) -> &str {
    text.trim_end().lines().next_back().unwrap_or("")
}

/// Returns the number of instructions in the output of callgrind.
fn collected(output: &str) -> Option<u64> {
    let line = output.lines().find(|line| line.contains("Collected : "))?;
    line.rsplit("Collected : ").next()?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_number_is_found_in_the_output_of_callgrind() {
        let output = "==7== \n==7== Events    : Ir\n==7== Collected : 1234567\n==7== \n";
        assert_eq!(collected(output), Some(1_234_567));
        assert_eq!(collected("==7== nothing"), None);
        assert_eq!(last_line(output), "==7==");
    }

    #[test]
    fn nothing_counted_is_an_error() {
        assert_eq!(not_zero(15.0).unwrap(), 15.0);
        assert!(not_zero(0.0).is_err());
    }
}
