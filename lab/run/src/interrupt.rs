//! Ctrl-C stops long work at the next safe point and keeps what is done. A second Ctrl-C ends the
//! process at once, unless something of the host has to be put back first.

use core::ops::ControlFlow;
use core::sync::atomic::{AtomicBool, Ordering};
use core::time::Duration;
use std::time::Instant;

use anyhow::Context as _;

/// What comes so soon after the first Ctrl-C is the same request: `timeout` sends its signal to the
/// process, and then to its group.
const ONE_REQUEST: Duration = Duration::from_millis(200);

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
    let mut first = None;
    ctrlc::set_handler(move || {
        let is_another = first.get_or_insert_with(Instant::now).elapsed() > ONE_REQUEST;
        if ask() && is_another && !HOLDS.load(Ordering::Relaxed) {
            std::process::exit(130);
        }
    })
    .context("cannot watch for Ctrl-C")
}

/// Says whether to go on: not if the end was requested.
pub fn flow() -> ControlFlow<()> {
    match asked() {
        true => ControlFlow::Break(()),
        false => ControlFlow::Continue(()),
    }
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
