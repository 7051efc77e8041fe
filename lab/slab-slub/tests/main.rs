//! The tests of SLAB and SLUB, as one program: what they instantiate is compiled once.

#![allow(clippy::unwrap_used, reason = "a test fails by it")]

#[path = "../../../allocator/slab/tests/support/adversary.rs"]
mod adversary;
mod every_design;
#[path = "../../../allocator/slab/tests/support/lasting.rs"]
mod lasting;
#[path = "../../../allocator/slab/tests/support/nodes.rs"]
mod nodes;
#[path = "../../../allocator/slab/tests/support/pages.rs"]
mod pages;
#[path = "../../../allocator/slab/tests/support/planted.rs"]
mod planted;
mod rules;
mod shared_and_reaped;
#[path = "../../../allocator/slab/tests/support/slabs.rs"]
mod slabs;
