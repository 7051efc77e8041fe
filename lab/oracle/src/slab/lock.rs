//! A lock under which interrupts may come.
//!
//! Just after it is taken and just before it is released is a moment for events, as is every call
//! of the platform. An interrupt that then takes the same lock waits forever, which is detected: so
//! a holder of a lock that interrupts need has to mask them. Other tasks do not run while it is
//! held; in systems with preemption the lock itself ensures that.

use brickyard::sync::{RawLock, TicketLock};

use super::cpus::locked_moment;

#[derive(Debug)]
pub(super) struct WatchedLock(TicketLock);

// SAFETY: a ticket lock; events while it is held access what it guards only through the lock.
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

    fn is_locked(&self) -> bool {
        self.0.is_locked()
    }
}
