//! What proves the allocator, for its tests, its fuzzing and its simulator.
//!
//! - [`Model`]: which frame is used for what, kept the obvious way: a map of frames. It says which
//!   answers are right.
//! - [`Operation`]: everything that can be asked of an allocator, read from bytes, so that property
//!   tests, fuzzing and a seed all drive it.
//! - [`drive`]: runs operations on an allocator and on the model, and compares every answer and
//!   every counter.
//! - [`Case`]: a configuration, a machine and its sizes, chosen by name or by bytes.
//! - [`ownership`]: threads that claim each frame they get by one compare-and-swap, so that a frame
//!   handed out twice is caught at once.
//! - [`heap`]: the malloc family against a model, every byte looked at.
//! - [`slab`]: all of that for slabs, where every byte of every object is looked at.

#![deny(unsafe_code)]

mod case;
#[cfg(doctest)]
mod documents;
mod drive;
#[allow(unsafe_code, reason = "owners of memory read and write it")]
pub mod heap;
mod model;
mod operation;
pub mod ownership;
mod platform;
#[allow(unsafe_code, reason = "sanitizers are told by functions of C")]
mod sanitizer;
pub mod slab;
mod tally;

pub use case::{Case, Slots};
pub use drive::{Driven, drive};
pub use model::Model;
pub use operation::{Bytes, Operation};
pub use platform::ManyCpus;
