//! What is run: a load with a number of threads, or a real program.

use core::fmt;

use crate::loads::{CATALOG, Crowd, Load};

use super::Sample;
use super::binding;
use super::library::Bound;
use super::process::{Ran, Runner};
use super::real_programs::{REAL, Real};

/// One row of the table.
#[derive(Debug, Clone, Copy)]
pub enum Task {
    /// A load.
    Load(&'static Load, usize),
    /// A real program.
    Real(&'static Real),
    /// The start of a program that does next to nothing, many times.
    Start(&'static Start),
}

/// A program that does next to nothing.
#[derive(Debug)]
pub struct Start {
    name: &'static str,
    what: &'static str,
    command: &'static [&'static str],
}

/// All of them. They are on every system.
const STARTS: [Start; 2] = [
    Start {
        name: "start-true",
        what: "the start of a program that does nothing",
        command: &["true"],
    },
    Start {
        name: "start-sh",
        what: "the start of a shell",
        command: &["sh", "-c", ":"],
    },
];

/// How often they are started for a sample.
const TIMES: f64 = 300.0;

/// Returns the names of all loads and programs, each with what it is and stands for.
pub fn names() -> impl Iterator<Item = (&'static str, String)> {
    let loads = CATALOG.iter().map(|load| {
        let Load { what, source, .. } = load;
        (load.name, format!("{what} [{source}]"))
    });
    let programs = REAL.iter().map(|real| (real.name, real.what.to_owned()));
    let starts = STARTS.iter().map(|one| (one.name, one.what.to_owned()));
    loads.chain(programs).chain(starts)
}

/// Returns the tasks of this name: a load may be run by one thread, and by `threads`. `None` if it
/// has no such name.
#[must_use]
pub fn named(name: &str, threads: usize) -> Option<Vec<Task>> {
    if let Some(load) = Load::named(name) {
        let crowds = match load.crowd {
            Crowd::One => &[1][..],
            Crowd::Many => &[threads][..],
            Crowd::Both if threads > 1 => &[1, threads],
            Crowd::Both => &[1],
        };
        let tasks = crowds.iter().map(|&threads| Task::Load(load, threads));
        return Some(tasks.collect());
    }
    let real = REAL.iter().find(|real| real.name == name);
    let start = || STARTS.iter().find(|start| start.name == name);
    let task = real.map(Task::Real).or_else(|| start().map(Task::Start));
    task.map(|task| vec![task])
}

impl Task {
    /// Returns why it cannot run here, and the fix; `None` if it can.
    #[must_use]
    pub fn missing(&self) -> Option<String> {
        match self {
            Self::Load(..) | Self::Start(_) => None,
            Self::Real(real) => real.missing(),
        }
    }

    /// Writes the files that its runs need.
    pub(crate) fn prepare(&self, runner: &Runner<'_>, scale: f64) -> anyhow::Result<()> {
        match self {
            Self::Load(..) | Self::Start(_) => Ok(()),
            Self::Real(real) => real.prepare(runner, scale),
        }
    }

    /// Warms up: runs a part of a load, or checks that a real program's malloc is the library's.
    /// Returns no sample.
    pub(crate) fn warm_up(
        &self,
        runner: &Runner<'_>,
        library: &Bound,
        scale: f64,
    ) -> anyhow::Result<Option<Sample>> {
        match self {
            Self::Load(load, threads) => {
                runner.load(library.path.as_deref(), load.name, *threads, scale)?;
            }
            Self::Real(real) => {
                for executable in real.executables()? {
                    binding::check(&executable, &library.for_programs, runner.folder)?;
                }
            }
            Self::Start(start) => {
                runner.starts(&library.for_programs, 1, start.command)?;
            }
        }
        Ok(None)
    }

    /// Runs it once. Returns the sample, and what must be the same in each run.
    pub(crate) fn run(
        &self,
        runner: &Runner<'_>,
        library: &Bound,
        scale: f64,
    ) -> anyhow::Result<(Sample, String)> {
        match self {
            Self::Load(load, threads) => {
                let ran = runner.load(library.path.as_deref(), load.name, *threads, scale)?;
                Ok((sample(&ran), said_by_a_load(&ran)))
            }
            Self::Real(real) => {
                let ran = runner.program(&library.for_programs, real.command(), real.variables)?;
                Ok((sample(&ran), ran.output))
            }
            Self::Start(start) => {
                let times = (TIMES * scale).max(1.0).floor();
                let ran = runner.starts(&library.for_programs, times as u64, start.command)?;
                let sample = Sample {
                    starts: Some(times),
                    ..sample(&ran)
                };
                Ok((sample, ran.output))
            }
        }
    }
}

const MIB: f64 = (1 << 20) as f64;

fn sample(ran: &Ran) -> Sample {
    let live = ran.lines().find(|&(name, _)| name == "live");
    let live = live.and_then(|(_, bytes)| bytes.parse::<f64>().ok());
    Sample {
        time_s: ran.measured.wall.as_secs_f64(),
        cpu_s: ran.measured.cpu.as_secs_f64(),
        peak_mib: ran.measured.peak_kib as f64 / 1024.0,
        live_mib: live.map(|bytes| bytes / MIB),
        settled_mib: ran.settled_kib.map(|kib| kib as f64 / 1024.0),
        faults: ran.measured.faults as f64,
        starts: None,
    }
}

/// All but the paths of objects.
fn said_by_a_load(ran: &Ran) -> String {
    let said = ran
        .lines()
        .filter(|(name, _)| ["operations", "live"].contains(name));
    let said: Vec<String> = said
        .map(|(name, value)| format!("{name} {value}"))
        .collect();
    said.join(", ")
}

/// Writes the row's name.
impl fmt::Display for Task {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Load(load, _) if load.crowd == Crowd::One => f.write_str(load.name),
            Self::Load(load, threads) => write!(f, "{} threads-{threads}", load.name),
            Self::Real(real) => f.write_str(real.name),
            Self::Start(start) => f.write_str(start.name),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_has_tasks_and_each_its_own_name() {
        let mut rows = Vec::new();
        for (name, what) in names() {
            assert!(!what.is_empty());
            let tasks = named(name, 3).unwrap();
            rows.extend(tasks.iter().map(ToString::to_string));
        }
        let mut once = rows.clone();
        once.sort_unstable();
        once.dedup();
        assert_eq!(once.len(), rows.len());
        assert!(rows.contains(&"alloc-test threads-1".to_owned()));
        assert!(rows.contains(&"alloc-test threads-3".to_owned()));
        assert!(rows.contains(&"cfrac".to_owned()) && rows.contains(&"sqlite".to_owned()));
        assert!(named("nonesuch", 2).is_none());
        assert_eq!(named("alloc-test", 1).unwrap().len(), 1);
    }
}
