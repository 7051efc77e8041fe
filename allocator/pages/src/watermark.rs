//! Watermarks: how much of a zone stays free, for whom, and the test of whether a request may go
//! below.
//!
//! The rules are those of today's Linux, each a pure function:
//!
//! - [`min_free_kbytes`] computes the reserve of the whole machine from its memory. It grows with
//!   the square root: large machines need more, but not in proportion.
//!   [`recommended_min_free_frames`] is what grouping by mobility required in 2007.
//! - [`zone_marks`] gives each zone its share of the reserve as the min mark. Background reclaim
//!   works between the low and high marks above it.
//! - [`lowmem_reserve`] keeps requests that could use a higher zone from filling the lower ones.
//! - [`reserved_mark`] lets requests that cannot wait go below the min mark, and [`above_mark`] is
//!   the test itself.
//!
//! All amounts are frames unless stated otherwise. Frames are converted to kB only where
//! `frame_bytes`, the size of a frame, is a parameter.

use brickyard_sync::{AtomicUsize, Ordering};

use crate::{Context, Order, Request, ZoneKind};

/// Linux's default of `watermark_scale_factor`: a gap of one thousandth of the zone between the
/// marks.
pub const SCALE_FACTOR: usize = 10;

/// Linux's default of `lowmem_reserve_ratio`, by [`ZoneKind`].
pub const LOWMEM_RESERVE_RATIO: [usize; ZoneKind::COUNT] = [256, 256, 32, 0, 0];

/// The bounds of the min mark, in frames, for a zone that the kernel's own objects cannot come
/// from.
const MIN_OUTSIDE_LOWMEM: (usize, usize) = (32, 128);

/// The bounds of `min_free_kbytes`, in kB.
const MIN_FREE_KBYTES: (u64, u64) = (128, 262_144);

/// Converts frames to kB, rounded down. Saturates.
#[must_use]
pub const fn kbytes_of_frames(frames: usize, frame_bytes: usize) -> usize {
    let kbytes = frames as u128 * frame_bytes as u128 / 1024;
    saturated(kbytes)
}

/// Converts kB to whole frames, rounded down; 0 if a frame has no bytes. Saturates.
#[must_use]
pub const fn frames_of_kbytes(kbytes: usize, frame_bytes: usize) -> usize {
    match (kbytes as u128 * 1024).checked_div(frame_bytes as u128) {
        Some(frames) => saturated(frames),
        None => 0,
    }
}

pub(crate) const fn saturated(number: u128) -> usize {
    if number < usize::MAX as u128 {
        number as usize
    } else {
        usize::MAX
    }
}

/// Returns Linux's default of `min_free_kbytes`, in kB, for a machine with `lowmem_kbytes` kB in
/// zones up to [`ZoneKind::Normal`].
///
/// This is sqrt(16 * `lowmem_kbytes`), rounded down, at least 128 and at most 262144.
#[must_use]
pub const fn min_free_kbytes(lowmem_kbytes: usize) -> usize {
    let (least, most) = MIN_FREE_KBYTES;
    // Saturation changes nothing: the root would be far above the upper bound.
    let root = (lowmem_kbytes as u64).saturating_mul(16).isqrt();
    if root < least {
        least as usize
    } else if root > most {
        most as usize
    } else {
        root as usize
    }
}

/// Returns the number of frames to keep free so that grouping by mobility works well (Gorman 2007):
/// four blocks of the highest order.
#[must_use]
pub const fn recommended_min_free_frames(max_order: Order) -> usize {
    4 * max_order.frames()
}

/// Returns [`recommended_min_free_frames`] in kB. For blocks of order 10 in frames of 4 KiB, this
/// is the 16384 of the posting.
#[must_use]
pub const fn recommended_min_free_kbytes(max_order: Order, frame_bytes: usize) -> usize {
    kbytes_of_frames(recommended_min_free_frames(max_order), frame_bytes)
}

/// The watermarks of a zone, in frames: min <= low <= high.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Marks {
    /// Below this, only requests that cannot wait are served, see [`reserved_mark`].
    pub min: usize,
    /// Below this, background reclaim is woken.
    pub low: usize,
    /// Above this, background reclaim sleeps again.
    pub high: usize,
}

/// Returns the watermarks of a zone of `managed` frames, on a machine that keeps `min_free_frames`
/// free and whose zones up to [`ZoneKind::Normal`] have `lowmem_managed` frames together.
///
/// The min mark is the zone's share of `min_free_frames` by size. [`ZoneKind::HighMem`] and
/// [`ZoneKind::Movable`] serve no requests that matter to the machine's survival. So their min mark
/// is 1/1024 of the zone, at least 32 and at most 128 frames.
///
/// The gap from min to low, and from low to high, is a quarter of the share (in those two kinds as
/// well). It is `watermark_scale_factor` ten-thousandths of the zone if that is more.
#[must_use]
pub fn zone_marks(
    kind: ZoneKind,
    managed: usize,
    lowmem_managed: usize,
    min_free_frames: usize,
    watermark_scale_factor: usize,
) -> Marks {
    let share = proportion(managed, min_free_frames, lowmem_managed);
    let min = match kind {
        ZoneKind::HighMem | ZoneKind::Movable => {
            let (least, most) = MIN_OUTSIDE_LOWMEM;
            (managed / 1024).clamp(least, most)
        }
        ZoneKind::Dma | ZoneKind::Dma32 | ZoneKind::Normal => share,
    };
    let gap = (share / 4).max(proportion(managed, watermark_scale_factor, 10_000));
    let low = min.saturating_add(gap);
    Marks {
        min,
        low,
        high: low.saturating_add(gap),
    }
}

/// The part of one of several zones of a kind in a node: their memory counts as one, and so do
/// their marks and reserves. In frames.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ZonePart {
    /// The frames of the zones before it.
    pub(crate) before: usize,
    /// The zone's own frames.
    pub(crate) own: usize,
    /// The frames of all the zones together.
    pub(crate) all: usize,
}

impl ZonePart {
    /// Returns the zone's part of `whole`. The parts of all zones add up to `whole`. A zone that
    /// has all frames gets all of `whole`, even if it has no frames.
    pub(crate) fn of(self, whole: usize) -> usize {
        let up_to = |frames: usize| match frames {
            0 => 0,
            _ if frames >= self.all => whole,
            _ => proportion(whole, frames, self.all),
        };
        if self.own == self.all {
            return whole;
        }
        // Zones may grow meanwhile, so the two need not be in order.
        up_to(self.before.saturating_add(self.own)).saturating_sub(up_to(self.before))
    }

    /// Returns the zone's part of the marks of all. The gaps are split, not their sums, so that
    /// rounding keeps the order.
    pub(crate) fn of_marks(self, marks: Marks) -> Marks {
        let min = self.of(marks.min);
        let low = min.saturating_add(self.of(marks.low - marks.min));
        let high = low.saturating_add(self.of(marks.high - marks.low));
        Marks { min, low, high }
    }
}

/// Returns `whole` * `part` / `of`, rounded down; 0 if `of` is 0. Saturates.
fn proportion(whole: usize, part: usize, of: usize) -> usize {
    let product = whole as u128 * part as u128;
    saturated(product.checked_div(of as u128).unwrap_or(0))
}

/// Returns what zone i of a node holds back from requests whose highest zone is j, at `[i][j]`.
/// This is the memory of the zones above i up to j, divided by the ratio of i. It is 0 if the ratio
/// is 0 or the zone has no memory.
#[must_use]
pub fn lowmem_reserve(
    managed: &[usize; ZoneKind::COUNT],
    ratios: &[usize; ZoneKind::COUNT],
) -> [[usize; ZoneKind::COUNT]; ZoneKind::COUNT] {
    let mut reserve = [[0; ZoneKind::COUNT]; ZoneKind::COUNT];
    for (zone, against) in reserve.iter_mut().enumerate() {
        if managed[zone] == 0 || ratios[zone] == 0 {
            continue;
        }
        let mut above: usize = 0;
        for class in zone + 1..ZoneKind::COUNT {
            above = above.saturating_add(managed[class]);
            against[class] = above / ratios[zone];
        }
    }
    reserve
}

/// The watermark that a zone's free memory must stay above for a request to be served.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mark {
    /// The low mark, for the first zone of a request's list. What lies in this CPU's cache was
    /// fetched for such requests, and is available without another check.
    First,
    /// What lies in the cache is available ([`Mark::First`]); all else is so at [`Mark::Apart`].
    FirstApart,
    /// The low mark, and only memory whose use mixes nothing: of the request's own mobility, or
    /// page blocks that are free as a whole. So another zone is asked before a page block is mixed.
    /// A zone that does not group by mobility, or always mixes when it must, may take it for the
    /// low mark.
    Apart,
    /// The low mark.
    Low,
    /// The min mark, or as far below it as the request may go.
    Min,
}

/// What a zone keeps free: its watermarks, and what it holds back from requests that could also use
/// higher zones.
#[derive(Debug)]
pub struct Watermarks {
    // Written by administration, read by requests.
    marks: [AtomicUsize; 3],
    reserve: [AtomicUsize; ZoneKind::COUNT],
}

impl Watermarks {
    /// Returns watermarks that keep nothing free.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            marks: [const { AtomicUsize::new(0) }; 3],
            reserve: [const { AtomicUsize::new(0) }; ZoneKind::COUNT],
        }
    }

    /// Sets the marks, and what is held back from requests by the highest kind of zone that they
    /// may use. In frames.
    pub fn set(&self, marks: Marks, reserve: [usize; ZoneKind::COUNT]) {
        // Relaxed: limits that take effect soon; no other access depends on them.
        for (cell, mark) in self.marks.iter().zip([marks.min, marks.low, marks.high]) {
            cell.store(mark, Ordering::Relaxed);
        }
        for (cell, frames) in self.reserve.iter().zip(reserve) {
            cell.store(frames, Ordering::Relaxed);
        }
    }

    /// Returns the marks, in frames.
    #[must_use]
    #[inline]
    pub fn marks(&self) -> Marks {
        // Relaxed: as above.
        let load = |mark: &AtomicUsize| mark.load(Ordering::Relaxed);
        let [min, low, high] = &self.marks;
        Marks {
            min: load(min),
            low: load(low),
            high: load(high),
        }
    }

    /// Returns what is held back from requests whose highest zone is `highest`, in frames.
    #[must_use]
    #[inline]
    pub fn reserve_against(&self, highest: ZoneKind) -> usize {
        // Relaxed: as above.
        self.reserve[highest.index()].load(Ordering::Relaxed)
    }

    /// Returns true if something is kept that this request may not have.
    #[must_use]
    #[inline]
    pub fn hold_back_from(&self, request: &Request) -> bool {
        self.marks().min > 0 || self.reserve_against(request.highest) > 0
    }

    /// Returns the floor: more frames than this must be left after `request` has been served.
    #[must_use]
    #[inline]
    pub fn floor(&self, request: &Request, mark: Mark) -> usize {
        let marks = self.marks();
        let mark = match mark {
            Mark::First | Mark::FirstApart | Mark::Apart | Mark::Low => marks.low,
            Mark::Min => reserved_mark(marks.min, request.context),
        };
        mark.saturating_add(self.reserve_against(request.highest))
    }
}

impl Default for Watermarks {
    fn default() -> Self {
        Self::new()
    }
}

/// How far below the min mark a request may go.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Access {
    /// Not at all.
    #[default]
    Ordinary,
    /// Half of the mark: for a request that others wait for (`__GFP_HIGH`).
    High,
    /// Half of the mark and a quarter of the rest, 62.5 %: as [`Access::High`], for a request that
    /// also cannot wait (`GFP_ATOMIC`).
    Atomic,
    /// Half of the mark: for a task that is about to die and to free its memory (a victim of the
    /// out-of-memory killer).
    Victim,
}

impl From<Context> for Access {
    fn from(context: Context) -> Self {
        match context {
            Context::MaySleep => Self::Ordinary,
            Context::Atomic | Context::Interrupt => Self::Atomic,
        }
    }
}

/// Returns what is left of the min mark for a request with this access. Takes an [`Access`], or a
/// request's [`Context`].
///
/// Each part that is taken off is rounded down, so something is left of any mark above 0.
#[must_use]
pub fn reserved_mark(mark: usize, access: impl Into<Access>) -> usize {
    let half = mark - mark / 2;
    match access.into() {
        Access::Ordinary => mark,
        Access::High | Access::Victim => half,
        Access::Atomic => half - half / 4,
    }
}

/// Returns true if more than `floor` frames would be left after `request` is served from the `free`
/// frames that it may have. All frames of the block but one count as gone. The caller must see that
/// there is a block large enough.
#[must_use]
pub const fn above_mark(free: usize, request: &Request, floor: usize) -> bool {
    free > floor.saturating_add(request.order.frames() - 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Mobility;

    /// The zones of a Linux 6.18 host: managed frames of DMA, DMA32 and Normal, with
    /// `min_free_kbytes`
    /// 67584. The expected values below are what its zoneinfo said.
    const HOST: [usize; ZoneKind::COUNT] = [3840, 772_917, 327_680, 0, 0];

    const fn marks(min: usize, low: usize, high: usize) -> Marks {
        Marks { min, low, high }
    }

    #[test]
    fn min_free_grows_with_the_root_of_memory() {
        // 16 MiB: sqrt(16 * 16384) = 512; 4 GiB: sqrt(2^26) = 8192.
        assert_eq!(min_free_kbytes(16 << 10), 512);
        assert_eq!(min_free_kbytes(4 << 20), 8192);
        // sqrt(16 * 1000) = 126.49; sqrt(16 * 1040) = 128.99; 128 is the least.
        assert_eq!(min_free_kbytes(0), 128);
        assert_eq!(min_free_kbytes(1000), 128);
        assert_eq!(min_free_kbytes(1040), 128);
        // 129^2 = 16641 = 16 * 1040.06.
        assert_eq!(min_free_kbytes(1041), 129);
        // The most is reached at 2^18^2 / 2^4 = 2^32 kB = 4 TiB.
        #[cfg(target_pointer_width = "64")]
        {
            assert_eq!(min_free_kbytes((1 << 32) - 1), 262_143);
            assert_eq!(min_free_kbytes(1 << 32), 262_144);
        }
        assert_eq!(
            min_free_kbytes(usize::MAX),
            if usize::BITS == 64 { 262_144 } else { 262_143 }
        );
    }

    #[test]
    fn frames_and_kbytes() {
        assert_eq!(frames_of_kbytes(67_584, 4096), 16_896);
        assert_eq!(frames_of_kbytes(7, 4096), 1);
        assert_eq!(frames_of_kbytes(3, 4096), 0);
        assert_eq!(frames_of_kbytes(128, 65_536), 2);
        assert_eq!(kbytes_of_frames(16_896, 4096), 67_584);
        assert_eq!(kbytes_of_frames(2, 65_536), 128);
        assert_eq!(kbytes_of_frames(usize::MAX, 4096), usize::MAX);
        assert_eq!(frames_of_kbytes(usize::MAX, 512), usize::MAX);
    }

    #[test]
    fn the_advice_of_2007() {
        assert_eq!(recommended_min_free_frames(Order::DEFAULT_MAX), 4096);
        assert_eq!(
            recommended_min_free_kbytes(Order::DEFAULT_MAX, 4096),
            16_384
        );
        // Blocks of order 9 in frames of 64 KiB: 2048 frames.
        assert_eq!(recommended_min_free_kbytes(Order::HUGE, 65_536), 131_072);
    }

    #[test]
    fn marks_of_a_real_host() {
        let lowmem = HOST.iter().sum(); // 1104437
        let of =
            |kind: ZoneKind| zone_marks(kind, HOST[kind.index()], lowmem, 16_896, SCALE_FACTOR);
        // 16896 * 3840 / 1104437 = 58.7; the gap is 58 / 4.
        assert_eq!(of(ZoneKind::Dma), marks(58, 72, 86));
        assert_eq!(of(ZoneKind::Dma32), marks(11_824, 14_780, 17_736));
        assert_eq!(of(ZoneKind::Normal), marks(5012, 6265, 7518));
        assert_eq!(of(ZoneKind::Movable), marks(32, 32, 32));
    }

    #[test]
    fn the_scale_factor_widens_the_gap() {
        // A share of 1000 gives a gap of 250; 10 ten-thousandths of 1000000 are 1000.
        let of = |factor| zone_marks(ZoneKind::Normal, 1_000_000, 1_000_000, 1000, factor);
        assert_eq!(of(10), marks(1000, 2000, 3000));
        assert_eq!(of(2), marks(1000, 1250, 1500));
        assert_eq!(of(0), marks(1000, 1250, 1500));
        // 3 ten-thousandths of 9999 are 2.9997.
        let small = zone_marks(ZoneKind::Normal, 9999, 9999, 0, 3);
        assert_eq!(small, marks(0, 2, 4));
    }

    #[test]
    fn high_zones_have_a_small_min_and_the_gap_of_their_share() {
        // The share of 100000 frames in 200000 is 1000 * 100000 / 200000 = 500, so the gap is 125.
        // min = 100000 / 1024 = 97.
        let of = |managed| zone_marks(ZoneKind::Movable, managed, 200_000, 1000, 0);
        assert_eq!(of(100_000), marks(97, 222, 347));
        // min stops at 32 and at 128. Shares of 50 and of 5000.
        assert_eq!(of(10_000), marks(32, 44, 56));
        assert_eq!(of(1_000_000), marks(128, 1378, 2628));
        let high = zone_marks(ZoneKind::HighMem, 100_000, 200_000, 1000, 0);
        assert_eq!(high, of(100_000));
    }

    #[test]
    fn marks_without_memory_and_with_too_much() {
        let nothing = zone_marks(ZoneKind::Normal, 0, 0, 1000, SCALE_FACTOR);
        assert_eq!(nothing, Marks::default());
        let all = usize::MAX;
        let most = zone_marks(ZoneKind::Normal, all, all, all, all);
        assert_eq!(most, marks(all, all, all));
    }

    #[test]
    fn reserves_of_a_real_host() {
        // 772917 / 256 = 3019; (772917 + 327680) / 256 = 4299; 327680 / 256 = 1280. Normal has
        // nothing above it.
        let expected = [
            [0, 3019, 4299, 4299, 4299],
            [0, 0, 1280, 1280, 1280],
            [0; 5],
            [0; 5],
            [0; 5],
        ];
        assert_eq!(lowmem_reserve(&HOST, &LOWMEM_RESERVE_RATIO), expected);
    }

    #[test]
    fn reserves_of_zones_that_are_empty_or_have_no_ratio() {
        // No DMA, so no reserve there. DMA32 has ratio 0. Normal: 320 / 32 = 10 against HighMem,
        // 640 / 32 against Movable. HighMem: 320 / 1. Above Movable there is nothing.
        let managed = [0, 1000, 1000, 320, 320];
        let ratios = [256, 0, 32, 1, 1];
        let expected = [[0; 5], [0; 5], [0, 0, 0, 10, 20], [0, 0, 0, 0, 320], [0; 5]];
        assert_eq!(lowmem_reserve(&managed, &ratios), expected);
        let most = lowmem_reserve(&[usize::MAX; 5], &[1; 5]);
        assert_eq!(most[0], [0, usize::MAX, usize::MAX, usize::MAX, usize::MAX]);
    }

    #[test]
    fn those_that_cannot_wait_go_below_min() {
        // 1000 - 500 = 500; 500 - 125 = 375.
        let of_1000 = |access| reserved_mark(1000, access);
        assert_eq!(of_1000(Access::Ordinary), 1000);
        assert_eq!(of_1000(Access::High), 500);
        assert_eq!(of_1000(Access::Atomic), 375);
        assert_eq!(of_1000(Access::Victim), 500);
        // 7 - 3 = 4; 4 - 1 = 3.
        assert_eq!(reserved_mark(7, Context::Atomic), 3);
        assert_eq!(reserved_mark(7, Context::Interrupt), 3);
        assert_eq!(reserved_mark(7, Context::MaySleep), 7);
        assert_eq!(reserved_mark(1, Access::Atomic), 1);
        assert_eq!(reserved_mark(0, Access::Atomic), 0);
        assert_eq!(
            reserved_mark(usize::MAX, Access::Victim),
            usize::MAX / 2 + 1
        );
    }

    #[test]
    fn more_than_the_mark_must_be_left() {
        let page = Request::page(Mobility::Unmovable);
        assert!(above_mark(101, &page, 100));
        assert!(!above_mark(100, &page, 100));
        // A block of order 3 takes 7 frames more.
        let block = Request::new(Order::new(3), Mobility::Movable);
        assert!(above_mark(108, &block, 100));
        assert!(!above_mark(107, &block, 100));
        assert!(!above_mark(0, &page, 0));
        assert!(above_mark(1, &page, 0));
    }

    #[test]
    fn the_floor_is_the_mark_and_what_is_held_back() {
        let watermarks = Watermarks::new();
        watermarks.set(marks(1000, 1250, 1500), [0, 0, 0, 10, 50]);
        let normal = Request::page(Mobility::Unmovable).from_zones_up_to(ZoneKind::Normal);
        let movable = Request::page(Mobility::Movable).from_zones_up_to(ZoneKind::Movable);
        assert_eq!(watermarks.floor(&normal, Mark::First), 1250);
        assert_eq!(watermarks.floor(&normal, Mark::Low), 1250);
        assert_eq!(watermarks.floor(&movable, Mark::Low), 1300);
        assert_eq!(watermarks.floor(&movable, Mark::Min), 1050);
        assert_eq!(watermarks.floor(&normal.atomic(), Mark::Min), 375);
    }

    #[test]
    fn large_marks_do_not_overflow() {
        let block = Request::new(Order::MAX, Mobility::Movable);
        let all = usize::MAX;
        assert!(!above_mark(all, &block, all));
        assert!(above_mark(all, &block, 0));
    }
}
