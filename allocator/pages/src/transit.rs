//! Frames in transit: how a request that finds nothing knows whether it may report failure.

use brickyard_sync::{AtomicUsize, Ordering};

/// Counts frames in transit between a cache and the store, where neither shows them.
///
/// A request may fail only if no frame was in transit while it looked. So it reads
/// [`Moves::settled`] before it looks everywhere, and asks [`Moves::still`] afterwards. A move
/// begins before the CPU releases the lock under which the frames left. A CPU that then finds that
/// place empty under its lock therefore sees the move.
///
/// A lock-free store has no lock to publish the move; the frames' own words do it instead. The
/// instruction that takes the frames releases. So does the one that lowers the total of free
/// frames, and a request that is about to fail acquires that total.
///
/// Moves are counted in lanes, so that CPUs of different lanes write no common cache line.
#[derive(Debug)]
pub struct Moves {
    lanes: [Lane; LANES],
}

/// The number of lanes of [`Moves`].
const LANES: usize = 16;

/// Counts the moves that have begun and those that have ended.
#[derive(Debug)]
#[repr(align(128))]
struct Lane {
    started: AtomicUsize,
    ended: AtomicUsize,
}

impl Moves {
    /// Returns a counter of moves, of which there have been none.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            lanes: [const {
                Lane {
                    started: AtomicUsize::new(0),
                    ended: AtomicUsize::new(0),
                }
            }; LANES],
        }
    }

    /// Begins a move: frames leave one place now, and have arrived when the result is dropped.
    /// Called under the lock of that place, on `cpu`.
    pub fn begin(&self, cpu: usize) -> InTransit<'_> {
        let lane = &self.lanes[cpu % LANES];
        // Relaxed: the lock held here publishes it, see the type.
        lane.started.fetch_add(1, Ordering::Relaxed);
        InTransit { lane }
    }

    /// Returns the number of moves that have begun, if all of them have ended.
    pub fn settled(&self) -> Option<usize> {
        // Acquire: pairs with the release in `InTransit::drop`. What has arrived is then visible
        // under the lock of its place.
        let ended = self.sum(|lane| lane.ended.load(Ordering::Acquire));
        // The starts are all read second, and neither count ever falls. So if the two are equal, no
        // move was under way between the two reads.
        let started = self.started();
        (started == ended).then_some(started)
    }

    /// Returns true if no move has begun since [`Moves::settled`] returned `started`.
    pub fn still(&self, started: usize) -> bool {
        self.started() == started
    }

    /// Returns the number of moves that have begun.
    pub fn started(&self) -> usize {
        // Relaxed: the locks taken in between have ordered this, see the type.
        self.sum(|lane| lane.started.load(Ordering::Relaxed))
    }

    fn sum(&self, of: impl Fn(&Lane) -> usize) -> usize {
        self.lanes.iter().map(of).fold(0, usize::wrapping_add)
    }
}

/// Frames are in transit as long as this value lives.
#[derive(Debug)]
#[must_use = "the move ends as soon as this is dropped"]
pub struct InTransit<'m> {
    lane: &'m Lane,
}

impl Default for Moves {
    fn default() -> Self {
        Self::new()
    }
}

impl Drop for InTransit<'_> {
    fn drop(&mut self) {
        // Release: pairs with the acquire in `Moves::settled`.
        self.lane.ended.fetch_add(1, Ordering::Release);
    }
}
