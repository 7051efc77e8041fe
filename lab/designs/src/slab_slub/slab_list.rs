//! A list of slabs, linked through their records at both ends. Guarded by the lock of its node.

use brickyard_slab::design::Pages;
use brickyard_sync::GuardedU32;

/// See the module. Slabs are stored as page number + 1; 0 is none.
#[derive(Debug, Default)]
pub(crate) struct SlabChain {
    first: GuardedU32,
    last: GuardedU32,
    count: GuardedU32,
}

/// An end of a chain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ListEnd {
    /// Slabs are taken from here.
    Front,
    /// Slabs here wait longest.
    Back,
}

impl SlabChain {
    /// Returns the first page of the first slab.
    pub(crate) fn first(&self) -> Option<usize> {
        (self.first.get() as usize).checked_sub(1)
    }

    /// Returns the first page of the last slab.
    pub(crate) fn last(&self) -> Option<usize> {
        (self.last.get() as usize).checked_sub(1)
    }

    /// Returns the slab behind this one.
    pub(crate) fn after(&self, pages: &Pages<'_>, head: usize) -> Option<usize> {
        (pages.record(head).next.get() as usize).checked_sub(1)
    }

    pub(crate) fn count(&self) -> u32 {
        self.count.get()
    }

    /// Adds a slab that is on no list.
    pub(crate) fn add(&self, pages: &Pages<'_>, head: usize, end: ListEnd) {
        let (record, this) = (pages.record(head), head as u32 + 1);
        let (prev, next) = match end {
            ListEnd::Front => (0, self.first.get()),
            ListEnd::Back => (self.last.get(), 0),
        };
        record.prev.set(prev);
        record.next.set(next);
        self.join(pages, prev, this);
        self.join_back(pages, next, this);
        self.count.add(1);
    }

    /// Removes a slab that is on this list.
    pub(crate) fn remove(&self, pages: &Pages<'_>, head: usize) {
        let record = pages.record(head);
        let (prev, next) = (record.prev.get(), record.next.get());
        self.join(pages, prev, next);
        self.join_back(pages, next, prev);
        self.count.set(self.count.get() - 1);
    }

    /// Makes `next` what comes after `prev`.
    fn join(&self, pages: &Pages<'_>, prev: u32, next: u32) {
        match prev {
            0 => self.first.set(next),
            _ => pages.record(prev as usize - 1).next.set(next),
        }
    }

    /// Makes `prev` what comes before `next`.
    fn join_back(&self, pages: &Pages<'_>, next: u32, prev: u32) {
        match next {
            0 => self.last.set(prev),
            _ => pages.record(next as usize - 1).prev.set(prev),
        }
    }
}
