//! [`Picture`]: an image of palette colours, and the drawing operations on it.

use super::kind::{Color, PageKind};

/// The palette index of the background.
pub(super) const GROUND: u8 = 7;
/// The palette index of zone outlines.
pub(super) const INK: u8 = 8;

/// Colours by index: the kinds, background, ink, light tints of the kinds in use (kind + 8).
pub(super) const PALETTE: [Color; 16] = palette();

const fn palette() -> [Color; 16] {
    let mut colors = [[255; 3]; 16];
    let mut i = 0;
    while i < PageKind::COUNT {
        let color = PageKind::ALL[i].color();
        colors[i] = color;
        if i > PageKind::Free as usize {
            colors[i + 8] = tint(color, PageKind::Free.color());
        }
        i += 1;
    }
    colors[INK as usize] = [0x11, 0x14, 0x1a];
    colors
}

/// Mixes two fifths of a colour with three fifths of the colour of free pages.
const fn tint(color: Color, free: Color) -> Color {
    let mut mixed = [0; 3];
    let mut i = 0;
    while i < 3 {
        mixed[i] = ((color[i] as u16 * 2 + free[i] as u16 * 3) / 5) as u8;
        i += 1;
    }
    mixed
}

/// An image: a palette index for each pixel, in rows from the top.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Picture {
    pub(super) width: u32,
    pub(super) height: u32,
    pub(super) pixels: Vec<u8>,
}

impl Picture {
    pub(super) fn new(width: u32, height: u32) -> Self {
        Self {
            width,
            height,
            pixels: vec![GROUND; width as usize * height as usize],
        }
    }

    /// The width in pixels.
    #[must_use]
    pub fn width(&self) -> u32 {
        self.width
    }

    /// The height in pixels.
    #[must_use]
    pub fn height(&self) -> u32 {
        self.height
    }

    /// The colour of a pixel; `None` outside.
    #[must_use]
    pub fn color(&self, x: u32, y: u32) -> Option<Color> {
        let inside = x < self.width && y < self.height;
        let number = inside.then(|| self.pixels[y as usize * self.width as usize + x as usize])?;
        Some(PALETTE[usize::from(number)])
    }

    /// Returns red, green and blue of every pixel, in rows from the top.
    #[must_use]
    pub fn rgb(&self) -> Vec<u8> {
        self.pixels
            .iter()
            .flat_map(|&number| PALETTE[usize::from(number)])
            .collect()
    }

    /// Fills a rectangle, clipped to the image.
    pub(super) fn fill(&mut self, (x, y): (u32, u32), (width, height): (u32, u32), color: u8) {
        let right = x.saturating_add(width).min(self.width) as usize;
        let below = y.saturating_add(height).min(self.height);
        for row in y..below {
            let start = row as usize * self.width as usize;
            if (x as usize) < right {
                self.pixels[start + x as usize..start + right].fill(color);
            }
        }
    }
}
