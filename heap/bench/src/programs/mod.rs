//! `programs`: known loads of malloc and real programs, each run under several malloc
//! libraries that are preloaded.
//!
//! | file | contents |
//! |---|---|
//! | `library.rs` | what is compared: malloc libraries |
//! | `task.rs` | what is run: loads, and real programs |
//! | `real_programs.rs`, `source.rs`, `scripts/` | the real programs, and what they are given to do |
//! | `process.rs` | a run: a process that a small program starts and measures |
//! | `binding.rs` | whether a real program's malloc is the library's |
//! | `backing.rs` | memory that is at hand for a run |
//! | `results.rs` | the rows |
//!
//! The libraries take turns at each task. All runs of a task must do the same: loads count their
//! operations, real programs print figures.

mod backing;
mod binding;
pub mod library;
pub(crate) mod process;
mod real_programs;
mod results;
mod source;
pub mod task;

use core::cell::{Cell, RefCell};
use core::time::Duration;
use std::path::PathBuf;

use anyhow::bail;
use brickyard_results::Results;

use brickyard_measure::turns::{Round, Turns};
use brickyard_run::interrupt;
use brickyard_run::progress::Progress;
use library::{Bound, Library};
use process::{Runner, Scratch};
use task::Task;

pub use process::loads_program;

/// The part of a load that is run to warm up.
const WARM_UP: f64 = 0.02;

/// What is measured, and how often.
#[derive(Debug)]
pub struct Programs<'a> {
    /// The columns.
    pub libraries: &'a [Library],
    /// The rows.
    pub tasks: &'a [Task],
    /// The part of each task that is done.
    pub scale: f64,
    /// The samples of each row, at least.
    pub rounds: usize,
    /// Short tasks are run more often, up to four times, until each library has run for so long.
    pub lasting: Duration,
    /// How long a process idles after its work, before its memory is looked at. Zero: it does not.
    pub settle: Duration,
    /// The small program with the loads: see [`loads_program`].
    pub loads: PathBuf,
}

/// One run of a task.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(crate) struct Sample {
    pub(crate) time_s: f64,
    pub(crate) cpu_s: f64,
    pub(crate) peak_mib: f64,
    /// The bytes that were live at the peak, where the load tells them.
    pub(crate) live_mib: Option<f64>,
    /// What was resident when the process had idled, where it did.
    pub(crate) settled_mib: Option<f64>,
    /// The page faults.
    pub(crate) faults: f64,
    /// How many starts of a program it is the sum of, where starts are what is measured.
    pub(crate) starts: Option<f64>,
}

impl Programs<'_> {
    /// Measures, and returns the results as rows, and how many runs of a task under a library have
    /// failed.
    ///
    /// # Errors
    /// A library is not what the loads' malloc belongs to; the run is interrupted before the first
    /// round of the first task is complete.
    pub fn run(&self, progress: &dyn Progress) -> anyhow::Result<(Results, usize)> {
        let scratch = Scratch::new()?;
        let runner = Runner {
            loads: &self.loads,
            folder: scratch.path(),
            settle: self.settle,
        };
        let libraries = self.libraries.iter().map(|one| one.bind(&runner));
        let libraries: Vec<Bound> = libraries.collect::<anyhow::Result<_>>()?;
        let whole = Whole(progress);
        progress.begin((self.tasks.len() * self.rounds * libraries.len()) as u64);
        let mut taken = Vec::new();
        let mut failed = 0;
        for task in self.tasks {
            match self.measure(task, &libraries, &runner, &whole) {
                Ok((of_task, without)) => {
                    taken.push(of_task);
                    failed += without;
                }
                // The rows measured before are kept.
                Err(_) if interrupt::asked() && !taken.is_empty() => (),
                Err(error) => return Err(error),
            }
            if interrupt::asked() {
                break;
            }
        }
        progress.end();
        let results = results::results(&libraries, self.tasks, &taken)?;
        Ok((results, failed))
    }

    /// Returns the samples of each library at a task, and how many libraries have failed at it. One
    /// that fails is reported, and not tried again.
    fn measure(
        &self,
        task: &Task,
        libraries: &[Bound],
        runner: &Runner<'_>,
        progress: &dyn Progress,
    ) -> anyhow::Result<(Vec<Vec<Option<Sample>>>, usize)> {
        let names: Vec<&str> = libraries.iter().map(|one| one.name.as_str()).collect();
        let turns = Turns {
            names: &names,
            samples: self.rounds,
            lasting: self.lasting,
            steps: 1,
            progress,
        };
        task.prepare(runner, self.scale)?;
        let failing = RefCell::new(Vec::new());
        let said = RefCell::new(None);
        let peak = Cell::new(None);
        let taken = turns.take(|whose, round, step| {
            progress.at(&format!("{task}, {}", names[whose]));
            if failing.borrow().contains(&whose) {
                step();
                return Ok(None);
            }
            let sample = match round {
                Round::WarmUp => task.warm_up(runner, &libraries[whose], self.scale * WARM_UP),
                Round::Measured(_) => {
                    backing::fetch(peak.get());
                    let run = task.run(runner, &libraries[whose], self.scale);
                    run.and_then(|(sample, says)| {
                        let most = peak
                            .get()
                            .map_or(sample.peak_mib, |peak: f64| peak.max(sample.peak_mib));
                        peak.set(Some(most));
                        same(&mut said.borrow_mut(), names[whose], &says)?;
                        Ok(Some(sample))
                    })
                }
            };
            step();
            Ok(sample.unwrap_or_else(|error| {
                if !interrupt::asked() {
                    failing.borrow_mut().push(whose);
                    progress.warn(&format!("{}, {task}: {error:#}", names[whose]));
                }
                None
            }))
        })?;
        let without = failing.borrow().len();
        Ok((taken, without))
    }
}

/// Fails unless a run says what the first one said.
fn same(first: &mut Option<(String, String)>, library: &str, says: &str) -> anyhow::Result<()> {
    match first {
        None => *first = Some((library.to_owned(), says.to_owned())),
        Some((other, said)) if said != says => {
            bail!("it says {says:?}, but under {other} it says {said:?}: one of the two is wrong");
        }
        Some(_) => (),
    }
    Ok(())
}

/// The progress of all tasks, of which each begins and ends its own.
#[derive(Debug)]
struct Whole<'a>(&'a dyn Progress);

impl Progress for Whole<'_> {
    fn begin(&self, _: u64) {}

    fn at(&self, name: &str) {
        self.0.at(name);
    }

    fn advance(&self, units: u64) {
        self.0.advance(units);
    }

    fn end(&self) {}

    fn more(&self, units: u64) {
        self.0.more(units);
    }

    fn say(&self, line: &str) {
        self.0.say(line);
    }

    fn warn(&self, what: &str) {
        self.0.warn(what);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_that_do_something_else_are_found() {
        let mut first = None;
        same(&mut first, "glibc", "operations 5").unwrap();
        same(&mut first, "other", "operations 5").unwrap();
        let why = same(&mut first, "third", "operations 6").unwrap_err();
        assert_eq!(
            why.to_string(),
            "it says \"operations 6\", but under glibc it says \"operations 5\": one of the two is wrong"
        );
    }
}
