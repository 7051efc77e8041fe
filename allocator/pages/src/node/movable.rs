//! The start of the zone for movable pages in each node (Gorman 2007, zone-based; `kernelcore=` and
//! `movablecore=` of Linux).
//!
//! The kernel's part of the memory, in which anything may be allocated, is spread over the nodes as
//! evenly as they allow. What a node has above its share becomes its `ZONE_MOVABLE`. In steps:
//!
//! 1. [`Sizing`] and the memory of all nodes give the kernel's part. If that is nothing, or
//!    everything, there is no zone for movable pages.
//! 2. Each node that has memory gets an equal share. Its memory is walked upwards. Frames below
//!    `lowest` belong to the kernel whatever its share, and count towards it. Above, the node gives
//!    frames until its share is full. There its zone for movable pages may start.
//! 3. Nodes may have more low memory than their share, so that less than one share is missing in
//!    all. As soon as that is so, what is missing is shared anew, by as many nodes as before.
//! 4. If nodes were too small for their share, something is still missing at the end. Another pass
//!    shares it by one node fewer, and each node goes on from where it stopped. This ends when
//!    fewer frames are missing than the last pass had nodes, or after a pass with one share.
//! 5. Each start is rounded up to a block of the highest order, so that no block lies in two zones.
//!    If a start is then not below the end of its node, the node has no such zone.
//!
//! Step 4 may leave the kernel short by one frame for each node but one. The rounding nearly always
//! gives it back more than that.

use crate::{Frame, FrameRange, Order};

/// How much memory is for movable pages only.
///
/// Linux accepts both `kernelcore` and `movablecore` at once, and uses the larger of the two
/// kernel's parts. A caller that wants that compares [`Sizing::kernel_frames`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sizing {
    /// `kernelcore=`: all memory except this many frames for the kernel.
    KernelCore(usize),
    /// `kernelcore=%`: all memory except this percentage for the kernel, rounded down.
    KernelCorePercent(u8),
    /// `movablecore=`: this many frames, rounded up to blocks of the highest order.
    MovableCore(usize),
    /// `movablecore=%`: this percentage of the memory, rounded down, and then up as for
    /// [`Sizing::MovableCore`].
    MovableCorePercent(u8),
}

impl Sizing {
    /// Returns how many of `total` frames are the kernel's; `None` if there is no zone for movable
    /// pages.
    ///
    /// There is none (in Linux too) if the kernel's part would be all memory, if it would be
    /// nothing (`movablecore` of everything), or if the size is 0, which stands for "not given".
    ///
    /// ```
    /// use brickyard::Order;
    /// use brickyard::node::movable::Sizing;
    /// let of_1000 = |sizing: Sizing| sizing.kernel_frames(1000, Order::new(4));
    /// assert_eq!(of_1000(Sizing::KernelCorePercent(60)), Some(600));
    /// assert_eq!(of_1000(Sizing::MovableCore(401)), Some(584)); // 416 frames are movable
    /// assert_eq!(of_1000(Sizing::KernelCore(1000)), None);
    /// ```
    #[must_use]
    pub const fn kernel_frames(self, total: usize, max_order: Order) -> Option<usize> {
        let kernel = match self {
            Self::KernelCore(frames) => frames,
            Self::KernelCorePercent(percent) => hundredths(total, percent),
            Self::MovableCore(frames) => all_but(frames, total, max_order),
            Self::MovableCorePercent(percent) => {
                all_but(hundredths(total, percent), total, max_order)
            }
        };
        if kernel == 0 || kernel >= total {
            return None;
        }
        Some(kernel)
    }
}

/// Returns `percent` hundredths of `total`, rounded down; from 100 on, all of it.
const fn hundredths(total: usize, percent: u8) -> usize {
    let percent = if percent < 100 { percent as usize } else { 100 };
    // In two parts, so that nothing overflows. Both are exact, except for the one rounding at the
    // end.
    total / 100 * percent + total % 100 * percent / 100
}

/// Returns what remains of `total` without `movable` frames, rounded up.
const fn all_but(movable: usize, total: usize, max_order: Order) -> usize {
    match movable.checked_next_multiple_of(max_order.frames()) {
        Some(movable) => total.saturating_sub(movable),
        None => 0,
    }
}

/// Writes to `starts` where the zone for movable pages starts in each node; `None` if the node has
/// none.
///
/// `nodes` are the ranges of memory of each node, ascending and disjoint; a node may be empty.
/// `lowest` is the first frame that can be movable memory: the start of the highest zone that has
/// memory on this machine. A start may lie in a hole between two ranges. The [module](self)
/// describes the steps. O(nodes^2 * ranges).
///
/// ```
/// use brickyard::node::movable::{self, Sizing};
/// use brickyard::{Frame, FrameRange, Order};
/// let nodes: [&[FrameRange]; 2] = [&[FrameRange::new(0, 1024)], &[FrameRange::new(1024, 4096)]];
/// let mut starts = [None; 2];
/// movable::starts(&nodes, Frame::new(0), Sizing::KernelCore(1000), Order::new(4), &mut starts);
/// // 500 frames each, rounded up to blocks of 16.
/// assert_eq!(starts, [Some(Frame::new(512)), Some(Frame::new(1536))]);
/// ```
///
/// # Panics
/// Panics if there are more or fewer `starts` than `nodes`.
pub fn starts(
    nodes: &[&[FrameRange]],
    lowest: Frame,
    sizing: Sizing,
    max_order: Order,
    starts: &mut [Option<Frame>],
) {
    assert_eq!(nodes.len(), starts.len(), "one start for each node");
    debug_assert!(
        nodes
            .iter()
            .all(|ranges| ranges.is_sorted_by(|one, next| one.end <= next.start)),
        "ranges ascend and are disjoint"
    );
    starts.fill(None);
    let total = nodes.iter().map(|ranges| frames_of(ranges)).sum();
    let Some(kernel) = sizing.kernel_frames(total, max_order) else {
        return;
    };
    spread(nodes, lowest, kernel, starts);
    for (ranges, start) in nodes.iter().zip(starts) {
        *start = start.and_then(|start| rounded_up(start, ranges, max_order));
    }
}

/// Steps 2 to 4: gives `kernel` frames to the kernel, and moves the start of each node past its
/// part of them.
fn spread(nodes: &[&[FrameRange]], lowest: Frame, kernel: usize, starts: &mut [Option<Frame>]) {
    let populated = nodes.iter().filter(|ranges| frames_of(ranges) > 0).count();
    let mut missing = kernel;
    for shares in (1..=populated).rev() {
        let mut share = missing / shares;
        for (ranges, start) in nodes.iter().zip(starts.iter_mut()) {
            if missing < share {
                share = missing / shares;
            }
            missing = missing.saturating_sub(fill_share(ranges, lowest, share, start));
        }
        if missing < shares {
            break;
        }
    }
}

/// Walks a node from `start` up until the kernel has `share` more frames of it, or all of it.
/// Returns how many more it has. That is above the share if frames below `lowest` made it so.
fn fill_share(
    ranges: &[FrameRange],
    lowest: Frame,
    share: usize,
    start: &mut Option<Frame>,
) -> usize {
    let mut given = 0;
    for range in ranges {
        // Frames that an earlier pass has counted are not counted again.
        let ahead = FrameRange {
            start: range.start.max(start.unwrap_or_default()),
            end: range.end,
        };
        if ahead.is_empty() {
            continue;
        }
        let eligible = FrameRange {
            start: ahead.start.max(lowest),
            end: ahead.end,
        };
        given += ahead.len() - eligible.len();
        if eligible.is_empty() {
            *start = Some(ahead.end);
            continue;
        }
        let taken = eligible.len().min(share.saturating_sub(given));
        *start = Some(eligible.start.plus(taken));
        given += taken;
        if given >= share {
            break;
        }
    }
    given
}

/// Step 5. A start that would round up past the last frame number is dropped, too.
fn rounded_up(start: Frame, ranges: &[FrameRange], max_order: Order) -> Option<Frame> {
    let number = start
        .number()
        .checked_next_multiple_of(max_order.frames())?;
    let populated = ranges.iter().filter(|range| !range.is_empty());
    let end = populated.map(|range| range.end).max()?;
    Some(Frame::new(number)).filter(|&start| start < end)
}

/// Returns the sum of the ranges' frames. Disjoint ranges have no more frames than there are
/// numbers, so the sum does not overflow.
fn frames_of(ranges: &[FrameRange]) -> usize {
    ranges.iter().map(|range| range.len()).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::vec;
    use std::vec::Vec;

    /// Returns the starts as numbers.
    fn starts_of(
        nodes: &[&[FrameRange]],
        lowest: usize,
        sizing: Sizing,
        max_order: u8,
    ) -> Vec<Option<usize>> {
        // Not empty, to see that nothing of it is left.
        let mut found = vec![Some(Frame::new(77)); nodes.len()];
        let max_order = Order::new(max_order);
        starts(nodes, Frame::new(lowest), sizing, max_order, &mut found);
        found.iter().map(|start| start.map(Frame::number)).collect()
    }

    const fn range(start: usize, end: usize) -> FrameRange {
        FrameRange::new(start, end)
    }

    #[test]
    fn one_node_keeps_its_low_end_for_the_kernel() {
        let nodes: &[&[FrameRange]] = &[&[range(0, 1024)]];
        let kernel = |frames| starts_of(nodes, 0, Sizing::KernelCore(frames), 4);
        // 300 is rounded up to 19 * 16 = 304.
        assert_eq!(kernel(300), [Some(304)]);
        assert_eq!(kernel(304), [Some(304)]);
        assert_eq!(kernel(1), [Some(16)]);
        assert_eq!(kernel(1008), [Some(1008)]);
        // 1009 is rounded up to the end.
        assert_eq!(kernel(1009), [None]);
    }

    #[test]
    fn nothing_and_everything_is_no_zone() {
        let nodes: &[&[FrameRange]] = &[&[range(0, 1024)], &[range(1024, 2048)]];
        for sizing in [
            Sizing::KernelCore(0),
            Sizing::KernelCore(2048),
            Sizing::KernelCore(usize::MAX),
            Sizing::KernelCorePercent(0),
            Sizing::KernelCorePercent(100),
            Sizing::KernelCorePercent(255),
            Sizing::MovableCore(0),
            Sizing::MovableCore(2048),
            Sizing::MovableCore(2033),
            Sizing::MovableCore(usize::MAX),
            Sizing::MovableCorePercent(0),
            Sizing::MovableCorePercent(100),
            Sizing::MovableCorePercent(255),
        ] {
            assert_eq!(starts_of(nodes, 0, sizing, 4), [None, None], "{sizing:?}");
        }
    }

    #[test]
    fn sizes_become_the_kernels_part() {
        let of = |sizing: Sizing, total| sizing.kernel_frames(total, Order::new(4));
        assert_eq!(of(Sizing::KernelCore(5), 1999), Some(5));
        // 60 % of 1999 is 1199.4.
        assert_eq!(of(Sizing::KernelCorePercent(60), 1999), Some(1199));
        // 100 frames for movable pages become 7 * 16 = 112.
        assert_eq!(of(Sizing::MovableCore(100), 1999), Some(1887));
        // 5 % of 1999 is 99.95, so 99, so 112.
        assert_eq!(of(Sizing::MovableCorePercent(5), 1999), Some(1887));
        // 1 % of less than 100 frames is nothing.
        assert_eq!(of(Sizing::KernelCorePercent(1), 99), None);
        let half = usize::MAX / 2;
        assert_eq!(of(Sizing::KernelCorePercent(50), usize::MAX), Some(half));
    }

    /// Nodes, the lowest frame of a zone, how much the kernel asks for, the highest order; where
    /// the zones start.
    type Case<'a> = (
        &'a [&'a [FrameRange]],
        usize,
        Sizing,
        u8,
        &'a [Option<usize>],
    );

    #[test]
    fn shares_are_filled_in_passes() {
        use Sizing::{KernelCore, KernelCorePercent, MovableCore};
        const END: usize = usize::MAX;
        let equal: &[&[_]] = &[&[range(0, 1024)], &[range(1024, 2048)]];
        let small: &[&[_]] = &[&[range(0, 100)], &[range(1000, 2000)]];
        let three: &[&[_]] = &[&[range(0, 50)], &[range(100, 300)], &[range(1000, 2000)]];
        let parts: &[&[_]] = &[
            &[range(0, 100), range(200, 300), range(400, 700)],
            &[range(700, 800)],
        ];
        let adjacent: &[&[_]] = &[&[range(0, 1000)], &[range(1000, 2000)]];
        let hole: &[&[_]] = &[&[range(0, 100), range(200, 300)]];
        let gaps: &[&[_]] = &[
            &[],
            &[range(0, 1000)],
            &[range(1000, 1000)],
            &[range(1000, 2000)],
        ];
        let tiny: &[&[_]] = &[&[range(16, 32)], &[range(32, 48)], &[range(48, 64)]];
        let far: &[&[_]] = &[&[range(END - 100, END)], &[range(0, 100)]];
        let cases: &[Case<'_>] = &[
            // Equal nodes give 256 frames each; 2048 - 1536 = 512.
            (equal, 0, KernelCore(512), 4, &[Some(256), Some(1280)]),
            (equal, 0, KernelCorePercent(25), 4, &[Some(256), Some(1280)]),
            (equal, 0, MovableCore(1521), 4, &[Some(256), Some(1280)]),
            // Shares of 200: node 0 gives its 100, node 1 its 200. Second pass: the missing 100
            // come from node 1.
            (small, 0, KernelCore(400), 0, &[None, Some(1300)]),
            // Shares of 300: 50, 200, 300 are given, 350 are missing. Shares of 350 / 2 = 175: node
            // 2 gives 175. One share of 175: node 2 again.
            (three, 0, KernelCore(900), 0, &[None, None, Some(1650)]),
            // Low memory is the kernel's already. Shares of 300: node 0 has 512 frames below the
            // lowest, which leaves 88 missing. That is less than a share: 44 each. Node 1 gives 44.
            // Second pass, one share of 44: node 0 gives 44, and nothing is missing any more.
            (equal, 512, KernelCore(600), 0, &[Some(556), Some(1068)]),
            // Enough low memory: all above is movable.
            (equal, 512, KernelCore(500), 0, &[Some(512), Some(1024)]),
            // All memory is low.
            (equal, 4096, KernelCore(500), 0, &[None, None]),
            // Low ranges are counted once and all. Node 0: 100 low frames, a hole, 100 low frames,
            // a hole, 300 high ones. Node 1: 100. Shares of 250: node 0 gives 200 low and 50 high
            // ones, node 1 its 100. Second pass, 150 from node 0: its low frames are behind it.
            (parts, 350, KernelCore(500), 0, &[Some(600), None]),
            // A share of 50 is full after 50 frames, yet all 200 low ones are the kernel's: the
            // start is behind them.
            (parts, 350, KernelCore(100), 0, &[Some(400), Some(700)]),
            // A range is low up to the lowest. Node 0 has 350 low frames, more than its share of
            // 200; the missing 50 are shared by two: node 1 gives 25. Second pass: node 0 gives the
            // other 25.
            (adjacent, 350, KernelCore(400), 0, &[Some(375), Some(1025)]),
            // 100 frames below the hole and 50 above it.
            (hole, 0, KernelCore(150), 0, &[Some(250)]),
            // The first range is just enough: the start lies in the hole, and is rounded up there.
            (hole, 0, KernelCore(100), 0, &[Some(100)]),
            (hole, 0, KernelCore(100), 7, &[Some(128)]),
            // Empty nodes take no share.
            (
                gaps,
                0,
                KernelCore(200),
                0,
                &[None, Some(100), None, Some(1100)],
            ),
            (&[], 0, KernelCore(200), 0, &[]),
            (&[&[]], 0, KernelCore(200), 0, &[None]),
            // Shares of 2 / 3 = 0; 2 are missing, fewer than there were nodes, and are given up.
            (tiny, 0, KernelCore(2), 0, &[Some(16), Some(32), Some(48)]),
            // 50 each. The start of node 0 cannot be rounded up to 2^18: there is no such number.
            (far, 0, KernelCore(100), 18, &[None, None]),
            (far, 0, KernelCore(100), 0, &[Some(END - 50), Some(50)]),
            (
                &[&[range(0, END)]],
                0,
                KernelCore(END - 1),
                0,
                &[Some(END - 1)],
            ),
        ];
        for &(nodes, lowest, sizing, max_order, expected) in cases {
            let found = starts_of(nodes, lowest, sizing, max_order);
            assert_eq!(found, expected, "{sizing:?} of {nodes:?} from {lowest}");
        }
    }

    #[test]
    #[should_panic(expected = "one start for each node")]
    fn every_node_needs_a_place_for_its_start() {
        starts(
            &[&[]],
            Frame::new(0),
            Sizing::KernelCore(1),
            Order::ZERO,
            &mut [],
        );
    }

    /// Without low memory and rounding, the kernel gets what it asked for and no more. It may be
    /// short by less than one frame per node.
    #[test]
    fn the_kernel_gets_what_it_asked_for() {
        let mut seed = 1_u64;
        let mut below = |limit: u64| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            ((seed >> 33) % limit) as usize
        };
        for _ in 0..2000 {
            let mut at = 0;
            let mut nodes = Vec::new();
            for _ in 0..below(5) + 1 {
                let mut ranges = Vec::new();
                for _ in 0..below(4) {
                    let start = at + below(50);
                    at = start + below(100);
                    ranges.push(range(start, at));
                }
                nodes.push(ranges);
            }
            let nodes: Vec<&[FrameRange]> = nodes.iter().map(Vec::as_slice).collect();
            let total: usize = nodes.iter().map(|ranges| frames_of(ranges)).sum();
            let wanted = below(total as u64 + 1);
            if wanted == 0 || wanted == total {
                continue;
            }
            let found = starts_of(&nodes, 0, Sizing::KernelCore(wanted), 0);
            let below_start = |(ranges, start): (&&[FrameRange], &Option<usize>)| {
                let kernel = range(0, start.unwrap_or(usize::MAX));
                let kept = ranges.iter().map(|range| range.intersection(kernel).len());
                kept.sum::<usize>()
            };
            let kept: usize = nodes.iter().zip(&found).map(below_start).sum();
            assert!(
                kept <= wanted && kept + nodes.len() > wanted,
                "{nodes:?} {wanted}"
            );
        }
    }
}
