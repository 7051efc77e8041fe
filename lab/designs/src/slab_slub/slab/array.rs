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

    /// Moves up to `most` of the newest objects of another array here, as far as there is room.
    /// They keep their order: the newest there is the newest here. Returns how many. It counts as a
    /// use of this array, and not of the other one: so Linux did until 2010, when it was found and
    /// turned round.
    pub(super) fn take_newest<const M: usize>(&self, from: &Array<M>, most: u32) -> u32 {
        let many = self.fits(from, most);
        if many > 0 {
            let left = from.avail() - many;
            self.copy(from, left, many);
            from.avail.set(left);
            self.touched.set(1);
        }
        many
    }

    /// Moves up to `most` of the oldest objects of another array here, as far as there is room.
    /// They keep their order. Returns how many. It is no use of either.
    pub(super) fn take_oldest<const M: usize>(&self, from: &Array<M>, most: u32) -> u32 {
        let many = self.fits(from, most);
        if many > 0 {
            self.copy(from, 0, many);
            from.start.set((from.start.get() + many) % M as u32);
            from.avail.set(from.avail() - many);
        }
        many
    }

    /// Returns how many objects of another array fit here, at most `most`.
    fn fits<const M: usize>(&self, from: &Array<M>, most: u32) -> u32 {
        from.avail().min(most).min(self.limit() - self.avail())
    }

    /// Adds so many entries of another array, from `place` on; there is room.
    fn copy<const M: usize>(&self, from: &Array<M>, place: u32, many: u32) {
        let (avail, start, other) = (self.avail(), self.start.get(), from.start.get());
        for each in 0..many {
            let object = from.entries[(other + place + each) as usize % M].get();
            self.entries[(start + avail + each) as usize % N].set(object);
        }
        self.avail.set(avail + many);
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
    /// fifth of its room; or half of what there is, if that is less than a fifth. A trim that finds
    /// it empty does nothing, and a use before still counts.
    pub(super) fn idle(&self) -> u32 {
        if self.avail() == 0 {
            return 0;
        }
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
