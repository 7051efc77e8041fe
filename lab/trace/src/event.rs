//! One event: an allocation, a free, or a request that fell back on memory of another mobility.

use std::collections::HashMap;

use brickyard::{MigrateType, Order};

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
