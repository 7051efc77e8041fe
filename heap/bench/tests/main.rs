//! The tests of the benchmarks and their command, as one program.

#![allow(clippy::unwrap_used, reason = "a test fails by it")]

mod documents;
mod heap_model;
mod latency;
mod loads;
mod options;
mod programs;
mod slab;
