//! [`Layout`]: the position of each cell of a [`Grid`] in a picture, in pixels.

use super::{
    grid::{Grid, SCALE_MAX},
    plan::Plan,
};

/// The aspect ratio that a picture aims at.
const ASPECT: f64 = 4.0 / 3.0;

/// Small memory is drawn with cells of several pixels, up to this width of the picture.
const WIDTH_AIM: u32 = 1120;

/// The largest side of a cell, in pixels.
const CELL_MAX: u32 = 16;

/// The maximal size of a picture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fit {
    /// The maximal width and height of the boxes together, in pixels. In larger memory a pixel is
    /// 2, 4, 8 ... pages.
    pub side_max: u32,
}

impl Default for Fit {
    /// 2400 pixels: up to about 4 million pages have a pixel each.
    fn default() -> Self {
        Self { side_max: 2400 }
    }
}

/// The field of boxes, in pixels from its own left upper corner.
#[derive(Clone, Debug)]
pub(super) struct Layout {
    pub(super) grid: Grid,
    pub(super) columns: u32,
    /// The side of a cell, in pixels.
    pub(super) cell: u32,
    /// Pixels between boxes, and around the field.
    pub(super) gap: u32,
}

impl Layout {
    /// Returns the finest layout that fits.
    pub(super) fn new(plan: &Plan, fit: Fit) -> Self {
        let side = fit.side_max.clamp(64, 16_384);
        let fits = |layout: &Self| {
            let (width, height) = layout.size_exact();
            width <= u64::from(side) && height <= u64::from(side)
        };
        let finest = (0..SCALE_MAX)
            .map(|scale| Self::of(Grid::new(plan, scale), 1))
            .find(fits);
        let finest = finest.unwrap_or_else(|| Self::of(Grid::new(plan, SCALE_MAX), 1));
        let larger = (2..=CELL_MAX)
            .rev()
            .map(|cell| Self::of(finest.grid.clone(), cell));
        let aim = u64::from(WIDTH_AIM.min(side));
        let magnified = larger
            .into_iter()
            .find(|layout| layout.size_exact().0 <= aim && fits(layout));
        magnified.unwrap_or(finest)
    }

    fn of(grid: Grid, cell: u32) -> Self {
        let (width, height) = grid.box_size();
        let gap = if width * cell >= 16 {
            cell.clamp(2, 4)
        } else {
            1
        };
        let pitch = f64::from(height * cell + gap) / f64::from(width * cell + gap);
        let boxes = grid.boxes();
        // The boxes of a row are a power of two, so that a row is a round number of bytes.
        let columns = (boxes as f64 * ASPECT * pitch).sqrt().log2().round().exp2() as u64;
        let columns =
            u32::try_from(columns.clamp(1, boxes.max(1)).min(1 << 16)).expect("at most 2^16");
        Self {
            grid,
            columns,
            cell,
            gap,
        }
    }

    fn rows(&self) -> u64 {
        self.grid.boxes().div_ceil(u64::from(self.columns))
    }

    fn size_exact(&self) -> (u64, u64) {
        let (width, height) = self.pitch();
        let gap = u64::from(self.gap);
        (
            u64::from(self.columns) * u64::from(width) + gap,
            self.rows() * u64::from(height) + gap,
        )
    }

    /// Returns the pixels from one box to the next, across and down.
    pub(super) fn pitch(&self) -> (u32, u32) {
        let (width, height) = self.grid.box_size();
        (width * self.cell + self.gap, height * self.cell + self.gap)
    }

    /// Returns width and height of the field.
    pub(super) fn size(&self) -> (u32, u32) {
        let (width, height) = self.size_exact();
        let pixels = |side| u32::try_from(side).unwrap_or(u32::MAX);
        (pixels(width), pixels(height))
    }

    /// Returns the left upper pixel of box `i`, counted over all zones.
    pub(super) fn box_at(&self, i: u64) -> (u32, u32) {
        let (width, height) = self.pitch();
        let columns = u64::from(self.columns);
        let (row, column) = (i / columns, i % columns);
        let down = u32::try_from(row).expect("rows fit the picture") * height;
        (
            u32::try_from(column).expect("below columns") * width + self.gap,
            down + self.gap,
        )
    }

    /// Returns the number of the first box of each zone.
    pub(super) fn zone_boxes(&self) -> impl Iterator<Item = u64> {
        self.grid.zones.iter().scan(0, |next, zone| {
            let first = *next;
            *next += zone.boxes;
            Some(first)
        })
    }

    /// Returns the left upper pixel of the cell that shows frame `frame`, counted from the start of
    /// zone `zone`.
    pub(super) fn pixel_of(&self, zone: usize, frame: u64) -> Option<(u32, u32)> {
        let span = self
            .grid
            .zones
            .get(zone)
            .filter(|span| frame < span.frames)?;
        let first = self.zone_boxes().nth(zone)?;
        let cell =
            ((span.start + frame) >> self.grid.scale) - (span.start >> self.grid.scale) + span.lead;
        Some(self.cell_at(first, cell))
    }

    /// Returns the left upper pixel of cell number `cell`, counted from the start of box `first`.
    pub(super) fn cell_at(&self, first: u64, cell: u64) -> (u32, u32) {
        let in_box = self.grid.box_order - self.grid.scale;
        let (width, _) = self.grid.box_size();
        let (left, top) = self.box_at(first + (cell >> in_box));
        let within =
            u32::try_from(cell & ((1 << in_box) - 1)).expect("a box has at most 2^20 cells");
        (
            left + within % width * self.cell,
            top + within / width * self.cell,
        )
    }
}
