//! One event: an allocation, a free, or a request that fell back on memory of another mobility.

use std::collections::HashMap;

use brickyard::{MigrateType, Order};

/// A process name, as a place in [`Trace::names`](crate::Trace::names).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct NameId(pub u32);

/// The places of names that are collected one by one.
#[derive(Debug, Default)]
pub struct NameIds(HashMap<String, NameId>);

impl NameIds {
    /// The place of `name` in `names`, where it is put if it is new. All of them came by this.
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
        /// The list it was asked from.
        mobility: MigrateType,
        /// The request's flags, as the kernel numbers them; [`Flags`](crate::Flags) tells what they
        /// mean.
        flags: u64,
    },
    /// A request failed (`mm_page_alloc` without a frame); the event's frame is 0.
    Failure {
        /// The list it was asked from.
        mobility: MigrateType,
        /// The request's flags.
        flags: u64,
    },
    /// A block, or a part of one, came back (`mm_page_free`).
    Free,
    /// A request fell back on another type's memory (`mm_page_alloc_extfrag`); the event's order is
    /// the one that was asked for.
    Fallback {
        /// The list it was asked from.
        mobility: MigrateType,
        /// The order of the free block that was broken into.
        from_order: Order,
        /// The list that block was on.
        from: MigrateType,
        /// Did the page block change to the requester's type?
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
    /// Its name.
    pub name: NameId,
    /// The CPU.
    pub cpu: u16,
    /// The size: 2^order frames.
    pub order: Order,
}
