//! Magazines (Gorman 2013, by the rules after the last of the 22 patches): a few sets of lists that
//! all CPUs may use.
//!
//! Each magazine has a lock that masks no interrupts; interrupts go to the zone lock instead. A CPU
//! prefers one magazine, which it shares with its neighbour, and takes from any that it can lock at
//! once. So no CPU has to be interrupted to drain them: a drainer takes the lock.
//!
//! - A free locks the preferred magazine, waiting if need be. At `limit` frames up to `drain.most`
//!   cold ones go back to the store, fewer if another CPU waits for the magazine.
//! - A request tries the magazines round robin from the preferred one, skipping those whose count
//!   reads 0; if none could be locked it waits for the first that had frames; if none had any, or
//!   the magazine has none of its type, it refills.
//! - A refill takes up to `refill.most` frames under the zone lock, fewer if another CPU waits for
//!   that lock, and puts them into a magazine, the frame taken last on top: the frames of a block
//!   that was split are handed out downwards (patch 13; per-CPU lists hand them out upwards).
//! - A bulk free holds the magazine throughout, and drains once at the end: the count may go far
//!   above the limit meanwhile.
//!
//! Lock order: magazine, then zone; never the other way.

use brickyard::sync::{Held, Locked};

use super::lists::{ColdWalk, LISTS, Lists};
use super::{Front, Returned};
use crate::classics::bulk::{Backing, Batch};
use crate::classics::lock::{Behind, Contended, LabLock};
use crate::classics::store::frames::FrameList;
use crate::classics::store::grouping::Grouping;
use brickyard::check::Violation;
use brickyard::patience::{Drained, Patience, Reach};
use brickyard::platform::PinGuard;
use brickyard::{Context, Frame, MigrateType, Order, Platform, Request};

/// How many frames a magazine holds and moves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MagazineSizes {
    /// Number of frames at which it drains.
    pub limit: usize,
    /// Frames fetched at a time.
    pub refill: Batch,
    /// Frames given back at a time.
    pub drain: Batch,
}

impl MagazineSizes {
    /// The sizes posted in 2013: limit 1024, refill 16 to 384, drain 16 to 64. A stalled allocation
    /// is worse than a stalled free, hence the difference.
    pub const POSTED_2013: Self = Self {
        limit: 1024,
        refill: Batch {
            least: 16,
            most: 384,
        },
        drain: Batch {
            least: 16,
            most: 64,
        },
    };
}

/// One magazine: its lock and its lists, on cache lines of its own.
#[derive(Debug)]
#[repr(align(128))]
pub struct Magazine<L: LabLock>(Locked<L::Raw, Behind<L::Gap, Lists>>);

/// A magazine's lists, whose lock is held.
type HeldLists<'m, L> = Held<'m, <L as LabLock>::Raw, Behind<<L as LabLock>::Gap, Lists>>;

impl<L: LabLock> Magazine<L> {
    /// Makes an empty magazine.
    pub(crate) fn new() -> Self {
        Self(Locked::new(Behind::default()))
    }

    fn len(&self) -> usize {
        self.0.unlocked().len()
    }
}

/// Magazines over caller-supplied memory, 128 bytes each. The original had two.
#[derive(Debug)]
pub struct Magazines<'m, L: LabLock> {
    magazines: &'m [Magazine<L>],
    sizes: MagazineSizes,
}

impl<'m, L: LabLock> Magazines<'m, L> {
    /// Makes a front of these magazines.
    ///
    /// # Panics
    /// If there is no magazine, or a batch is 0.
    #[must_use]
    pub const fn new(magazines: &'m [Magazine<L>], sizes: MagazineSizes) -> Self {
        assert!(!magazines.is_empty(), "at least one magazine");
        assert!(
            sizes.refill.most > 0 && sizes.drain.most > 0,
            "a batch of at least 1"
        );
        Self { magazines, sizes }
    }

    /// Returns the index of the magazine that a CPU prefers: pairs of CPU numbers share one.
    fn preferred(&self, cpu: usize) -> usize {
        (cpu >> 1) % self.magazines.len()
    }

    /// Iterates over all magazines, the preferred one first.
    fn round_robin(&self, cpu: usize) -> impl Iterator<Item = &'m Magazine<L>> + Clone {
        let (before, from) = self.magazines.split_at(self.preferred(cpu));
        from.iter().chain(before)
    }

    /// Locks a magazine that has frames: the first of them that is not locked, or, if all are
    /// locked, the first after a wait. `None` if no magazine has any.
    fn lock_filled<P: Platform>(&self, pinned: &PinGuard<'_, P>) -> Option<HeldLists<'m, L>> {
        let mut filled = self.round_robin(pinned.cpu).filter(|m| m.len() > 0);
        filled.clone().find_map(|m| m.0.try_lock()).or_else(|| {
            let magazine = filled.next()?;
            Some(magazine.0.lock(|| pinned.relax()))
        })
    }

    /// Locks any magazine: the first that is not locked, or the preferred one after a wait.
    fn lock_any<P: Platform>(&self, pinned: &PinGuard<'_, P>) -> HeldLists<'m, L> {
        let free = self.round_robin(pinned.cpu).find_map(|m| m.0.try_lock());
        free.unwrap_or_else(|| self.lock_preferred(pinned))
    }

    /// Locks the preferred magazine, waiting if necessary.
    fn lock_preferred<P: Platform>(&self, pinned: &PinGuard<'_, P>) -> HeldLists<'m, L> {
        let magazine = &self.magazines[self.preferred(pinned.cpu)];
        magazine.0.lock(|| pinned.relax())
    }

    /// Takes the frames of `walk` out of a locked magazine, unlocks it, and only then gives them to
    /// the store.
    fn drain_and_unlock<G: Grouping, Z: LabLock, P: Platform>(
        &self,
        backing: &Backing<'_, G, Z, P>,
        magazine: HeldLists<'_, L>,
        walk: ColdWalk,
    ) -> usize {
        if magazine.len() == 0 {
            return 0;
        }
        let store = backing.unlocked();
        let _transit = backing.moves().begin(0);
        let leaving = FrameList::default();
        magazine.move_cold(store.table(), walk, &leaving, || {
            magazine.raw().is_contended()
        });
        drop(magazine);
        backing.give_bulk(|| leaving.pop_front(store.table()))
    }

    /// Ends a free: drains one batch if the magazine is at its limit, and unlocks it.
    fn settle<G: Grouping, Z: LabLock, P: Platform>(
        &self,
        backing: &Backing<'_, G, Z, P>,
        magazine: HeldLists<'_, L>,
        freed_to: usize,
    ) {
        if magazine.len() < self.sizes.limit {
            return;
        }
        let Batch { least, most } = self.sizes.drain;
        // If one list has all frames, no more than the smaller batch leaves before the next check
        // for waiting CPUs.
        let walk = ColdWalk::new(freed_to, most, least.max(1), least);
        self.drain_and_unlock(backing, magazine, walk);
    }

    /// Fetches frames of the request's type from the store and takes one.
    fn refill<G: Grouping, Z: LabLock, P: Platform>(
        &self,
        backing: &Backing<'_, G, Z, P>,
        pinned: &PinGuard<'_, P>,
        wanted: MigrateType,
    ) -> Option<Frame> {
        let store = backing.unlocked();
        let list = Lists::index(store.list_for(wanted));
        let refill = FrameList::default();
        let (taken, _transit) = backing.take_bulk(self.sizes.refill, wanted, |frame| {
            refill.push_front(store.table(), frame);
        });
        if taken == 0 {
            return None;
        }
        let magazine = self.lock_any(pinned);
        magazine.splice(store.table(), list, &refill);
        magazine.pop(store.table(), list, wanted)
    }
}

impl<G: Grouping, Z: LabLock, P: Platform, L: LabLock> Front<G, Z, P> for Magazines<'_, L> {
    fn take(&self, backing: &Backing<'_, G, Z, P>, request: &Request) -> Option<Frame> {
        let interrupt = request.context == Context::Interrupt || backing.platform().in_interrupt();
        if interrupt {
            return backing.lock().take(request).map(|taken| taken.frame);
        }
        let pinned = PinGuard::new(backing.platform());
        let wanted = request.mobility.into();
        let list = Lists::index(backing.unlocked().list_for(wanted));
        self.lock_filled(&pinned)
            .and_then(|magazine| magazine.pop(backing.unlocked().table(), list, wanted))
            .or_else(|| self.refill(backing, &pinned, wanted))
    }

    fn give(&self, backing: &Backing<'_, G, Z, P>, frame: Frame, _: Order) -> Returned {
        let given = self.give_many(backing, &[frame]);
        if given == 1 {
            Returned::Kept
        } else {
            Returned::ToStore
        }
    }

    /// Holds the preferred magazine for all of them and drains once.
    fn give_many(&self, backing: &Backing<'_, G, Z, P>, frames: &[Frame]) -> usize {
        let platform = backing.platform();
        if platform.in_interrupt() {
            return 0;
        }
        let pinned = PinGuard::new(platform);
        let magazine = self.lock_preferred(&pinned);
        let mut kept = 0;
        let mut freed_to = 0;
        for &frame in frames {
            let Some(list) = magazine.keep(backing.unlocked(), frame) else {
                break;
            };
            freed_to = list;
            kept += 1;
        }
        self.settle(backing, magazine, freed_to);
        kept
    }

    fn serves_here(&self, backing: &Backing<'_, G, Z, P>) -> bool {
        !backing.platform().in_interrupt()
    }

    /// Waits for each magazine in turn and empties it, whether or not other CPUs wait for it
    /// meanwhile.
    fn drain(&self, backing: &Backing<'_, G, Z, P>, reach: Reach, _: &Patience) -> Drained {
        let platform = backing.platform();
        if reach == Reach::Own {
            return Drained::default();
        }
        let pinned = PinGuard::new(platform);
        let drain = |magazine: &Magazine<L>| {
            let magazine = magazine.0.lock(|| pinned.relax());
            let all = magazine.len();
            let walk = ColdWalk::new(LISTS - 1, all, all, all);
            Drained::of(self.drain_and_unlock(backing, magazine, walk))
        };
        self.magazines.iter().map(drain).sum()
    }

    fn arrivals(&self) -> usize {
        let freed = self.magazines.iter().map(|m| m.0.unlocked().freed());
        freed.fold(0, usize::wrapping_add)
    }

    fn cached(&self, _backing: &Backing<'_, G, Z, P>) -> usize {
        self.magazines.iter().map(Magazine::len).sum()
    }

    fn check(&self, backing: &Backing<'_, G, Z, P>) -> Result<usize, Violation> {
        let mut frames = 0;
        for magazine in self.magazines {
            frames += magazine.0.unlocked().check(backing.unlocked().table())?;
        }
        Ok(frames)
    }
}
