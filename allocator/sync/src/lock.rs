//! Locks: one small trait, the two kinds of spin lock that the source documents compare, and data
//! behind a lock.
//!
//! A lock must provide two things beyond locking. It can be tried, and it can be made in a constant.
//! Interrupts do not concern a lock: the zone masks them before it locks.
//!
//! Invariant `ticket-order`: `next - owner` is the number of CPUs that hold or wait for a
//! [`TicketLock`]. Only the holder writes `owner`, and it adds one.

use core::fmt;
use core::marker::PhantomData;
use core::ops::Deref;

use crate::{AtomicU32, Ordering};

/// A lock as the allocator needs it. Implement it to use your own lock. With the feature
/// `lock_api`, any `lock_api::RawMutex` can be used.
///
/// # Safety
/// After `lock` returns, or `try_lock` returns true, no other `lock` may return, and no other
/// `try_lock` may return true, before `unlock`. `unlock` must make everything written under the
/// lock visible to the next holder.
pub unsafe trait RawLock: Sync + 'static {
    /// An unlocked lock.
    #[allow(
        clippy::declare_interior_mutable_const,
        reason = "a pattern to make locks from, never used in place"
    )]
    const UNLOCKED: Self;

    /// Takes the lock, calling `relax` while it waits. `relax` should not panic. If it does, no
    /// memory is at risk, but the caller keeps its place in the queue. A lock that is handed on in
    /// order can then never be taken again.
    fn lock(&self, relax: impl FnMut());

    /// Takes the lock if it is free. Never waits.
    fn try_lock(&self) -> bool;

    /// Releases the lock.
    ///
    /// # Safety
    /// The caller holds the lock.
    unsafe fn unlock(&self);

    /// Returns true if the lock is held. A hint, out of date at once.
    fn is_locked(&self) -> bool;
}

/// A fair lock, first come, first served: each waiter draws a ticket (Linux x86 from 2.6.25 to
/// 4.1).
///
/// Because it is fair, releasing it and taking it again really lets a waiter in. It has two 32-bit words, `next` and `owner`,
/// where Linux had two 16-bit halves of one word. So the holder unlocks by a plain store, and a
/// 64-bit pair is never read as one. There can be at most 2^31 - 1 waiters.
#[derive(Debug)]
pub struct TicketLock {
    next: AtomicU32,
    owner: AtomicU32,
}

impl TicketLock {
    /// Returns true if a CPU other than the holder waits for the lock. A hint, out of date at once.
    #[inline]
    #[must_use]
    pub fn is_contended(&self) -> bool {
        // Relaxed: a hint.
        let next = self.next.load(Ordering::Relaxed);
        let owner = self.owner.load(Ordering::Relaxed);
        next.wrapping_sub(owner) as i32 > 1
    }
}

// SAFETY: invariant `ticket-order`: a caller returns from `lock` only when `owner` is its own
// ticket. Tickets are drawn by an atomic addition, so they are unique. `owner` moves on by one, in
// `unlock` alone.
unsafe impl RawLock for TicketLock {
    const UNLOCKED: Self = Self {
        next: AtomicU32::new(0),
        owner: AtomicU32::new(0),
    };

    #[inline]
    fn lock(&self, mut relax: impl FnMut()) {
        // Relaxed: drawing a ticket publishes nothing. The load of `owner` below is what acquires.
        let ticket = self.next.fetch_add(1, Ordering::Relaxed);
        // Acquire: pairs with the release store of `owner` in `unlock` by the previous holder.
        while self.owner.load(Ordering::Acquire) != ticket {
            relax();
        }
    }

    #[inline]
    fn try_lock(&self) -> bool {
        // Acquire: pairs with the release store in `unlock`, in case this ticket is the one that it
        // let in.
        let owner = self.owner.load(Ordering::Acquire);
        // Look before the exchange: a failed exchange would still pull the cache line away from the
        // holder (Kleen 2013). Relaxed on both: the acquire load above saw the `owner` that equals
        // this ticket, and only the ticket's holder, which is this caller, can move it on.
        self.next.load(Ordering::Relaxed) == owner
            && self
                .next
                .compare_exchange(
                    owner,
                    owner.wrapping_add(1),
                    Ordering::Relaxed,
                    Ordering::Relaxed,
                )
                .is_ok()
    }

    #[inline]
    unsafe fn unlock(&self) {
        // Relaxed: only the holder writes `owner`.
        let owner = self.owner.load(Ordering::Relaxed);
        // Release: pairs with the acquire loads in `lock` and `try_lock` of the next holder.
        self.owner.store(owner.wrapping_add(1), Ordering::Release);
    }

    #[inline]
    fn is_locked(&self) -> bool {
        // Relaxed: a hint.
        self.next.load(Ordering::Relaxed) != self.owner.load(Ordering::Relaxed)
    }
}

/// An unfair lock, the older kind (Linux x86 before 2.6.25): the first CPU to see the word free
/// takes it. The CPU that releases the lock usually wins it back, because the cache line is still
/// in its cache.
///
/// It counts its waiters in the same word, so that contention can be queried on equal terms with
/// [`TicketLock`]. Bit 0 means held; the bits above count the waiters.
#[derive(Debug)]
pub struct TestAndSetLock {
    word: AtomicU32,
}

impl TestAndSetLock {
    const HELD: u32 = 1;
    const WAITER: u32 = 2;

    /// Returns true if a CPU other than the holder waits for the lock. A hint, out of date at once.
    #[inline]
    #[must_use]
    pub fn is_contended(&self) -> bool {
        // Relaxed: a hint.
        self.word.load(Ordering::Relaxed) >= Self::WAITER
    }
}

// SAFETY: a caller holds the lock only after its own atomic operation turned the HELD bit from 0 to
// 1, and only `unlock` turns it back.
unsafe impl RawLock for TestAndSetLock {
    const UNLOCKED: Self = Self {
        word: AtomicU32::new(0),
    };

    #[inline]
    fn lock(&self, mut relax: impl FnMut()) {
        if self.try_lock() {
            return;
        }
        // Relaxed: the count is a hint for `is_contended`.
        self.word.fetch_add(Self::WAITER, Ordering::Relaxed);
        while !self.try_lock() {
            relax();
        }
        // Relaxed: as above.
        self.word.fetch_sub(Self::WAITER, Ordering::Relaxed);
    }

    #[inline]
    fn try_lock(&self) -> bool {
        // Relaxed: only to spare the cache line while another CPU holds the lock.
        self.word.load(Ordering::Relaxed) & Self::HELD == 0
            // Acquire: pairs with the release in `unlock`.
            && self.word.fetch_or(Self::HELD, Ordering::Acquire) & Self::HELD == 0
    }

    #[inline]
    unsafe fn unlock(&self) {
        // Release: pairs with the acquire in `try_lock` of the next holder.
        self.word.fetch_and(!Self::HELD, Ordering::Release);
    }

    #[inline]
    fn is_locked(&self) -> bool {
        // Relaxed: a hint.
        self.word.load(Ordering::Relaxed) & Self::HELD != 0
    }
}

/// An adapter that makes a [`RawLock`] of any `lock_api::RawMutex`.
#[cfg(feature = "lock_api")]
#[derive(Debug)]
pub struct LockApi<M>(M);

#[cfg(feature = "lock_api")]
// SAFETY: `lock_api::RawMutex` promises mutual exclusion, with the acquire and release that belong
// to it.
unsafe impl<M: lock_api::RawMutex + Sync + 'static> RawLock for LockApi<M> {
    const UNLOCKED: Self = Self(M::INIT);

    #[inline]
    fn lock(&self, _relax: impl FnMut()) {
        self.0.lock();
    }

    #[inline]
    fn try_lock(&self) -> bool {
        self.0.try_lock()
    }

    #[inline]
    unsafe fn unlock(&self) {
        // SAFETY: the caller holds the lock, which is `lock_api`'s own condition.
        unsafe { self.0.unlock() }
    }

    #[inline]
    fn is_locked(&self) -> bool {
        self.0.is_locked()
    }
}

/// Data and the lock that guards it. The data is made of words of this crate, so a shared reference
/// is enough to change it. [`Locked::lock`] gives that reference.
///
/// The lock gives out no exclusive reference, so it makes nothing sound that is not sound without
/// it. It can be shared between threads exactly if the data can. That is why [`Locked::unlocked`]
/// and a forgotten [`Held`] are safe.
///
/// The lock comes first, and the data begins right after it: in the same cache line, unless the
/// lock's or the data's alignment says otherwise.
#[derive(Debug)]
#[repr(C)]
pub struct Locked<L, T> {
    lock: L,
    data: T,
}

impl<L: RawLock, T> Locked<L, T> {
    /// Returns `data` behind an unlocked lock.
    #[must_use]
    pub const fn new(data: T) -> Self {
        Self {
            lock: L::UNLOCKED,
            data,
        }
    }

    /// Takes the lock, calling `relax` while it waits.
    #[inline]
    pub fn lock(&self, relax: impl FnMut()) -> Held<'_, L, T> {
        self.lock.lock(relax);
        Held {
            of: self,
            stays: PhantomData,
        }
    }

    /// Takes the lock if it is free.
    #[inline]
    #[must_use]
    pub fn try_lock(&self) -> Option<Held<'_, L, T>> {
        self.lock.try_lock().then(|| Held {
            of: self,
            stays: PhantomData,
        })
    }

    /// Returns true if the lock is held. A hint.
    #[inline]
    #[must_use]
    pub fn is_locked(&self) -> bool {
        self.lock.is_locked()
    }

    /// Returns the data without the lock: for its constant parts, for its atomic words, and for the
    /// records of frames that the caller owns.
    #[inline]
    #[must_use]
    pub const fn unlocked(&self) -> &T {
        &self.data
    }
}

/// Holds the lock as long as this value lives.
///
/// Invariant `held-while-alive`: it is made only by a call that took the lock, and cannot be
/// cloned.
#[must_use = "the lock is given up as soon as this is dropped"]
pub struct Held<'l, L: RawLock, T> {
    of: &'l Locked<L, T>,
    // Some locks must be released where they were taken.
    stays: PhantomData<*const ()>,
}

impl<L: RawLock, T> Held<'_, L, T> {
    /// Returns the lock that is held here, to ask it what its kind can tell.
    #[inline]
    #[must_use]
    pub const fn raw(&self) -> &L {
        &self.of.lock
    }
}

impl<L: RawLock, T> Deref for Held<'_, L, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        &self.of.data
    }
}

impl<L: RawLock, T> Drop for Held<'_, L, T> {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: by `held-while-alive`; the lock is released here, once.
        unsafe { self.of.lock.unlock() }
    }
}

impl<L: RawLock, T> fmt::Debug for Held<'_, L, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Held")
    }
}
