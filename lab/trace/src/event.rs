//! One event: an allocation, a free, a request that fell back on memory of another mobility; a
//! block that moves between a zone and the list of a CPU; a step of compaction or reclaim.

use std::collections::HashMap;

use brickyard::{MigrateType, Order};

use brickyard_run::named;

/// A process name, as an index into [`Trace::names`](crate::Trace::names).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct NameId(pub u32);

/// The indices of names that are collected one by one.
#[derive(Debug, Default)]
pub struct NameIds(HashMap<String, NameId>);

impl NameIds {
    /// Returns the index of `name` in `names`, and appends it if it is new. Every name in `names`
    /// must have been added by this method.
    pub fn id(&mut self, names: &mut Vec<String>, name: &str) -> NameId {
        if let Some(&id) = self.0.get(name) {
            return id;
        }
        let id = NameId(u32::try_from(names.len()).unwrap_or(u32::MAX));
        names.push(name.to_owned());
        self.0.insert(name.to_owned(), id);
        id
    }
}

/// What happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum What {
    /// A block was handed out (`mm_page_alloc`).
    Alloc {
        /// The free list requested.
        mobility: MigrateType,
        /// The request's flags, as the kernel numbers them; [`Flags`](crate::Flags) has their
        /// meaning.
        flags: u64,
    },
    /// A request failed (`mm_page_alloc` without a frame); the event's frame is 0.
    Failure {
        /// The free list requested.
        mobility: MigrateType,
        /// The request's flags.
        flags: u64,
    },
    /// A block, or a part of one, was freed (`mm_page_free`).
    Free,
    /// A request fell back on another type's memory (`mm_page_alloc_extfrag`); the event's order is
    /// the requested one.
    Fallback {
        /// The free list requested.
        mobility: MigrateType,
        /// The order of the free block that was split.
        from_order: Order,
        /// The list that block was on.
        from: MigrateType,
        /// Whether the page block changed to the requested type.
        claimed: bool,
    },
    /// A block came off a zone's free lists (`mm_page_alloc_zone_locked`): to be handed out, or for
    /// the list of a CPU. A block that comes by a fallback which leaves its page block's type, or
    /// from a page block claimed as a whole, has no such event.
    Taken {
        /// The free list that it came from.
        mobility: MigrateType,
        /// Whether it may have gone to a CPU's list: it has an order and a type that those have.
        refill: bool,
    },
    /// A block went from the list of a CPU back to its zone (`mm_page_pcpu_drain`).
    Drained {
        /// The type of its page block then.
        mobility: MigrateType,
    },
    /// A single page was freed to the list of a CPU (`mm_page_free_batched`): this repeats a
    /// [`What::Free`], and is never to be counted.
    Batched,
    /// A step of compaction or reclaim.
    Step {
        /// Which.
        step: Step,
        /// Its numbers, see [`Step::numbers`]. One that is larger than 2^32 - 1 is that; one that
        /// the step or the kernel does not have is 0.
        numbers: [u32; 3],
    },
}

impl What {
    /// Returns true if the event says what becomes of its frames: a block that is handed out, freed
    /// or moved between a zone and a list, or by which a request fell back.
    #[must_use]
    pub const fn has_frames(&self) -> bool {
        !matches!(self, Self::Failure { .. } | Self::Step { .. })
    }
}

named! {
    /// A step of compaction or reclaim. The event's frame, where it has one, is the first of a
    /// range that is scanned.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
    #[repr(u8)]
    pub enum Step {
        /// A task begins to compact a zone. The frame is where its search for pages begins.
        CompactionBegins => "compaction-begins",
        /// It ends. The frame is where its search for pages was.
        CompactionEnds => "compaction-ends",
        /// Pages were looked for that can be moved.
        SourcesIsolated => "sources-isolated",
        /// Free frames were looked for to move them to.
        TargetsIsolated => "targets-isolated",
        /// Pages were moved.
        Migrated => "migrated",
        /// kcompactd begins. The order is the one asked for.
        KcompactdWakes => "kcompactd-wakes",
        /// kcompactd ends.
        KcompactdSleeps => "kcompactd-sleeps",
        /// A task begins to reclaim. The order is the one asked for.
        ReclaimBegins => "reclaim-begins",
        /// It ends.
        ReclaimEnds => "reclaim-ends",
        /// kswapd begins. The order is the one asked for.
        KswapdWakes => "kswapd-wakes",
        /// kswapd ends.
        KswapdSleeps => "kswapd-sleeps",
        /// Compaction asks whether it may end: whether there is a block of the order.
        CompactionFinished => "compaction-finished",
        /// Whether a zone is worth compacting for the order.
        CompactionSuitable => "compaction-suitable",
        /// A zone is not compacted, since that failed before.
        CompactionDeferred => "compaction-deferred",
        /// Compaction of a zone failed, and is put off.
        CompactionDefers => "compaction-defers",
        /// Compaction of a zone is no longer put off.
        CompactionResumes => "compaction-resumes",
        /// Free frames were taken from the free lists to move pages to, without a scan. The order
        /// is 0, and the range is where such frames would have been best.
        TargetsPicked => "targets-picked",
        /// A task asks for kcompactd. The order is the one asked for.
        KcompactdCalled => "kcompactd-called",
        /// A task asks for kswapd. The order is the one asked for.
        KswapdCalled => "kswapd-called",
    }
}

impl Step {
    /// Returns what the three numbers of such an event are; empty names are those of numbers that
    /// it does not have.
    ///
    /// | name | the number |
    /// |---|---|
    /// | `taken`, `scanned` | pages isolated, and looked at |
    /// | `range` | frames from the event's frame to the end of the range scanned |
    /// | `moved`, `failed` | pages moved, and not |
    /// | `apart` | frames from the search for pages (the event's frame) to that for free ones |
    /// | `span` | frames of the zone, with its holes |
    /// | `waits` | 1 if compaction may wait for pages, otherwise 0 |
    /// | `result` | the kernel's number of the result (`enum compact_result`) |
    /// | `considered`, `shift` | attempts since compaction was put off; it is for 2^shift |
    /// | `node`, `zone` | of memory: the number of the node, and of the zone in it |
    /// | `place` | node * 2^16 + zone |
    /// | `flags` | the request's flags |
    /// | `freed` | pages |
    #[must_use]
    pub const fn numbers(self) -> [&'static str; 3] {
        match self {
            Self::CompactionBegins => ["waits", "apart", "span"],
            Self::CompactionEnds => ["result", "apart", "span"],
            Self::SourcesIsolated | Self::TargetsIsolated | Self::TargetsPicked => {
                ["taken", "scanned", "range"]
            }
            Self::Migrated => ["moved", "failed", ""],
            Self::CompactionFinished | Self::CompactionSuitable => ["result", "", "place"],
            Self::CompactionDeferred | Self::CompactionDefers | Self::CompactionResumes => {
                ["considered", "shift", "place"]
            }
            Self::KcompactdWakes | Self::KcompactdCalled | Self::KswapdWakes => {
                ["node", "zone", ""]
            }
            Self::KswapdCalled => ["node", "zone", "flags"],
            Self::KcompactdSleeps | Self::KswapdSleeps => ["node", "", ""],
            Self::ReclaimBegins => ["flags", "", ""],
            Self::ReclaimEnds => ["freed", "", ""],
        }
    }
}

/// One event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Event {
    /// Nanoseconds since the trace began.
    pub time: u64,
    /// The first frame.
    pub frame: u64,
    /// What happened.
    pub what: What,
    /// The task that was running.
    pub pid: i32,
    /// The task's name.
    pub name: NameId,
    /// The CPU.
    pub cpu: u16,
    /// The size: 2^order frames.
    pub order: Order,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_is_as_small_as_it_is_said_to_be() {
        assert_eq!(size_of::<What>(), 16);
        assert_eq!(size_of::<Event>(), 48);
    }
}
