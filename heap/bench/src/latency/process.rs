//! A turn: a process that runs the load for a given time. It ends early, and tells what it has,
//! when its standard input is closed.

use core::time::Duration;
use std::collections::HashMap;
use std::io::Read;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Instant;

use anyhow::{Context, bail};

use crate::programs::library::Bound;
use crate::programs::process::{Runner, last_line};
use brickyard_run::interrupt;
use brickyard_run::progress::Progress;

/// A step of progress.
const STEP: Duration = Duration::from_millis(100);

/// Returns the steps of a turn.
pub(super) fn steps(time: Duration) -> u64 {
    (time.as_millis() / STEP.as_millis()).max(1) as u64
}

/// What a process has told: values by their names.
#[derive(Debug)]
pub(crate) struct ProcessReport(HashMap<String, f64>);

impl ProcessReport {
    /// Runs the load under a library.
    pub(super) fn take(
        runner: &Runner<'_>,
        library: &Bound,
        threads: usize,
        time: Duration,
        progress: &dyn Progress,
    ) -> anyhow::Result<Self> {
        let mut command = Command::new(runner.loads);
        command.env_remove("LD_PRELOAD");
        if let Some(path) = &library.path {
            command.env("LD_PRELOAD", path);
        }
        command.args(["latency".into(), threads.to_string()]);
        command.arg(time.as_secs_f64().to_string());
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        // A group of its own: Ctrl-C at a terminal is for this process, which closes the input.
        command.stderr(Stdio::piped()).process_group(0);
        let mut child = command.spawn().with_context(|| {
            let loads = runner.loads.display();
            format!("cannot start {loads}; build it: cargo build --release -p brickyard-heap-bench")
        })?;
        let status = follow(&mut child, time, progress)?;
        let (mut told, mut errors) = (String::new(), String::new());
        if let (Some(mut out), Some(mut err)) = (child.stdout.take(), child.stderr.take()) {
            out.read_to_string(&mut told)?;
            err.read_to_string(&mut errors)?;
        }
        if !status.success() {
            bail!("{status}: {}", last_line(&errors));
        }
        Ok(Self::read(&told))
    }

    /// Reads lines of a name and a value. Others say which malloc it was.
    fn read(told: &str) -> Self {
        let values = told.lines().filter_map(|line| {
            let (name, value) = line.split_once(' ')?;
            Some((name.to_owned(), value.parse().ok()?))
        });
        Self(values.collect())
    }

    /// Returns the value of this name, if there is one.
    pub(super) fn value(&self, name: &str) -> Option<f64> {
        self.0.get(name).copied()
    }
}

/// Waits for the end of a process, and ends it early if that was requested. What it prints fits in
/// its pipe.
fn follow(
    child: &mut Child,
    time: Duration,
    progress: &dyn Progress,
) -> anyhow::Result<std::process::ExitStatus> {
    let begun = Instant::now();
    let mut told = 0;
    loop {
        if let Some(status) = child.try_wait()? {
            progress.advance(steps(time) - told);
            return Ok(status);
        }
        if interrupt::asked() {
            drop(child.stdin.take());
        }
        thread::sleep(STEP / 4);
        let done = steps(begun.elapsed()).min(steps(time) - 1);
        progress.advance(done.saturating_sub(told));
        told = told.max(done);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_read_by_their_names() {
        let turn = ProcessReport::read("malloc /lib/c.so\noperations 5\nmalloc/p99.9 12.5\n");
        assert_eq!(turn.value("operations"), Some(5.0));
        assert_eq!(turn.value("malloc/p99.9"), Some(12.5));
        assert_eq!(turn.value("malloc"), None);
    }

    #[test]
    fn a_turn_has_a_step_at_least() {
        assert_eq!(steps(Duration::from_millis(1)), 1);
        assert_eq!(steps(Duration::from_secs(10)), 100);
    }
}
