//! What is compared: a lock, and how long it is held for a bulk operation. These are the columns of
//! the tables of 2007 and 2008, on simulated machines and on real ones.

use brickyard_designs::classics::bulk::BulkPolicy;
use brickyard_run::named;

use crate::lock::LockKind;

named! {
    /// A lock and how long it is held.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum Column {
        /// A test-and-set lock, for the whole bulk: Linux up to 2.6.24 on x86.
        Hold => "hold",
        /// The same lock, released after each page: the patch of October 2007.
        Release => "release",
        /// A ticket lock, for the whole bulk.
        Ticket => "ticket",
        /// A ticket lock, released after a page if another CPU waits: the patch of 2008.
        TicketYield => "ticket+yield",
        /// The same lock alone in its cache line.
        TicketYieldOwnLine => "ticket+yield+own-line",
    }
}

impl Column {
    /// Returns the kind of lock.
    #[must_use]
    pub const fn lock(self) -> LockKind {
        match self {
            Self::Hold | Self::Release => LockKind::LINUX_TEST_AND_SET,
            Self::Ticket | Self::TicketYield | Self::TicketYieldOwnLine => LockKind::LINUX_TICKET,
        }
    }

    /// Returns true if the lock may be released within a bulk operation.
    #[must_use]
    pub fn releases(self) -> bool {
        self.policy() != BulkPolicy::Hold
    }

    /// Returns how long the lock is held in a bulk operation.
    #[must_use]
    pub const fn policy(self) -> BulkPolicy {
        match self {
            Self::Hold | Self::Ticket => BulkPolicy::Hold,
            Self::Release => BulkPolicy::ReleaseEachPage,
            Self::TicketYield | Self::TicketYieldOwnLine => BulkPolicy::YieldWhenContended,
        }
    }
}
