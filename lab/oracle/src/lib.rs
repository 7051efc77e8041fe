//! Test tools for the allocator: for its tests, its fuzzing and its simulator.
//!
//! - [`Model`]: which frame is used for what, in the simplest form: a map of frames. It decides
//!   which results are right.
//! - [`Operation`]: every call of an allocator, read from bytes, so that property tests, fuzzing
//!   and a seed can all generate them.
//! - [`drive()`]: runs operations on an allocator and on the model, and compares every result and
//!   every counter.
//! - [`Case`]: a configuration, a machine and its sizes, chosen by name or by bytes.
//! - [`slab`]: all of that for slabs, with every byte of every object checked.

#![deny(unsafe_code)]

mod case;
#[cfg(doctest)]
mod documents;
mod drive;
mod model;
mod operation;
mod platform;
#[allow(unsafe_code, reason = "sanitizers have C functions")]
mod sanitizer;
pub mod slab;
mod tally;

pub use case::{Case, Slots};
pub use drive::{Driven, drive};
pub use model::Model;
pub use operation::{Bytes, Operation};
pub use platform::ManyCpus;
