//! The slabs that a list owns, and those among them that have free objects. A design keeps these
//! behind the lock of a list, and the slabs' records too.

use brickyard_sync::{GuardedU32, GuardedU64};

use crate::cache_info::CacheInfo;
use crate::pages::{Pages, SlabRecord};
use crate::statistics::CacheNumbers;

/// The slabs that a list owns, behind its lock.
#[derive(Debug, Default)]
pub struct OwnedSlabs {
    /// The first slab with free objects, as page number + 1; 0 if there is none.
    partial: GuardedU32,
    partials: GuardedU32,
    slabs: GuardedU32,
    /// The colour of the next slab.
    colour: GuardedU32,
    /// Objects that are not in their slabs.
    pub out: GuardedU64,
}

/// Slabs that have become empty. To be given back when no lock is held any more.
#[derive(Debug, Default)]
pub struct Gone {
    /// The first page's number + 1; the others are linked by `next`.
    first: u32,
}

impl Gone {
    /// Adds a slab, which is on no list.
    pub fn push(&mut self, pages: &Pages<'_>, head: usize) {
        pages.record(head).next.set(self.first);
        self.first = head as u32 + 1;
    }

    /// Calls `give` for each slab, once.
    pub fn each(&mut self, pages: &Pages<'_>, mut give: impl FnMut(usize)) {
        while self.first != 0 {
            let head = self.first as usize - 1;
            // Read before the pages belong to somebody else.
            self.first = pages.record(head).next.get();
            give(head);
        }
    }
}

impl OwnedSlabs {
    /// Called when another cache gets this list; the last one has given back all that it had.
    pub fn begin(&self) {
        debug_assert_eq!((self.slabs.get(), self.out.get()), (0, 0));
        self.colour.set(0);
    }

    /// Adds what is counted here to `numbers`.
    pub fn add_to(&self, numbers: &mut CacheNumbers) {
        numbers.slabs += u64::from(self.slabs.get());
        numbers.partial_slabs += u64::from(self.partials.get());
        numbers.out += self.out.get();
    }

    /// Returns how many slabs there are.
    #[must_use]
    pub fn count(&self) -> u32 {
        self.slabs.get()
    }

    /// Returns the first page of the first slab with free objects.
    #[must_use]
    pub fn first_partial(&self) -> Option<usize> {
        (self.partial.get() as usize).checked_sub(1)
    }

    /// Returns the colour for the next slab and moves on to the one after it.
    #[must_use]
    pub fn next_colour(&self, colours: u32) -> u32 {
        let colour = self.colour.get();
        self.colour.set((colour + 1) % colours);
        colour
    }

    /// Makes the pages from `head` on a slab, with all of its objects in it.
    pub fn add<'m>(
        &self,
        pages: &Pages<'m>,
        info: &CacheInfo,
        head: usize,
        colour: u32,
    ) -> &'m SlabRecord {
        pages.begin(head, usize::from(info.geometry.marked), info.id);
        let record = pages.record(head);
        record.out.set(0);
        record.colour.set(colour);
        self.slabs.set(self.slabs.get() + 1);
        self.link(pages, head);
        record
    }

    /// The pages from `head` on are a slab no longer; it is on no list.
    pub fn remove(&self, pages: &Pages<'_>, info: &CacheInfo, head: usize) {
        pages.end(head, usize::from(info.geometry.marked));
        self.slabs.set(self.slabs.get() - 1);
    }

    /// Puts a slab on the list of those with free objects.
    pub fn link(&self, pages: &Pages<'_>, head: usize) {
        let record = pages.record(head);
        let next = self.partial.get();
        record.prev.set(0);
        record.next.set(next);
        if next != 0 {
            pages.record(next as usize - 1).prev.set(head as u32 + 1);
        }
        self.partial.set(head as u32 + 1);
        self.partials.set(self.partials.get() + 1);
    }

    /// Takes a slab off that list: it has no free objects any more, or is about to be removed.
    pub fn unlink(&self, pages: &Pages<'_>, head: usize) {
        let record = pages.record(head);
        let (prev, next) = (record.prev.get(), record.next.get());
        match prev {
            0 => self.partial.set(next),
            _ => pages.record(prev as usize - 1).next.set(next),
        }
        if next != 0 {
            pages.record(next as usize - 1).prev.set(prev);
        }
        self.partials.set(self.partials.get() - 1);
    }
}
