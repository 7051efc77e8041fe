//! A lock during which an interrupt may come.
//!
//! Just after it is taken and just before it is given up is a moment, as every call of the platform
//! is. An interrupt that then wants the same lock waits for ever, and is noticed: so whoever holds
//! what interrupts need has masked them. Other tasks do not come while it is held; locks of systems
//! with preemption see to that themselves.

use brickyard::sync::{RawLock, TicketLock};

use super::cpus::locked_moment;

#[derive(Debug)]
pub(super) struct WatchedLock(TicketLock);

// SAFETY: a ticket lock; what happens while it is held does not touch what it guards, but through
// the lock.
unsafe impl RawLock for WatchedLock {
    const UNLOCKED: Self = Self(TicketLock::UNLOCKED);

    fn lock(&self, relax: impl FnMut()) {
        self.0.lock(relax);
        locked_moment();
    }

    fn try_lock(&self) -> bool {
        let taken = self.0.try_lock();
        if taken {
            locked_moment();
        }
        taken
    }

    unsafe fn unlock(&self) {
        locked_moment();
        // SAFETY: passed on.
        unsafe { self.0.unlock() };
    }

    fn is_contended(&self) -> bool {
        self.0.is_contended()
    }

    fn is_locked(&self) -> bool {
        self.0.is_locked()
    }
}
