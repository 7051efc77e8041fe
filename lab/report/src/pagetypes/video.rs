//! A film as a video, by `ffmpeg`, which gets the frames through a pipe.

use std::{
    ffi::OsString,
    fs,
    io::{self, Read, Write},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
};

use super::{PictureError, draw::Artist, film::Film, layout::Fit};

/// Shots shown per second.
const FRAMES_PER_SECOND: &str = "5";

/// How much of ffmpeg's error output is shown.
const STDERR_BYTES: usize = 2000;

/// Writes all shots of `film` to `path` as MP4, five per second, through `ffmpeg`. An existing file
/// is replaced only when the video is complete.
///
/// # Errors
///
/// [`PictureError::NoFfmpeg`] where it is not installed; [`PictureError::Ffmpeg`] with its error
/// output if it fails; [`PictureError::NoSuchShot`] if the film is empty; [`PictureError::File`] if
/// the video cannot be moved to `path`.
pub fn write_mp4(film: &Film, path: &Path) -> Result<(), PictureError> {
    if film.is_empty() {
        return Err(PictureError::NoSuchShot { shot: 0, shots: 0 });
    }
    let part = beside(path);
    let written = encode(film, &part).and_then(|()| {
        fs::rename(&part, path).map_err(|error| PictureError::File {
            path: path.to_owned(),
            error,
        })
    });
    if written.is_err() {
        // The file may not exist; failing to remove it is no further error.
        let _ = fs::remove_file(&part);
    }
    written
}

/// Returns the video's temporary name, until it is complete.
fn beside(path: &Path) -> PathBuf {
    let mut name = OsString::from(".");
    name.push(path.file_name().unwrap_or_default());
    name.push(format!(".{}.part.mp4", std::process::id()));
    path.with_file_name(name)
}

fn encode(film: &Film, path: &Path) -> Result<(), PictureError> {
    let artist = Artist::new(film, Fit::default());
    let mut child = start(&artist, path)?;
    // ffmpeg logs errors only, which fit the pipe while frames are written.
    let sent = send(&artist, &mut child);
    let mut errors = String::new();
    if let Some(stderr) = child.stderr.take() {
        let limit = u64::try_from(STDERR_BYTES).unwrap_or(u64::MAX);
        // If this cannot be read, the exit status alone is reported.
        let _ = stderr.take(limit).read_to_string(&mut errors);
    }
    let status = child
        .wait()
        .map_err(|error| PictureError::Ffmpeg(error.to_string()))?;
    if !status.success() {
        return Err(PictureError::Ffmpeg(format!("{status}: {}", errors.trim())));
    }
    sent.map_err(|error| PictureError::Ffmpeg(error.to_string()))
}

/// Checks that `ffmpeg` can be started, so that a long run need not fail at its end.
///
/// # Errors
/// [`PictureError::NoFfmpeg`] if it is not installed; [`PictureError::Ffmpeg`] if it fails.
pub fn check() -> Result<(), PictureError> {
    let mut command = Command::new("ffmpeg");
    command.arg("-version");
    command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    let status = command.status().map_err(not_started)?;
    match status.success() {
        true => Ok(()),
        false => Err(PictureError::Ffmpeg(status.to_string())),
    }
}

fn not_started(error: io::Error) -> PictureError {
    match error.kind() {
        io::ErrorKind::NotFound => PictureError::NoFfmpeg,
        _ => PictureError::Ffmpeg(error.to_string()),
    }
}

fn start(artist: &Artist<'_>, path: &Path) -> Result<Child, PictureError> {
    let mut command = Command::new("ffmpeg");
    command.args([
        "-nostdin",
        "-loglevel",
        "error",
        "-y",
        "-f",
        "rawvideo",
        "-pix_fmt",
        "rgb24",
    ]);
    command.args(["-s", &format!("{}x{}", artist.width(), artist.height())]);
    command.args(["-r", FRAMES_PER_SECOND, "-i", "pipe:0"]);
    // Players need even sides and this pixel format. Its chroma has half the resolution: colours of
    // single pixels blur.
    command.args([
        "-vf",
        "pad=ceil(iw/2)*2:ceil(ih/2)*2:color=white",
        "-pix_fmt",
        "yuv420p",
        "-movflags",
        "+faststart",
    ]);
    // ffmpeg cannot parse an absolute path as an option or a protocol.
    let path = std::path::absolute(path).map_err(|error| PictureError::File {
        path: path.to_owned(),
        error,
    })?;
    command.args(["-f", "mp4"]).arg(path);
    command
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped());
    command.spawn().map_err(not_started)
}

fn send(artist: &Artist<'_>, child: &mut Child) -> io::Result<()> {
    let mut stdin = child.stdin.take().expect("ffmpeg was started with a pipe");
    for picture in artist.draw_all() {
        stdin.write_all(&picture.rgb())?;
    }
    Ok(())
}
