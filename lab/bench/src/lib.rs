//! What the lab measures on this machine: loops on real threads and real memory, as rows of
//! results. Nothing here parses arguments or prints: the caller describes a measurement by a
//! struct, and follows it by [`Progress`](brickyard_run::progress::Progress).
//!
//! | file | contents |
//! |---|---|
//! | [`scarce`], [`fragmentation`], [`gigabytes`], [`pft`] | one benchmark each: its parameters, and its results |
//! | [`subject`] | what the measured loops allocate from, as two traits |
//! | `design.rs`, [`yardstick`], [`peer`] | the implementations: our designs, two yardsticks, other people's crates |
//! | [`contestant`] | any of these by its name |
//! | [`best_peer`] | the best peer of each row |
//! | [`conditions`] | what `pagealloc` builds for a contestant, and its turn there |
//! | [`zone2007`] | what `locks` builds for a column |
//! | [`machine`] | the machine that a configuration is built on |
//! | [`masking`] | what a mask of interrupts costs |
//! | [`schedule`] | the workloads |
//! | [`rounds`] | what is done in a turn |
//! | [`slab`] | heaps for small objects, for the experiment of 2008 |
//! | [`bursts`], [`faults`] | the loads of `locks` and `pft` |
//! | [`instructions`] | the instructions of `pagealloc`'s pairs, by valgrind |
//! | [`pages`]; [`aim9`], [`render`] | pages with real bytes; the loops of 2005 on them |
//! | `batch.rs`, `remote.rs`, `fill.rs` | the measured loops |

// Allowed, file by file, only where allocated memory is written (the objects of `slab`, the pages
// of `pft` and of the loops of 2005).
#![deny(unsafe_code)]

pub mod aim9;
pub mod batch;
pub mod best_peer;
pub mod bursts;
pub mod conditions;
pub mod contestant;
mod design;
#[allow(unsafe_code, reason = "it clears pages")]
pub mod faults;
mod fill;
pub mod fragmentation;
pub mod gigabytes;
pub mod instructions;
pub mod machine;
pub mod masking;
#[allow(unsafe_code, reason = "pages have bytes")]
pub mod pages;
pub mod peer;
pub mod pft;
mod remote;
pub mod render;
pub mod rounds;
pub mod scarce;
pub mod schedule;
#[allow(unsafe_code, reason = "it frees objects")]
pub mod slab;
pub mod subject;
pub mod yardstick;
pub mod zone2007;
