//! The tests of the page allocator, as one program: what they instantiate is compiled once.

#![cfg(not(loom))]

mod bitmap;
mod limits;
mod loans;
#[path = "support/meanwhile.rs"]
mod meanwhile;
mod order_0;
mod other_make;
mod patience;
mod progress;
mod stash;
mod support;
#[path = "support/threads.rs"]
mod threads;
