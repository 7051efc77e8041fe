//! Slabs that a list owns, and those of them that have free objects: the partial slabs. All of it behind the list's page lock, the slabs' records too.
//!
//! A slab's record has its first free object in `free[0]`, from which the others hang; `out` counts those that are not in it. Invariant `partial-list`: a slab is on its owner's list exactly if
//! it has an object and lacks one; a full one (no object left in it) is on no list, and one to which the last object comes back is given back at once.
//!
//! Invariant `owner-while-out`: a slab's owner, colour and cache are written before the first of its objects leaves it, and stay until the last one is back. So whoever has an object of it may read
//! them without the lock; only bad frees can find them changed, so they are looked at again behind the lock.

use brickyard_sync::{GuardedU32, GuardedU64};

use super::super::design::SlabDesign;
use super::super::error::FreeFault;
use super::super::pages::Pages;
use super::super::stats::CacheNumbers;
use super::links::ObjectLinks;
use super::lists::add;
use super::queue::{Broken, Links, is_right};

/// What the page lock guards, records apart.
#[derive(Debug)]
pub(super) struct SlabList {
    /// The first partial slab, as page number + 1.
    partial: GuardedU32,
    partials: GuardedU32,
    slabs: GuardedU32,
    /// The colour of the next slab.
    colour: GuardedU32,
    /// Objects that are not in the slabs.
    out: GuardedU64,
    filled: GuardedU64,
    slabs_new: GuardedU64,
    slabs_gone: GuardedU64,
    /// Full slabs that got an object back.
    slabs_partial: GuardedU64,
    refused: GuardedU64,
    /// Objects left out for good: see [`Broken`].
    pub(super) lost: GuardedU64,
}

/// Slabs that have become empty: to be given back when no lock is held any more.
#[derive(Debug, Default)]
pub(super) struct Gone {
    /// As page number + 1, linked by `next`.
    first: u32,
}

impl Gone {
    fn push(&mut self, pages: &Pages<'_>, head: usize) {
        pages.record(head).next.set(self.first);
        self.first = head as u32 + 1;
    }

    /// Calls `give` for each, once.
    pub(super) fn each(&mut self, pages: &Pages<'_>, mut give: impl FnMut(usize)) {
        while self.first != 0 {
            let head = self.first as usize - 1;
            // Read before the pages are somebody else's.
            self.first = pages.record(head).next.get();
            give(head);
        }
    }
}

impl SlabList {
    pub(super) const fn new() -> Self {
        Self {
            partial: GuardedU32::new(0),
            partials: GuardedU32::new(0),
            slabs: GuardedU32::new(0),
            colour: GuardedU32::new(0),
            out: GuardedU64::new(0),
            filled: GuardedU64::new(0),
            slabs_new: GuardedU64::new(0),
            slabs_gone: GuardedU64::new(0),
            slabs_partial: GuardedU64::new(0),
            refused: GuardedU64::new(0),
            lost: GuardedU64::new(0),
        }
    }

    /// A cache's begin: the one before has given back all that it had.
    pub(super) fn begin(&self) {
        debug_assert_eq!((self.slabs.get(), self.out.get()), (0, 0));
        self.colour.set(0);
        for count in [
            &self.filled,
            &self.slabs_new,
            &self.slabs_gone,
            &self.slabs_partial,
            &self.refused,
            &self.lost,
        ] {
            count.set(0);
        }
    }

    pub(super) fn next_colour(&self, colours: u32) -> u32 {
        let colour = self.colour.get();
        self.colour.set((colour + 1) % colours);
        colour
    }

    pub(super) fn count_refused(&self) {
        add(&self.refused, 1);
    }

    pub(super) fn add_to(&self, numbers: &mut CacheNumbers) {
        numbers.slabs += u64::from(self.slabs.get());
        numbers.partial_slabs += u64::from(self.partials.get());
        numbers.out += self.out.get();
        numbers.filled += self.filled.get();
        numbers.slabs_new += self.slabs_new.get();
        numbers.slabs_gone += self.slabs_gone.get();
        numbers.slabs_partial += self.slabs_partial.get();
        numbers.refused += self.refused.get();
        numbers.lost += self.lost.get();
    }

    fn link(&self, pages: &Pages<'_>, head: usize) {
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

    fn unlink(&self, pages: &Pages<'_>, head: usize) {
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

    /// The list numbered `owner`, which this is, owns a new slab, whose objects hang from `first` on.
    pub(super) fn add_slab<'m, D: SlabDesign<'m>>(
        &self,
        links: ObjectLinks<'_, 'm, D>,
        owner: u32,
        head: usize,
        colour: u32,
    ) {
        let (pages, kind) = (&links.ground.pages, links.kind);
        pages.begin(head, kind.geometry.order.frames(), kind.id);
        let record = pages.record(head);
        record.free[0].set((pages.address_of(head) + colour as usize) as u64);
        record.out.set(0);
        record.colour.set(colour);
        record.owner.set(owner);
        self.slabs.set(self.slabs.get() + 1);
        add(&self.slabs_new, 1);
        self.link(pages, head);
    }

    /// One object of the first partial slab.
    pub(super) fn take<'m, D: SlabDesign<'m>>(
        &self,
        links: ObjectLinks<'_, 'm, D>,
        broken: &mut Broken,
    ) -> Option<usize> {
        let pages = &links.ground.pages;
        let head = (self.partial.get() as usize).checked_sub(1)?;
        let record = pages.record(head);
        let object = record.free[0].get() as usize;
        let out = record.out.get() + 1;
        let left = links.kind.geometry.objects - out;
        let next = links.next(object);
        let mut gone_out = 1;
        if is_right(left, next, |next| in_slab_of(links, head, next)) {
            record.free[0].set(next as u64);
        } else {
            broken.note(object, left);
            record.free[0].set(0);
            gone_out += left;
        }
        let out = out - 1 + gone_out;
        record.out.set(out);
        add(&self.out, u64::from(gone_out));
        add(&self.filled, 1);
        if out == links.kind.geometry.objects {
            self.unlink(pages, head);
        }
        Some(object)
    }

    /// Puts an object back into its slab, which the list numbered `owner`, which this is, should own. A slab that is empty then goes to `gone`.
    pub(super) fn put<'m, D: SlabDesign<'m>>(
        &self,
        links: ObjectLinks<'_, 'm, D>,
        owner: u32,
        object: usize,
        gone: &mut Gone,
    ) -> Result<(), FreeFault> {
        let put = self.put_checked(links, owner, object, gone);
        if put.is_err() {
            self.count_refused();
        }
        put
    }

    fn put_checked<'m, D: SlabDesign<'m>>(
        &self,
        links: ObjectLinks<'_, 'm, D>,
        owner: u32,
        object: usize,
        gone: &mut Gone,
    ) -> Result<(), FreeFault> {
        let pages = &links.ground.pages;
        // `owner-while-out`: looked at again, behind the lock.
        let (head, _) = links
            .ground
            .find(links.kind, links.ground.pointer(object))?;
        let record = pages.record(head);
        if record.owner.get() != owner {
            return Err(FreeFault::NotASlab);
        }
        let first = record.free[0].get() as usize;
        if first == object {
            return Err(FreeFault::DoubleFree);
        }
        let out = record.out.get();
        links.set_next(object, first);
        record.free[0].set(object as u64);
        record.out.set(out - 1);
        add(&self.out, u64::MAX);
        let was_full = out == links.kind.geometry.objects;
        if out == 1 {
            if !was_full {
                self.unlink(pages, head);
            }
            pages.end(head, links.kind.geometry.order.frames());
            self.slabs.set(self.slabs.get() - 1);
            add(&self.slabs_gone, 1);
            gone.push(pages, head);
        } else if was_full {
            add(&self.slabs_partial, 1);
            self.link(pages, head);
        }
        Ok(())
    }

    /// Does `object` hang in the slab that begins at page `head`? Walks the slab's free objects.
    pub(super) fn has<'m, D: SlabDesign<'m>>(
        &self,
        links: ObjectLinks<'_, 'm, D>,
        head: usize,
        object: usize,
    ) -> bool {
        let record = links.ground.pages.record(head);
        let mut at = record.free[0].get() as usize;
        for _ in record.out.get()..links.kind.geometry.objects {
            if at == object {
                return true;
            }
            // A link that was written over ends the walk; whoever takes the object reports it.
            if !in_slab_of(links, head, at) {
                return false;
            }
            at = links.next(at);
        }
        false
    }
}

/// Does an object of the slab that begins at page `head` begin at this address?
fn in_slab_of<'m, D: SlabDesign<'m>>(
    links: ObjectLinks<'_, 'm, D>,
    head: usize,
    address: usize,
) -> bool {
    let pointer = core::ptr::NonNull::new(core::ptr::with_exposed_provenance_mut(address));
    let found = pointer.map(|pointer| links.ground.find(links.kind, pointer));
    matches!(found, Some(Ok((of, _))) if of == head)
}
