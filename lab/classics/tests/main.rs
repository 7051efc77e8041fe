//! The tests of the documents' designs, as one program: what they instantiate is compiled once.

#![cfg(not(loom))]
#![allow(clippy::unwrap_used, reason = "a test fails by it")]

mod bitmap_and_buddy;
mod bulk_policies;
mod grouping;
mod in_transit;
mod limits;
mod linux;
mod linux_compact;
mod magazines;
#[path = "../../../allocator/pages/tests/support/meanwhile.rs"]
mod meanwhile;
mod mistakes;
mod nodes;
mod order_0;
mod patience;
mod per_cpu_lists;
mod pressure;
mod ranges;
#[path = "support/stopping.rs"]
mod stopping;
mod support;
#[path = "../../../allocator/pages/tests/support/threads.rs"]
mod threads;
