//! The tests of slabs, as one program: what they instantiate is compiled once.

#![cfg(not(loom))]
#![allow(clippy::unwrap_used, reason = "a test fails by it")]

#[path = "support/adversary.rs"]
mod adversary;
#[path = "support/lasting.rs"]
mod lasting;
#[path = "support/machine.rs"]
mod machine;
#[path = "support/nodes.rs"]
mod nodes;
#[path = "support/pages.rs"]
mod pages;
#[path = "support/planted.rs"]
mod planted;
mod slab;
mod slab_caches;
mod slab_debug;
mod slab_homes;
mod slab_machine;
mod slab_nodes;
mod slab_sound;
mod slab_zone;
#[path = "support/slabs.rs"]
mod slabs;
