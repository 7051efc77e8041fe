//! What the simulated words tell the machine: every access before it is made, and what it did once
//! it is.
//!
//! Between the answer to [`begin`] and the access itself no other CPU does anything. Where no
//! machine runs on this thread of the host, or the thread panics, all of this is nothing.

use core::sync::atomic::Ordering;

use crate::charge;
use crate::failure::Failure;
use crate::order::{HappensBefore, Race};
use crate::state::{State, suspend, with};

/// What an access does to a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AccessKind {
    /// Reads.
    Load,
    /// Writes.
    Store,
    /// Reads and writes as one.
    Exchange,
}

/// How an exchange went.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exchanged {
    /// The new value is in.
    Done,
    /// The value found was another one, and stays.
    Refused,
}

/// An access of this kind is about to be made at this address of the host. Charges it, and lets the
/// CPUs go first that are behind.
#[inline]
pub fn begin(address: usize, kind: AccessKind) {
    charge::charge(address, kind);
}

/// A load was made.
#[inline]
pub fn loaded(address: usize, order: Ordering) {
    with(|state| state.loaded(address, order));
}

/// A store was made.
#[inline]
pub fn stored(address: usize, order: Ordering) {
    with(|state| {
        if let Some((watch, cpu, word)) = state.watched(address) {
            watch.store(cpu, word, order);
        }
    });
}

/// An exchange was made, by the ordering of how it went.
#[inline]
pub fn exchanged(address: usize, order: Ordering, how: Exchanged) {
    with(|state| match how {
        Exchanged::Refused => state.loaded(address, order),
        Exchanged::Done => {
            state.progress();
            if let Some((watch, cpu, word)) = state.watched(address) {
                watch.exchange(cpu, word, order);
            }
        }
    });
}

/// A guarded word is about to be read.
#[inline]
pub fn guarded_read(address: usize) {
    charge::charge(address, AccessKind::Load);
    guarded(address, AccessKind::Load);
}

/// A guarded word is about to be written.
#[inline]
pub fn guarded_write(address: usize) {
    charge::charge(address, AccessKind::Store);
    guarded(address, AccessKind::Store);
}

/// The caller waits for another CPU: its next look may as well come later.
pub fn spin() {
    charge::spin();
}

#[inline]
fn guarded(address: usize, kind: AccessKind) {
    if with(|state| state.is_fine(address, kind)) == Some(false) {
        suspend();
    }
}

impl State {
    /// Where orderings are watched: who watches them, the CPU and the machine's address.
    #[inline]
    fn watched(&mut self, address: usize) -> Option<(&mut HappensBefore, usize, u64)> {
        let watch = self.order.as_mut()?;
        Some((watch, self.running, self.regions.find(address)? as u64))
    }

    /// Whoever changes something does not only wait.
    #[inline]
    fn progress(&mut self) {
        self.cpu().spins = 0;
    }

    #[inline]
    fn loaded(&mut self, address: usize, order: Ordering) {
        if let Some((watch, cpu, word)) = self.watched(address) {
            watch.load(cpu, word, order);
        }
    }

    /// Was this access to a guarded word ordered after those before it? If not, the run ends here.
    #[inline]
    fn is_fine(&mut self, address: usize, kind: AccessKind) -> bool {
        let Some((watch, cpu, word)) = self.watched(address) else {
            return true;
        };
        let found = match kind {
            AccessKind::Load => watch.guarded_read(cpu, word),
            AccessKind::Store | AccessKind::Exchange => watch.guarded_write(cpu, word),
        };
        match found {
            Ok(()) => true,
            Err(race) => {
                self.raced(&race);
                false
            }
        }
    }

    #[cold]
    fn raced(&mut self, race: &Race) {
        let (at, what) = (self.moment(), race.to_string());
        self.fail(Failure::Race { at, what });
    }
}
