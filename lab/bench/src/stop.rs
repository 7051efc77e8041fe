//! An end that is asked for while something is measured: long work ends at the next good place, and
//! what is done is kept.

use core::sync::atomic::{AtomicBool, Ordering};

static ASKED: AtomicBool = AtomicBool::new(false);

/// Asks for an end. Was it asked for before?
pub fn ask() -> bool {
    // Relaxed: a flag alone, nothing is published with it.
    ASKED.swap(true, Ordering::Relaxed)
}

/// Was an end asked for?
#[must_use]
pub fn asked() -> bool {
    // Relaxed: as above.
    ASKED.load(Ordering::Relaxed)
}
