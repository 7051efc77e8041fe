//! The tests of the page allocator, as one program: what they instantiate is compiled once.

#![cfg(not(loom))]
#![allow(clippy::unwrap_used, reason = "a test fails by it")]

mod bitmap;
mod limits;
mod loans;
#[path = "support/meanwhile.rs"]
mod meanwhile;
mod order_0;
mod other_make;
mod overlapping;
mod patience;
mod progress;
mod promises;
mod stash;
mod support;
#[path = "support/threads.rs"]
mod threads;
