//! Page-type maps as in 2007: every page of memory as a pixel, coloured by what it is used for.
//!
//! Gorman 2007 ("Group pages of related mobility together") judged the placement of pages by a
//! picture: "Each pixel represents a page of memory, each block represents `MAX_ORDER_NR_PAGES`
//! number of pages. The color of a pixel indicates the mobility type of the page." A sample every
//! two seconds makes a film. This module draws it from the page kinds that its caller gives; it
//! reads neither a host nor a trace.
//!
//! | file | what it holds |
//! |---|---|
//! | `kind.rs` | [`PageKind`]: the kinds of a page; name, letter, colours |
//! | `plan.rs` | [`Plan`]: zones, size of boxes and of huge pages |
//! | `film.rs`, `reel.rs` | [`Film`]: shots over time; their compressed form |
//! | `grid.rs`, `layout.rs` | the pages of each cell; its position in a picture |
//! | `canvas.rs`, `draw.rs` | [`Artist`]: draws shots as pictures |
//! | [`png`] | pictures as files |
//! | [`html`], `player/` | several films as one page with a player |
//!
//! Pages fill a box row by row, and boxes the picture row by row. An outline to the left of and
//! above a box marks the start of a zone. Where memory is too large for one pixel per page, a pixel
//! is 2, 4, 8 ... pages.

mod canvas;
mod draw;
mod film;
mod grid;
pub mod html;
mod kind;
mod layout;
mod plan;
pub mod png;
mod reel;

use std::{io, path::PathBuf};

pub use canvas::Picture;
pub use draw::Artist;
pub use film::{Film, KindCounts, Numbers, Shot};
pub use kind::{Color, PageKind};
pub use layout::Fit;
pub use plan::{Plan, PlanError, ZoneSpan};

/// Why a film or a picture cannot be made or written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PictureError {
    /// The memory to show is invalid.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// More pages than this machine or this format can hold.
    #[error(
        "{frames} pages are too many for this picture: choose a smaller picture, or fewer zones"
    )]
    TooLarge {
        /// The number of pages of the plan.
        frames: u64,
    },
    /// Not one kind for each frame.
    #[error("a shot of this film has {frames} pages, not {given}")]
    Length {
        /// The number of kinds given.
        given: u64,
        /// The number of frames of the plan.
        frames: u64,
    },
    /// Shots out of order.
    #[error(
        "a shot at {time_ns} ns was added after one at {last_ns} ns: add shots in order of time"
    )]
    Backwards {
        /// The last shot's time.
        last_ns: u64,
        /// The time given.
        time_ns: u64,
    },
    /// The film has no such shot.
    #[error("there is no shot {shot}: the film has {shots}, counted from 0")]
    NoSuchShot {
        /// The requested shot.
        shot: usize,
        /// The number of shots.
        shots: usize,
    },
    /// A page without a film.
    #[error("a player needs at least one film")]
    NoFilm,
    /// Writing failed.
    #[error("the picture could not be written")]
    Write(#[source] io::Error),
    /// A file could not be written.
    #[error("{} could not be written", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The system's error.
        #[source]
        error: io::Error,
    },
}
