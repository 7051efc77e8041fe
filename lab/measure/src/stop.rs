//! Interruption of a measurement: long work ends at the next safe point, and what is done is kept.

use core::sync::atomic::{AtomicBool, Ordering};

static ASKED: AtomicBool = AtomicBool::new(false);

/// Requests the end of the measurement; returns true if it was requested before.
pub fn ask() -> bool {
    // Relaxed: the flag publishes no other data.
    ASKED.swap(true, Ordering::Relaxed)
}

/// Returns true if the end was requested.
#[must_use]
pub fn asked() -> bool {
    // Relaxed: as above.
    ASKED.load(Ordering::Relaxed)
}
