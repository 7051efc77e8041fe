//! The models of the page allocator: every interleaving up to a stated bound.
//!
//! `RUSTFLAGS="--cfg loom" cargo test --release -p brickyard --test loom`

#![cfg(loom)]
#![allow(clippy::unwrap_used, reason = "a test fails by it")]

mod loom_aside;
mod loom_bitmap;
mod loom_loans;
mod loom_nodes;
mod loom_order_0;
mod loom_ranges;
mod loom_stash;
mod loom_support;
