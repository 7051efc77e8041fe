//! What a trace tells at a glance: who allocated what, for how long, how fast; who mixed which
//! blocks; what is odd about it.
//!
//! | file | what it tells |
//! |---|---|
//! | `ledger` | which frames are held, by whom, since when |
//! | `lifetimes` | how long blocks lived |
//! | `walk` | all of it out of the events |

mod ledger;
mod lifetimes;
mod walk;

use brickyard::{MigrateType, Order};

use crate::{PageUse, Trace};

pub use lifetimes::Lifetimes;

/// How much a summary tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Options {
    /// Processes that are named, at most.
    pub processes: usize,
    /// Equal spans of time for which rates are given; at least 1.
    pub spans: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            processes: 10,
            spans: 40,
        }
    }
}

/// Events by kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Kinds {
    /// Blocks handed out.
    pub allocs: u64,
    /// Blocks, or parts of them, that came back.
    pub frees: u64,
    /// Requests that failed.
    pub failures: u64,
    /// Requests that fell back on another type's memory.
    pub fallbacks: u64,
}

impl Kinds {
    /// All of them.
    #[must_use]
    pub const fn all(&self) -> u64 {
        self.allocs + self.frees + self.failures + self.fallbacks
    }
}

/// Requests of one order and mobility.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Class {
    /// The order.
    pub order: Order,
    /// The mobility.
    pub mobility: MigrateType,
    /// Allocations.
    pub allocs: u64,
    /// Failures.
    pub failures: u64,
    /// Frames held at the end that were allocated during the trace.
    pub held_frames: u64,
    /// How long blocks lived that were freed during the trace.
    pub lifetimes: Lifetimes,
}

impl Class {
    /// Frames allocated.
    #[must_use]
    pub const fn frames(&self) -> u64 {
        self.allocs << self.order.get()
    }
}

/// What tasks of one name did.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Process {
    /// The name.
    pub name: String,
    /// Allocations.
    pub allocs: u64,
    /// Frames allocated.
    pub frames: u64,
    /// Frames that these tasks freed, whoever allocated them.
    pub freed_frames: u64,
    /// Frames that they allocated and that are held at the end.
    pub held_frames: u64,
    /// Their requests that failed.
    pub failures: u64,
    /// Fallbacks that changed the type of the page block.
    pub claimed: u64,
    /// Fallbacks that left it, and so mixed it.
    pub mixed: u64,
}

/// Fallbacks from one type's memory for another's requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fallbacks {
    /// The type that asked.
    pub mobility: MigrateType,
    /// The type whose block was broken into.
    pub from: MigrateType,
    /// How often the page block changed to the type that asked.
    pub claimed: u64,
    /// How often it did not: it is mixed from then on.
    pub mixed: u64,
}

/// What does not fit together. After lost events it need not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Oddities {
    /// Frees of frames that were taken before the trace began, as the page states at the start say
    /// (or might, where there are none). Not odd.
    pub frees_of_before: u64,
    /// Frees that gave back only a part of a block. Not odd: the kernel splits blocks.
    pub frees_in_part: u64,
    /// Frees of frames that nobody held: an allocation of them was lost.
    pub unknown_frees: u64,
    /// Allocations of frames that somebody held: a free of them was lost.
    pub double_allocs: u64,
}

/// Frames by use at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Usage {
    /// The use.
    pub usage: PageUse,
    /// Frames at the start.
    pub start: u64,
    /// Frames at the end.
    pub end: u64,
}

/// What a trace tells at a glance.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Summary {
    /// Nanoseconds from the beginning to the end.
    pub duration: u64,
    /// Events by kind.
    pub kinds: Kinds,
    /// Requests by order and mobility; those that there are none of are left out.
    pub classes: Vec<Class>,
    /// The processes with most frames, those with most first.
    pub processes: Vec<Process>,
    /// How many process names there are in all.
    pub process_names: usize,
    /// The processes that mixed most blocks, those with most first.
    pub mixers: Vec<Process>,
    /// Events in equal spans of the duration.
    pub spans: Vec<Kinds>,
    /// Fallbacks by both types; those that there are none of are left out.
    pub fallbacks: Vec<Fallbacks>,
    /// What does not fit together.
    pub oddities: Oddities,
    /// Frames that were taken during the trace and are held at the end.
    pub held_frames: u64,
    /// Frames by use; empty where the trace has no page states.
    pub usage: Vec<Usage>,
}

impl Summary {
    /// Sums up `trace`: a tree of held blocks is kept on the way (some 50 bytes a block held),
    /// about a microsecond an event.
    ///
    /// ```
    /// use brickyard_trace::{Trace, summary::{Options, Summary}};
    ///
    /// let summary = Summary::of(&Trace::default(), &Options::default());
    /// assert_eq!(summary.kinds.all(), 0);
    /// ```
    #[must_use]
    pub fn of(trace: &Trace, options: &Options) -> Self {
        walk::summarize(trace, options)
    }
}
