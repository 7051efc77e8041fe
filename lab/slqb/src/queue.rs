//! Free objects in a row, each with the address of the next: in hand, in words that something
//! guards, and in the queue where other CPUs put them.
//!
//! What follows an object stands in the object, where a program that still writes to it can reach.
//! So whoever follows a link asks whether an object of the cache is there; if not, the object in
//! hand is served, and what hung on it is left out, never followed: [`Broken`].
//!
//! Invariant `run-in-one-place`: an object is in one run at most, and a run in one caller's hands,
//! or in one [`Chain`]. The last link of a run is 0.

use brickyard_sync::{AtomicU32, GuardedU32, GuardedU64, Locked, Ordering, RawLock};

/// Where the links of free objects are: in the objects, or, under a model checker, in words that it
/// watches.
pub trait Links {
    /// The address that the link of `object` holds; 0 at the end of a run. It may be anything where
    /// somebody wrote over the link.
    fn next(&self, object: usize) -> usize;

    /// The link of `object` holds `next` from now on.
    fn set_next(&self, object: usize, next: usize);

    /// Does an object begin at this address?
    fn is_object(&self, address: usize) -> bool;
}

/// Links that turned out to be written over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Broken {
    /// The object whose link it was, the last of them; 0: none.
    pub at: usize,
    /// So many objects hung on such links. They are left out for good.
    pub lost: u32,
}

impl Broken {
    /// `lost` objects hung on the link of `object`.
    pub const fn note(&mut self, object: usize, lost: u32) {
        self.at = object;
        self.lost += lost;
    }
}

/// Linked free objects in the hands of one caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[must_use = "whoever drops a run loses its objects"]
pub struct ObjectList {
    /// The first object, 0 if there is none.
    pub head: usize,
    /// The last object; of no meaning if there is none.
    pub tail: usize,
    /// How many there are.
    pub count: u32,
}

impl ObjectList {
    /// No object.
    pub const EMPTY: Self = Self {
        head: 0,
        tail: 0,
        count: 0,
    };

    /// One object.
    pub fn one(links: &impl Links, object: usize) -> Self {
        let mut run = Self::EMPTY;
        run.push(links, object);
        run
    }

    /// Puts an object in front.
    pub fn push(&mut self, links: &impl Links, object: usize) {
        links.set_next(object, self.head);
        self.head = object;
        if self.count == 0 {
            self.tail = object;
        }
        self.count += 1;
    }

    /// Puts another run behind. Constant cost.
    pub fn append(&mut self, links: &impl Links, other: Self) {
        if other.count == 0 {
            return;
        }
        if self.count == 0 {
            self.head = other.head;
        } else {
            links.set_next(self.tail, other.head);
        }
        self.tail = other.tail;
        self.count += other.count;
    }

    /// Takes the first object. If its link was written over, the rest is left out, which `broken`
    /// tells.
    pub fn pop(&mut self, links: &impl Links, broken: &mut Broken) -> Option<usize> {
        let left = self.count.checked_sub(1)?;
        let object = self.head;
        let next = links.next(object);
        if is_right(left, next, |next| links.is_object(next)) {
            self.head = next;
            self.count = left;
        } else {
            broken.note(object, left);
            *self = Self::EMPTY;
        }
        Some(object)
    }
}

/// Can `next` be what follows an object that `left` objects come after?
#[inline(always)]
pub(super) fn is_right(left: u32, next: usize, is_object: impl FnOnce(usize) -> bool) -> bool {
    if left == 0 || next == 0 {
        left == 0 && next == 0
    } else {
        is_object(next)
    }
}

/// A [`ObjectList`] in words that a lock, or a CPU that they belong to, guards.
#[derive(Debug, Default)]
pub struct Chain {
    head: GuardedU64,
    tail: GuardedU64,
    count: GuardedU32,
}

impl Chain {
    /// What is in it, for looking.
    #[inline(always)]
    pub fn run(&self) -> ObjectList {
        ObjectList {
            head: self.head.get() as usize,
            tail: self.tail.get() as usize,
            count: self.count.get(),
        }
    }

    /// Puts `run` in place of what is in it.
    #[inline(always)]
    pub fn set(&self, run: ObjectList) {
        self.head.set(run.head as u64);
        self.tail.set(run.tail as u64);
        self.count.set(run.count);
    }

    /// The first object, 0 if there is none.
    #[inline(always)]
    #[must_use]
    pub fn head(&self) -> usize {
        self.head.get() as usize
    }

    /// How many objects are in it.
    #[inline(always)]
    #[must_use]
    pub fn count(&self) -> u32 {
        self.count.get()
    }

    /// The first object is gone: `next` is the first, and `left` are left.
    #[inline(always)]
    pub(super) fn set_front(&self, next: usize, left: u32) {
        self.head.set(next as u64);
        self.count.set(left);
    }

    /// Takes all that is in it.
    pub fn take(&self) -> ObjectList {
        let run = self.run();
        self.set(ObjectList::EMPTY);
        run
    }

    /// Changes what is in it.
    pub fn change<R>(&self, change: impl FnOnce(&mut ObjectList) -> R) -> R {
        let mut run = self.run();
        let done = change(&mut run);
        self.set(run);
        done
    }
}

/// The queue of remotely freed objects: where other CPUs leave objects for the list that owns their
/// slabs, a run at a time. In lines of its own.
///
/// Invariant `flag-follows-queue`: the owner's check flag is set by whoever makes the queue cross
/// the batch, and cleared by whoever takes the queue, both under the lock; so a queue of a batch or
/// more has its flag set.
#[derive(Debug)]
#[repr(align(64))]
pub struct Incoming<K> {
    queue: Locked<K, Chain>,
    /// How many wait, for who has no lock: a hint.
    waiting: AtomicU32,
}

impl<K: RawLock> Incoming<K> {
    /// How many objects wait. A hint, out of date at once.
    #[must_use]
    pub fn waiting(&self) -> u32 {
        // Relaxed: a hint.
        self.waiting.load(Ordering::Relaxed)
    }

    /// Puts a run behind what waits, and sets `check` if the queue thereby reaches `batch` objects.
    pub fn receive(
        &self,
        links: &impl Links,
        run: ObjectList,
        batch: u32,
        check: &AtomicU32,
        relax: impl FnMut(),
    ) {
        let queue = self.queue.lock(relax);
        let before = queue.count();
        queue.change(|waiting| waiting.append(links, run));
        let now = queue.count();
        // Relaxed, both: hints; whoever acts on them takes the lock.
        self.waiting.store(now, Ordering::Relaxed);
        if before < batch && now >= batch {
            check.store(1, Ordering::Relaxed);
        }
    }

    /// Takes all that waits, and clears `check`. No lock is taken where nothing waits.
    pub fn claim(&self, check: &AtomicU32, relax: impl FnMut()) -> ObjectList {
        if self.waiting() == 0 {
            return ObjectList::EMPTY;
        }
        let queue = self.queue.lock(relax);
        // Relaxed, both: as in `receive`.
        self.waiting.store(0, Ordering::Relaxed);
        check.store(0, Ordering::Relaxed);
        queue.take()
    }
}

impl<K: RawLock> Default for Incoming<K> {
    fn default() -> Self {
        Self {
            queue: Locked::new(Chain::default()),
            waiting: AtomicU32::default(),
        }
    }
}
