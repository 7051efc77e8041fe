//! A film as an animated GIF. Each frame holds only the rectangle that changed, and in it only the
//! changed pixels.

use std::io::Write;

use super::{
    PictureError,
    canvas::{PALETTE, Picture, UNCHANGED},
    draw::Artist,
    film::Film,
    layout::Fit,
};

/// The duration of the last frame before the film repeats, in hundredths of a second.
const LAST_DELAY_CS: u16 = 300;

/// Size and speed of a GIF.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GifOptions {
    /// The maximal size of the pictures.
    pub fit: Fit,
    /// Shots shown per second, 1 to 50.
    pub frames_per_second: u16,
}

impl Default for GifOptions {
    /// Boxes of at most 1200 pixels a side, five shots per second.
    fn default() -> Self {
        Self {
            fit: Fit { side_max: 1200 },
            frames_per_second: 5,
        }
    }
}

/// Writes all shots of `film` as an animation that repeats.
///
/// # Errors
///
/// [`PictureError::NoSuchShot`] if the film is empty; [`PictureError::TooLarge`] if a picture's
/// side exceeds 65,535 pixels; [`PictureError::Write`] if writing to `out` fails.
pub fn write(film: &Film, options: GifOptions, out: &mut impl Write) -> Result<(), PictureError> {
    let artist = Artist::new(film, options.fit);
    let side = |pixels: u32| {
        u16::try_from(pixels).map_err(|_| PictureError::TooLarge {
            frames: film.plan().frames(),
        })
    };
    let (width, height) = (side(artist.width())?, side(artist.height())?);
    if film.is_empty() {
        return Err(PictureError::NoSuchShot { shot: 0, shots: 0 });
    }
    let mut encoder = gif::Encoder::new(out, width, height, &PALETTE.concat()).map_err(failed)?;
    encoder.set_repeat(gif::Repeat::Infinite).map_err(failed)?;
    let delay = 100 / options.frames_per_second.clamp(1, 50);
    let mut shown: Option<Picture> = None;
    for (i, picture) in artist.draw_all().enumerate() {
        let mut frame = change(shown.as_ref(), &picture);
        frame.delay = if i + 1 == film.len() {
            LAST_DELAY_CS.max(delay)
        } else {
            delay
        };
        encoder.write_frame(&frame).map_err(failed)?;
        shown = Some(picture);
    }
    Ok(())
}

/// Makes the frame that turns `before` into `now`.
fn change(before: Option<&Picture>, now: &Picture) -> gif::Frame<'static> {
    let width = now.width as usize;
    let side = |pixels: usize| u16::try_from(pixels).expect("the picture's sides were checked");
    let Some(before) = before else {
        let height = side(now.pixels.len() / width);
        return gif::Frame {
            width: side(width),
            height,
            buffer: now.pixels.clone().into(),
            ..gif::Frame::default()
        };
    };
    let differs = |&i: &usize| before.pixels[i] != now.pixels[i];
    let all = 0..now.pixels.len();
    let top = all.clone().find(differs).unwrap_or(0) / width;
    let bottom = all.clone().rev().find(differs).unwrap_or(0) / width;
    let left = all
        .clone()
        .filter(differs)
        .map(|i| i % width)
        .min()
        .unwrap_or(0);
    let right = all.filter(differs).map(|i| i % width).max().unwrap_or(0);
    let inside = (top..=bottom).flat_map(|y| (left..=right).map(move |x| y * width + x));
    let buffer: Vec<u8> = inside
        .map(|i| {
            if differs(&i) {
                now.pixels[i]
            } else {
                UNCHANGED
            }
        })
        .collect();
    gif::Frame {
        left: side(left),
        top: side(top),
        width: side(right - left + 1),
        height: side(bottom - top + 1),
        transparent: Some(UNCHANGED),
        dispose: gif::DisposalMethod::Keep,
        buffer: buffer.into(),
        ..gif::Frame::default()
    }
}

fn failed(error: gif::EncodingError) -> PictureError {
    match error {
        gif::EncodingError::Io(error) => PictureError::Write(error),
        other => PictureError::Write(std::io::Error::other(other)),
    }
}
