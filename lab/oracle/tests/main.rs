//! The oracles and models at work, as one program: what they instantiate is compiled once.

#![allow(clippy::unwrap_used, reason = "a test fails by it")]

mod invariants;
mod model;
mod slab_model;
mod slab_threads;
mod threads;
