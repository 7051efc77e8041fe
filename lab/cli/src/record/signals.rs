//! Ctrl-C, SIGTERM and SIGHUP while recording: they are counted, so that the first ends the
//! recording cleanly and the second discards it. Either way the tracing instance is removed.

use core::sync::atomic::{AtomicUsize, Ordering};
use std::sync::Arc;
use std::thread;

use anyhow::Context;
use rustix::process::Signal;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

/// The signals received.
#[derive(Debug, Clone)]
pub(super) struct Received {
    seen: Arc<AtomicUsize>,
    first: Arc<AtomicUsize>,
}

impl Received {
    /// Starts counting signals.
    pub(super) fn watch() -> anyhow::Result<Self> {
        let mut signals =
            Signals::new([SIGINT, SIGTERM, SIGHUP]).context("cannot watch for Ctrl-C")?;
        let received = Self {
            seen: Arc::default(),
            first: Arc::default(),
        };
        let own = received.clone();
        let watch = move || {
            for signal in signals.forever() {
                // Relaxed for the first: it is published by the count.
                let _ = own.first.compare_exchange(
                    0,
                    signal.unsigned_abs() as usize,
                    Ordering::Relaxed,
                    Ordering::Relaxed,
                );
                own.seen.fetch_add(1, Ordering::Release);
            }
        };
        let started = thread::Builder::new().name("signals".to_owned());
        started.spawn(watch).context("cannot start a thread")?;
        Ok(received)
    }

    /// Returns the number of signals received.
    pub(super) fn count(&self) -> usize {
        // Acquire pairs with the release above.
        self.seen.load(Ordering::Acquire)
    }

    /// Returns the first signal received, if any.
    pub(super) fn first(&self) -> Option<Signal> {
        if self.count() == 0 {
            return None;
        }
        // Relaxed: the count was read before.
        match self.first.load(Ordering::Relaxed) as i32 {
            SIGINT => Some(Signal::INT),
            SIGHUP => Some(Signal::HUP),
            _ => Some(Signal::TERM),
        }
    }
}
