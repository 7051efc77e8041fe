//! The picture of 2007: every page of memory as a pixel, coloured by what it is used for.
//!
//! Gorman 2007 ("Group pages of related mobility together") judged the placement of pages by a
//! picture: "Each pixel represents a page of memory, each block represents `MAX_ORDER_NR_PAGES`
//! number of pages. The color of a pixel indicates the mobility type of the page." A sample every
//! two seconds, put together, is a film. This module draws it from whatever its caller knows of the
//! pages; it reads neither a host nor a trace.
//!
//! | file | what it holds |
//! |---|---|
//! | `kind.rs` | [`PageKind`]: what a page is; name, letter, colours |
//! | `plan.rs` | [`Plan`]: zones, size of boxes and of huge pages |
//! | `film.rs`, `reel.rs` | [`Film`]: shots over time; how they are kept compressed |
//! | `grid.rs`, `layout.rs` | which cell stands for which pages; where it lies in a picture |
//! | `canvas.rs`, `font.rs`, `words.rs`, `draw.rs` | [`Artist`]: draws shots as pictures |
//! | [`png`], [`gif`], [`video`] | pictures as files |
//! | [`html`], `player/` | several films as one page with a player |
//!
//! Pages run in rows through a box, boxes in rows through the picture. An outline to the left of
//! and above a box says that a zone starts there. Where memory is too large for a pixel a page, a
//! pixel stands for 2, 4, 8 ... pages and the picture says so.

mod canvas;
mod draw;
mod film;
mod font;
pub mod gif;
mod grid;
pub mod html;
mod kind;
mod layout;
mod plan;
pub mod png;
mod reel;
pub mod video;
mod words;

use std::{io, path::PathBuf};

pub use canvas::Picture;
pub use draw::Artist;
pub use film::{Film, KindCounts, Numbers, Shot};
pub use kind::{Color, PageKind};
pub use layout::Fit;
pub use plan::{Plan, PlanError, ZoneSpan};

/// Why there is no picture.
#[derive(Debug, thiserror::Error)]
pub enum PictureError {
    /// The memory to show makes no sense.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// More pages than this machine or this format can hold.
    #[error(
        "{frames} pages are too many for this picture: ask for a smaller one, or show fewer zones"
    )]
    TooLarge {
        /// Pages of the plan.
        frames: u64,
    },
    /// Not one kind for each frame.
    #[error("a shot of this film has {frames} pages, not {given}")]
    Length {
        /// Kinds given.
        given: u64,
        /// Frames of the plan.
        frames: u64,
    },
    /// Shots out of order.
    #[error(
        "a shot at {time_ns} ns comes after one at {last_ns} ns: add shots in the order of time"
    )]
    Backwards {
        /// The last shot's time.
        last_ns: u64,
        /// The time given.
        time_ns: u64,
    },
    /// A shot that the film has not.
    #[error("there is no shot {shot}: the film has {shots}, counted from 0")]
    NoSuchShot {
        /// The shot asked for.
        shot: usize,
        /// How many there are.
        shots: usize,
    },
    /// A page of no film.
    #[error("a player needs at least one film")]
    NoFilm,
    /// The writer given refused.
    #[error("the picture could not be written")]
    Write(#[source] io::Error),
    /// A file could not be written.
    #[error("{} could not be written", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// Why not.
        #[source]
        error: io::Error,
    },
    /// `ffmpeg` is not installed.
    #[error(
        "ffmpeg is not in PATH: install it (apt-get install ffmpeg, dnf install ffmpeg), or write a GIF instead"
    )]
    NoFfmpeg,
    /// `ffmpeg` failed.
    #[error("ffmpeg failed: {0}")]
    Ffmpeg(String),
}
