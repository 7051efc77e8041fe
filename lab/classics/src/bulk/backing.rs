//! What stands behind a front: the store, its lock, and what is measured about both.

use core::fmt;
use core::ops::Deref;

use brickyard::sync::{Held, Locked, RawLock};

use super::BulkPolicy;
use super::capture::Capture;
use super::meter::{Meter, MeterReading, Timing};
use crate::store::{Linked, Merged, Store, Taken};
use brickyard::platform::Masked;
use brickyard::transit::Moves;
use brickyard::{Frame, FrameRange, FreeError, MigrateType, Order, Platform, Request};

/// How a zone's lock is used and watched.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Tuning {
    /// How long the lock is held in a bulk operation.
    pub bulk: BulkPolicy,
    /// Whether wait and hold times are measured: two readings of the platform's clock for each hold.
    pub timing: Timing,
}

impl Tuning {
    /// One hold for a batch, nothing measured: as Linux.
    pub const LINUX: Self = Self {
        bulk: BulkPolicy::Hold,
        timing: Timing::Off,
    };
}

/// What the zone lock guards.
#[derive(Debug)]
struct Kept<S> {
    store: S,
    meter: Meter,
    capture: Capture,
}

/// A store behind its lock.
#[derive(Debug)]
pub struct Backing<S, L, P> {
    kept: Locked<L, Kept<S>>,
    platform: P,
    tuning: Tuning,
    moves: Moves,
}

impl<S: Store, L: RawLock, P: Platform> Backing<S, L, P> {
    /// A store behind its lock.
    #[must_use]
    pub const fn new(platform: P, store: S, tuning: Tuning) -> Self {
        Self {
            kept: Locked::new(Kept {
                store,
                meter: Meter::new(),
                capture: Capture::new(),
            }),
            platform,
            tuning,
            moves: Moves::new(),
        }
    }

    /// The embedder's platform.
    #[must_use]
    pub const fn platform(&self) -> &P {
        &self.platform
    }

    /// How the lock is used.
    #[must_use]
    pub const fn tuning(&self) -> Tuning {
        self.tuning
    }

    pub(crate) const fn moves(&self) -> &Moves {
        &self.moves
    }

    /// The store without its lock: for what is constant in it, for hints, and for the records of frames that the caller owns.
    #[inline]
    #[must_use]
    pub const fn unlocked(&self) -> &S {
        &self.kept.unlocked().store
    }

    /// Enters the store: under the zone lock with interrupts masked.
    #[inline]
    pub fn lock(&self) -> StoreGuard<'_, S, L, P> {
        let masked = Masked::new(&self.platform);
        let mut guard = self.lock_masked(&masked);
        guard.masked = Some(masked);
        guard
    }

    /// Takes the zone lock; the caller has masked interrupts and keeps them so.
    pub(crate) fn lock_masked(&self, _masked: &Masked<'_, P>) -> StoreGuard<'_, S, L, P> {
        let measured = self.tuning.timing == Timing::On;
        let asked = if measured { self.platform.ticks() } else { 0 };
        let held = self.kept.lock(|| self.platform.relax());
        let since = if measured { self.platform.ticks() } else { 0 };
        if measured {
            held.meter.waited(since.saturating_sub(asked));
        }
        StoreGuard {
            backing: self,
            since,
            held,
            masked: None,
        }
    }

    /// What was measured so far.
    pub fn reading(&self) -> MeterReading {
        self.lock().meter().reading()
    }
}

/// The caller is in the store as long as this lives: the zone lock is held and interrupts are masked. Dereferences to the
/// store.
#[must_use = "the zone lock is given up as soon as this is dropped"]
pub struct StoreGuard<'b, S: Store, L: RawLock, P: Platform> {
    backing: &'b Backing<S, L, P>,
    since: u64,
    // Dropped in this order: the lock is given up before interrupts come back.
    held: Held<'b, L, Kept<S>>,
    masked: Option<Masked<'b, P>>,
}

impl<S: Store, L: RawLock, P: Platform> StoreGuard<'_, S, L, P> {
    /// Does somebody wait for the lock?
    #[inline]
    #[must_use]
    pub fn is_contended(&self) -> bool {
        self.held.is_contended()
    }

    const fn store(&self) -> &S {
        self.backing.unlocked()
    }

    /// The meter, which the lock guards.
    pub(crate) fn meter(&self) -> &Meter {
        &self.held.meter
    }

    /// The capture slot, which the lock guards.
    pub(crate) fn capture(&self) -> &Capture {
        &self.held.capture
    }

    /// Takes a block, and counts it as a bulk of one.
    pub(crate) fn take(&self, request: &Request) -> Option<Taken> {
        let taken = self.take_one(request)?;
        self.meter().took(1, request.order);
        Some(taken)
    }

    /// Takes a block that belongs to a bulk.
    pub(super) fn take_one(&self, request: &Request) -> Option<Taken> {
        let taken = self.store().take(request);
        self.count(taken);
        taken
    }

    /// Takes back a block in use, and counts it as a bulk of one.
    pub(crate) fn give(&self, frame: Frame, order: Order) -> Result<Merged, FreeError> {
        let merged = self.give_one(frame, order)?;
        self.meter().gave(1, order);
        Ok(merged)
    }

    /// Takes back a block in use that belongs to a bulk.
    pub(super) fn give_one(&self, frame: Frame, order: Order) -> Result<Merged, FreeError> {
        let merged = self.store().give(frame, order)?;
        self.freed(merged);
        Ok(merged)
    }

    /// Takes back a range of blocks in use.
    pub(crate) fn give_range(&self, range: FrameRange) -> Result<(), FreeError> {
        self.store().check_in_use(range)?;
        let mut at = range.start;
        while let Some((first, state)) = self.store().block_of(at)
            && at < range.end
        {
            let block = FrameRange::of_block(first, state.order);
            let part = FrameRange { start: at, ..range };
            at = block.end;
            for (frame, order) in part.intersection(block).blocks(state.order) {
                self.give(frame, order)?;
            }
        }
        Ok(())
    }

    /// Offers what has just become free to whoever compacts.
    fn freed(&self, merged: Merged) {
        if let Some(fallback) = self.held.capture.offer(&self.held.store, merged) {
            self.held.meter.fell_back(fallback);
        }
    }

    fn count(&self, taken: Option<Taken>) {
        if let Some(fallback) = taken.and_then(|taken| taken.fallback) {
            self.meter().fell_back(fallback);
        }
    }
}

impl<S: Linked, L: RawLock, P: Platform> StoreGuard<'_, S, L, P> {
    pub(super) fn take_cached(&self, wanted: MigrateType) -> Option<Frame> {
        let taken = self.store().take_cached(wanted);
        self.count(taken);
        taken.map(|taken| taken.frame)
    }

    pub(super) fn give_cached(&self, frame: Frame) {
        let merged = self.store().give_cached(frame);
        self.freed(merged);
    }
}

impl<S: Store, L: RawLock, P: Platform> Deref for StoreGuard<'_, S, L, P> {
    type Target = S;

    #[inline]
    fn deref(&self) -> &S {
        self.backing.unlocked()
    }
}

impl<S: Store, L: RawLock, P: Platform> Drop for StoreGuard<'_, S, L, P> {
    fn drop(&mut self) {
        if self.backing.tuning.timing == Timing::On {
            let now = self.backing.platform.ticks();
            self.held.meter.held(now.saturating_sub(self.since));
        }
    }
}

impl<S: Store, L: RawLock, P: Platform> fmt::Debug for StoreGuard<'_, S, L, P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("StoreGuard")
    }
}
