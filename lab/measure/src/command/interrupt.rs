//! Ctrl-C stops long work at the next safe point and keeps what is done. A second Ctrl-C ends the
//! process at once, unless something of the host has to be put back first.

use core::sync::atomic::{AtomicBool, Ordering};

use crate::stop;
use anyhow::Context;

/// True while the process has changed something of the host.
static HOLDS: AtomicBool = AtomicBool::new(false);

/// While this lives, a second Ctrl-C does not end the process.
#[derive(Debug)]
pub struct Holding(());

impl Holding {
    /// From now on something of the host has to be put back.
    pub fn begin() -> Self {
        // Relaxed, here and below: the flag publishes no other data.
        HOLDS.store(true, Ordering::Relaxed);
        Self(())
    }
}

impl Drop for Holding {
    fn drop(&mut self) {
        HOLDS.store(false, Ordering::Relaxed);
    }
}

/// Installs the handler. The first Ctrl-C then only sets a flag: see [`stop::asked`].
pub fn watch() -> anyhow::Result<()> {
    ctrlc::set_handler(|| {
        if stop::ask() && !HOLDS.load(Ordering::Relaxed) {
            std::process::exit(130);
        }
    })
    .context("cannot watch for Ctrl-C")
}
