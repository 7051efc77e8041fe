//! Arrays of free objects: a CPU's, a node's, and those of objects on their way to another node.

use brickyard_sync::{GuardedU32, GuardedU64};

/// Free objects by address. What is added last is taken first; what has been there longest is
/// flushed. Linux moves the rest down after a flush; this is a ring, so nothing is moved.
#[derive(Debug)]
#[repr(C)]
pub(super) struct Array<const N: usize> {
    avail: GuardedU32,
    limit: GuardedU32,
    /// Where the oldest entry is.
    start: GuardedU32,
    /// Not 0 if it was used since the last trim.
    pub(super) touched: GuardedU32,
    entries: [GuardedU64; N],
}

impl<const N: usize> Array<N> {
    pub(super) const fn new() -> Self {
        Self {
            avail: GuardedU32::new(0),
            limit: GuardedU32::new(0),
            start: GuardedU32::new(0),
            touched: GuardedU32::new(0),
            entries: [const { GuardedU64::new(0) }; N],
        }
    }

    /// Makes it empty, with room for `limit` objects.
    pub(super) fn begin(&self, limit: u32) {
        debug_assert!(limit as usize <= N);
        self.avail.set(0);
        self.limit.set(limit);
        self.start.set(0);
        self.touched.set(0);
    }

    #[inline(always)]
    pub(super) fn avail(&self) -> u32 {
        self.avail.get()
    }

    #[inline(always)]
    pub(super) fn limit(&self) -> u32 {
        self.limit.get()
    }

    #[inline(always)]
    fn entry(&self, place: u32) -> &GuardedU64 {
        &self.entries[(self.start.get() + place) as usize % N]
    }

    /// Returns the object that was added last.
    #[inline(always)]
    pub(super) fn newest(&self) -> Option<usize> {
        let last = self.avail.get().checked_sub(1)?;
        Some(self.entry(last).get() as usize)
    }

    #[inline(always)]
    pub(super) fn pop(&self) -> Option<usize> {
        let left = self.avail.get().checked_sub(1)?;
        self.touched.set(1);
        self.avail.set(left);
        Some(self.entry(left).get() as usize)
    }

    /// Adds an object; there is room.
    pub(super) fn push(&self, object: usize) {
        let avail = self.avail.get();
        self.entry(avail).set(object as u64);
        self.avail.set(avail + 1);
    }

    /// Adds an object, unless there is no room, or the object is there already, at the end. Returns
    /// true if it did.
    #[inline(always)]
    pub(super) fn try_push(&self, object: usize) -> bool {
        let avail = self.avail.get();
        if avail == self.limit.get() {
            return false;
        }
        let start = self.start.get();
        let entry = |place: u32| &self.entries[(start + place) as usize % N];
        if avail > 0 && entry(avail - 1).get() == object as u64 {
            return false;
        }
        entry(avail).set(object as u64);
        self.avail.set(avail + 1);
        true
    }

    /// Takes the oldest object.
    pub(super) fn pop_oldest(&self) -> Option<usize> {
        let left = self.avail.get().checked_sub(1)?;
        let object = self.entry(0).get() as usize;
        self.start.set((self.start.get() + 1) % N as u32);
        self.avail.set(left);
        Some(object)
    }

    /// Returns how many objects a trim gives back: none if it was used since the last one, else a
    /// fifth of its room, and no more than half of what there is.
    pub(super) fn idle(&self) -> u32 {
        if self.touched.get() != 0 {
            self.touched.set(0);
            return 0;
        }
        let (avail, some) = (self.avail(), self.limit.get().div_ceil(5));
        if some > avail {
            avail.div_ceil(2)
        } else {
            some
        }
    }
}
