//! A contestant's turn: every workload of one setting, once, on one machine.

use core::fmt;
use core::time::Duration;

use brickyard::Order;

use super::batch::{Sample, Short, count, sample_of_threads};
use super::fill::fill;
use super::remote::sample_of_pairs;
use super::schedule::{Freed, Workload};
use super::subject::Subject;
use brickyard_run::interrupt;

/// How long a workload runs.
#[derive(Debug, Clone, Copy)]
pub enum Pace {
    /// For a sample, whose loop takes at least this time.
    Sample(Duration),
    /// For so many rounds, on one thread, whose instructions valgrind counts.
    Counted(usize),
}

/// Workloads of one setting, to run on a contestant.
pub struct Rounds<'a> {
    /// The workloads.
    pub workloads: &'a [Workload],
    /// How long each runs.
    pub pace: Pace,
    /// Called after each workload.
    pub step: &'a dyn Fn(),
}

/// The samples of a turn, one per workload, in their order; `None` where there were too few free
/// blocks.
#[derive(Debug, Clone, Default)]
pub struct Taken(pub Vec<Option<Sample>>);

impl Rounds<'_> {
    /// Allocates as much of `subject` at random as the setting says (all of it must be free), and
    /// then runs every workload on it.
    #[must_use]
    pub fn on<S: Subject>(&self, subject: &S) -> Taken {
        let percent = self.workloads.first().map_or(0, |w| w.setting.fill);
        fill(&mut subject.handle(Order::ZERO), percent);
        self.on_unfilled(subject)
    }

    /// Runs every workload on a subject that has no memory to fill.
    pub(crate) fn on_unfilled<S: Subject>(&self, subject: &S) -> Taken {
        self.each(|workload| match (self.pace, workload.freed) {
            (Pace::Sample(least), Freed::Remote) => sample_of_pairs(subject, workload, least),
            _ => self.alone(subject, workload),
        })
    }

    /// Does the same where each thread has memory of its own, which no other can free.
    pub(crate) fn on_unshared<S: Subject>(&self, subject: &S) -> Taken {
        self.each(|workload| match workload.freed {
            Freed::Same | Freed::Random => self.alone(subject, workload),
            Freed::Remote => Err(Short),
        })
    }

    /// Runs a workload in which each thread frees what it has allocated.
    fn alone<S: Subject>(&self, subject: &S, workload: &Workload) -> Result<Sample, Short> {
        match self.pace {
            Pace::Sample(least) => sample_of_threads(subject, workload, least),
            Pace::Counted(rounds) => count(subject, workload, rounds),
        }
    }

    fn each(&self, sample: impl Fn(&Workload) -> Result<Sample, Short>) -> Taken {
        let mut samples = Vec::new();
        for workload in self.workloads {
            if interrupt::asked() {
                break;
            }
            samples.push(sample(workload).ok());
            (self.step)();
        }
        Taken(samples)
    }
}

impl fmt::Debug for Rounds<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Rounds")
            .field("workloads", &self.workloads)
            .field("pace", &self.pace)
            .finish_non_exhaustive()
    }
}
