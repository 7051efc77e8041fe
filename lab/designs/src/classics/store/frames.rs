//! The records of frames, and lists threaded through them.
//!
//! Twelve bytes per frame: a state word and two links. They replace the fields of Linux's `struct
//! page` that its allocator uses; the pages themselves are never accessed.
//!
//! Memory is cut into **blocks**. Invariant `exact-heads`: the record of a block's first frame
//! describes the block; the records of its other frames are `Inner`, and so are those of frames
//! that are no memory of this zone. So a change of a block changes only its first record, and the
//! block of a frame is found by reading the record at each possible start.
//!
//! The links of a record belong to the holder of the list that the frame is on; those of a frame in
//! use are unused.

use brickyard::sync::{AtomicU32, GuardedU32, Ordering};

use brickyard::block::{State, Use};
use brickyard::{FRAMES_MOST, Frame, FrameRange, MigrateType, Order, PlanError};

/// Encodes a record's state word: bits 0..5 the order, 5..8 the use, 8..11 the type. All zero is
/// `Inner`.
const fn bits_of(state: State) -> u32 {
    state.order.get() as u32 | (state.usage as u32) << 5 | (state.kind as u32) << 8
}

/// Decodes a state word.
#[inline]
const fn state_of(bits: u32) -> State {
    let usage = match bits >> 5 & 0b111 {
        0 => Use::Inner,
        1 => Use::Free,
        2 => Use::Allocated,
        3 => Use::Cached,
        _ => Use::Reserved,
    };
    State {
        usage,
        order: Order::new((bits & 0b1_1111) as u8),
        kind: MigrateType::from_bits(bits >> 8 & 0b111),
    }
}

/// The record of one frame: 12 bytes.
#[derive(Debug)]
pub struct FrameRecord {
    // Atomic, because a merge reads the state of its buddy, which may be in use and be changed by
    // its owner meanwhile. Only the change to and from `Free` matters to the merge, and that
    // happens under the zone's lock.
    state: AtomicU32,
    next: GuardedU32,
    prev: GuardedU32,
}

/// The record of a frame that is no memory yet.
impl Default for FrameRecord {
    fn default() -> Self {
        Self {
            state: AtomicU32::new(0),
            next: GuardedU32::new(NONE),
            prev: GuardedU32::new(NONE),
        }
    }
}

/// No frame, as a link.
const NONE: u32 = u32::MAX;
const _: () = assert!(FRAMES_MOST <= NONE as usize, "every frame has a link");

/// The records of a span of frames.
#[derive(Debug)]
pub struct FrameTable<'m> {
    span: FrameRange,
    records: &'m [FrameRecord],
}

impl<'m> FrameTable<'m> {
    /// Makes a table for `span`, with one record per frame. Holes in the span need records too.
    ///
    /// # Panics
    /// If there are fewer records than frames, or more than [`FRAMES_MOST`] frames.
    #[must_use]
    pub const fn new(span: FrameRange, records: &'m [FrameRecord]) -> Self {
        assert!(records.len() >= span.len(), "a record for each frame");
        if let Err(why) = Self::checked(span) {
            why.refuse();
        }
        Self { span, records }
    }

    /// Checks that a table can have this many records.
    ///
    /// # Errors
    /// [`PlanError::TooManyFrames`] above [`FRAMES_MOST`].
    pub const fn checked(span: FrameRange) -> Result<(), PlanError> {
        let (frames, most) = (span.len(), FRAMES_MOST);
        if frames > most {
            return Err(PlanError::TooManyFrames { frames, most });
        }
        Ok(())
    }

    /// Returns the records of the span's frames, in order.
    pub(crate) fn records(&self) -> &[FrameRecord] {
        &self.records[..self.span.len()]
    }

    /// Returns the frames that have records.
    #[must_use]
    pub const fn span(&self) -> FrameRange {
        self.span
    }

    #[inline]
    fn record(&self, frame: Frame) -> &FrameRecord {
        &self.records[frame.number() - self.span.start.number()]
    }

    #[inline]
    fn link_to(&self, frame: Frame) -> u32 {
        (frame.number() - self.span.start.number()) as u32
    }

    #[inline]
    fn frame_at(&self, link: u32) -> Option<Frame> {
        (link != NONE).then(|| self.span.start.plus(link as usize))
    }

    /// Returns the state of the block that starts at `frame`; `Inner` if none does, and outside the
    /// span.
    #[inline]
    #[must_use]
    pub fn state(&self, frame: Frame) -> State {
        if self.span.contains(frame) {
            // Relaxed: see `FrameRecord::state`; a reader that acts on more than `Free` owns the
            // frame.
            state_of(self.record(frame).state.load(Ordering::Relaxed))
        } else {
            State::INNER
        }
    }

    /// Returns the first frame of `range` at which a block starts, or its end. The range is in the
    /// span.
    pub(crate) fn next_head(&self, range: FrameRange) -> Frame {
        let first = range.start.number() - self.span.start.number();
        let inner = self.records[first..][..range.len()]
            .iter()
            // Relaxed: as in `state`.
            .take_while(|record| record.state.load(Ordering::Relaxed) == bits_of(State::INNER))
            .count();
        range.start.plus(inner)
    }

    /// Iterates over every block that starts in `range`, upwards. The caller may change each block
    /// as it comes.
    pub(crate) fn heads(&self, range: FrameRange) -> impl Iterator<Item = (Frame, State)> + '_ {
        let mut rest = range;
        core::iter::from_fn(move || {
            let first = self.next_head(rest);
            let state = (first < rest.end).then(|| self.state(first))?;
            rest.start = first.plus(state.order.frames()).min(rest.end);
            Some((first, state))
        })
    }

    #[inline]
    pub(crate) fn set_state(&self, frame: Frame, state: State) {
        // Relaxed: as in `state`; the lock that hands the frame on orders it.
        self.record(frame)
            .state
            .store(bits_of(state), Ordering::Relaxed);
    }

    /// Returns the block that contains `frame`, of order `max` at most: its first frame and its
    /// state. Reads at most one record per order.
    #[must_use]
    pub fn block_of(&self, frame: Frame, max: Order) -> Option<(Frame, State)> {
        // A plain loop: that of an iterator is not inlined without link-time optimisation, and most
        // blocks are found at once.
        let mut order = Order::ZERO;
        loop {
            let first = frame.align_down(order);
            let state = self.state(first);
            if state.usage != Use::Inner && state.order >= order {
                return Some((first, state));
            }
            order = order.up().filter(|&order| order <= max)?;
        }
    }
}

/// A list of blocks, threaded through their first records. What guards the list guards the links on
/// it.
#[derive(Debug)]
pub struct FrameList {
    first: GuardedU32,
    last: GuardedU32,
    len: GuardedU32,
}

impl FrameList {
    /// Returns the number of blocks on it.
    #[inline]
    #[must_use]
    pub fn len(&self) -> usize {
        self.len.get() as usize
    }

    /// Returns true if no block is on it.
    #[inline]
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.first.get() == NONE
    }

    /// Puts `frame` at the head, the hot end.
    #[inline]
    pub(crate) fn push_front(&self, table: &FrameTable<'_>, frame: Frame) {
        let link = table.link_to(frame);
        let record = table.record(frame);
        let old = self.first.get();
        record.prev.set(NONE);
        record.next.set(old);
        match table.frame_at(old) {
            Some(old) => table.record(old).prev.set(link),
            None => self.last.set(link),
        }
        self.first.set(link);
        self.len.set(self.len.get() + 1);
    }

    /// Puts `frame` at the tail, the cold end.
    #[inline]
    pub(crate) fn push_back(&self, table: &FrameTable<'_>, frame: Frame) {
        let link = table.link_to(frame);
        let record = table.record(frame);
        let old = self.last.get();
        record.next.set(NONE);
        record.prev.set(old);
        match table.frame_at(old) {
            Some(old) => table.record(old).next.set(link),
            None => self.first.set(link),
        }
        self.last.set(link);
        self.len.set(self.len.get() + 1);
    }

    /// Takes the head.
    #[inline]
    pub(crate) fn pop_front(&self, table: &FrameTable<'_>) -> Option<Frame> {
        let frame = table.frame_at(self.first.get())?;
        let next = table.record(frame).next.get();
        self.first.set(next);
        match table.frame_at(next) {
            Some(next) => table.record(next).prev.set(NONE),
            None => self.last.set(NONE),
        }
        self.len.set(self.len.get() - 1);
        Some(frame)
    }

    /// Takes the tail.
    #[inline]
    pub(crate) fn pop_back(&self, table: &FrameTable<'_>) -> Option<Frame> {
        let frame = table.frame_at(self.last.get())?;
        self.remove(table, frame);
        Some(frame)
    }

    /// Takes `frame`, which is on this list.
    #[inline]
    pub(crate) fn remove(&self, table: &FrameTable<'_>, frame: Frame) {
        let record = table.record(frame);
        let (next, prev) = (record.next.get(), record.prev.get());
        match table.frame_at(prev) {
            Some(prev) => table.record(prev).next.set(next),
            None => self.first.set(next),
        }
        match table.frame_at(next) {
            Some(next) => table.record(next).prev.set(prev),
            None => self.last.set(prev),
        }
        self.len.set(self.len.get() - 1);
    }

    /// Moves all of `other` to this list's head, in order. Accesses two records at most.
    pub(crate) fn splice_front(&self, table: &FrameTable<'_>, other: &Self) {
        let Some(other_last) = table.frame_at(other.last.get()) else {
            return;
        };
        let old = self.first.get();
        table.record(other_last).next.set(old);
        match table.frame_at(old) {
            Some(old) => table.record(old).prev.set(other.last.get()),
            None => self.last.set(other.last.get()),
        }
        self.first.set(other.first.get());
        self.len.set(self.len.get() + other.len.get());
        other.first.set(NONE);
        other.last.set(NONE);
        other.len.set(0);
    }

    /// Iterates over the blocks on it, from the head. Ends after `len` steps even if the links were
    /// corrupted into a ring.
    pub(crate) fn iter<'t>(&self, table: &'t FrameTable<'_>) -> impl Iterator<Item = Frame> + 't {
        let mut link = self.first.get();
        let mut left = self.len();
        core::iter::from_fn(move || {
            left = left.checked_sub(1)?;
            let frame = table.frame_at(link)?;
            link = table.record(frame).next.get();
            Some(frame)
        })
    }

    /// Iterates over the blocks on it, from the tail. Bounded like [`FrameList::iter`].
    pub(crate) fn iter_back<'t>(
        &self,
        table: &'t FrameTable<'_>,
    ) -> impl Iterator<Item = Frame> + 't {
        let mut link = self.last.get();
        let mut left = self.len();
        core::iter::from_fn(move || {
            left = left.checked_sub(1)?;
            let frame = table.frame_at(link)?;
            link = table.record(frame).prev.get();
            Some(frame)
        })
    }

    /// Turns the list until `frame`, which is on it, is the head: the blocks before it follow the
    /// tail, in their order. Accesses four records at most.
    pub(crate) fn turn_to_head(&self, table: &FrameTable<'_>, frame: Frame) {
        let before = table.record(frame).prev.get();
        if let Some(last) = table.frame_at(before) {
            self.turn_between(table, last, frame);
        }
    }

    /// Turns the list until `frame`, which is on it, is the tail: the blocks behind it come before
    /// the head, in their order. Accesses four records at most.
    pub(crate) fn turn_to_tail(&self, table: &FrameTable<'_>, frame: Frame) {
        let behind = table.record(frame).next.get();
        if let Some(first) = table.frame_at(behind) {
            self.turn_between(table, frame, first);
        }
    }

    /// Cuts the list between two neighbours, of which one becomes the tail and the other the head.
    fn turn_between(&self, table: &FrameTable<'_>, tail: Frame, head: Frame) {
        let (old_head, old_tail) = (self.first.get(), self.last.get());
        if let (Some(first), Some(last)) = (table.frame_at(old_head), table.frame_at(old_tail)) {
            table.record(last).next.set(old_head);
            table.record(first).prev.set(old_tail);
        }
        table.record(tail).next.set(NONE);
        table.record(head).prev.set(NONE);
        self.first.set(table.link_to(head));
        self.last.set(table.link_to(tail));
    }

    /// Checks that the links agree in both directions and the length is right. Returns a frame
    /// where they do not.
    pub(crate) fn broken_at(&self, table: &FrameTable<'_>) -> Option<Frame> {
        let mut before = NONE;
        let mut seen = 0;
        for frame in self.iter(table) {
            if table.record(frame).prev.get() != before {
                return Some(frame);
            }
            before = table.link_to(frame);
            seen += 1;
        }
        let whole = seen == self.len() && before == self.last.get() && {
            let end = table.frame_at(before);
            end.is_none_or(|last| table.record(last).next.get() == NONE)
        };
        (!whole).then(|| table.frame_at(before).unwrap_or(table.span.start))
    }
}

/// The empty list.
impl Default for FrameList {
    fn default() -> Self {
        Self {
            first: GuardedU32::new(NONE),
            last: GuardedU32::new(NONE),
            len: GuardedU32::new(0),
        }
    }
}
