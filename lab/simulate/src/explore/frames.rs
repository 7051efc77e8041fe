//! The ownership oracle: which owner has each frame, and a guarded word per frame.
//!
//! Two properties of each frame are checked. It has one owner at a time: the list of owners is
//! outside the machine's memory, so that it orders nothing. And an owner has seen all that the
//! previous owner did with it: every owner writes the frame's guarded word, in memory of the
//! machine, when it gets the frame and before it gives it up. Only the allocator orders these two
//! writes, so where one of its words lacks an ordering the machine finds a race.
//!
//! Pages that other tasks may take or move (page cache, blocks handed from task to task) have a
//! lock per frame, as pages of a kernel have.

use core::cell::Cell;

use brickyard::sync::{AtomicU32, GuardedU32, Ordering, spin_hint};
use brickyard::{Frame, FrameRange};
use brickyard_machine::{Machine, current};

/// The owner of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Owner {
    /// The allocator: it is free.
    Allocator,
    /// A task.
    Task(u32),
    /// The interrupts of this CPU.
    Interrupt(u32),
    /// The page cache: the holder of the page's lock.
    Cache,
    /// The next task to fetch it, after one has handed it over.
    Handover,
    /// A short operation, such as an eviction.
    Transient,
    /// Allocated before the run, see [`FreeMemory::Short`](super::Memory::Short).
    Prefill,
    /// Offline, removed or reserved: the allocator does not have it at all.
    Absent,
}

/// A frame's words in memory of the machine: its contents and its lock.
#[derive(Debug)]
struct Word {
    content: GuardedU32,
    lock: AtomicU32,
}

/// Frames whose words are on one page.
const WORDS: usize = 512;

#[derive(Debug)]
#[repr(C, align(4096))]
struct WordPage([Word; WORDS]);

/// All frames of a machine.
#[derive(Debug)]
pub(crate) struct Frames {
    span: FrameRange,
    owners: Vec<Cell<Owner>>,
    pages: Vec<WordPage>,
}

impl Frames {
    /// All frames of `span`, owned by the allocator.
    pub(crate) fn new(span: FrameRange) -> Self {
        let word = || Word {
            content: GuardedU32::new(0),
            lock: AtomicU32::new(0),
        };
        let page = || WordPage(core::array::from_fn(|_| word()));
        Self {
            span,
            owners: vec![Cell::new(Owner::Allocator); span.len()],
            pages: (0..span.len().div_ceil(WORDS)).map(|_| page()).collect(),
        }
    }

    /// Maps their words in `machine`.
    pub(crate) fn map(&self, machine: &mut Machine<'_>) {
        machine.map(self.pages.as_ptr().cast(), size_of_val(&self.pages[..]));
    }

    fn index(&self, frame: Frame) -> usize {
        if !self.span.contains(frame) {
            wrong(format!("{frame} is not a frame of this machine"));
        }
        frame.number() - self.span.start.number()
    }

    fn word(&self, frame: Frame) -> &Word {
        let index = self.index(frame);
        &self.pages[index / WORDS].0[index % WORDS]
    }

    /// Returns the frames of `range` that the allocator owns.
    pub(crate) fn unowned(&self, range: FrameRange) -> impl Iterator<Item = Frame> {
        let is_unowned = |frame: &Frame| self.owners[self.index(*frame)].get() == Owner::Allocator;
        range.frames().filter(is_unowned)
    }

    /// Passes frames from `from` to `to`, which writes into them.
    pub(crate) fn claim(&self, range: FrameRange, from: Owner, to: Owner) {
        for frame in range.frames() {
            let owner = &self.owners[self.index(frame)];
            if owner.get() != from {
                let owner = owner.get();
                wrong(format!(
                    "frame {frame} of {range:?} goes from {from:?} to {to:?}, but is owned by {owner:?}"
                ));
            }
            owner.set(to);
        }
        self.touch(range);
    }

    /// Passes frames from `from`, which writes into them, to `to`.
    pub(crate) fn release(&self, range: FrameRange, from: Owner, to: Owner) {
        self.touch(range);
        for frame in range.frames() {
            let owner = self.owners[self.index(frame)].replace(to);
            if owner != from {
                wrong(format!(
                    "frame {frame} of {range:?} is released by {from:?}, but is owned by {owner:?}"
                ));
            }
        }
    }

    /// Reads and writes frames for their owner: all of a small range, some of a larger one.
    pub(crate) fn touch(&self, range: FrameRange) {
        let (first, len) = (range.start, range.len());
        let write = |offset: usize| {
            let content = &self.word(first.plus(offset)).content;
            content.set(content.get().wrapping_add(1));
        };
        if len <= 4 {
            (0..len).for_each(write);
        } else {
            [0, len / 3, len / 2, len - 1].into_iter().for_each(write);
        }
    }

    /// Locks the page at `frame` if it is not locked.
    pub(crate) fn try_lock(&self, frame: Frame) -> bool {
        let lock = &self.word(frame).lock;
        // Acquire: pairs with the release in `unlock`.
        lock.compare_exchange(0, 1, Ordering::Acquire, Ordering::Relaxed)
            .is_ok()
    }

    /// Locks the page at `frame`. Spins, since no holder of a page lock waits for another task.
    pub(crate) fn lock(&self, frame: Frame) {
        while !self.try_lock(frame) {
            spin_hint();
        }
    }

    /// Unlocks the page at `frame`.
    pub(crate) fn unlock(&self, frame: Frame) {
        // Release: pairs with the acquire in `try_lock`.
        self.word(frame).lock.store(0, Ordering::Release);
    }

    /// Returns how many frames are in use, and how many the allocator does not have at all.
    pub(crate) fn in_use(&self) -> (usize, usize) {
        let count = |is: &dyn Fn(Owner) -> bool| {
            let owners = self.owners.iter();
            owners.filter(|owner| is(owner.get())).count()
        };
        let absent = count(&|owner| owner == Owner::Absent);
        let free = count(&|owner| owner == Owner::Allocator);
        (self.owners.len() - absent - free, absent)
    }

    /// Returns a frame whose owner should have freed it by the end, if there is one.
    pub(crate) fn owned(&self) -> Option<(Frame, Owner)> {
        let mut owners = self.span.frames().zip(&self.owners);
        let stays = [Owner::Allocator, Owner::Prefill];
        let (frame, owner) = owners.find(|(_, owner)| !stays.contains(&owner.get()))?;
        Some((frame, owner.get()))
    }

    /// Whether `owner` has all of `range`.
    pub(crate) fn has(&self, owner: Owner, range: FrameRange) -> bool {
        let mut frames = range.frames();
        self.span.covers(range) && frames.all(|frame| self.owners[self.index(frame)].get() == owner)
    }

    /// Makes `to` the owner of frames, without a check and without an access to them.
    pub(crate) fn assign(&self, range: FrameRange, to: Owner) {
        for frame in range.frames() {
            self.owners[self.index(frame)].set(to);
        }
    }
}

/// Fails the run: the allocator, or this test of it, is wrong.
#[track_caller]
pub(crate) fn wrong(what: String) -> ! {
    current::fail(what.as_str());
    // Where a machine runs, this does not return.
    panic!("{what}");
}
