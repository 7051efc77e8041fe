//! The C interface: `brickyard.h`.
//!
//! A *machine* is all memory of an embedder: its zones by node, its platform and its hooks,
//! described at run time. It lies in memory of the embedder, whose size
//! [`machine::by_machine_bytes`] tells. Frames go in and out as numbers. *Slabs* are caches of
//! objects smaller than pages, over a machine.
//!
//! Every function that can fail returns a `ptrdiff_t`: a result that is not negative, or one of the
//! codes of [`error`], for which [`error::by_error_text`] has a text.
//!
//! | file | what it holds |
//! |---|---|
//! | `error` | the codes, and their texts |
//! | `platform` | what the embedder says of its CPUs: a table of functions, or functions by name |
//! | `hooks` | reclaim and migration: what the embedder can do when memory is short |
//! | `kind` | the kinds of zones |
//! | `plan` | zones as C describes them |
//! | `flags` | a request as one word |
//! | `machine` | building a machine |
//! | `memory` | requests and frees |
//! | `ranges` | memory that comes and goes |
//! | `stats` | counts, texts of Linux's files, the check of all invariants |
//! | `slabs` | caches of objects, and memory by size |
//! | `text` | text into a buffer, as `snprintf` does |
//! | `panic` | what happens at a bug, where there is no std |

#![no_std]
#![allow(
    non_camel_case_types,
    clippy::module_name_repetitions,
    reason = "the names are C's"
)]

#[cfg(not(feature = "freestanding"))]
extern crate std;

pub mod error;
pub mod flags;
pub mod hooks;
pub mod kind;
pub mod machine;
pub mod memory;
#[cfg(feature = "freestanding")]
mod panic;
pub mod plan;
pub mod platform;
pub mod ranges;
pub mod slabs;
pub mod stats;
mod text;
