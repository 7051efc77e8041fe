//! Linked lists of free objects: in a caller's hands, in guarded words, and in the queue where
//! other CPUs put them.
//!
//! The link to the next object is stored in the object, where a program that still writes to it can
//! reach. So code that follows a link first checks that an object of the cache is there; if not,
//! the object in hand is served, and the objects behind it are left out: [`Broken`].
//!
//! Invariant `list-in-one-place`: an object is in one list at most, and a list in one caller's
//! hands, or in one [`Chain`]. The last link of a list is 0.

use brickyard_sync::{AtomicU32, GuardedU32, GuardedU64, Locked, Ordering, RawLock};

/// Where the links of free objects are: in the objects, or, in tests under a model checker, in
/// words of the checker's.
pub trait Links {
    /// Returns the address in the link of `object`; 0 at the end of a list. An overwritten link may
    /// hold anything.
    fn next(&self, object: usize) -> usize;

    /// Sets the link of `object` to `next`.
    fn set_next(&self, object: usize, next: usize);

    /// Returns true if an object begins at this address.
    fn is_object(&self, address: usize) -> bool;
}

/// Links found overwritten.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Broken {
    /// The last object found with such a link; 0 if there was none.
    pub at: usize,
    /// Number of objects behind such links. They are left out for good.
    pub lost: u32,
}

impl Broken {
    /// Adds `lost` objects, which were behind the link of `object`.
    pub const fn note(&mut self, object: usize, lost: u32) {
        self.at = object;
        self.lost += lost;
    }
}

/// Linked free objects in the hands of one caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[must_use = "a dropped list loses its objects"]
pub struct ObjectList {
    /// The first object, 0 if there is none.
    pub head: usize,
    /// The last object; of no meaning if there is none.
    pub tail: usize,
    /// Number of objects.
    pub count: u32,
}

impl ObjectList {
    /// The empty list.
    pub const EMPTY: Self = Self {
        head: 0,
        tail: 0,
        count: 0,
    };

    /// Makes a list of one object.
    pub fn one(links: &impl Links, object: usize) -> Self {
        let mut list = Self::EMPTY;
        list.push(links, object);
        list
    }

    /// Adds an object in front.
    pub fn push(&mut self, links: &impl Links, object: usize) {
        links.set_next(object, self.head);
        self.head = object;
        if self.count == 0 {
            self.tail = object;
        }
        self.count += 1;
    }

    /// Appends another list, in constant time.
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

    /// Takes the first object. If its link was overwritten, the rest is left out and noted in
    /// `broken`.
    pub fn pop(&mut self, links: &impl Links, broken: &mut Broken) -> Option<usize> {
        let left = self.count.checked_sub(1)?;
        let object = self.head;
        let next = links.next(object);
        if is_plausible(left, next, |next| links.is_object(next)) {
            self.head = next;
            self.count = left;
        } else {
            broken.note(object, left);
            *self = Self::EMPTY;
        }
        Some(object)
    }
}

/// Returns true if `next` can be the link of an object with `left` objects behind it.
#[inline(always)]
pub(super) fn is_plausible(left: u32, next: usize, is_object: impl FnOnce(usize) -> bool) -> bool {
    if left == 0 || next == 0 {
        left == 0 && next == 0
    } else {
        is_object(next)
    }
}

/// An [`ObjectList`] in words guarded by a lock, or by belonging to one CPU.
#[derive(Debug, Default)]
pub struct Chain {
    head: GuardedU64,
    tail: GuardedU64,
    count: GuardedU32,
}

impl Chain {
    /// Returns a copy of the list, to inspect.
    #[inline(always)]
    pub fn list(&self) -> ObjectList {
        ObjectList {
            head: self.head.get() as usize,
            tail: self.tail.get() as usize,
            count: self.count.get(),
        }
    }

    /// Replaces the list.
    #[inline(always)]
    pub fn set(&self, list: ObjectList) {
        self.head.set(list.head as u64);
        self.tail.set(list.tail as u64);
        self.count.set(list.count);
    }

    /// Returns the first object, 0 if there is none.
    #[inline(always)]
    #[must_use]
    pub fn head(&self) -> usize {
        self.head.get() as usize
    }

    /// Returns the number of objects.
    #[inline(always)]
    #[must_use]
    pub fn count(&self) -> u32 {
        self.count.get()
    }

    /// Removes the first object: `next` is now first, of `left` objects.
    #[inline(always)]
    pub(super) fn set_front(&self, next: usize, left: u32) {
        self.head.set(next as u64);
        self.count.set(left);
    }

    /// Takes the whole list.
    pub fn take(&self) -> ObjectList {
        let list = self.list();
        self.set(ObjectList::EMPTY);
        list
    }

    /// Changes the list in place.
    pub fn change<R>(&self, change: impl FnOnce(&mut ObjectList) -> R) -> R {
        let mut list = self.list();
        let done = change(&mut list);
        self.set(list);
        done
    }
}

/// The queue of remotely freed objects: where other CPUs leave objects for the owner of their
/// slabs, a list at a time. Aligned to a cache line.
///
/// Invariant `flag-follows-queue`: the owner's check flag is set by the sender that makes the queue
/// reach a batch, and cleared by the CPU that takes the queue, both under the lock; so a queue of a
/// batch or more has its flag set.
#[derive(Debug)]
#[repr(align(64))]
pub struct Incoming<K> {
    queue: Locked<K, Chain>,
    /// Length of the queue, a hint for readers without the lock.
    waiting: AtomicU32,
}

impl<K: RawLock> Incoming<K> {
    /// Returns how many objects wait. A hint, possibly out of date.
    #[must_use]
    pub fn waiting(&self) -> u32 {
        // Relaxed: a hint.
        self.waiting.load(Ordering::Relaxed)
    }

    /// Appends `list` to the queue, and sets `check` if this makes it reach `batch` objects.
    pub fn receive(
        &self,
        links: &impl Links,
        list: ObjectList,
        batch: u32,
        check: &AtomicU32,
        relax: impl FnMut(),
    ) {
        let queue = self.queue.lock(relax);
        let before = queue.count();
        queue.change(|waiting| waiting.append(links, list));
        let now = queue.count();
        // Relaxed, both: hints; a reader that acts on them takes the lock.
        self.waiting.store(now, Ordering::Relaxed);
        if before < batch && now >= batch {
            check.store(1, Ordering::Relaxed);
        }
    }

    /// Takes the whole queue, and clears `check`. Takes no lock if nothing waits.
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
