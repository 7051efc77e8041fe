//! Lumpy reclaim (Whitcroft 2007): instead of the oldest pages wherever they are, it takes the
//! oldest page and everything in the block around it.
//!
//! It is for requests above order 0. It starts at the page that would be taken next, and looks at
//! the aligned block of the wanted order around it. It takes every page there that has the same
//! activity and lies in the same zone. Pages that cannot be taken are passed over; a hole ends it.
//! Only pages really taken count as scanned (version 5).

use super::hooks::{Activity, Eviction, Reclaim};
use crate::{FrameRange, Order};

/// What one round of lumpy reclaim did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Lump {
    /// The number of pages freed.
    pub freed: usize,
    /// The number of pages made inactive.
    pub deactivated: usize,
    /// The number of pages of the block that could not be taken.
    pub passed_over: usize,
}

/// Frees what it can of the aligned block of `order` around the oldest page of `zone`. Returns
/// `None` if no page is offered.
///
/// Costs one call of [`Reclaim::evict`] for each frame of the block, and a second one for an active
/// block.
pub fn lump_round_oldest(hooks: &impl Reclaim, zone: FrameRange, order: Order) -> Option<Lump> {
    let (oldest, activity) = hooks.oldest(zone)?;
    // The end of the zone may cut the block. The search ends there.
    let block = FrameRange::of_block(oldest.align_down(order), order).intersection(zone);
    let mut lump = Lump::default();
    take(hooks, block, activity, &mut lump);
    if lump.deactivated > 0 {
        take(hooks, block, Activity::Inactive, &mut lump);
    }
    Some(lump)
}

fn take(hooks: &impl Reclaim, block: FrameRange, activity: Activity, lump: &mut Lump) {
    for frame in block.frames() {
        match hooks.evict(frame, activity) {
            Eviction::Freed => lump.freed += 1,
            Eviction::Deactivated => lump.deactivated += 1,
            Eviction::Busy | Eviction::Unsuitable => lump.passed_over += 1,
            Eviction::Hole => return,
        }
    }
}

#[cfg(test)]
mod tests {
    use core::cell::Cell;

    use super::*;
    use crate::Frame;
    use crate::pressure::Need;

    /// Frames 8..16 have pages of alternating activity; 13 is busy.
    struct Lru {
        asked: Cell<usize>,
        oldest: (usize, Activity),
    }

    impl Reclaim for Lru {
        fn reclaim(&self, _: &Need) -> usize {
            0
        }

        fn oldest(&self, _: FrameRange) -> Option<(Frame, Activity)> {
            Some((Frame::new(self.oldest.0), self.oldest.1))
        }

        fn evict(&self, frame: Frame, activity: Activity) -> Eviction {
            self.asked.set(self.asked.get() + 1);
            let inactive = frame.number().is_multiple_of(2);
            match (frame.number(), activity) {
                (13, _) => Eviction::Busy,
                (_, Activity::Inactive) if inactive => Eviction::Freed,
                (_, Activity::Active) if !inactive => Eviction::Deactivated,
                _ => Eviction::Unsuitable,
            }
        }
    }

    fn lru(oldest: usize, activity: Activity) -> Lru {
        Lru {
            asked: Cell::new(0),
            oldest: (oldest, activity),
        }
    }

    #[test]
    fn takes_the_same_activity_in_the_block() {
        let zone = FrameRange::new(0, 64);
        let hooks = lru(10, Activity::Inactive);
        let lump = lump_round_oldest(&hooks, zone, Order::new(3)).unwrap();
        assert_eq!(hooks.asked.get(), 8);
        assert_eq!((lump.freed, lump.deactivated, lump.passed_over), (4, 0, 4));
    }

    #[test]
    fn stops_at_the_end_of_the_zone() {
        let hooks = lru(10, Activity::Inactive);
        let zone = FrameRange::new(9, 12);
        let lump = lump_round_oldest(&hooks, zone, Order::new(3)).unwrap();
        assert_eq!(hooks.asked.get(), 3);
        assert_eq!(lump.freed, 1);
    }

    #[test]
    fn an_active_block_is_made_inactive_and_looked_at_again() {
        let hooks = lru(11, Activity::Active);
        let zone = FrameRange::new(0, 64);
        let lump = lump_round_oldest(&hooks, zone, Order::new(3)).unwrap();
        assert_eq!(hooks.asked.get(), 16);
        assert_eq!((lump.deactivated, lump.freed), (3, 4));
    }

    #[test]
    fn nothing_offered_nothing_done() {
        let zone = FrameRange::new(0, 64);
        assert_eq!(
            lump_round_oldest(&crate::pressure::NoHooks, zone, Order::new(3)),
            None
        );
    }
}
