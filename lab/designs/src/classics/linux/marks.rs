//! The test of a zone's marks, as a request asks for it: twice, since a zone that is above its high
//! mark needs no other test.

use brickyard::watermark::Mark;
use brickyard::{MigrateType, Order, Platform, Request, ZoneKind};

use super::blocks::Blocks;
use super::rights::Rights;
use crate::classics::bulk::Backing;
use crate::classics::lock::LabLock;

/// Returns the frames that a machine with huge pages keeps free, if that is more than its usual
/// reserve: eleven page blocks for each of its populated zones up to the normal one, and at most a
/// twentieth of the frames that these zones manage.
#[must_use]
pub const fn min_free_for_huge_pages(zones: usize, page_block: Order, lowmem: usize) -> usize {
    // Two for what free memory keeps together, nine for each pair of types that could mix.
    let wanted = zones * page_block.frames() * (2 + 9);
    let most = lowmem / 20;
    if wanted < most { wanted } else { most }
}

/// The marks of a zone. [`Mark`] has no high mark: nothing else tests it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Level {
    /// The min mark, or as far below it as the rights reach.
    Min,
    /// The low mark.
    Low,
    /// The high mark.
    High,
}

impl From<Mark> for Level {
    fn from(mark: Mark) -> Self {
        match mark {
            Mark::First | Mark::FirstApart | Mark::Apart | Mark::Low => Self::Low,
            Mark::Min => Self::Min,
        }
    }
}

/// Returns true if the zone has more free than `level` after it has served a block of `order`, and
/// a free block that serves it. O(types).
pub(crate) fn is_above<L: LabLock, P: Platform>(
    backing: &Backing<'_, Blocks<'_>, L, P>,
    order: Order,
    highest: ZoneKind,
    level: Level,
    rights: Rights,
) -> bool {
    if rights.any(Rights::NO_MARKS) {
        return true;
    }
    let store = backing.unlocked();
    let condition = store.grouping().condition();
    let marks = backing.watermarks().marks();
    condition.see_high_mark(marks.high);
    let usable = usable(backing, order, rights);
    let reserve = backing.watermarks().reserve_against(highest);
    let exceeds = |mark: usize| usable > rights.lowered(mark).saturating_add(reserve);
    let boost = condition.boost();
    let mark = match level {
        Level::Min => marks.min,
        Level::Low => marks.low,
        Level::High => marks.high,
    };
    let single = order == Order::ZERO;
    if !exceeds(mark + boost) {
        // Single frames that others wait for do without the boost.
        let unboosted = single && level == Level::Min && rights.any(Rights::MIN_RESERVE);
        return boost > 0 && unboosted && exceeds(mark);
    }
    let lists = [
        MigrateType::Unmovable,
        MigrateType::Movable,
        MigrateType::Reclaimable,
    ];
    let high = rights.any(Rights::HIGH_ATOMIC.and(Rights::OOM));
    single
        || lists
            .iter()
            .any(|&list| store.grouping().has_block(list, order))
        || high && store.grouping().has_block(MigrateType::HighAtomic, order)
}

/// Returns how many frames a request may count on that takes a block of `order`.
fn usable<L: LabLock, P: Platform>(
    backing: &Backing<'_, Blocks<'_>, L, P>,
    order: Order,
    rights: Rights,
) -> usize {
    let store = backing.unlocked();
    let set_aside = match rights.counts_set_aside() {
        true => 0,
        false => store.set_aside_frames(),
    };
    store
        .free_frames()
        .saturating_sub(order.frames() - 1)
        .saturating_sub(set_aside)
}

/// Returns true if so many single frames could be taken at once for `request`: if more stay free
/// than the low mark.
pub(crate) fn admits_many<L: LabLock, P: Platform>(
    backing: &Backing<'_, Blocks<'_>, L, P>,
    request: &Request,
    frames: usize,
) -> bool {
    let watermarks = backing.watermarks();
    let marks = watermarks.marks();
    let condition = backing.unlocked().grouping().condition();
    condition.see_high_mark(marks.high);
    let kept = marks.low + condition.boost() + watermarks.reserve_against(request.highest);
    usable(backing, Order::ZERO, Rights::NONE) > kept.saturating_add(frames)
}

/// Returns true if a movable single frame could be taken and the zone would stay above its high
/// mark.
pub(crate) fn is_above_high<L: LabLock, P: Platform>(
    backing: &Backing<'_, Blocks<'_>, L, P>,
) -> bool {
    let (single, movable) = (Order::ZERO, ZoneKind::Movable);
    is_above(backing, single, movable, Level::High, Rights::NONE)
}

/// Returns true if the zone admits the request: see [`is_above`]. First asks for the high mark,
/// until it was found below; from then on page sets are kept small, until a drain finds it above.
pub(crate) fn admits<L: LabLock, P: Platform>(
    backing: &Backing<'_, Blocks<'_>, L, P>,
    request: &Request,
    level: Level,
    rights: Rights,
) -> bool {
    let condition = backing.unlocked().grouping().condition();
    let above = |level| is_above(backing, request.order, request.highest, level, rights);
    if !condition.is_below_high() {
        if above(Level::High) {
            return true;
        }
        condition.set_below_high(true);
    }
    above(level)
}
