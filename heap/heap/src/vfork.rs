//! Children of `vfork`, which run in their parent's memory while its thread stands still.
//!
//! Such a child has the parent's thread-local memory, but the system does not tell it its CPU, nor
//! does it end its sequences midway: the row that it would take for its own is another's. So before
//! a `vfork` the thread gives up its row, and the fast paths, which do not ask for that, are closed
//! to all threads until the child has ended or become another program. Slow paths serve it from
//! slabs, behind locks. (POSIX does not allow such a child to call anything; programs do.)
//!
//! What a child does that the system ends in the middle of a request stays undone: if it held a
//! lock, the parent will wait for it for ever.

use core::cell::UnsafeCell;
use core::sync::atomic::Ordering;

use brickyard::Platform;
use brickyard::sync::{Locked, TestAndSetLock};
use brickyard_arena::rows::{rows_given_up, set_rows_given_up};
use brickyard_arena::{Threads, page_bytes};

use crate::build::heap;
use crate::fast_path::{FAST, GRANULE_SHIFT, PAGE_SHIFT};
use crate::hardened::hardened;
use crate::perturb;

/// The fast paths' state while they are closed. (They are closed by relaxed stores: who comes too
/// early is another thread, which has a row.)
struct Closed {
    /// How often a thread is before or in a `vfork`.
    times: usize,
    /// What [`Fast::limit`](crate::Fast) and `granules` were before.
    limit: usize,
    granules: usize,
}

static CLOSED: Shared = Shared {
    lock: UnsafeCell::new(Locked::new(())),
    closed: UnsafeCell::new(Closed {
        times: 0,
        limit: 0,
        granules: 0,
    }),
};

struct Shared {
    lock: UnsafeCell<Locked<TestAndSetLock, ()>>,
    closed: UnsafeCell<Closed>,
}

// SAFETY: only a holder of the lock uses the other cell; the lock is replaced only in a child
// process, by its only thread (`forget_others`).
unsafe impl Sync for Shared {}

impl Closed {
    fn with<R>(work: impl FnOnce(&mut Self) -> R) -> R {
        // SAFETY: see `Shared`.
        let _held = unsafe { &*CLOSED.lock.get() }.lock(|| Threads.relax());
        // SAFETY: the lock is held as long as `work` runs.
        work(unsafe { &mut *CLOSED.closed.get() })
    }

    fn close(&mut self) {
        self.times += 1;
        if self.times == 1 {
            self.limit = FAST.limit.swap(0, Ordering::Relaxed);
            self.granules = FAST.granules.swap(0, Ordering::Relaxed);
            if let Some(hardened) = hardened() {
                hardened.close();
            }
        }
    }

    fn open(&mut self, times: usize) {
        let before = self.times;
        self.times = before.saturating_sub(times);
        if self.times > 0 || before == 0 {
            return;
        }
        if !perturb::has_closed() {
            // Release: `built-before-seen`.
            FAST.limit.store(self.limit, Ordering::Release);
            FAST.granules.store(self.granules, Ordering::Release);
        }
        if let Some(hardened) = hardened() {
            hardened.open();
        }
    }
}

/// To be called before `vfork`, by the thread that calls it. Returns what [`after_vfork`] has to be
/// given.
pub fn before_vfork() -> u32 {
    // The child must not be the first that needs it.
    let _ = heap();
    let before = rows_given_up();
    Closed::with(Closed::close);
    set_rows_given_up(before + 1);
    before
}

/// To be called after `vfork`, in the parent alone, with what [`before_vfork`] returned. What the
/// child has begun in the same way, and not ended, ends too.
pub fn after_vfork(before: u32) {
    let times = rows_given_up().saturating_sub(before);
    Closed::with(|closed| closed.open(times as usize));
    set_rows_given_up(before);
}

/// Has the fast paths know so many pages from now on.
pub(crate) fn limit_pages(pages: usize) {
    if page_bytes() != 1 << PAGE_SHIFT {
        return;
    }
    let granules = pages << (PAGE_SHIFT - GRANULE_SHIFT);
    Closed::with(|closed| {
        if closed.times > 0 && closed.granules > 0 {
            closed.granules = granules;
        } else if !perturb::has_closed() && FAST.granules.load(Ordering::Relaxed) > 0 {
            // Release: `built-before-seen`.
            FAST.granules.store(granules, Ordering::Release);
        }
    });
}

/// Called in a child of `fork`: the lock is nobody's, and of those that were before or in a `vfork`
/// only the calling thread is here. (A child of a child of `vfork` stays without a row: the system
/// tells it no CPU either.)
///
/// # Safety
/// The process has one thread, which is not in a function of this file.
pub(crate) unsafe fn forget_others() {
    // SAFETY: the caller's promise: nobody refers to it.
    unsafe { *CLOSED.lock.get() = Locked::new(()) };
    let own = rows_given_up() as usize;
    Closed::with(|closed| closed.open(closed.times.saturating_sub(own)));
}

/// Closes the fast paths for good.
pub(crate) fn close_for_good(set: impl FnOnce()) {
    Closed::with(|_| {
        set();
        FAST.limit.store(0, Ordering::Relaxed);
        FAST.granules.store(0, Ordering::Relaxed);
    });
}
