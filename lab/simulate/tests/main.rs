//! The tests of the simulations, as one program: what they instantiate is compiled once.

#![allow(clippy::unwrap_used, reason = "a test fails by it")]

mod drains;
mod explored;
mod kernbench;
mod linux_lock;
mod locks;
mod pft;
mod planted;
mod slabs;
mod storm;
mod words;
