//! Two kinds of page, distinguished by one flag per frame (Gorman 2005, "light fragmentation
//! avoidance without usemap", v21).
//!
//! *Easy* pages are those that can be reclaimed from their user; all others are *kernel*. The flag
//! is the type that the frame's record keeps while the page is in use. It is read when the page is
//! freed, before any merge; buddies merge whatever their kinds, and the merged block goes to the
//! list of the page freed last.
//!
//! When a request's own list is empty, the largest block of the other kind is split. If its order
//! is at least half the number of orders (5 of 11), the rest of it changes kind, otherwise it does
//! not.

use super::Grouping;
use crate::classics::store::buddy::Buddy;
use crate::classics::store::{Claimed, Fallback, Taken};
use brickyard::{Frame, MigrateType, Order};

/// Kernel pages and easily reclaimed pages.
#[derive(Debug, Clone, Copy, Default)]
pub struct TwoKinds;

const EASY: MigrateType = MigrateType::Movable;
const KERNEL: MigrateType = MigrateType::Unmovable;

impl Grouping for TwoKinds {
    #[inline]
    fn list_for(&self, wanted: MigrateType) -> MigrateType {
        match wanted {
            MigrateType::Movable => EASY,
            _ => KERNEL,
        }
    }

    #[inline]
    fn list_on_free(&self, _frame: Frame, recorded: MigrateType) -> MigrateType {
        self.list_for(recorded)
    }

    fn fallbacks(&self, wanted: MigrateType) -> &'static [MigrateType] {
        match self.list_for(wanted) {
            EASY => &[KERNEL],
            _ => &[EASY],
        }
    }

    fn fall_back(
        &self,
        buddy: &Buddy<'_, Self>,
        order: Order,
        wanted: MigrateType,
    ) -> Option<Taken> {
        let own = self.list_for(wanted);
        let other = self.fallbacks(wanted)[0];
        let (frame, found) = buddy.largest(other, order)?;
        let orders = buddy.max_order().index() + 1;
        let rest = if found.index() >= orders / 2 {
            own
        } else {
            other
        };
        let taken = buddy.break_into(frame, order, wanted, rest);
        let claimed = if rest == own && found >= buddy.page_block_order() {
            Claimed::Yes
        } else {
            Claimed::No
        };
        let fallback = Some(Fallback {
            order: found,
            from: other,
            claimed,
        });
        Some(Taken { fallback, ..taken })
    }
}
