//! The boot test on the host: threads as CPUs, faults that are planted and must be found, and the
//! readers that the kernel `metal` boots with.

#![allow(clippy::unwrap_used, reason = "a test fails by it")]

#[allow(dead_code, unreachable_pub, reason = "a file of the kernel")]
#[path = "../../metal/src/device_tree.rs"]
mod device_tree;
#[allow(dead_code, unreachable_pub, reason = "a file of the kernel")]
#[path = "../../metal/src/memory_map.rs"]
mod memory_map;
#[allow(dead_code, unreachable_pub, reason = "a file of the kernel")]
#[path = "../../metal/src/settings.rs"]
mod settings;

mod machine;
mod maps;
mod planted;
mod threads;
mod trees;
