//! Ctrl-C, SIGTERM and SIGHUP while recording: counted, so that the first ends the recording in
//! order and the second throws it away, and so that no tracing instance is ever left behind.

use core::sync::atomic::{AtomicUsize, Ordering};
use std::sync::Arc;
use std::thread;

use anyhow::Context;
use rustix::process::Signal;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

/// What has been asked for by signals.
#[derive(Debug, Clone)]
pub(super) struct Asked {
    seen: Arc<AtomicUsize>,
    first: Arc<AtomicUsize>,
}

impl Asked {
    /// From now on signals are counted.
    pub(super) fn watch() -> anyhow::Result<Self> {
        let mut signals =
            Signals::new([SIGINT, SIGTERM, SIGHUP]).context("cannot watch for Ctrl-C")?;
        let asked = Self {
            seen: Arc::default(),
            first: Arc::default(),
        };
        let own = asked.clone();
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
        Ok(asked)
    }

    /// How often.
    pub(super) fn count(&self) -> usize {
        // Acquire pairs with the release above.
        self.seen.load(Ordering::Acquire)
    }

    /// By which signal the end was asked for first, if it was.
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
