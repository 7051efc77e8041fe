//! A lock that is watched: how long each acquisition waited, and how long the lock was then held,
//! exactly, in cycles.
//!
//! What is noted lies outside the machine's memory: it takes no simulated time and moves no cache
//! line, unlike a meter beside the lock. A machine runs on one thread of the host, and so one log a
//! thread is enough; it counts all locks of this kind together. Where there is no log, or no
//! machine, nothing is noted.

use core::cell::RefCell;

use brickyard_machine::here;

use crate::RawLock;

/// Had a CPU to wait for the lock?
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Found {
    /// Nobody had it.
    Free,
    /// Somebody did, or was before in the queue.
    Taken,
}

/// What was noted of acquisitions, in the order in which the lock was got.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LockLog {
    /// Cycles from asking for the lock to having it, and how it was found.
    pub waits: Vec<(u64, Found)>,
    /// Cycles from having it to giving it up, in the order in which it was given up.
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

/// Runs `work`, and returns what was noted meanwhile on this thread of the host beside what it
/// returns. A log inside another one takes its notes away from it.
pub fn timed<R>(work: impl FnOnce() -> R) -> (R, LockLog) {
    let outer = WRITING.replace(Some(Writing::default()));
    let result = work();
    let log = WRITING.replace(outer).unwrap_or_default().log;
    (result, log)
}

/// A lock whose acquisitions are noted; otherwise it is `L`, access for access and byte for byte.
#[derive(Debug)]
#[repr(transparent)]
pub struct Timed<L>(L);

impl<L: RawLock> Timed<L> {
    fn got(&self, asked: u64, found: Found) {
        let (now, lock) = (here::now(), core::ptr::from_ref(self).addr());
        WRITING.with_borrow_mut(|writing| {
            if let Some(writing) = writing {
                writing.held.push((lock, now));
                writing.log.waits.push((now - asked, found));
            }
        });
    }

    fn given_up(&self) {
        let (now, lock) = (here::now(), core::ptr::from_ref(self).addr());
        WRITING.with_borrow_mut(|writing| {
            let Some(writing) = writing else { return };
            // Nothing is found of a lock that was taken before the log began.
            if let Some(place) = writing.held.iter().position(|&(held, _)| held == lock) {
                let (_, since) = writing.held.swap_remove(place);
                writing.log.holds.push(now - since);
            }
        });
    }
}

// SAFETY: each call is passed on to a lock that keeps the contract.
unsafe impl<L: RawLock> RawLock for Timed<L> {
    const UNLOCKED: Self = Self(L::UNLOCKED);

    #[inline]
    fn lock(&self, mut relax: impl FnMut()) {
        let asked = here::now();
        let mut found = Found::Free;
        self.0.lock(|| {
            found = Found::Taken;
            relax();
        });
        self.got(asked, found);
    }

    #[inline]
    fn try_lock(&self) -> bool {
        let asked = here::now();
        let taken = self.0.try_lock();
        if taken {
            self.got(asked, Found::Free);
        }
        taken
    }

    #[inline]
    unsafe fn unlock(&self) {
        self.given_up();
        // SAFETY: passed on.
        unsafe { self.0.unlock() };
    }

    #[inline]
    fn is_contended(&self) -> bool {
        self.0.is_contended()
    }

    #[inline]
    fn is_locked(&self) -> bool {
        self.0.is_locked()
    }
}
