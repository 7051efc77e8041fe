//! Frames on their way: how a request that finds nothing knows whether it may say so.

use brickyard_sync::{AtomicUsize, Ordering};

/// Frames on their way between a cache and the store, where neither shows them.
///
/// A request may fail only if no frame was on its way while it looked: it reads [`Moves::settled`]
/// before it looks everywhere, and asks [`Moves::still`] after. A move begins before the lock is
/// given up under which the frames left, so whoever then finds that place empty under its lock sees
/// the move. A lock-free store has no lock to publish it; there the frames' own words do: they are
/// taken by an instruction that releases, and the total that says that nothing is free is lowered
/// by one, which whoever is about to refuse acquires.
///
/// Counted in lanes, so that CPUs of different lanes write no common line.
#[derive(Debug)]
pub struct Moves {
    lanes: [Lane; LANES],
}

/// Lanes of [`Moves`].
const LANES: usize = 16;

/// Moves that have begun and ended.
#[derive(Debug)]
#[repr(align(128))]
struct Lane {
    started: AtomicUsize,
    ended: AtomicUsize,
}

impl Moves {
    /// Nothing has moved yet.
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

    /// Frames leave one place now; they have arrived when the result is dropped. Called under the
    /// lock of that place, on `cpu`.
    pub fn begin(&self, cpu: usize) -> InTransit<'_> {
        let lane = &self.lanes[cpu % LANES];
        // Relaxed: the lock held here publishes it, see the type.
        lane.started.fetch_add(1, Ordering::Relaxed);
        InTransit { lane }
    }

    /// How many moves have begun, if all of them have ended.
    pub fn settled(&self) -> Option<usize> {
        // Acquire: pairs with the release in `InTransit::drop`; what has arrived is then seen under
        // the lock of its place.
        let ended = self.sum(|lane| lane.ended.load(Ordering::Acquire));
        // All read second, and neither ever falls, so that equal means none was under way between
        // the two.
        let started = self.started();
        (started == ended).then_some(started)
    }

    /// Has no move begun since [`Moves::settled`] said `started`?
    pub fn still(&self, started: usize) -> bool {
        self.started() == started
    }

    /// How many moves have begun.
    pub fn started(&self) -> usize {
        // Relaxed: the locks taken in between have ordered it, see the type.
        self.sum(|lane| lane.started.load(Ordering::Relaxed))
    }

    fn sum(&self, of: impl Fn(&Lane) -> usize) -> usize {
        self.lanes.iter().map(of).fold(0, usize::wrapping_add)
    }
}

/// Frames are on their way as long as this lives.
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
