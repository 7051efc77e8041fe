//! What was covered: so many runs, and what happened in them.

use core::array;
use core::cell::Cell;

macro_rules! events {
    ($($variant:ident => $name:literal),+ $(,)?) => {
        /// What is counted.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum Event {
            $(
                #[doc = concat!("Counts: ", $name, ".")]
                $variant,
            )+
        }

        impl Event {
            /// All of them.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];

            /// What it is, in words.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name),+
                }
            }
        }
    };
}

events! {
    Runs => "runs",
    Accesses => "shared accesses",
    Switches => "switches between tasks and CPUs",
    Operations => "operations of tasks",
    Served => "requests served",
    Refused => "requests refused",
    RefusedRightly => "refusals of single frames proved right",
    Freed => "frees",
    BadFrees => "bad frees refused",
    Bulk => "bulk operations",
    At => "blocks taken at a frame",
    Contiguous => "contiguous ranges",
    Passed => "blocks passed from task to task",
    Interrupts => "interrupts",
    Reclaimed => "pages reclaimed",
    Moved => "blocks moved",
    Compactions => "compactions on request",
    Offline => "ranges taken offline or reserved",
    Drains => "drains on request",
    Checks => "checks of every invariant",
}

const COUNT: usize = Event::ALL.len();

/// How often each [`Event`] came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Covered([u64; COUNT]);

impl Covered {
    /// How often `event` came.
    #[must_use]
    pub const fn of(&self, event: Event) -> u64 {
        self.0[event as usize]
    }

    /// So many more.
    pub const fn count(&mut self, event: Event, more: u64) {
        self.0[event as usize] += more;
    }

    /// All of `other` too.
    pub fn add(&mut self, other: &Self) {
        for (own, other) in self.0.iter_mut().zip(other.0) {
            *own += other;
        }
    }
}

impl Default for Covered {
    fn default() -> Self {
        Self([0; COUNT])
    }
}

/// The same while a run goes on: all tasks count in it.
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
        cell.set(cell.get() + more);
    }

    pub(crate) fn of(&self, event: Event) -> u64 {
        self.0[event as usize].get()
    }

    pub(crate) fn covered(&self) -> Covered {
        Covered(array::from_fn(|i| self.0[i].get()))
    }
}
