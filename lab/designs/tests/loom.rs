//! The models of the lab's designs: every interleaving up to a stated bound.
//!
//! `RUSTFLAGS="--cfg loom" cargo test --release -p brickyard-designs --test loom -- --nocapture`
//! prints the number of schedules of each model.

#![cfg(loom)]
#![allow(clippy::unwrap_used, reason = "a test fails by it")]

mod loom_classics;
mod loom_slqb;
