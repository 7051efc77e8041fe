//! Ctrl-C stops long work at the next safe point and keeps what is done. A second Ctrl-C ends the
//! process at once, unless something of the host has to be put back first.

use core::sync::atomic::{AtomicBool, Ordering};

use anyhow::Context as _;

static ASKED: AtomicBool = AtomicBool::new(false);
/// True while the process has changed something of the host.
static HOLDS: AtomicBool = AtomicBool::new(false);

/// While this lives, a second Ctrl-C does not end the process.
#[derive(Debug)]
pub struct Holding(());

impl Holding {
    /// The process is about to change something of the host.
    #[must_use]
    pub fn begin() -> Self {
        // Relaxed, here and below: the flags publish no other data.
        HOLDS.store(true, Ordering::Relaxed);
        Self(())
    }
}

impl Drop for Holding {
    fn drop(&mut self) {
        HOLDS.store(false, Ordering::Relaxed);
    }
}

/// Installs the handler. The first Ctrl-C then only sets the flag that [`asked`] returns.
///
/// # Errors
/// If the system refuses, or a handler is there already.
pub fn watch() -> anyhow::Result<()> {
    ctrlc::set_handler(|| {
        if ask() && !HOLDS.load(Ordering::Relaxed) {
            std::process::exit(130);
        }
    })
    .context("cannot watch for Ctrl-C")
}

/// Requests the end of the work; returns true if it was requested before.
pub fn ask() -> bool {
    ASKED.swap(true, Ordering::Relaxed)
}

/// Returns true if the end was requested.
#[must_use]
pub fn asked() -> bool {
    ASKED.load(Ordering::Relaxed)
}
