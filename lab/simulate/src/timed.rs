//! A lock that is measured: how long each acquisition waited, and how long the lock was then held,
//! exactly, in cycles.
//!
//! The log is outside the machine's memory: recording takes no simulated time and moves no cache
//! line, unlike counters beside the lock. A machine runs on one thread of the host, so one log per
//! thread is enough; it covers all locks of this kind together. Where there is no log, nothing is
//! recorded.

#![allow(unsafe_code, reason = "a lock around a lock")]

use core::cell::RefCell;

use brickyard::sync::RawLock;
use brickyard_designs::classics::Contended;
use brickyard_machine::current;

/// How a CPU found the lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Found {
    /// Free: the CPU did not wait.
    Free,
    /// Held, or with others ahead in the queue: the CPU waited.
    Taken,
}

/// The acquisitions and releases that were recorded.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LockLog {
    /// Cycles from the request to the acquisition, and how the lock was found; in the order of the
    /// acquisitions.
    pub waits: Vec<(u64, Found)>,
    /// Cycles from the acquisition to the release, in the order of the releases.
    pub holds: Vec<u64>,
}

/// A log that is being written.
#[derive(Debug, Default)]
struct Writing {
    log: LockLog,
    /// The locks that are held now, by address, and since when.
    held: Vec<(usize, u64)>,
}

thread_local! {
    static WRITING: RefCell<Option<Writing>> = const { RefCell::new(None) };
}

/// Runs `work`; returns its result, and what was recorded meanwhile on this thread of the host. A
/// nested call records for itself: its acquisitions are missing from the outer log.
pub fn timed<R>(work: impl FnOnce() -> R) -> (R, LockLog) {
    let outer = WRITING.replace(Some(Writing::default()));
    let result = work();
    let log = WRITING.replace(outer).unwrap_or_default().log;
    (result, log)
}

/// A lock whose acquisitions are recorded; otherwise it is `L`, access for access and byte for
/// byte.
#[derive(Debug)]
#[repr(transparent)]
pub struct Timed<L>(L);

impl<L: RawLock> Timed<L> {
    fn acquired(&self, requested: u64, found: Found) {
        let (now, lock) = (current::now(), core::ptr::from_ref(self).addr());
        WRITING.with_borrow_mut(|writing| {
            if let Some(writing) = writing {
                writing.held.push((lock, now));
                writing.log.waits.push((now - requested, found));
            }
        });
    }

    fn released(&self) {
        let (now, lock) = (current::now(), core::ptr::from_ref(self).addr());
        WRITING.with_borrow_mut(|writing| {
            let Some(writing) = writing else { return };
            // A lock that was acquired before the log began is not in it.
            if let Some(place) = writing.held.iter().position(|&(held, _)| held == lock) {
                let (_, since) = writing.held.swap_remove(place);
                writing.log.holds.push(now - since);
            }
        });
    }
}

// SAFETY: each call is forwarded to a lock that keeps the contract.
unsafe impl<L: RawLock> RawLock for Timed<L> {
    const UNLOCKED: Self = Self(L::UNLOCKED);

    #[inline]
    fn lock(&self, mut relax: impl FnMut()) {
        let requested = current::now();
        let mut found = Found::Free;
        self.0.lock(|| {
            found = Found::Taken;
            relax();
        });
        self.acquired(requested, found);
    }

    #[inline]
    fn try_lock(&self) -> bool {
        let requested = current::now();
        let taken = self.0.try_lock();
        if taken {
            self.acquired(requested, Found::Free);
        }
        taken
    }

    #[inline]
    unsafe fn unlock(&self) {
        self.released();
        // SAFETY: forwarded.
        unsafe { self.0.unlock() };
    }

    #[inline]
    fn is_locked(&self) -> bool {
        self.0.is_locked()
    }
}

impl<L: Contended> Contended for Timed<L> {
    #[inline]
    fn is_contended(&self) -> bool {
        self.0.is_contended()
    }
}
