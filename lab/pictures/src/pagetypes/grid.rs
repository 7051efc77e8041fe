//! [`Grid`]: which frames a cell shows, and in which box it is.
//!
//! A cell is drawn in one colour: it is a page, or in large memory 2^scale pages. A cell of several
//! pages shows the kind that most of its used pages have, in a light tint if fewer of its pages are
//! used than free. With a scale above 0 boxes have at least 4x4 cells; a box is then several blocks
//! of the maximal order if need be.

use serde::Serialize;

use super::{kind::PageKind, plan::Plan};

/// Added to a cell's kind if fewer of its pages are used than free.
pub(super) const MOSTLY_FREE: u8 = 8;

/// The smallest box, as an order of cells.
const BOX_CELLS_ORDER_MIN: u8 = 4;

/// The largest scale: a cell is at most 2^30 pages.
pub(super) const SCALE_MAX: u8 = 30;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Grid {
    /// A cell is 2^scale pages.
    pub(super) scale: u8,
    /// A box is 2^box_order pages.
    pub(super) box_order: u8,
    pub(super) zones: Vec<ZoneGrid>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct ZoneGrid {
    pub(super) start: u64,
    pub(super) frames: u64,
    /// The position of the zone's first cell in its first box.
    pub(super) lead: u64,
    pub(super) cells: u64,
    pub(super) boxes: u64,
}

impl Grid {
    pub(super) fn new(plan: &Plan, scale: u8) -> Self {
        // A maximal block smaller than 4x4 pages is drawn as it is.
        let smallest = if scale == 0 {
            0
        } else {
            scale + BOX_CELLS_ORDER_MIN
        };
        let box_order = plan.box_order.max(smallest);
        let zones = plan.zones.iter().map(|zone| {
            let last = zone.start + zone.frames - 1;
            let first_cell = zone.start >> scale;
            ZoneGrid {
                start: zone.start,
                frames: zone.frames,
                lead: first_cell - (zone.start >> box_order << (box_order - scale)),
                cells: (last >> scale) - first_cell + 1,
                boxes: (last >> box_order) - (zone.start >> box_order) + 1,
            }
        });
        Self {
            scale,
            box_order,
            zones: zones.collect(),
        }
    }

    pub(super) fn cells(&self) -> u64 {
        self.zones.iter().map(|zone| zone.cells).sum()
    }

    pub(super) fn boxes(&self) -> u64 {
        self.zones.iter().map(|zone| zone.boxes).sum()
    }

    /// Returns width and height of a box in cells: a square, or twice as wide as high.
    pub(super) fn box_size(&self) -> (u32, u32) {
        let order = self.box_order - self.scale;
        (1 << order.div_ceil(2), 1 << (order / 2))
    }

    /// Makes the cells of a shot, one zone after another. Cost: one pass.
    pub(super) fn pool(&self, kinds: &[PageKind]) -> Vec<u8> {
        if self.scale == 0 {
            return kinds.iter().map(|&kind| kind as u8).collect();
        }
        let pages = 1_u64 << self.scale;
        let mut cells = Vec::new();
        let mut rest = kinds;
        for zone in &self.zones {
            let end = zone.start + zone.frames;
            let mut at = zone.start;
            while at < end {
                let next = ((at / pages + 1) * pages).min(end);
                let take = usize::try_from(next - at).expect("a cell's pages are in memory");
                let (mine, others) = rest.split_at(take);
                cells.push(cell(mine));
                rest = others;
                at = next;
            }
        }
        cells
    }
}

/// Returns the cell that shows these pages.
fn cell(kinds: &[PageKind]) -> u8 {
    let mut counts = [0_u64; PageKind::COUNT];
    for kind in kinds {
        counts[kind.index()] += 1;
    }
    let free = counts[PageKind::Free.index()];
    let used = kinds.len() as u64 - free - counts[PageKind::Absent.index()];
    if used == 0 {
        return if free == 0 {
            PageKind::Absent as u8
        } else {
            PageKind::Free as u8
        };
    }
    let in_use = &PageKind::ALL[2..];
    let most = in_use
        .iter()
        .rev()
        .max_by_key(|kind| counts[kind.index()])
        .expect("there are kinds in use");
    if used < free {
        *most as u8 | MOSTLY_FREE
    } else {
        *most as u8
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by it")]

    use super::super::plan::ZoneSpan;
    use super::*;

    fn plan(start: u64, frames: u64) -> Plan {
        let zone = ZoneSpan {
            name: "Normal".into(),
            start,
            frames,
        };
        Plan {
            zones: vec![zone],
            box_order: 10,
            huge_order: 9,
            frame_bytes: 4096,
        }
    }

    #[test]
    fn unaligned_zones_lie_within_their_boxes() {
        let grid = Grid::new(&plan(1000, 100), 0);
        assert_eq!(
            (grid.zones[0].lead, grid.zones[0].cells, grid.zones[0].boxes),
            (1000, 100, 2)
        );
        let grid = Grid::new(&plan(1000, 100), 3);
        assert_eq!(
            (grid.zones[0].lead, grid.zones[0].cells, grid.zones[0].boxes),
            (125, 13, 2)
        );
    }

    #[test]
    fn large_memory_gets_larger_boxes() {
        let grid = Grid::new(&plan(0, 1 << 32), 10);
        assert_eq!((grid.scale, grid.box_order), (10, 14));
        assert_eq!(grid.box_size(), (4, 4));
        assert_eq!(Grid::new(&plan(0, 1 << 32), 1).box_size(), (32, 16));
    }

    #[test]
    fn a_cell_shows_the_most_frequent_kind_in_use() {
        use PageKind::{Absent, Free, Movable, Unmovable};
        assert_eq!(cell(&[Absent, Absent]), Absent as u8);
        assert_eq!(cell(&[Absent, Free]), Free as u8);
        assert_eq!(
            cell(&[Free, Free, Free, Unmovable]),
            Unmovable as u8 | MOSTLY_FREE
        );
        assert_eq!(cell(&[Free, Movable, Movable, Unmovable]), Movable as u8);
        assert_eq!(cell(&[Absent, Absent, Absent, Movable]), Movable as u8);
    }

    #[test]
    fn pooled_cells_are_as_many_as_the_grid_says() {
        for (start, frames) in [(0, 4096), (1, 4095), (1000, 100), (7, 1), (15, 2)] {
            for scale in 0..8 {
                let grid = Grid::new(&plan(start, frames), scale);
                let kinds = vec![PageKind::Free; usize::try_from(frames).unwrap()];
                assert_eq!(
                    grid.pool(&kinds).len() as u64,
                    grid.cells(),
                    "{start} {frames} {scale}"
                );
            }
        }
    }
}
