//! Per-CPU lists as Linux had them in 2013 (3.9): the baseline that magazines were to replace.
//!
//! Each CPU keeps order-0 frames on three lists. A free pushes at the hot end; at `high` frames,
//! `batch` cold ones go back to the store. A request whose list is empty fetches `batch` frames of
//! its type. All of it with interrupts masked on the CPU, so that interrupts may use the lists too.
//! A list of frames is freed one by one, each with a mask of its own, as in that kernel.
//!
//! To fetch frames from another CPU's lists, a drainer takes the slot's lock
//! ([`Shared`](brickyard::sync::Shared) slots), or has the platform run it on that CPU
//! ([`Exclusive`](brickyard::sync::Exclusive) slots; only on CPUs whose lists hold frames).

use brickyard::sync::{Slot, SlotAccess};

use super::lists::{ColdWalk, LISTS, Lists};
use super::slots::{self, Wait};
use super::{Front, Returned};
use crate::classics::bulk::{Backing, Batch};
use crate::classics::lock::LabLock;
use crate::classics::store::frames::FrameList;
use crate::classics::store::grouping::Grouping;
use brickyard::check::Violation;
use brickyard::patience::{Drained, Patience, Reach};
use brickyard::{Frame, MigrateType, Order, Platform, Request};

/// How many frames a CPU keeps and moves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ListSizes {
    /// Frames fetched at a time, and given back at a time.
    pub batch: usize,
    /// Number of frames at which a batch is given back.
    pub high: usize,
}

impl ListSizes {
    /// Linux 3.9 with 4 KiB frames and zones of half a GiB or more: batch 31, high 186.
    pub const LINUX_2013: Self = Self {
        batch: 31,
        high: 186,
    };

    /// Returns the sizes by Linux 3.9's formula for a zone of `managed` frames of 4 KiB. The batch
    /// is 1/1024 of the zone, at most 512 KiB, divided by 4 and rounded to a power of two less one;
    /// high is six batches.
    ///
    /// ```
    /// use brickyard_designs::classics::front::ListSizes;
    /// assert_eq!(ListSizes::for_zone(4 << 20), ListSizes::LINUX_2013);
    /// assert_eq!(ListSizes::for_zone(4096).batch, 1);
    /// ```
    #[must_use]
    pub const fn for_zone(managed: usize) -> Self {
        let share = managed / 1024;
        let capped = if share > 128 { 128 } else { share } / 4;
        let base = if capped == 0 { 1 } else { capped };
        let power = 1 << (base + base / 2).ilog2();
        let batch = if power > 1 { power - 1 } else { 1 };
        Self {
            batch,
            high: 6 * batch,
        }
    }
}

/// The lists of one CPU.
#[derive(Debug, Default)]
pub struct CpuLists(Lists);

/// Per-CPU lists over caller-supplied slots of 128 bytes, one per CPU. A CPU without a slot goes
/// straight to the store.
#[derive(Debug)]
pub struct PerCpuLists<'m, A> {
    slots: &'m [Slot<A, CpuLists>],
    sizes: ListSizes,
}

impl<'m, A: SlotAccess> PerCpuLists<'m, A> {
    /// Makes lists for the CPUs `0..slots.len()`.
    ///
    /// # Panics
    /// If the batch is 0, or the high mark is below the batch.
    #[must_use]
    pub const fn new(slots: &'m [Slot<A, CpuLists>], sizes: ListSizes) -> Self {
        assert!(
            sizes.batch > 0 && sizes.high >= sizes.batch,
            "a batch of at least 1, a high mark of at least a batch"
        );
        Self { slots, sizes }
    }

    /// Calls `with` inside the caller's own slot, see [`slots::with_own`].
    #[inline]
    fn with_own<P: Platform, R>(&self, platform: &P, with: impl FnOnce(&Lists) -> R) -> Option<R> {
        slots::with_own(self.slots, platform, Wait::ABit, |own| with(&own.0))
    }

    /// Takes one frame inside the slot, after a refill if its list is empty.
    #[inline]
    fn take_inside<G: Grouping, L: LabLock, P: Platform>(
        &self,
        backing: &Backing<'_, G, L, P>,
        own: &Lists,
        wanted: MigrateType,
    ) -> Option<Frame> {
        let store = backing.unlocked();
        let list = Lists::index(store.list_for(wanted));
        if own.is_empty_at(list) {
            // The frames arrive in the lists while the slot is still held, so no search can miss
            // them in transit.
            let (_, _transit) = backing.take_bulk(Batch::exactly(self.sizes.batch), wanted, |f| {
                own.push_refilled(store.table(), list, f);
            });
        }
        own.pop(store.table(), list, wanted)
    }

    /// Keeps one freed frame inside the slot, if it is one that may be kept.
    #[inline]
    fn give_inside<G: Grouping, L: LabLock, P: Platform>(
        &self,
        backing: &Backing<'_, G, L, P>,
        own: &Lists,
        frame: Frame,
    ) -> Returned {
        if own.keep(backing.unlocked(), frame).is_none() {
            return Returned::ToStore;
        }
        if own.len() >= self.sizes.high {
            let batch = self.sizes.batch;
            self.give_back(backing, own, ColdWalk::new(LISTS - 1, batch, batch, batch));
        }
        Returned::Kept
    }

    /// Gives cold frames of an entered slot back to the store. Returns how many.
    fn give_back<G: Grouping, L: LabLock, P: Platform>(
        &self,
        backing: &Backing<'_, G, L, P>,
        own: &Lists,
        walk: ColdWalk,
    ) -> usize {
        if own.len() == 0 {
            return 0;
        }
        let store = backing.unlocked();
        let _transit = backing.moves().begin(0);
        let leaving = FrameList::default();
        own.move_cold(store.table(), walk, &leaving, || false);
        backing.give_bulk(|| leaving.pop_front(store.table()))
    }

    fn drain_inside<G: Grouping, L: LabLock, P: Platform>(
        &self,
        backing: &Backing<'_, G, L, P>,
        own: &Lists,
    ) -> usize {
        let all = own.len();
        self.give_back(backing, own, ColdWalk::new(LISTS - 1, all, all, all))
    }
}

impl<G: Grouping, L: LabLock, P: Platform, A: SlotAccess> Front<G, L, P> for PerCpuLists<'_, A> {
    #[inline]
    fn take(&self, backing: &Backing<'_, G, L, P>, request: &Request) -> Option<Frame> {
        let wanted = request.mobility.into();
        let taken = self.with_own(backing.platform(), |own| {
            self.take_inside(backing, own, wanted)
        });
        match taken {
            Some(taken) => taken,
            None => backing.lock().take(request).map(|taken| taken.frame),
        }
    }

    /// Stays inside the slot for all frames.
    fn take_many(
        &self,
        backing: &Backing<'_, G, L, P>,
        request: &Request,
        out: &mut [Frame],
    ) -> usize {
        let wanted = request.mobility.into();
        let taken = self.with_own(backing.platform(), |own| {
            let mut taken = 0;
            for slot in out {
                let Some(frame) = self.take_inside(backing, own, wanted) else {
                    break;
                };
                *slot = frame;
                taken += 1;
            }
            taken
        });
        taken.unwrap_or(0)
    }

    #[inline]
    fn give(&self, backing: &Backing<'_, G, L, P>, frame: Frame, _: Order) -> Returned {
        self.with_own(backing.platform(), |own| {
            self.give_inside(backing, own, frame)
        })
        .unwrap_or(Returned::ToStore)
    }

    fn serves_here(&self, backing: &Backing<'_, G, L, P>) -> bool {
        let platform = backing.platform();
        // Another CPU may be stalled inside it.
        platform.cpu() < self.slots.len()
            && (!A::LENDS || self.with_own(platform, |_| ()).is_some())
    }

    fn drain(&self, backing: &Backing<'_, G, L, P>, reach: Reach, patience: &Patience) -> Drained {
        let holds_nothing = |lists: &CpuLists| lists.0.peek_len() == 0;
        let empty = |lists: &CpuLists| self.drain_inside(backing, &lists.0);
        let platform = backing.platform();
        slots::drain(self.slots, platform, reach, patience, holds_nothing, empty)
    }

    fn arrivals(&self) -> usize {
        let freed = self.slots.iter().map(|slot| slot.outside().0.freed());
        freed.fold(0, usize::wrapping_add)
    }

    fn cached(&self, _backing: &Backing<'_, G, L, P>) -> usize {
        self.slots.iter().map(|slot| slot.outside().0.len()).sum()
    }

    fn check(&self, backing: &Backing<'_, G, L, P>) -> Result<usize, Violation> {
        let mut frames = 0;
        for slot in self.slots {
            frames += slot.outside().0.check(backing.unlocked().table())?;
        }
        Ok(frames)
    }
}
