//! The ownership oracle: who has which frame, and the frames' own words.
//!
//! Two things are proved of each frame. That it has one owner at a time: a list of owners that no
//! simulated CPU sees, so that it puts nothing in order. And that an owner sees all that the owner
//! before did with it: a guarded word a frame, in memory of the machine, which every owner writes
//! when it gets the frame and before it gives it up. Nothing but the allocator orders the one write
//! before the other, so where one of its words lacks an ordering the machine finds a race.
//!
//! Pages that others may take or move besides (page cache, blocks handed from task to task) have a
//! lock a frame, as pages of a kernel have.

use core::cell::Cell;

use brickyard::sync::{AtomicU32, GuardedU32, Ordering, spin_hint};
use brickyard::{Frame, FrameRange};
use brickyard_machine::{Machine, here};

/// The owner of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Owner {
    /// The allocator.
    Nobody,
    /// A task.
    Task(u32),
    /// What interrupts have got on this CPU.
    Interrupt(u32),
    /// The page cache: whoever has locked the page.
    Cache,
    /// Whoever takes it from a task that has handed it over.
    Post,
    /// Whoever does something with it that is over soon.
    Administration,
    /// Whoever came first and left little, see [`Memory::Short`](super::Memory::Short).
    Settler,
    /// Whoever has taken it offline or reserved it: to the allocator it is not in use.
    Absent,
}

/// What a frame has in memory of the machine: a word of contents and a lock.
#[derive(Debug)]
struct Word {
    content: GuardedU32,
    lock: AtomicU32,
}

/// Frames of one page of such words.
const WORDS: usize = 512;

#[derive(Debug)]
#[repr(C, align(4096))]
struct Sheet([Word; WORDS]);

/// All frames of a machine.
#[derive(Debug)]
pub(crate) struct Frames {
    span: FrameRange,
    owners: Vec<Cell<Owner>>,
    sheets: Vec<Sheet>,
}

impl Frames {
    /// Frames that nobody owns.
    pub(crate) fn new(span: FrameRange) -> Self {
        let word = || Word {
            content: GuardedU32::new(0),
            lock: AtomicU32::new(0),
        };
        let sheet = || Sheet(core::array::from_fn(|_| word()));
        Self {
            span,
            owners: vec![Cell::new(Owner::Nobody); span.len()],
            sheets: (0..span.len().div_ceil(WORDS)).map(|_| sheet()).collect(),
        }
    }

    /// Gives their words to `machine`.
    pub(crate) fn map(&self, machine: &mut Machine<'_>) {
        machine.map(self.sheets.as_ptr().cast(), size_of_val(&self.sheets[..]));
    }

    fn index(&self, frame: Frame) -> usize {
        if !self.span.contains(frame) {
            wrong(format!("{frame} is no frame of this machine"));
        }
        frame.number() - self.span.start.number()
    }

    fn word(&self, frame: Frame) -> &Word {
        let index = self.index(frame);
        &self.sheets[index / WORDS].0[index % WORDS]
    }

    /// The frames of `range` that nobody owns.
    pub(crate) fn nobodys(&self, range: FrameRange) -> impl Iterator<Item = Frame> {
        let is_nobodys = |frame: &Frame| self.owners[self.index(*frame)].get() == Owner::Nobody;
        range.frames().filter(is_nobodys)
    }

    /// `to` gets frames from `from`, and writes into them.
    pub(crate) fn claim(&self, range: FrameRange, from: Owner, to: Owner) {
        for frame in range.frames() {
            let owner = &self.owners[self.index(frame)];
            if owner.get() != from {
                let owner = owner.get();
                wrong(format!(
                    "frame {frame} of {range:?} goes from {from:?} to {to:?}, and is owned by {owner:?}"
                ));
            }
            owner.set(to);
        }
        self.touch(range);
    }

    /// `from` writes into its frames, and gives them up to `to`.
    pub(crate) fn release(&self, range: FrameRange, from: Owner, to: Owner) {
        self.touch(range);
        for frame in range.frames() {
            let owner = self.owners[self.index(frame)].replace(to);
            if owner != from {
                wrong(format!(
                    "frame {frame} of {range:?} is given up by {from:?}, and is owned by {owner:?}"
                ));
            }
        }
    }

    /// The owner reads and writes: all frames of a small range, some of a larger one.
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

    /// Locks the page at `frame` if nobody has.
    pub(crate) fn try_lock(&self, frame: Frame) -> bool {
        let lock = &self.word(frame).lock;
        // Acquire: pairs with the release in `unlock`.
        lock.compare_exchange(0, 1, Ordering::Acquire, Ordering::Relaxed)
            .is_ok()
    }

    /// Locks the page at `frame`; whoever has locked it now waits for nobody.
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

    /// How many frames are in use by somebody, and how many the allocator has not got at all.
    pub(crate) fn in_use(&self) -> (usize, usize) {
        let count = |is: &dyn Fn(Owner) -> bool| {
            let owners = self.owners.iter();
            owners.filter(|owner| is(owner.get())).count()
        };
        let absent = count(&|owner| owner == Owner::Absent);
        let nobody = count(&|owner| owner == Owner::Nobody);
        (self.owners.len() - absent - nobody, absent)
    }

    /// A frame that somebody owns who is to give up what he has, if there is one.
    pub(crate) fn owned(&self) -> Option<(Frame, Owner)> {
        let mut owners = self.span.frames().zip(&self.owners);
        let stays = [Owner::Nobody, Owner::Settler];
        let (frame, owner) = owners.find(|(_, owner)| !stays.contains(&owner.get()))?;
        Some((frame, owner.get()))
    }

    /// Does `owner` have all of `range`?
    pub(crate) fn has(&self, owner: Owner, range: FrameRange) -> bool {
        let mut frames = range.frames();
        self.span.covers(range) && frames.all(|frame| self.owners[self.index(frame)].get() == owner)
    }

    /// Gives frames from one owner to another who does nothing with them now.
    pub(crate) fn assign(&self, range: FrameRange, to: Owner) {
        for frame in range.frames() {
            self.owners[self.index(frame)].set(to);
        }
    }
}

/// Ends the run: the allocator, or this test of it, is wrong.
#[track_caller]
pub(crate) fn wrong(what: String) -> ! {
    here::fail(what.as_str());
    // Where a machine runs, the caller does not come back from there.
    panic!("{what}");
}
