//! Timed cells of a reproduction, each in a process of its own, on a host that is checked to be
//! quiet.
//!
//! Where a process happens to lie in memory changes what it times, by more than its own rounds show.
//! So each round is another process, and intervals over rounds include that. What other programs,
//! and other guests of the machine, took of the CPUs meanwhile is counted: a round that they
//! disturbed is timed again, and the count of the one that is kept is a row beside its own.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context as _, bail};
use brickyard_results::Metric;
use brickyard_run::interrupt;
use brickyard_run::terminal::tell;

use crate::cells::rows::{HOST, RowTemplate};
use crate::lock::{CANNOT, WAITING};
use crate::store::Folder;

/// What others took of the CPUs while a cell was timed.
pub(crate) const OTHERS: Metric<'static> = Metric::lower("taken-by-others", "% of a CPU");

/// More than this disturbs a round.
pub(crate) const DISTURBED: f64 = 10.0;

/// How often a round is timed, at most, while others disturb it.
const TRIES: usize = 3;

/// The system's ticks in a second, in all its files of statistics.
const TICKS: f64 = 100.0;

/// How a cell is run in a process of its own.
#[derive(Debug)]
pub struct Apart<'f> {
    /// This program.
    pub program: PathBuf,
    /// Its arguments, which the name of the cell follows: they run it into the folder.
    pub arguments: Vec<std::ffi::OsString>,
    /// The folder.
    pub folder: &'f Folder,
}

impl Apart<'_> {
    /// Times a cell, until others leave it alone or it was tried three times.
    ///
    /// # Errors
    /// What its process says, or if its file cannot be read.
    pub(crate) fn time(&self, cell: &str) -> anyhow::Result<()> {
        let mut taken = None;
        for _ in 0..TRIES {
            let before = Ticks::read();
            let begun = Instant::now();
            let waited = match self.one(cell) {
                Ok(waited) => waited,
                // The rows of the try before are there, and so must be what disturbed them.
                Err(_) if taken.is_some() => break,
                Err(error) => return Err(error),
            };
            let seconds = begun.elapsed().as_secs_f64();
            taken = before.and_then(|before| Some(Ticks::read()?.by_others_since(before, seconds)));
            if waited {
                // Most of that time nothing was timed here.
                taken = None;
            }
            if interrupt::asked() || taken.is_none_or(|taken| taken <= DISTURBED) {
                break;
            }
        }
        match taken {
            Some(taken) => self.add(cell, taken),
            None => Ok(()),
        }
    }

    /// Runs the cell once; what its process says of the host's lock is passed on. Returns true if it
    /// waited for that.
    fn one(&self, cell: &str) -> anyhow::Result<bool> {
        let mut command = Command::new(&self.program);
        command.args(&self.arguments).arg(cell);
        command.stdin(Stdio::null()).stdout(Stdio::null());
        command.stderr(Stdio::piped());
        let mut child = command.spawn().context("cannot run this program again")?;
        let (mut last, mut own, mut waited) = (String::new(), None, false);
        let of_cell = format!("brickyard: {cell}: ");
        if let Some(said) = child.stderr.take() {
            for line in BufReader::new(said).lines().map_while(Result::ok) {
                if line.starts_with(WAITING) || line.starts_with(CANNOT) {
                    waited |= line.starts_with(WAITING);
                    tell(&line);
                } else if let Some(why) = line.strip_prefix(&of_cell) {
                    own = Some(why.to_owned());
                } else if !line.trim().is_empty() {
                    last = line;
                }
            }
        }
        let last = last.strip_prefix("brickyard: ").unwrap_or(&last);
        match (child.wait()?.success(), own) {
            (true, _) => Ok(waited),
            (false, Some(why)) => bail!("{why}"),
            (false, None) if last.is_empty() => bail!("its process ended without a word"),
            (false, None) => bail!("{last}"),
        }
    }

    /// Adds what others took to the rows of a cell.
    fn add(&self, cell: &str, taken: f64) -> anyhow::Result<()> {
        let mut done = self.folder.read(cell)?;
        let (name, run) = cell.rsplit_once('.').unwrap_or((cell, "1"));
        let template = RowTemplate {
            machine: HOST,
            workload: name,
            config: HOST,
            run: run.parse().unwrap_or(1),
        };
        done.rows.push(template.row(&OTHERS, taken));
        Ok(self.folder.write(&done)?)
    }
}

/// Ticks since the system's start, and since this program's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Ticks {
    /// In which any CPU was busy, or another guest had it.
    all: u64,
    /// Of this process and those that it has waited for.
    own: u64,
}

impl Ticks {
    fn read() -> Option<Self> {
        let of = |path| fs::read_to_string(path).ok();
        Self::parse(&of("/proc/stat")?, &of("/proc/self/stat")?)
    }

    /// Parses the two files: `cpu user nice system idle iowait irq softirq steal ...`, and, after
    /// the command's name in brackets, eleven other fields and `utime stime cutime cstime`.
    fn parse(system: &str, process: &str) -> Option<Self> {
        let numbers = |text: &str| -> Option<Vec<u64>> {
            text.split_whitespace()
                .map(|word| word.parse().ok())
                .collect()
        };
        let line = system.lines().find_map(|line| line.strip_prefix("cpu "))?;
        let cpu = numbers(line)?;
        let idle: u64 = cpu.get(3..5)?.iter().sum();
        let all: u64 = cpu.get(..8)?.iter().sum();
        let (_, fields) = process.rsplit_once(')')?;
        let fields: Vec<&str> = fields.split_whitespace().collect();
        let own = numbers(&fields.get(11..15)?.join(" "))?;
        Some(Self {
            all: all - idle,
            own: own.iter().sum(),
        })
    }

    /// Returns what others took since then, in percent of one CPU.
    fn by_others_since(self, before: Self, seconds: f64) -> f64 {
        let all = self.all.saturating_sub(before.all);
        let own = self.own.saturating_sub(before.own);
        let others = all.saturating_sub(own) as f64 / TICKS;
        100.0 * others / seconds.max(1.0 / TICKS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PROCESS: &str = "4120 (a b) c) R 1 2 3 4 5 6 7 8 9 10 30 20 5 1 20 0 1 0 99";

    #[test]
    fn others_are_all_busy_ticks_but_ours() {
        let system =
            |user| format!("cpu  {user} 2 30 4000 50 6 7 8 9 10\ncpu0 1 1 1 1 1 1 1 1 0 0\n");
        let before = Ticks::parse(&system(100), PROCESS).unwrap();
        assert_eq!((before.all, before.own), (100 + 2 + 30 + 6 + 7 + 8, 56));
        let now = Ticks {
            own: before.own + 90,
            ..Ticks::parse(&system(300), PROCESS).unwrap()
        };
        // 200 ticks, of which 90 are ours: 1.1 s of 2.
        assert!((now.by_others_since(before, 2.0) - 55.0).abs() < 1e-9);
        // Ours may be counted a tick early.
        assert_eq!(before.by_others_since(now, 2.0), 0.0);
    }

    #[test]
    fn a_system_that_says_something_else_is_not_checked() {
        for (system, process) in [
            ("", PROCESS),
            ("cpu  1 2 3\n", PROCESS),
            ("cpu  1 2 x 4 5 6 7 8\n", PROCESS),
            ("cpu  1 2 3 4 5 6 7 8\n", "1 (a) R 1 2"),
        ] {
            assert_eq!(Ticks::parse(system, process), None, "{system}");
        }
        assert!(Ticks::read().is_some(), "this system can be checked");
    }

    #[test]
    fn what_the_process_says_of_the_cell_or_last_is_the_error() {
        let folder = Folder::new(std::path::Path::new("/nowhere"));
        for (says, error) in [
            ("echo first >&2; echo brickyard: no traces >&2", "no traces"),
            // Of the cell, rather than how many failed.
            (
                "echo brickyard: slab.host.heaps.1: no peers >&2; echo brickyard: 1 cell failed >&2",
                "no peers",
            ),
            ("true", "its process ended without a word"),
        ] {
            let says = format!("{says}; exit 1");
            let apart = Apart {
                program: PathBuf::from("/bin/sh"),
                arguments: ["-c", &says, "sh"].map(Into::into).into(),
                folder: &folder,
            };
            let found = apart.time("slab.host.heaps.1").unwrap_err();
            assert_eq!(found.to_string(), error);
        }
    }
}
