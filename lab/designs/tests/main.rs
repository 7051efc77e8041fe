//! The tests of the lab's designs, as one program: what they instantiate is compiled once.

#![cfg(not(loom))]
#![allow(clippy::unwrap_used, reason = "a test fails by it")]

#[path = "../../../allocator/slab/tests/support/adversary.rs"]
mod adversary;
mod classics;
mod every_design;
#[path = "../../../allocator/slab/tests/support/lasting.rs"]
mod lasting;
#[path = "../../../allocator/pages/tests/support/meanwhile.rs"]
mod meanwhile;
#[path = "../../../allocator/slab/tests/support/nodes.rs"]
mod nodes;
#[path = "../../../allocator/slab/tests/support/pages.rs"]
mod pages;
#[path = "../../../allocator/slab/tests/support/planted.rs"]
mod planted;
mod slab_slub;
#[path = "../../../allocator/slab/tests/support/slabs.rs"]
mod slabs;
mod slqb;
#[path = "../../../allocator/pages/tests/support/threads.rs"]
mod threads;
