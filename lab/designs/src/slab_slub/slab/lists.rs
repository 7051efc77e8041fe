//! What a node has of a cache: its slabs, and arrays of free objects that its CPUs share.
//!
//! Invariant `slab-on-one-list`: a slab is on exactly one of its node's lists: `free` if all of its
//! objects are in it, `full` if none is, else `partial`. A slab is its node's for its whole life.
//! The node's list lock guards the lists, the records of its slabs, and their indices.

use brickyard_slab::design::{Backend, CacheInfo, Gone};
use brickyard_slab::{CacheNumbers, FreeFault, Local, PageSource, counts};
use brickyard_sync::{GuardedU32, GuardedU64, Locked, RawLock};

use super::array::Array;
use super::indices::{END, Indices};
use super::parameters::{
    ALIEN, ALIEN_NODES, ARRAY_MOST, SHARED_MOST, batch_of, limit_of, shared_of,
};
use crate::slab_designs::CacheLine;
use crate::slab_slub::slab_list::{ListEnd, SlabChain};

/// A CPU's part of a cache: only the CPU touches it, pinned, with interrupts masked.
#[derive(Debug)]
#[repr(C, align(64))]
pub(super) struct CpuState {
    pub(super) array: Array<ARRAY_MOST>,
    /// The node whose alien array is drained at the next trim.
    pub(super) reaped: GuardedU32,
    pub(super) counts: CpuCounts,
}

counts! {
    /// Counters of a CPU.
    CpuCounts for CacheNumbers { misses, free_misses, remote_frees, }
}

/// The lists of a node, behind the list lock.
#[derive(Debug)]
pub(super) struct Lists {
    partial: SlabChain,
    free: SlabChain,
    full: SlabChain,
    /// Objects in the slabs of `partial` and `free`.
    free_objects: GuardedU32,
    /// With more free objects than this, an empty slab is given back at once.
    free_limit: GuardedU32,
    /// Not 0 if `free` was asked for a slab since the last trim, whether it had one or not.
    free_touched: GuardedU32,
    /// Trims of this node's CPUs until its lists are trimmed.
    trims: GuardedU32,
    colour: GuardedU32,
    /// Objects that are not in their slabs.
    out: GuardedU64,
    pub(super) shared: Array<SHARED_MOST>,
    counts: ListCounts,
}

counts! {
    /// Counters of a node.
    ListCounts for CacheNumbers {
        /// How often a CPU took objects from the shared array.
        claims,
        /// How often a CPU left objects there.
        stored,
        flushes,
        flushed,
        filled,
        slabs_new,
        slabs_gone,
        refused,
    }
}

/// Objects of one other node's memory, on their way there.
pub(super) type Alien<K> = CacheLine<Locked<K, Array<ALIEN>>>;

/// What a node has of a cache.
#[derive(Debug)]
#[repr(C)]
pub(super) struct NodeState<K> {
    pub(super) lists: CacheLine<Locked<K, Lists>>,
    /// By the node that the objects belong to.
    pub(super) aliens: [Alien<K>; ALIEN_NODES],
}

impl CpuState {
    pub(super) fn new() -> Self {
        Self {
            array: Array::new(),
            reaped: GuardedU32::new(0),
            counts: CpuCounts::default(),
        }
    }

    pub(super) fn begin(&self, limit: u32) {
        self.array.begin(limit);
        self.reaped.set(0);
        self.counts.begin();
    }
}

impl<K: RawLock> NodeState<K> {
    pub(super) fn new() -> Self {
        Self {
            lists: CacheLine(Locked::new(Lists::new())),
            aliens: core::array::from_fn(|_| CacheLine(Locked::new(Array::new()))),
        }
    }
}

/// The limits of a cache, which follow from its geometry.
#[derive(Debug, Clone, Copy)]
pub(super) struct Limits {
    pub(super) array: u32,
    pub(super) shared: u32,
    pub(super) alien: u32,
}

impl Limits {
    /// On so many CPUs. Objects of checked caches are in no array.
    pub(super) fn of(info: &CacheInfo, page_bytes: usize, cpus: usize) -> Self {
        let size = info.geometry.stride as usize;
        match info.is_checked() {
            true => Self {
                array: 0,
                shared: 0,
                alien: 0,
            },
            false => Self {
                array: limit_of(size, page_bytes),
                shared: shared_of(size, page_bytes, cpus),
                alien: ALIEN as u32,
            },
        }
    }
}

impl Lists {
    fn new() -> Self {
        Self {
            partial: SlabChain::default(),
            free: SlabChain::default(),
            full: SlabChain::default(),
            free_objects: GuardedU32::new(0),
            free_limit: GuardedU32::new(0),
            free_touched: GuardedU32::new(0),
            trims: GuardedU32::new(0),
            colour: GuardedU32::new(0),
            out: GuardedU64::new(0),
            shared: Array::new(),
            counts: ListCounts::default(),
        }
    }

    /// Makes it that of a new cache, for a node of `cpus` CPUs.
    pub(super) fn begin(&self, info: &CacheInfo, limits: Limits, cpus: u32) {
        debug_assert_eq!((self.slabs(), self.out.get()), (0, 0));
        self.free_objects.set(0);
        // Empty slabs of checked caches end at once: they are looked at for damage.
        self.free_limit.set(match info.is_checked() {
            true => 0,
            false => (1 + cpus) * batch_of(limits.array) + info.geometry.objects,
        });
        self.free_touched.set(0);
        self.trims.set(2 * cpus);
        self.colour.set(0);
        self.shared.begin(limits.shared);
        self.counts.begin();
    }

    pub(super) fn add_to(&self, numbers: &mut CacheNumbers) {
        numbers.slabs += u64::from(self.slabs());
        numbers.partial_slabs += u64::from(self.partial.count() + self.free.count());
        numbers.out += self.out.get();
        numbers.queued += u64::from(self.shared.avail());
        self.counts.add_to(numbers);
    }

    fn slabs(&self) -> u32 {
        self.partial.count() + self.free.count() + self.full.count()
    }

    /// Returns the colour for the next slab.
    pub(super) fn next_colour(&self, info: &CacheInfo) -> u32 {
        let colour = self.colour.get();
        self.colour.set((colour + 1) % info.geometry.colours);
        colour * info.geometry.colour_step
    }

    /// Adds a new slab, whose objects are made.
    pub(super) fn add_slab<S: PageSource, L>(
        &self,
        backend: &Backend<'_, S, L>,
        info: &CacheInfo,
        head: usize,
        colour: u32,
    ) {
        let (pages, objects) = (&backend.pages, info.geometry.objects);
        pages.begin(head, info.geometry.order.frames(), info.id);
        let record = pages.record(head);
        record.out.set(0);
        record.colour.set(colour);
        Indices::of(backend, info, head).begin(objects);
        self.free.add(pages, head, ListEnd::Back);
        self.free_objects.add(objects);
        self.counts.slabs_new.add(1);
    }

    /// Takes objects of partial slabs, then of free ones, at most `most`; calls `each` with them.
    pub(super) fn take<S: PageSource, L: Local>(
        &self,
        backend: &Backend<'_, S, L>,
        info: &CacheInfo,
        most: u32,
        mut each: impl FnMut(usize),
    ) -> u32 {
        let pages = &backend.pages;
        let mut done = 0;
        while done < most {
            let (head, list) = match self.partial.first() {
                Some(head) => (head, &self.partial),
                None => {
                    self.free_touched.set(1);
                    let Some(head) = self.free.first() else {
                        break;
                    };
                    (head, &self.free)
                }
            };
            let indices = Indices::of(backend, info, head);
            let before = done;
            while done < most
                && let Some(index) = indices.pop()
            {
                each(backend.place_of(info, head, index as usize).addr().get());
                done += 1;
            }
            let record = pages.record(head);
            record.out.add(done - before);
            list.remove(pages, head);
            let now = match indices.first() {
                END => &self.full,
                _ => &self.partial,
            };
            now.add(pages, head, ListEnd::Front);
        }
        self.free_objects.set(self.free_objects.get() - done);
        self.out.add(u64::from(done));
        self.counts.filled.add(u64::from(done));
        done
    }

    /// Puts objects back into their slabs.
    pub(super) fn put_all<S: PageSource, L: Local>(
        &self,
        backend: &Backend<'_, S, L>,
        info: &CacheInfo,
        objects: impl Iterator<Item = usize>,
        gone: &mut Gone,
    ) {
        self.counts.flushes.add(1);
        for object in objects {
            let put = self.put(backend, info, object, gone);
            debug_assert!(put.is_ok(), "an array held {object:#x}: {put:?}");
        }
    }

    /// Puts one object back into its slab. An empty slab goes to `gone` if the node has free
    /// objects beyond its limit.
    ///
    /// # Errors
    /// [`FreeFault`]: it is no object of the cache, or is the first free object of its slab.
    pub(super) fn put<S: PageSource, L: Local>(
        &self,
        backend: &Backend<'_, S, L>,
        info: &CacheInfo,
        object: usize,
        gone: &mut Gone,
    ) -> Result<(), FreeFault> {
        let put = self.put_checked(backend, info, object, gone);
        put.inspect_err(|_| self.counts.refused.add(1))
    }

    fn put_checked<S: PageSource, L: Local>(
        &self,
        backend: &Backend<'_, S, L>,
        info: &CacheInfo,
        object: usize,
        gone: &mut Gone,
    ) -> Result<(), FreeFault> {
        let pages = &backend.pages;
        let (head, index) = backend.find(info, backend.pointer(object))?;
        let record = pages.record(head);
        let indices = Indices::of(backend, info, head);
        if indices.first() == index as u32 {
            return Err(FreeFault::DoubleFree);
        }
        let list = match indices.first() {
            END => &self.full,
            _ => &self.partial,
        };
        let out = record.out.get().checked_sub(1);
        let out = out.ok_or(FreeFault::DoubleFree)?;
        list.remove(pages, head);
        indices.push(index as u32);
        record.out.set(out);
        self.free_objects.add(1);
        self.out.add(u64::MAX);
        self.counts.flushed.add(1);
        if out > 0 {
            self.partial.add(pages, head, ListEnd::Back);
        } else if self.free_objects.get() > self.free_limit.get() {
            self.end(backend, info, head, gone);
        } else {
            self.free.add(pages, head, ListEnd::Front);
        }
        Ok(())
    }

    /// Ends an empty slab that is on no list.
    fn end<S: PageSource, L>(
        &self,
        backend: &Backend<'_, S, L>,
        info: &CacheInfo,
        head: usize,
        gone: &mut Gone,
    ) {
        let left = self.free_objects.get() - info.geometry.objects;
        self.free_objects.set(left);
        self.counts.slabs_gone.add(1);
        backend.pages.end(head, info.geometry.order.frames());
        gone.push(&backend.pages, head);
    }

    /// Gives back at most `most` empty slabs, those that are empty for longest first.
    pub(super) fn give_free<S: PageSource, L>(
        &self,
        backend: &Backend<'_, S, L>,
        info: &CacheInfo,
        most: u32,
        gone: &mut Gone,
    ) {
        for _ in 0..most {
            let Some(head) = self.free.last() else {
                return;
            };
            self.free.remove(&backend.pages, head);
            self.end(backend, info, head, gone);
        }
    }

    /// Counts a trim of a CPU; every second one of each CPU is one of the lists: the shared array,
    /// and slabs with a fifth of the limit of free objects if no free slab was asked for meanwhile.
    pub(super) fn trim<S: PageSource, L: Local>(
        &self,
        backend: &Backend<'_, S, L>,
        info: &CacheInfo,
        cpus: u32,
        gone: &mut Gone,
    ) {
        let left = self.trims.get().saturating_sub(1);
        if left > 0 {
            return self.trims.set(left);
        }
        self.trims.set(2 * cpus);
        let idle = self.shared.idle();
        if idle > 0 {
            let objects = (0..idle).map_while(|_| self.shared.pop_oldest());
            self.put_all(backend, info, objects, gone);
        }
        if self.free_touched.get() != 0 {
            self.free_touched.set(0);
        } else {
            let slabs = self.free_limit.get().div_ceil(5 * info.geometry.objects);
            self.give_free(backend, info, slabs, gone);
        }
    }

    /// Moves up to `most` of the newest objects of the shared array to a CPU's.
    pub(super) fn claim(&self, array: &Array<ARRAY_MOST>, most: u32) -> bool {
        let many = array.take_newest(&self.shared, most);
        self.counts.claims.add(u64::from(many > 0));
        many > 0
    }

    /// Moves up to `most` of the oldest objects of a CPU's array to the shared one. Returns how
    /// many.
    pub(super) fn store(&self, array: &Array<ARRAY_MOST>, most: u32) -> u32 {
        let many = self.shared.take_oldest(array, most);
        self.counts.stored.add(u64::from(many > 0));
        many
    }

    /// Moves the newest objects that another node's CPUs freed to the shared array.
    pub(super) fn receive(&self, alien: &Array<ALIEN>) {
        let many = self.shared.take_newest(alien, alien.avail());
        self.counts.stored.add(u64::from(many > 0));
    }
}
