//! A lock at which a thread can be stopped before it takes it.

use core::cell::Cell;

use brickyard::sync::{RawLock, TicketLock};
use brickyard_designs::classics::Contended;

thread_local! {
    // Called before the next lock that this thread tries to take.
    static BEFORE: Cell<Option<fn()>> = const { Cell::new(None) };
}

/// Makes this thread call `wait` before the next lock that it tries to take.
pub(crate) fn stop_at_the_next(wait: fn()) {
    BEFORE.set(Some(wait));
}

/// A ticket lock at which a thread can be stopped.
#[derive(Debug)]
pub(crate) struct Stopping(TicketLock);

// SAFETY: every call is forwarded to a lock that keeps the contract; waiting before taking it
// changes nothing.
unsafe impl RawLock for Stopping {
    const UNLOCKED: Self = Self(TicketLock::UNLOCKED);

    fn lock(&self, relax: impl FnMut()) {
        self.0.lock(relax);
    }

    fn try_lock(&self) -> bool {
        if let Some(wait) = BEFORE.take() {
            wait();
        }
        self.0.try_lock()
    }

    unsafe fn unlock(&self) {
        // SAFETY: the caller holds this lock, and the lock inside is the same one.
        unsafe { self.0.unlock() }
    }

    fn is_locked(&self) -> bool {
        self.0.is_locked()
    }
}

impl Contended for Stopping {
    fn is_contended(&self) -> bool {
        self.0.is_contended()
    }
}
