//! How fragmented free memory is, computed only from the number of free blocks of each order.
//!
//! There are two questions, after Gorman and Healy, "Supporting Superpage Allocation without
//! Additional Hardware Support" (ISMM 2008). How much of the free memory is useless to a request of
//! some order? And if such a request fails, is the cause lack of memory or fragmentation? The
//! integers are those of Linux's `unusable_index`, `extfrag_index` and proactive compaction. Each
//! is rounded in the same places, so that it can be compared with that of a running kernel.
//!
//! All sums use 128 bits. 2^64 blocks of each of the 19 orders are less than 2^83 frames, or 2^93
//! in thousandths. So no count that fits into the structure overflows.

use core::fmt;

use crate::block::FreeTable;
use crate::watermark::saturated;
use crate::{MigrateType, Order};

/// The number of free blocks of each order.
///
/// ```
/// use brickyard::Order;
/// use brickyard::stats::FreeCounts;
/// // 512 single frames: as much as one huge page, and not one huge page.
/// let mut counts = FreeCounts::default();
/// counts.by_order[0] = 512;
/// assert_eq!(counts.suitable(Order::HUGE), 0);
/// assert_eq!(counts.unusable_index(Order::HUGE), 1000);
/// assert_eq!(counts.fragmentation_index(Order::HUGE), 997);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct FreeCounts {
    /// The free blocks of each order.
    pub by_order: [usize; Order::COUNT],
}

impl FreeCounts {
    /// Counts the blocks of all types but [`MigrateType::Isolate`].
    pub(crate) fn to_be_had(free: &FreeTable) -> Self {
        let isolated = MigrateType::Isolate.index();
        Self {
            by_order: free.map(|by_type| by_type.iter().sum::<usize>() - by_type[isolated]),
        }
    }

    /// Returns the number of free frames. Saturates.
    #[must_use]
    pub fn free_frames(&self) -> usize {
        saturated(self.frames_from(Order::ZERO))
    }

    /// Returns the number of free blocks of any size. Saturates.
    #[must_use]
    pub fn blocks(&self) -> usize {
        saturated(self.all_blocks())
    }

    /// Returns how many blocks of this order are available without moving anything: those of this
    /// order, and what larger ones split into. Saturates.
    #[must_use]
    pub fn suitable(&self, order: Order) -> usize {
        saturated(self.frames_from(order) >> order.get())
    }

    /// Returns the part of the free memory that a request of this order cannot use, in thousandths,
    /// rounded down: 0 is none, 1000 is all. Returns 1000 if nothing is free.
    #[must_use]
    pub fn unusable_index(&self, order: Order) -> u32 {
        self.unusable_part(order, 1000).unwrap_or(1000)
    }

    /// Returns the reason why a request of this order fails, in thousandths: towards 0 for lack of
    /// memory, towards 1000 for fragmentation. Returns -1000 if it would not fail, and 0 if nothing
    /// is free.
    ///
    /// With a single free block that is too small, the result is -free / 2^order, between -500 and
    /// 0, as in Linux.
    #[must_use]
    pub fn fragmentation_index(&self, order: Order) -> i32 {
        let blocks = self.all_blocks();
        if blocks == 0 {
            return 0;
        }
        if self.frames_from(order) > 0 {
            return -1000;
        }
        // No block is larger than half of the request, so free / 2^order <= blocks / 2, and `lack`
        // <= 1500.
        let requests = (self.frames_from(Order::ZERO) * 1000) >> order.get();
        let lack = (1000 + requests) / blocks;
        1000 - lack as i32
    }

    /// Returns the part of the free memory that a request of this order cannot use, in per cent,
    /// rounded down. Proactive compaction goes by it. Returns 0 if nothing is free, since
    /// compaction would not help then.
    #[must_use]
    pub fn extfrag_percent(&self, order: Order) -> u32 {
        self.unusable_part(order, 100).unwrap_or(0)
    }

    /// Returns the part of the free frames in blocks below `order`, scaled to `whole`; `None` if
    /// nothing is free.
    fn unusable_part(&self, order: Order, whole: u128) -> Option<u32> {
        let free = self.frames_from(Order::ZERO);
        let unusable = free - self.frames_from(order);
        let part = (unusable * whole).checked_div(free)?;
        Some(part as u32)
    }

    /// Returns the number of frames in free blocks of order `lowest` and up.
    fn frames_from(&self, lowest: Order) -> u128 {
        let frames = |order: Order| (self.by_order[order.index()] as u128) << order.get();
        lowest.up_to(Order::MAX).map(frames).sum()
    }

    fn all_blocks(&self) -> u128 {
        self.by_order.iter().map(|&blocks| blocks as u128).sum()
    }
}

/// A value of [`FreeCounts::unusable_index`] as Linux prints it in `unusable_index`: `%d.%03d `,
/// with the trailing space.
///
/// ```
/// use brickyard::stats::UnusableText;
/// assert_eq!(UnusableText(66).to_string(), "0.066 ");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UnusableText(pub u32);

impl fmt::Display for UnusableText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{:03} ", self.0 / 1000, self.0 % 1000)
    }
}

/// A value of [`FreeCounts::fragmentation_index`] as Linux prints it in `extfrag_index`: `%2d.%03d
/// `, with the trailing space.
///
/// Quotient and remainder are those of C. So the sign of a small negative value comes after the
/// point, with room for two more digits.
///
/// ```
/// use brickyard::stats::FragmentationText;
/// assert_eq!(FragmentationText(-1000).to_string(), "-1.000 ");
/// assert_eq!(FragmentationText(-62).to_string(), " 0.-62 ");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FragmentationText(pub i32);

impl fmt::Display for FragmentationText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Rust's division and zero padding are those of C: towards zero, and the sign is one of the
        // three characters.
        write!(f, "{:2}.{:03} ", self.0 / 1000, self.0 % 1000)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::string::ToString;

    fn counts(of: &[(u8, usize)]) -> FreeCounts {
        let mut counts = FreeCounts::default();
        for &(order, blocks) in of {
            counts.by_order[usize::from(order)] = blocks;
        }
        counts
    }

    #[test]
    fn nothing_free_is_all_unusable_and_lack_of_memory() {
        let none = FreeCounts::default();
        for order in Order::ZERO.up_to(Order::MAX) {
            assert_eq!(none.unusable_index(order), 1000);
            assert_eq!(none.fragmentation_index(order), 0);
            assert_eq!(none.extfrag_percent(order), 0);
            assert_eq!(none.suitable(order), 0);
        }
        assert_eq!((none.free_frames(), none.blocks()), (0, 0));
    }

    #[test]
    fn sums() {
        // 3 * 1 + 1 * 4 + 2 * 8 = 23 frames in 6 blocks; from order 1 up 20 frames = 10 pairs; from
        // order 3 up 2 blocks.
        let counts = counts(&[(0, 3), (2, 1), (3, 2)]);
        assert_eq!((counts.free_frames(), counts.blocks()), (23, 6));
        assert_eq!(counts.suitable(Order::ZERO), 23);
        assert_eq!(counts.suitable(Order::new(1)), 10);
        assert_eq!(counts.suitable(Order::new(3)), 2);
        assert_eq!(counts.suitable(Order::new(4)), 0);
    }

    /// Zone DMA of a Linux 6.18 host: one block of order 8, one of order 9, three of order 10. The
    /// expected values are what its files said.
    #[test]
    fn the_indices_of_a_real_zone() {
        let dma = counts(&[(8, 1), (9, 1), (10, 3)]);
        assert_eq!(dma.free_frames(), 3840);
        // Order 9: 256 of 3840 = .0667 unusable. Order 10: 256 + 512 = 768 of 3840 = .2.
        assert_eq!(dma.unusable_index(Order::new(8)), 0);
        assert_eq!(dma.unusable_index(Order::new(9)), 66);
        assert_eq!(dma.unusable_index(Order::new(10)), 200);
        assert_eq!(dma.extfrag_percent(Order::new(9)), 6);
        assert_eq!(dma.extfrag_percent(Order::new(10)), 20);
        assert_eq!(dma.fragmentation_index(Order::new(10)), -1000);
        // Nothing of order 11: all unusable; 1000 - (1000 + 3840000 / 2048) / 5 = 1000 - 2875 / 5 =
        // 425.
        assert_eq!(dma.unusable_index(Order::new(11)), 1000);
        assert_eq!(dma.fragmentation_index(Order::new(11)), 425);
    }

    #[test]
    fn lack_and_fragmentation_are_told_apart() {
        // Two single frames for a request of 512: 1000 - (1000 + 2000 / 512) / 2 = 1000 - 1003 / 2
        // = 499.
        assert_eq!(counts(&[(0, 2)]).fragmentation_index(Order::HUGE), 499);
        // A thousand for the same: 1000 - (1000 + 1000000 / 512) / 1000 = 1000 - 2953 / 1000 = 998.
        assert_eq!(counts(&[(0, 1000)]).fragmentation_index(Order::HUGE), 998);
    }

    #[test]
    fn one_block_gives_the_negative_values_of_linux() {
        // 1000 - (1000 + 1000 * 2^i / 2^9), i = 8, 5, 2, 0: 500, 62, 7 and 1 below zero.
        let index = |order| counts(&[(order, 1)]).fragmentation_index(Order::HUGE);
        assert_eq!([8, 5, 2, 0].map(index), [-500, -62, -7, -1]);
        assert_eq!(counts(&[(0, 1)]).fragmentation_index(Order::MAX), 0);
    }

    #[test]
    fn each_division_rounds_down() {
        let counts = counts(&[(0, 1), (1, 1)]);
        // 1 of 3 frames is unusable at order 1: 333.3, 33.3 %.
        assert_eq!(counts.unusable_index(Order::new(1)), 333);
        assert_eq!(counts.extfrag_percent(Order::new(1)), 33);
        // At order 2: 1000 - (1000 + 3000 / 4) / 2 = 1000 - 1750 / 2 = 125.
        assert_eq!(counts.fragmentation_index(Order::new(2)), 125);
        // At order 3: 1000 - (1000 + 375) / 2 = 1000 - 687 = 313.
        assert_eq!(counts.fragmentation_index(Order::new(3)), 313);
    }

    #[test]
    #[cfg(target_pointer_width = "64")]
    fn sixteen_tebibytes() {
        // 2^32 single frames. For 2^18 of them: 1000 - (1000 + 2^32 * 1000 / 2^18) / 2^32 = 1000 -
        // 0; for 2: 1000 - 500.
        let singles = counts(&[(0, 1 << 32)]);
        assert_eq!(singles.free_frames(), 1 << 32);
        assert_eq!(singles.unusable_index(Order::MAX), 1000);
        assert_eq!(singles.fragmentation_index(Order::MAX), 1000);
        assert_eq!(singles.fragmentation_index(Order::new(1)), 500);
    }

    #[test]
    fn more_than_there_can_be_does_not_overflow() {
        let all = FreeCounts {
            by_order: [usize::MAX; Order::COUNT],
        };
        assert_eq!((all.free_frames(), all.blocks()), (usize::MAX, usize::MAX));
        assert_eq!(all.suitable(Order::ZERO), usize::MAX);
        // Below the highest of 19 equally filled orders lie (2^18 - 1) of (2^19 - 1) parts: just
        // under one half.
        assert_eq!(all.unusable_index(Order::MAX), 499);
        assert_eq!(all.extfrag_percent(Order::MAX), 49);
        assert_eq!(all.fragmentation_index(Order::MAX), -1000);
    }

    #[test]
    fn values_print_as_c_does() {
        let unusable = [0, 7, 66, 999, 1000].map(|value| UnusableText(value).to_string());
        assert_eq!(unusable, ["0.000 ", "0.007 ", "0.066 ", "0.999 ", "1.000 "]);
        let values = [-1000, -500, -62, -7, 0, 7, 425, 1000];
        let fragmentation = values.map(|value| FragmentationText(value).to_string());
        // Checked with printf(3): `%2d.%03d ` of value / 1000 and value % 1000.
        let expected = [
            "-1.000 ", " 0.-500 ", " 0.-62 ", " 0.-07 ", " 0.000 ", " 0.007 ", " 0.425 ", " 1.000 ",
        ];
        assert_eq!(fragmentation, expected);
    }
}
