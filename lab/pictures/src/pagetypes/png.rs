//! Shots as PNG files of sixteen colours.

use std::{
    fs::File,
    io::{BufWriter, Write},
    path::{Path, PathBuf},
};

use super::{
    PictureError,
    canvas::{PALETTE, Picture},
    draw::Artist,
    film::Film,
    layout::Fit,
};

/// Writes shot `shot` of `film`.
///
/// # Errors
///
/// [`PictureError::NoSuchShot`]; [`PictureError::Write`] if writing to `out` fails.
pub fn write(film: &Film, shot: usize, out: &mut impl Write) -> Result<(), PictureError> {
    write_picture(&Artist::new(film, Fit::default()).draw(shot)?, out)
}

/// Writes every shot of `film` into the folder `folder`, creating it if needed: `00000.png`,
/// `00001.png` and so on. Returns the paths.
///
/// # Errors
///
/// [`PictureError::File`] names the file that could not be created; [`PictureError::Write`] if
/// writing to one fails.
pub fn write_all(film: &Film, folder: &Path) -> Result<Vec<PathBuf>, PictureError> {
    let failed = |path: &Path| {
        let path = path.to_owned();
        move |error| PictureError::File { path, error }
    };
    std::fs::create_dir_all(folder).map_err(failed(folder))?;
    let artist = Artist::new(film, Fit::default());
    let mut paths = Vec::new();
    for (i, picture) in artist.draw_all().enumerate() {
        let path = folder.join(format!("{i:05}.png"));
        let mut file = BufWriter::new(File::create(&path).map_err(failed(&path))?);
        write_picture(&picture, &mut file)?;
        file.flush().map_err(failed(&path))?;
        paths.push(path);
    }
    Ok(paths)
}

/// Writes a picture drawn by an [`Artist`].
///
/// # Errors
///
/// [`PictureError::Write`] if writing to `out` fails.
pub fn write_picture(picture: &Picture, out: &mut impl Write) -> Result<(), PictureError> {
    let mut encoder = png::Encoder::new(out, picture.width, picture.height);
    encoder.set_color(png::ColorType::Indexed);
    encoder.set_depth(png::BitDepth::Four);
    encoder.set_palette(PALETTE.concat());
    encoder.set_compression(png::Compression::High);
    encoder.set_filter(png::Filter::NoFilter);
    let rows = picture.pixels.chunks(picture.width as usize);
    let bytes: Vec<u8> = rows
        .flat_map(|row| {
            row.chunks(2)
                .map(|two| two[0] << 4 | two.get(1).unwrap_or(&0))
        })
        .collect();
    let written = encoder.write_header().and_then(|mut writer| {
        writer.write_image_data(&bytes)?;
        writer.finish()
    });
    written.map_err(|error| match error {
        png::EncodingError::IoError(error) => PictureError::Write(error),
        other => PictureError::Write(std::io::Error::other(other)),
    })
}
