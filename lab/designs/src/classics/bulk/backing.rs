//! The store behind a front, its lock, and the measurements of both.

use core::ops::Deref;

use brickyard::sync::{Held, Locked};

use super::BulkPolicy;
use super::capture::Capture;
use super::meter::{Meter, MeterReading, Timing};
use crate::classics::lock::{Behind, Contended, LabLock};
use crate::classics::store::buddy::Buddy;
use crate::classics::store::grouping::Grouping;
use crate::classics::store::{Merged, Taken};
use brickyard::platform::MaskGuard;
use brickyard::transit::Moves;
use brickyard::watermark::Watermarks;
use brickyard::{Frame, FrameRange, FreeError, MigrateType, Order, Platform, Request};

/// How a zone's lock is used and measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Tuning {
    /// How long the lock is held in a bulk operation.
    pub bulk: BulkPolicy,
    /// Whether wait and hold times are measured, which reads the platform's clock three times for
    /// each hold.
    pub timing: Timing,
}

impl Tuning {
    /// One hold per batch, nothing measured: as in Linux.
    pub const LINUX: Self = Self {
        bulk: BulkPolicy::Hold,
        timing: Timing::Off,
    };
}

/// What the zone lock guards. The store comes first, so that its lists begin in the lock's line.
#[derive(Debug)]
#[repr(C)]
struct Guarded<'m, G> {
    store: Buddy<'m, G>,
    meter: Meter,
    capture: Capture,
}

/// A store under its lock.
///
/// The lock begins a cache line, and the lists of free blocks follow in that line, order 0 first:
/// as in Linux 2.6, where `lock` and `free_area` were neighbours in `struct zone`. (Where a line
/// began there depended on the configuration; this is our assumption.) So the CPU that takes the
/// lock has fetched the first lists with it, unless the lock is alone in its line
/// ([`OwnLine`](crate::classics::OwnLine)).
#[derive(Debug)]
#[repr(C, align(64))]
pub struct Backing<'m, G, L: LabLock, P> {
    guarded: Locked<L::Raw, Behind<L::Gap, Guarded<'m, G>>>,
    platform: P,
    tuning: Tuning,
    moves: Moves,
    watermarks: Watermarks,
}

impl<'m, G: Grouping, L: LabLock, P: Platform> Backing<'m, G, L, P> {
    /// Makes a store under its lock.
    #[must_use]
    pub fn new(platform: P, store: Buddy<'m, G>, tuning: Tuning) -> Self {
        Self {
            guarded: Locked::new(Behind::new(Guarded {
                store,
                meter: Meter::default(),
                capture: Capture::default(),
            })),
            platform,
            tuning,
            moves: Moves::new(),
            watermarks: Watermarks::new(),
        }
    }

    /// Returns the embedder's platform.
    #[must_use]
    pub const fn platform(&self) -> &P {
        &self.platform
    }

    /// Returns how the lock is used.
    #[must_use]
    pub const fn tuning(&self) -> Tuning {
        self.tuning
    }

    /// Returns how much the zone keeps free.
    #[must_use]
    pub const fn watermarks(&self) -> &Watermarks {
        &self.watermarks
    }

    pub(crate) const fn moves(&self) -> &Moves {
        &self.moves
    }

    /// Returns the store without taking its lock: for its constants, for hints, and for the records
    /// of frames that the caller owns.
    #[inline]
    #[must_use]
    pub const fn unlocked(&self) -> &Buddy<'m, G> {
        &self.guarded.unlocked().data().store
    }

    /// Takes the zone lock with interrupts masked.
    #[inline]
    pub(crate) fn lock(&self) -> StoreGuard<'_, 'm, G, L, P> {
        let masked = MaskGuard::new(&self.platform);
        let mut guard = self.lock_masked(&masked);
        guard.masked = Some(masked);
        guard
    }

    /// Takes the zone lock; the caller has masked interrupts and keeps them so.
    pub(crate) fn lock_masked(&self, _masked: &MaskGuard<'_, P>) -> StoreGuard<'_, 'm, G, L, P> {
        let measured = self.tuning.timing == Timing::On;
        let asked = if measured { self.platform.ticks() } else { 0 };
        let held = self.guarded.lock(|| self.platform.relax());
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

    /// Returns the measurements so far.
    pub fn reading(&self) -> MeterReading {
        self.lock().meter().reading()
    }
}

/// Holds the zone lock, with interrupts masked, until dropped. Dereferences to the store.
#[must_use = "the zone lock is released as soon as this is dropped"]
pub(crate) struct StoreGuard<'b, 'm, G: Grouping, L: LabLock, P: Platform> {
    backing: &'b Backing<'m, G, L, P>,
    since: u64,
    // Dropped in this order: the lock is released before interrupts are restored.
    held: Held<'b, L::Raw, Behind<L::Gap, Guarded<'m, G>>>,
    masked: Option<MaskGuard<'b, P>>,
}

impl<G: Grouping, L: LabLock, P: Platform> StoreGuard<'_, '_, G, L, P> {
    /// Returns true if another CPU waits for the lock.
    #[inline]
    pub(crate) fn is_contended(&self) -> bool {
        self.held.raw().is_contended()
    }

    /// Returns the meter, which the lock guards.
    pub(crate) fn meter(&self) -> &Meter {
        &self.held.meter
    }

    /// Returns the capture slot, which the lock guards.
    pub(crate) fn capture(&self) -> &Capture {
        &self.held.capture
    }

    /// Takes a block, and counts it as a bulk operation.
    pub(crate) fn take(&self, request: &Request) -> Option<Taken> {
        let taken = self.take_one(request)?;
        self.meter().took(1, request.order);
        Some(taken)
    }

    /// Takes a block as part of a bulk operation.
    pub(super) fn take_one(&self, request: &Request) -> Option<Taken> {
        let taken = self.held.store.take(request);
        self.count(taken);
        taken
    }

    /// Frees a block in use, and counts it as a bulk operation.
    pub(crate) fn give(&self, frame: Frame, order: Order) -> Result<Merged, FreeError> {
        let merged = self.give_one(frame, order)?;
        self.meter().gave(1, order);
        Ok(merged)
    }

    /// Frees a block in use for a task that may keep what it becomes part of (see
    /// [`Buddy::give_or_keep`]), and counts it as a bulk operation.
    pub(crate) fn give_or_keep(
        &self,
        frame: Frame,
        order: Order,
        keep: &impl Fn(Merged) -> Option<MigrateType>,
    ) -> Result<Merged, FreeError> {
        let merged = self.held.store.give_or_keep(frame, order, keep)?;
        self.meter().gave(1, order);
        Ok(merged)
    }

    /// Frees a block in use as part of a bulk operation.
    pub(super) fn give_one(&self, frame: Frame, order: Order) -> Result<Merged, FreeError> {
        let merged = self.held.store.give(frame, order)?;
        self.freed(merged);
        Ok(merged)
    }

    /// Frees a range of blocks in use.
    pub(crate) fn give_range(&self, range: FrameRange) -> Result<(), FreeError> {
        self.held.store.check_in_use(range)?;
        let mut at = range.start;
        while let Some((first, state)) = self.held.store.block_of(at)
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

    /// Offers a block that has just become free to the capture slot.
    fn freed(&self, merged: Merged) {
        if let Some(fallback) = self.held.capture.offer(&self.held.store, merged) {
            self.held.meter.fell_back(fallback);
        }
    }

    pub(crate) fn count(&self, taken: Option<Taken>) {
        if let Some(fallback) = taken.and_then(|taken| taken.fallback) {
            self.meter().fell_back(fallback);
        }
    }

    pub(super) fn take_cached(&self, wanted: MigrateType) -> Option<Frame> {
        let taken = self.held.store.take_cached(wanted);
        self.count(taken);
        taken.map(|taken| taken.frame)
    }

    pub(crate) fn give_cached(&self, frame: Frame) {
        let merged = self.held.store.give_cached(frame);
        self.freed(merged);
    }
}

impl<'m, G: Grouping, L: LabLock, P: Platform> Deref for StoreGuard<'_, 'm, G, L, P> {
    type Target = Buddy<'m, G>;

    #[inline]
    fn deref(&self) -> &Buddy<'m, G> {
        &self.held.store
    }
}

impl<G: Grouping, L: LabLock, P: Platform> Drop for StoreGuard<'_, '_, G, L, P> {
    fn drop(&mut self) {
        if self.backing.tuning.timing == Timing::On {
            let now = self.backing.platform.ticks();
            self.held.meter.held(now.saturating_sub(self.since));
        }
    }
}
