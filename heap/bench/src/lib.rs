//! Benchmarks of the heap beside other malloc libraries: the command `brickyard-heap`, and a library
//! for programs that add heaps to its comparisons.
//!
//! | module | contents |
//! |---|---|
//! | [`slab`] | heaps for small objects: loops in a process of their own |
//! | [`programs`] | known loads and real programs under preloaded malloc libraries |
//! | [`latency`] | single operations under preloaded malloc libraries |
//! | [`loads`] | the loads, and the small program that runs and measures one |
//! | [`model`] | the malloc family against a model, for tests and fuzzing |
//! | `command` | the options, and how results are printed |
//!
//! [`main`] is the whole command. `peers/` calls it too, with other people's heaps as [`HeapPeer`]s,
//! so that they are in the same table, measured in the same rounds by the same loop.
//!
//! [`HeapPeer`]: slab::turn::HeapPeer

// Allowed, file by file, where memory is allocated and written, and where the C library is called.
#![deny(unsafe_code)]

#[cfg(feature = "command")]
mod command;
#[cfg(doctest)]
mod documents;
pub mod latency;
pub mod loads;
#[allow(unsafe_code, reason = "owners read and write their memory")]
pub mod model;
pub mod programs;
pub mod slab;

#[cfg(feature = "command")]
pub use command::{command, main};
