//! Pictures of coloured pixels, as PNG within a page.

use std::io;

use base64::{Engine as _, engine::general_purpose::STANDARD};

/// A picture.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Raster {
    width: u32,
    height: u32,
    /// Row by row from the top, red, green and blue.
    bytes: Vec<u8>,
}

impl Raster {
    /// Makes a picture of this colour.
    #[must_use]
    pub fn new(width: u32, height: u32, color: [u8; 3]) -> Self {
        let pixels = width as usize * height as usize;
        Self {
            width,
            height,
            bytes: color.repeat(pixels),
        }
    }

    /// Returns its width in pixels.
    #[must_use]
    pub fn width(&self) -> u32 {
        self.width
    }

    /// Returns its height in pixels.
    #[must_use]
    pub fn height(&self) -> u32 {
        self.height
    }

    /// Returns the colour at `x` from the left and `y` from the top; `None` outside.
    #[must_use]
    pub fn get(&self, x: u32, y: u32) -> Option<[u8; 3]> {
        let at = self.place(x, y)?;
        self.bytes.get(at..at + 3)?.try_into().ok()
    }

    /// Sets the colour there. Does nothing outside.
    pub fn set(&mut self, x: u32, y: u32, color: [u8; 3]) {
        let place = self.place(x, y);
        if let Some(pixel) = place.and_then(|at| self.bytes.get_mut(at..at + 3)) {
            pixel.copy_from_slice(&color);
        }
    }

    fn place(&self, x: u32, y: u32) -> Option<usize> {
        let inside = x < self.width && y < self.height;
        inside.then(|| (y as usize * self.width as usize + x as usize) * 3)
    }

    /// Returns the picture as PNG.
    ///
    /// # Errors
    /// If it has no pixels.
    pub fn png(&self) -> io::Result<Vec<u8>> {
        let mut out = Vec::new();
        let mut encoder = png::Encoder::new(&mut out, self.width, self.height);
        encoder.set_color(png::ColorType::Rgb);
        encoder.set_depth(png::BitDepth::Eight);
        encoder.set_compression(png::Compression::High);
        let written = encoder.write_header().and_then(|mut writer| {
            writer.write_image_data(&self.bytes)?;
            writer.finish()
        });
        written.map_err(io::Error::other)?;
        Ok(out)
    }

    /// Returns the picture as the address of an image, for a page that fetches nothing.
    ///
    /// # Errors
    /// Those of [`Raster::png`].
    pub fn address(&self) -> io::Result<String> {
        let png = STANDARD.encode(self.png()?);
        Ok(format!("data:image/png;base64,{png}"))
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by it")]
mod tests {
    use super::*;

    #[test]
    fn a_picture_is_read_as_it_was_drawn() {
        let mut raster = Raster::new(3, 2, [1, 2, 3]);
        raster.set(2, 1, [9, 8, 7]);
        raster.set(3, 0, [0; 3]);
        assert_eq!(raster.get(2, 1), Some([9, 8, 7]));
        assert_eq!(
            (raster.get(0, 0), raster.get(0, 2)),
            (Some([1, 2, 3]), None)
        );
        let png = raster.png().unwrap();
        let mut reader = png::Decoder::new(io::Cursor::new(&png))
            .read_info()
            .unwrap();
        let mut bytes = vec![0; 18];
        reader.next_frame(&mut bytes).unwrap();
        assert_eq!(bytes, raster.bytes);
        assert!(
            raster
                .address()
                .unwrap()
                .starts_with("data:image/png;base64,iVBOR")
        );
        assert!(Raster::new(0, 0, [0; 3]).png().is_err());
    }
}
