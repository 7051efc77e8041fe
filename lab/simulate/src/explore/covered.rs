//! What runs covered: how often each event happened.

use core::array;
use core::cell::Cell;

use brickyard_run::named;

macro_rules! events {
    ($($variant:ident => $name:literal),+ $(,)?) => {
        named! {
            /// The events that are counted.
            #[derive(Debug, Clone, Copy, PartialEq, Eq)]
            pub enum Event {
                $(
                    #[doc = concat!("Counts: ", $name, ".")]
                    $variant => $name,
                )+
            }
        }
    };
}

events! {
    Runs => "runs",
    Accesses => "shared accesses",
    Switches => "switches between tasks and CPUs",
    Stops => "times a CPU stood still for long",
    Starved => "requests made while others go on for ever",
    Operations => "operations of tasks",
    Served => "requests served",
    PageBlocks => "of these, of whole page blocks",
    Below => "of these, below a frame",
    Refused => "requests refused",
    RefusedRightly => "refusals of single frames proved right",
    RefusedBelowRightly => "refusals below a frame proved right",
    RefusedAfterWaits => "refusals of single frames after the last look",
    Freed => "frees",
    BadFrees => "bad frees refused",
    Bulk => "bulk operations",
    LargeBulk => "of these, of 256 frames and more",
    At => "blocks taken at a frame",
    AtWithoutWaiting => "of these, by callers that may not wait",
    Contiguous => "contiguous ranges",
    ContiguousBlocks => "of these, of whole page blocks",
    Passed => "blocks passed from task to task",
    Interrupts => "interrupts",
    Reclaimed => "pages reclaimed",
    Moved => "blocks moved",
    Compactions => "compactions on request",
    Offline => "ranges taken offline",
    Reserved => "ranges reserved",
    Removed => "ranges removed as they were",
    BlocksAway => "whole page blocks among these three",
    Drains => "drains on request",
    Checks => "checks of every invariant",
    StepsMost => "steps of a request at most",
}

impl Event {
    /// Whether it is a maximum rather than a count.
    #[must_use]
    pub const fn is_most(self) -> bool {
        matches!(self, Self::StepsMost)
    }

    /// Combines two values: their maximum or their sum.
    const fn with(self, before: u64, more: u64) -> u64 {
        match self.is_most() {
            true if before > more => before,
            true => more,
            false => before + more,
        }
    }
}

const COUNT: usize = Event::ALL.len();

/// How often each [`Event`] happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Covered([u64; COUNT]);

impl Covered {
    /// Returns the value of `event`.
    #[must_use]
    pub const fn of(&self, event: Event) -> u64 {
        self.0[event as usize]
    }

    /// Adds `more` to the value of `event`, or raises it to `more` if it is a maximum.
    pub const fn count(&mut self, event: Event, more: u64) {
        let own = &mut self.0[event as usize];
        *own = event.with(*own, more);
    }

    /// Adds all values of `other`.
    pub fn add(&mut self, other: &Self) {
        for event in Event::ALL {
            self.count(event, other.of(event));
        }
    }
}

impl Default for Covered {
    fn default() -> Self {
        Self([0; COUNT])
    }
}

/// The values during a run, shared by all its tasks.
#[derive(Debug)]
pub(crate) struct Counts([Cell<u64>; COUNT]);

impl Counts {
    pub(crate) fn new() -> Self {
        Self(array::from_fn(|_| Cell::new(0)))
    }

    pub(crate) fn count(&self, event: Event) {
        self.add(event, 1);
    }

    pub(crate) fn add(&self, event: Event, more: u64) {
        let cell = &self.0[event as usize];
        cell.set(event.with(cell.get(), more));
    }

    pub(crate) fn covered(&self) -> Covered {
        Covered(array::from_fn(|i| self.0[i].get()))
    }
}
