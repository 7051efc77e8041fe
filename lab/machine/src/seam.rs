//! What the simulated atomics report to the machine: every access before it is made, and its effect
//! afterwards.
//!
//! Between the return of [`begin`] and the access itself no other CPU does anything. While the
//! thread panics, these functions let no other CPU run. Where no machine runs on this thread of the
//! host, they do nothing, unless a test sets what is called [before each
//! access](before_each_access).

use core::cell::Cell;
use core::sync::atomic::Ordering;

use crate::charge;
use crate::failure::Failure;
use crate::order::{HappensBefore, Race};
use crate::state::{State, suspend, with};

/// The kind of an access.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AccessKind {
    /// Reads.
    Load,
    /// Writes.
    Store,
    /// Reads and writes atomically.
    Exchange,
}

/// The outcome of an exchange.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exchanged {
    /// The new value was written.
    Done,
    /// A compare-exchange found another value, and wrote nothing.
    Refused,
}

thread_local! {
    static HOOK: Cell<Option<fn()>> = const { Cell::new(None) };
}

/// Runs `work`, and calls `hook` before each atomic access that this thread of the host makes
/// meanwhile without a machine. The hook may do what it likes, accesses of its own included.
/// Guarded words are accessed without a call: only one CPU at a time can see them.
pub fn before_each_access<R>(hook: fn(), work: impl FnOnce() -> R) -> R {
    struct Restores(Option<fn()>);
    impl Drop for Restores {
        fn drop(&mut self) {
            HOOK.set(self.0);
        }
    }
    let _restores = Restores(HOOK.replace(Some(hook)));
    work()
}

#[inline(never)]
fn call_hook() {
    if let Some(hook) = HOOK.get() {
        hook();
    }
}

/// Charges an access of this kind that is about to be made at this host address, and lets the CPUs
/// run first whose clocks are earlier.
#[inline]
pub fn begin(address: usize, kind: AccessKind) {
    if !charge::charge(address, kind) {
        call_hook();
    }
}

/// Reports a load that was made.
#[inline]
pub fn loaded(address: usize, order: Ordering) {
    with(|state| state.loaded(address, order));
}

/// Reports a store that was made.
#[inline]
pub fn stored(address: usize, order: Ordering) {
    with(|state| {
        if let Some((watch, cpu, word)) = state.watched(address) {
            watch.store(cpu, word, order);
        }
    });
}

/// Reports an exchange that was made, with the ordering that applies to its outcome.
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

/// Charges and checks a read of a guarded word that is about to be made.
#[inline]
pub fn guarded_read(address: usize) {
    charge::charge(address, AccessKind::Load);
    guarded(address, AccessKind::Load);
}

/// Charges and checks a write of a guarded word that is about to be made.
#[inline]
pub fn guarded_write(address: usize) {
    charge::charge(address, AccessKind::Store);
    guarded(address, AccessKind::Store);
}

/// Reports that the caller waits for another CPU, so that its next access may be delayed.
pub fn spin() {
    charge::spin();
}

#[inline]
fn guarded(address: usize, kind: AccessKind) {
    if with(|state| state.check_guarded(address, kind)) == Some(false) {
        suspend();
    }
}

impl State {
    /// Where orderings are checked and the address is mapped: the clocks, the CPU and the machine's
    /// address.
    #[inline]
    fn watched(&mut self, address: usize) -> Option<(&mut HappensBefore, usize, u64)> {
        let watch = self.order.as_mut()?;
        Some((watch, self.running, self.regions.find(address)? as u64))
    }

    /// A CPU that changes something makes progress: its spins count from zero again.
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

    /// Checks that this access to a guarded word is ordered after those before it. Returns false
    /// where it is not, which ends the run.
    #[inline]
    fn check_guarded(&mut self, address: usize, kind: AccessKind) -> bool {
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
