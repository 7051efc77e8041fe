//! Ctrl-C ends long work at the next good place, and keeps what is done. A second one ends it at once.

use core::sync::atomic::{AtomicBool, Ordering};

use anyhow::Context;

static ASKED: AtomicBool = AtomicBool::new(false);

/// From now on the first Ctrl-C is only noted.
pub(crate) fn watch() -> anyhow::Result<()> {
    ctrlc::set_handler(|| {
        // Relaxed: a flag alone, nothing is published with it.
        if ASKED.swap(true, Ordering::Relaxed) {
            std::process::exit(130);
        }
    })
    .context("cannot watch for Ctrl-C")
}

/// Has the user asked for an end?
pub(crate) fn asked() -> bool {
    // Relaxed: as above.
    ASKED.load(Ordering::Relaxed)
}
