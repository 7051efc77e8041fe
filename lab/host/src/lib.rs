//! The state of a running Linux's page allocator: readers of `/proc` and `/sys`, and analyses of
//! what they read.
//!
//! [`Host`] reads the files, of this machine or of a directory with recorded ones. Each text has a
//! module with a parser that accepts any text and never panics. Nothing but [`trial`] changes
//! anything on the host.
//!
//! | module | contents |
//! |---|---|
//! | [`buddyinfo`] | free blocks by zone and order |
//! | [`zoneinfo`] | the frames of zones, watermarks, counters, per-CPU lists |
//! | [`pagetypeinfo`] | free blocks and page blocks by migrate type (root) |
//! | [`flags`], [`fold`] | what every frame is used for, from `/proc/kpageflags` (root) |
//! | [`iomem`] | the address ranges of memory (root) |
//! | [`counters`] | vmstat and meminfo |
//! | [`spans`] | which zone a frame belongs to where zones overlap |
//! | [`movability`], [`unflagged`] | what compaction could do with frames |
//! | [`blocks`] | page blocks: which are mixed, and by what |
//! | [`outlook`] | huge pages now and after compaction; lack of memory or fragmentation |
//! | [`compaction`], [`pinned`] | the kernel's compaction on a copy of what was read; pages that it cannot move |
//! | [`forecast`] | how many blocks the kernel would give, asked now or after help |
//! | [`look`] | all of it at once, as far as this user may read it |
//! | [`trial`] | asks for huge pages, makes states in which they are few, and puts everything back |
//!
//! ```
//! use brickyard_host::Host;
//! # if !std::path::Path::new("/proc/buddyinfo").exists() { return Ok(()); }
//! for zone in Host::here().buddyinfo()? {
//!     println!("{}: {} frames free", zone.zone, zone.counts().free_frames());
//! }
//! # Ok::<(), brickyard_host::HostError>(())
//! ```

// Allowed in one file, where memory is mapped and registered.
#![deny(unsafe_code)]

pub mod blocks;
pub mod buddyinfo;
pub mod compaction;
pub mod counters;
mod error;
pub mod flags;
pub mod fold;
pub mod forecast;
mod host;
pub mod iomem;
mod lines;
pub mod look;
pub mod movability;
pub mod outlook;
pub mod pagetypeinfo;
pub mod pinned;
pub mod spans;
pub mod trial;
pub mod unflagged;
pub mod zoneinfo;

pub use error::{HostError, ParseError};
pub use host::{Host, Unevictable};
