//! Flags of `/proc/kpageflags` folded into runs of frames in one state.
//!
//! The kernel delivers about 13 million words a second; most of them equal the previous one. So
//! words are compared in the relevant bits, and the state is computed only where they differ.
//!
//! A compound page is a head and the tails that follow it. Its state is the head's. Flags are read
//! while memory is in use: a compound page whose length is not a power of two, or whose start is
//! not aligned to it, was changing while it was read, and counts as single pages.

use core::ops::Range;

use brickyard::Order;
use brickyard_trace::{PageState, PageUse, StateRun};

/// The bits of `/proc/kpageflags` that are used here, by the numbers of
/// `include/uapi/linux/kernel-page-flags.h` and `include/linux/kernel-page-flags.h`.
mod bit {
    pub(super) const DIRTY: u64 = 1 << 4;
    pub(super) const LRU: u64 = 1 << 5;
    pub(super) const ACTIVE: u64 = 1 << 6;
    pub(super) const SLAB: u64 = 1 << 7;
    pub(super) const WRITEBACK: u64 = 1 << 8;
    pub(super) const RECLAIM: u64 = 1 << 9;
    pub(super) const BUDDY: u64 = 1 << 10;
    pub(super) const MMAP: u64 = 1 << 11;
    pub(super) const ANON: u64 = 1 << 12;
    pub(super) const SWAPBACKED: u64 = 1 << 14;
    pub(super) const HEAD: u64 = 1 << 15;
    pub(super) const TAIL: u64 = 1 << 16;
    pub(super) const HUGE: u64 = 1 << 17;
    pub(super) const UNEVICTABLE: u64 = 1 << 18;
    pub(super) const HWPOISON: u64 = 1 << 19;
    pub(super) const NOPAGE: u64 = 1 << 20;
    pub(super) const OFFLINE: u64 = 1 << 23;
    pub(super) const ZERO_PAGE: u64 = 1 << 24;
    pub(super) const PGTABLE: u64 = 1 << 26;
    pub(super) const RESERVED: u64 = 1 << 32;
    pub(super) const MLOCKED: u64 = 1 << 33;
}

/// The bits that determine a frame's state and whether it is part of a compound page.
const RELEVANT: u64 = bit::DIRTY
    | bit::LRU
    | bit::ACTIVE
    | bit::SLAB
    | bit::WRITEBACK
    | bit::RECLAIM
    | bit::BUDDY
    | bit::MMAP
    | bit::ANON
    | bit::SWAPBACKED
    | bit::HEAD
    | bit::TAIL
    | bit::HUGE
    | bit::UNEVICTABLE
    | bit::HWPOISON
    | bit::NOPAGE
    | bit::OFFLINE
    | bit::ZERO_PAGE
    | bit::PGTABLE
    | bit::RESERVED
    | bit::MLOCKED;

/// Returns the state of a frame with these flags.
///
/// The slab flag is tested before those of process memory: newer kernels reuse the fields that the
/// flags of anonymous memory are derived from, so slab pages have those flags too. The reclaim flag
/// on a clean page is the read-ahead mark, which shares its bit. The zero pages are the kernel's
/// and cannot be moved, whatever flags they have.
#[must_use]
pub fn state_of(flags: u64) -> PageState {
    let has = |bits: u64| flags & bits != 0;
    let usage = if has(bit::NOPAGE | bit::HWPOISON | bit::OFFLINE) {
        PageUse::Hole
    } else if has(bit::RESERVED) {
        PageUse::Reserved
    } else if has(bit::BUDDY) {
        PageUse::Free
    } else if has(bit::HUGE) {
        PageUse::Huge
    } else if has(bit::SLAB) {
        PageUse::Slab
    } else if has(bit::PGTABLE) {
        PageUse::PageTable
    } else if has(bit::ZERO_PAGE) {
        PageUse::Untold
    } else if has(bit::ANON) {
        PageUse::Anonymous
    } else if has(bit::LRU | bit::SWAPBACKED) {
        PageUse::File
    } else {
        PageUse::Untold
    };
    if !matches!(usage, PageUse::Anonymous | PageUse::File) {
        return PageState::of(usage);
    }
    PageState {
        usage,
        active: has(bit::ACTIVE),
        dirty: has(bit::DIRTY),
        writeback: has(bit::WRITEBACK) || has(bit::RECLAIM) && has(bit::DIRTY),
        unevictable: has(bit::UNEVICTABLE | bit::MLOCKED),
        shared: usage == PageUse::File && has(bit::SWAPBACKED),
        mapped: usage == PageUse::File && has(bit::MMAP),
    }
}

/// Returns flags without that of recent use.
pub(crate) const fn without_activity(flags: u64) -> u64 {
    flags & !bit::ACTIVE
}

/// A compound page whose end was not read yet.
#[derive(Debug, Clone, Copy)]
struct OpenCompound {
    time: u64,
    frame: u64,
    frames: u64,
    state: PageState,
}

/// Folds flags, in order of frames, into runs.
#[derive(Debug, Default)]
pub struct Fold {
    runs: Vec<StateRun>,
    open: Option<OpenCompound>,
    /// The ranges of frames that are memory, sorted and disjoint; empty if they are not known.
    memory: Vec<Range<u64>>,
    /// How many of those ranges end before the next frame.
    passed: usize,
}

impl Fold {
    /// Creates an empty fold. Frames outside `memory` (sorted, disjoint) that have no flag are
    /// holes; if `memory` is empty, no frame without a flag is known to be one.
    #[must_use]
    pub fn new(memory: Vec<Range<u64>>) -> Self {
        Self {
            memory,
            ..Self::default()
        }
    }

    /// Adds the flags of the frames from `frame` on, read at `time`. Frames must come in order.
    pub fn push(&mut self, time: u64, frame: u64, flags: &[u64]) {
        let (mut frame, mut flags) = (frame, flags);
        while !flags.is_empty() {
            let (frames, empty) = self.stretch(frame, flags.len());
            let (stretch, rest) = flags.split_at(frames);
            self.push_stretch(time, frame, stretch, empty);
            frame += frames as u64;
            flags = rest;
        }
    }

    /// Returns all runs. A compound page at the very end is assumed to be complete.
    #[must_use]
    pub fn finish(mut self) -> Vec<StateRun> {
        self.close();
        self.runs
    }

    /// Returns how many of the next `frames` frames are either all inside or all outside memory,
    /// and the use of those without flags.
    fn stretch(&mut self, frame: u64, frames: usize) -> (usize, PageUse) {
        if self.memory.is_empty() {
            return (frames, PageUse::Untold);
        }
        let ahead = &self.memory[self.passed..];
        self.passed += ahead.partition_point(|range| range.end <= frame);
        let (until, empty) = match self.memory.get(self.passed) {
            Some(range) if range.start <= frame => (range.end, PageUse::Untold),
            Some(range) => (range.start, PageUse::Hole),
            None => (u64::MAX, PageUse::Hole),
        };
        let frames_until = usize::try_from(until - frame).unwrap_or(usize::MAX);
        (frames_until.min(frames), empty)
    }

    fn push_stretch(&mut self, time: u64, frame: u64, flags: &[u64], empty: PageUse) {
        let mut at = 0;
        while let Some(&first) = flags.get(at) {
            let rest = &flags[at..];
            let here = frame + at as u64;
            let relevant = first & RELEVANT;
            let count = if relevant & bit::HEAD != 0 {
                self.close();
                self.open = Some(OpenCompound {
                    time,
                    frame: here,
                    frames: 1,
                    state: state_of(first),
                });
                1
            } else if relevant & bit::TAIL != 0 && self.open.is_some() {
                self.tails(rest)
            } else {
                self.close();
                let same = rest.iter().position(|next| next & RELEVANT != relevant);
                let same = same.unwrap_or(rest.len());
                let state = if relevant == 0 {
                    PageState::of(empty)
                } else {
                    state_of(first)
                };
                self.emit(time, here, same as u64, 0, state);
                same
            };
            at += count;
        }
    }

    /// Adds the tails that `flags` begins with to the open compound page; returns how many.
    fn tails(&mut self, flags: &[u64]) -> usize {
        let other = flags
            .iter()
            .position(|next| next & (bit::HEAD | bit::TAIL) != bit::TAIL);
        let tails = other.unwrap_or(flags.len());
        if let Some(open) = &mut self.open {
            open.frames += tails as u64;
        }
        tails
    }

    /// Ends the open compound page, if there is one.
    fn close(&mut self) {
        let Some(open) = self.open.take() else { return };
        let whole = open.frames.is_power_of_two() && open.frame % open.frames == 0;
        let has_order = !matches!(
            open.state.usage,
            PageUse::Hole | PageUse::Reserved | PageUse::Free
        );
        let order = if whole && has_order {
            (open.frames.trailing_zeros() as u8).min(Order::MAX.get())
        } else {
            0
        };
        self.emit(open.time, open.frame, open.frames, order, open.state);
    }

    fn emit(&mut self, time: u64, frame: u64, frames: u64, order: u8, state: PageState) {
        if let Some(last) = self.runs.last_mut()
            && last.frame + last.frames == frame
            && (last.time, last.order, last.state) == (time, order, state)
        {
            last.frames += frames;
            return;
        }
        self.runs.push(StateRun {
            time,
            frame,
            frames,
            order,
            state,
        });
    }
}
