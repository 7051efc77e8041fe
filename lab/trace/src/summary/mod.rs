//! The main figures of a trace: who allocated what, for how long, at what rate; which processes
//! mixed page blocks; which events contradict each other.
//!
//! | file | contents |
//! |---|---|
//! | `ledger` | which frames are held, by which task, since when |
//! | `lifetimes` | how long blocks lived |
//! | `walk` | computes all of it from the events |

mod ledger;
mod lifetimes;
mod walk;

use core::ops::ControlFlow;

use brickyard::{MigrateType, Order};

use crate::file::ReadError;
use crate::{Events, PageUse, Step, Trace, What};

pub use lifetimes::Lifetimes;

/// How detailed a summary is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Options {
    /// How many processes each list has, at most.
    pub processes: usize,
    /// How many equal spans of time events are counted in; at least 1.
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
#[non_exhaustive]
pub struct Kinds {
    /// Blocks handed out.
    pub allocs: u64,
    /// Blocks, or parts of them, that were freed.
    pub frees: u64,
    /// Requests that failed.
    pub failures: u64,
    /// Requests that fell back on another type's memory.
    pub fallbacks: u64,
    /// Blocks that came off a zone's free lists.
    pub taken: u64,
    /// Blocks that went from the list of a CPU back to its zone.
    pub drained: u64,
    /// Events that repeat a free.
    pub repeats: u64,
    /// Steps of compaction and reclaim.
    pub steps: u64,
}

impl Kinds {
    /// Counts an event.
    #[inline]
    pub(crate) const fn count(&mut self, what: &What) {
        let count = match what {
            What::Alloc { .. } => &mut self.allocs,
            What::Failure { .. } => &mut self.failures,
            What::Free => &mut self.frees,
            What::Fallback { .. } => &mut self.fallbacks,
            What::Taken { .. } => &mut self.taken,
            What::Drained { .. } => &mut self.drained,
            What::Batched => &mut self.repeats,
            What::Step { .. } => &mut self.steps,
        };
        *count += 1;
    }

    /// Returns the number of events of all kinds.
    #[must_use]
    pub const fn all(&self) -> u64 {
        let pages = self.allocs + self.frees + self.failures + self.fallbacks;
        pages + self.taken + self.drained + self.repeats + self.steps
    }
}

/// Steps of compaction or reclaim of one kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Steps {
    /// The kind.
    pub step: Step,
    /// How many.
    pub events: u64,
    /// The sum of each of their [numbers](Step::numbers).
    pub sums: [u64; 3],
}

impl Steps {
    const fn none(step: Step) -> Self {
        Self {
            step,
            events: 0,
            sums: [0; 3],
        }
    }
}

/// Requests of one order and mobility.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
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
    /// Lifetimes of the blocks that were freed during the trace.
    pub lifetimes: Lifetimes,
}

impl Class {
    /// Returns how many frames were allocated.
    #[must_use]
    pub const fn frames(&self) -> u64 {
        self.allocs << self.order.get()
    }
}

/// Counts for all tasks of one name.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Process {
    /// The name.
    pub name: String,
    /// Allocations.
    pub allocs: u64,
    /// Frames allocated.
    pub frames: u64,
    /// Frames that these tasks freed, whichever task allocated them.
    pub freed_frames: u64,
    /// Frames that they allocated and that are held at the end.
    pub held_frames: u64,
    /// Their requests that failed.
    pub failures: u64,
    /// Fallbacks that changed the type of the page block.
    pub claimed: u64,
    /// Fallbacks that left its type, and so mixed the page block.
    pub mixed: u64,
}

/// Fallbacks from one type's memory for another's requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Fallbacks {
    /// The requested type.
    pub mobility: MigrateType,
    /// The type whose block was split.
    pub from: MigrateType,
    /// How often the page block changed to the requested type.
    pub claimed: u64,
    /// How often it did not, and was mixed from then on.
    pub mixed: u64,
}

/// Events that contradict each other, as they may after lost events, and others worth counting.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Oddities {
    /// Frees of frames that were allocated before the trace began, by the page states at the start
    /// (or possibly, where there are none). Normal.
    pub frees_of_before: u64,
    /// Frees of a part of a block. Normal: the kernel splits blocks.
    pub frees_in_part: u64,
    /// Frees of frames that were not held: an allocation of them was lost.
    pub unknown_frees: u64,
    /// Allocations of frames that were held: a free of them was lost.
    pub double_allocs: u64,
}

/// Frames by use at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Usage {
    /// The use.
    pub usage: PageUse,
    /// Frames at the start.
    pub start: u64,
    /// Frames at the end.
    pub end: u64,
}

/// The main figures of a trace.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Summary {
    /// Nanoseconds from the start to the end.
    pub duration: u64,
    /// Events by kind.
    pub kinds: Kinds,
    /// Requests by order and mobility; empty classes are left out.
    pub classes: Vec<Class>,
    /// The processes that allocated the most frames, in falling order.
    pub processes: Vec<Process>,
    /// How many process names have any events.
    pub process_names: usize,
    /// The processes that mixed the most page blocks, in falling order.
    pub mixers: Vec<Process>,
    /// Events in equal spans of the duration.
    pub spans: Vec<Kinds>,
    /// Fallbacks by both types; pairs without any are left out.
    pub fallbacks: Vec<Fallbacks>,
    /// Steps of compaction and reclaim; kinds without any are left out.
    pub steps: Vec<Steps>,
    /// Events that contradict each other.
    pub oddities: Oddities,
    /// Frames that were allocated during the trace and are held at the end.
    pub held_frames: u64,
    /// Frames by use; empty where the trace has no page states.
    pub usage: Vec<Usage>,
}

impl Summary {
    /// Summarizes a trace in memory.
    ///
    /// ```
    /// use brickyard_trace::{Trace, summary::{Options, Summary}};
    ///
    /// let summary = Summary::of(&Trace::default(), &Options::default());
    /// assert_eq!(summary.kinds.all(), 0);
    /// ```
    ///
    /// # Panics
    /// Never: a trace in memory can be read.
    #[must_use]
    pub fn of(trace: &Trace, options: &Options) -> Self {
        let summary = Self::read(trace, options, |_| ControlFlow::Continue(()));
        summary.expect("a trace in memory can be read")
    }

    /// Summarizes the trace that `source` passes on. Takes some 50 bytes for each block that is
    /// held at a time, and at most 256 MiB for lifetimes: where there are more than 16 million,
    /// those of the largest classes are only to within a thousandth.
    ///
    /// `goes_on` is told how many events more are done. If it ends the pass, the summary is of the
    /// events until then.
    ///
    /// # Errors
    /// Those of the source.
    pub fn read(
        source: &impl Events,
        options: &Options,
        goes_on: impl FnMut(u64) -> ControlFlow<()>,
    ) -> Result<Self, ReadError> {
        walk::summarize(source, options, lifetimes::KEPT_MOST, goes_on)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by it")]
mod tests {
    use super::*;
    use crate::{Event, NameId};

    /// 100 blocks of order 0 that live 1000 ns and more, and 10 of order 1 that live 7 ns.
    fn trace() -> Trace {
        let event = |time, frame, order, what| Event {
            time,
            frame,
            what,
            pid: 1,
            name: NameId(0),
            cpu: 0,
            order: Order::new(order),
        };
        let alloc = What::Alloc {
            mobility: MigrateType::Movable,
            flags: 0,
        };
        let mut trace = Trace::default();
        let events = &mut trace.events;
        events.extend((0..100).map(|frame| event(0, frame, 0, alloc)));
        events.extend((0..100).map(|frame| event(1000 + frame, frame, 0, What::Free)));
        events.extend((0..10).map(|block| event(2000, block * 2, 1, alloc)));
        events.extend((0..10).map(|block| event(2007, block * 2, 1, What::Free)));
        trace
    }

    #[test]
    fn no_more_lifetimes_are_kept_than_may_be() {
        let of = |most| {
            let goes_on = |_| ControlFlow::Continue(());
            walk::summarize(&trace(), &Options::default(), most, goes_on).unwrap()
        };
        let kept = |summary: &Summary| {
            let classes = summary.classes.iter();
            classes
                .map(|class| class.lifetimes.kept())
                .collect::<Vec<_>>()
        };
        let (all, some, none) = (of(110), of(50), of(0));
        assert_eq!(kept(&all), [100, 10]);
        // The largest class goes first.
        assert_eq!(kept(&some), [0, 10]);
        assert_eq!(kept(&none), [0, 0]);
        for summary in [&all, &some, &none] {
            let counts = summary.classes.iter().map(|class| class.lifetimes.count());
            assert_eq!(counts.collect::<Vec<_>>(), [100, 10]);
            let median = |class: usize| summary.classes[class].lifetimes.percentile(50);
            assert_eq!((median(0), median(1)), (Some(1049), Some(7)));
        }
    }

    #[test]
    fn a_pass_can_be_ended() {
        let ended = Summary::read(&trace(), &Options::default(), |_| ControlFlow::Break(()));
        assert_eq!(ended.unwrap().kinds.all(), 220);
    }
}
