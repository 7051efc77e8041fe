//! [`Artist`]: draws the shots of a film as pictures of one size: the boxes, and an outline where a
//! zone starts. What the colours mean, and the numbers of a shot, are on the player's page.

use super::{
    PictureError,
    canvas::{INK, Picture},
    film::Film,
    kind::PageKind,
    layout::{Fit, Layout},
};

/// Draws the shots of one film.
#[derive(Clone, Debug)]
pub struct Artist<'a> {
    film: &'a Film,
    layout: Layout,
    /// The parts that are the same in each shot.
    blank: Picture,
}

impl<'a> Artist<'a> {
    /// Lays out the pictures of `film`.
    #[must_use]
    pub fn new(film: &'a Film, fit: Fit) -> Self {
        let layout = Layout::new(film.plan(), fit);
        let (width, height) = layout.size();
        let mut blank = Picture::new(width, height);
        draw_boundaries(&mut blank, &layout);
        Self {
            film,
            layout,
            blank,
        }
    }

    /// The width in pixels, of every shot.
    #[must_use]
    pub fn width(&self) -> u32 {
        self.blank.width()
    }

    /// The height in pixels, of every shot.
    #[must_use]
    pub fn height(&self) -> u32 {
        self.blank.height()
    }

    /// The scale: a cell is 2^scale pages.
    #[must_use]
    pub fn scale(&self) -> u8 {
        self.layout.grid.scale
    }

    /// The side of a cell's square, in pixels.
    #[must_use]
    pub fn cell(&self) -> u32 {
        self.layout.cell
    }

    /// Returns the left upper pixel of the cell with frame `frame` of zone `zone`, both counted
    /// from 0; `None` if there is no such frame.
    #[must_use]
    pub fn pixel_of(&self, zone: usize, frame: u64) -> Option<(u32, u32)> {
        self.layout.pixel_of(zone, frame)
    }

    /// Draws shot `i`.
    ///
    /// # Errors
    ///
    /// [`PictureError::NoSuchShot`].
    pub fn draw(&self, i: usize) -> Result<Picture, PictureError> {
        let shot = self.film.shot(i).ok_or(PictureError::NoSuchShot {
            shot: i,
            shots: self.film.len(),
        })?;
        Ok(self.draw_kinds(&shot.kinds))
    }

    /// Draws all shots, first to last. Cost: less than [`draw`](Self::draw) on each.
    pub fn draw_all(&self) -> impl Iterator<Item = Picture> {
        let shots = self.film.shots();
        shots.map(|shot| self.draw_kinds(&shot.kinds))
    }

    fn draw_kinds(&self, kinds: &[PageKind]) -> Picture {
        let mut picture = self.blank.clone();
        let side = (self.layout.cell, self.layout.cell);
        let mut colors = self.layout.grid.pool(kinds).into_iter();
        for (zone, first) in self.layout.grid.zones.iter().zip(self.layout.zone_boxes()) {
            for i in 0..zone.cells {
                let at = self.layout.cell_at(first, zone.lead + i);
                let color = colors.next().expect("a cell for each place of the grid");
                picture.fill(at, side, color);
            }
        }
        picture
    }
}

/// Draws an outline to the left of and above each box where a zone starts.
fn draw_boundaries(picture: &mut Picture, layout: &Layout) {
    let ((width, height), gap) = (layout.pitch(), layout.gap);
    for first in layout.zone_boxes() {
        let (x, y) = layout.box_at(first);
        let corner = (x - gap, y - gap);
        picture.fill(corner, (width, gap), INK);
        picture.fill(corner, (gap, height), INK);
    }
}
