//! Deferral: after a failed compaction a zone is left alone for a while, twice as long each time.

use brickyard::Order;
use brickyard::sync::{AtomicU32, Ordering};

/// The exponent of the longest pause: it ends with the 64th try.
const MOST_SHIFT: u32 = 6;

/// How long a zone is left alone: after n failures in a row, 2^n - 1 tries of the order that
/// failed, or of larger ones, are skipped.
#[derive(Debug)]
pub(super) struct Deferral {
    // Guesses that only steer effort, so races between CPUs do no harm.
    considered: AtomicU32,
    shift: AtomicU32,
    // The least order that failed.
    failed_order: AtomicU32,
}

impl Deferral {
    /// Returns the deferral of a zone where nothing has failed yet.
    pub(super) const fn new() -> Self {
        Self {
            considered: AtomicU32::new(0),
            shift: AtomicU32::new(0),
            failed_order: AtomicU32::new(Order::COUNT as u32),
        }
    }

    // Relaxed, in all of these: see the fields.

    fn concerns(&self, order: Order) -> bool {
        u32::from(order.get()) >= self.failed_order.load(Ordering::Relaxed)
    }

    fn limit(&self) -> u32 {
        1 << self.shift.load(Ordering::Relaxed)
    }

    /// Counts this try. Returns true if it is to be skipped.
    pub(super) fn skips(&self, order: Order) -> bool {
        if !self.concerns(order) {
            return false;
        }
        let considered = self.considered.load(Ordering::Relaxed) + 1;
        self.considered
            .store(considered.min(self.limit()), Ordering::Relaxed);
        considered < self.limit()
    }

    /// Returns true if this try is the first after the longest pause.
    pub(super) fn restarts(&self, order: Order) -> bool {
        self.concerns(order)
            && self.shift.load(Ordering::Relaxed) == MOST_SHIFT
            && self.considered.load(Ordering::Relaxed) >= self.limit()
    }

    /// Notes a failure.
    pub(super) fn failed(&self, order: Order) {
        let shift = self.shift.load(Ordering::Relaxed);
        self.shift
            .store((shift + 1).min(MOST_SHIFT), Ordering::Relaxed);
        self.considered.store(0, Ordering::Relaxed);
        let failed = self.failed_order.load(Ordering::Relaxed);
        self.failed_order
            .store(failed.min(u32::from(order.get())), Ordering::Relaxed);
    }

    /// Notes that compaction ended with a free block: this order does not count as failed.
    pub(super) fn succeeded(&self, order: Order) {
        let failed = self.failed_order.load(Ordering::Relaxed);
        self.failed_order
            .store(failed.max(u32::from(order.get()) + 1), Ordering::Relaxed);
    }

    /// Notes that a request got its block afterwards: the next failure is the first again.
    pub(super) fn served(&self, order: Order) {
        self.considered.store(0, Ordering::Relaxed);
        self.shift.store(0, Ordering::Relaxed);
        self.succeeded(order);
    }
}
