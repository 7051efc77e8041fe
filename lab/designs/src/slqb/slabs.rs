//! The slabs that a list owns, and the partial slabs: those with free objects. The list's page lock
//! guards all of it, the slabs' records too.
//!
//! A slab's record has its first free object in `free[0]` ([`first_of`]), to which the others are
//! linked, and the list that owns it in `free[1]` ([`owner_of`]); `out` counts the objects that are
//! not in it. Invariant `partial-list`: a slab is on its owner's partial list exactly if some of
//! its objects are in it and some are out. A full slab (all objects out) is on no list, and the
//! pages of a slab are given back as soon as its last object is back.
//!
//! Invariant `owner-while-out`: a slab's owner, colour and cache are written before the first of
//! its objects leaves it, and stay until the last one is back. So the holder of an object may read
//! them without the lock; only a bad free can find them changed, so they are checked again under
//! the lock.
//!
//! Invariant `owner-before-cache`: both under the owner's page lock, a slab's owner is written
//! before its pages' cache, and the cache is cleared when the slab ends. So code that holds a
//! list's page lock and reads the cache, then the list as owner, has found a slab of this list,
//! which stays as long as the lock is held: had the slab been another list's, the owner read would
//! have been that list.

use brickyard_slab::design::{Gone, OwnedSlabs, SlabRecord};
use brickyard_slab::{CacheNumbers, FreeFault, Local, PageSource, counts};
use brickyard_sync::GuardedU64;

use super::links::{FreePointers, ObjectLinks};
use super::queue::{Broken, Links, is_plausible};

/// What this design counts of a cache beside [`CacheNumbers`]. Sums over all CPUs and nodes, read
/// one after the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SlqbNumbers {
    /// Objects taken from incoming queues.
    pub claimed: u64,
    /// Of the flushed objects, those of other lists' slabs.
    pub flushed_remote: u64,
    /// How often a CPU sent its outgoing queue.
    pub outgoing_flushes: u64,
    /// Objects sent that way.
    pub outgoing_flushed: u64,
    /// How often a slab without a free object got one back.
    pub slabs_partial: u64,
    /// Free objects left out for good, since the links between them were overwritten.
    pub lost: u64,
}

/// Returns the word of a slab's first free object.
const fn first_of(record: &SlabRecord) -> &GuardedU64 {
    &record.free[0]
}

/// Returns the word with the number of the list that owns a slab.
pub(super) const fn owner_of(record: &SlabRecord) -> &GuardedU64 {
    &record.free[1]
}

/// What the page lock guards beside the records.
#[derive(Debug, Default)]
pub(super) struct SlabList {
    slabs: OwnedSlabs,
    counts: SlabCounts,
    pub(super) more: MoreCounts,
}

counts! {
    /// Counters of slabs.
    SlabCounts for CacheNumbers {
        filled,
        slabs_new,
        slabs_gone,
        refused,
    }
}

counts! {
    /// Counters of slabs that only this design has.
    MoreCounts for SlqbNumbers {
        /// How often a full slab got an object back.
        slabs_partial,
        /// Objects left out for good: see [`Broken`].
        lost,
    }
}

impl SlabList {
    /// Resets it for a new cache: the one before has given back all its slabs.
    pub(super) fn begin(&self) {
        self.slabs.begin();
        self.counts.begin();
        self.more.begin();
    }

    pub(super) fn next_colour(&self, colours: u32) -> u32 {
        self.slabs.next_colour(colours)
    }

    pub(super) fn add_to(&self, numbers: &mut CacheNumbers, more: &mut SlqbNumbers) {
        self.slabs.add_to(numbers);
        self.counts.add_to(numbers);
        self.more.add_to(more);
    }

    /// Adds a new slab, with its objects linked in address order. `owner` is this list's number.
    pub(super) fn add_slab<S: PageSource, L: Local, F: FreePointers>(
        &self,
        links: ObjectLinks<'_, '_, S, L, F>,
        owner: u32,
        head: usize,
        colour: u32,
    ) {
        let (pages, info) = (&links.backend.pages, links.info);
        // `owner-before-cache`.
        owner_of(pages.record(head)).set(u64::from(owner));
        let record = self.slabs.add(pages, info, head, colour);
        first_of(record).set((pages.address_of(head) + colour as usize) as u64);
        self.counts.slabs_new.add(1);
    }

    /// Takes one object of the first partial slab.
    pub(super) fn take<S: PageSource, L: Local, F: FreePointers>(
        &self,
        links: ObjectLinks<'_, '_, S, L, F>,
        broken: &mut Broken,
    ) -> Option<usize> {
        let pages = &links.backend.pages;
        let head = self.slabs.first_partial()?;
        let record = pages.record(head);
        let object = first_of(record).get() as usize;
        let out = record.out.get() + 1;
        let left = links.info.geometry.objects - out;
        let next = links.next(object);
        let mut gone_out = 1;
        if is_plausible(left, next, |next| in_slab_of(links, head, next)) {
            first_of(record).set(next as u64);
        } else {
            broken.note(object, left);
            first_of(record).set(0);
            gone_out += left;
        }
        let out = out - 1 + gone_out;
        record.out.set(out);
        self.slabs.out.add(u64::from(gone_out));
        self.counts.filled.add(1);
        if out == links.info.geometry.objects {
            self.slabs.unlink(pages, head);
        }
        Some(object)
    }

    /// Puts an object back into its slab. `owner` is this list's number. A slab with no object out
    /// any more goes to `gone`.
    ///
    /// # Errors
    /// [`FreeFault`], if the slab is not this list's, or the object is its first free object.
    pub(super) fn put<S: PageSource, L: Local, F: FreePointers>(
        &self,
        links: ObjectLinks<'_, '_, S, L, F>,
        owner: u32,
        object: usize,
        gone: &mut Gone,
    ) -> Result<(), FreeFault> {
        let put = self.put_checked(links, owner, object, gone);
        put.inspect_err(|_| self.counts.refused.add(1))
    }

    fn put_checked<S: PageSource, L: Local, F: FreePointers>(
        &self,
        links: ObjectLinks<'_, '_, S, L, F>,
        owner: u32,
        object: usize,
        gone: &mut Gone,
    ) -> Result<(), FreeFault> {
        let pages = &links.backend.pages;
        // `owner-while-out`: checked again, under the lock.
        let (head, _) = links
            .backend
            .find(links.info, links.backend.pointer(object))?;
        let record = pages.record(head);
        if owner_of(record).get() != u64::from(owner) {
            return Err(FreeFault::NotASlab);
        }
        let first = first_of(record).get() as usize;
        if first == object {
            return Err(FreeFault::DoubleFree);
        }
        let out = record.out.get();
        links.set_next(object, first);
        first_of(record).set(object as u64);
        record.out.set(out - 1);
        self.slabs.out.add(u64::MAX);
        let was_full = out == links.info.geometry.objects;
        if out == 1 {
            if !was_full {
                self.slabs.unlink(pages, head);
            }
            self.slabs.remove(pages, links.info, head);
            self.counts.slabs_gone.add(1);
            gone.push(pages, head);
        } else if was_full {
            self.more.slabs_partial.add(1);
            self.slabs.link(pages, head);
        }
        Ok(())
    }

    /// Returns true if `object` is free in the slab that begins at page `head`. Walks the slab's
    /// free objects.
    pub(super) fn has<S: PageSource, L: Local, F: FreePointers>(
        &self,
        links: ObjectLinks<'_, '_, S, L, F>,
        head: usize,
        object: usize,
    ) -> bool {
        let record = links.backend.pages.record(head);
        let mut at = first_of(record).get() as usize;
        for _ in record.out.get()..links.info.geometry.objects {
            if at == object {
                return true;
            }
            // An overwritten link ends the walk; it is reported when the object is taken.
            if !in_slab_of(links, head, at) {
                return false;
            }
            at = links.next(at);
        }
        false
    }
}

/// Returns true if an object of the slab that begins at page `head` begins at this address.
fn in_slab_of<S: PageSource, L: Local, F: FreePointers>(
    links: ObjectLinks<'_, '_, S, L, F>,
    head: usize,
    address: usize,
) -> bool {
    let pointer = core::ptr::NonNull::new(core::ptr::with_exposed_provenance_mut(address));
    let found = pointer.map(|pointer| links.backend.find(links.info, pointer));
    matches!(found, Some(Ok((of, _))) if of == head)
}
