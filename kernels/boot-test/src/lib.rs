//! A test of the page allocator inside a kernel, on the machine and the platform that it will run
//! on.
//!
//! The allocator relies on what its [`Platform`](brickyard::Platform) says: that a pinned caller is
//! alone on its CPU, that an interrupt is known to be one. A kernel whose platform is wrong loses
//! memory much later and elsewhere. This crate finds it at boot: it runs random requests and frees
//! on every CPU that calls it, keeps the owner of each frame in a table of its own, and writes to
//! each frame what only its owner can know.
//!
//! - [`boot_test`] is all of it in one call, on one CPU.
//! - [`Test`] is for several CPUs at once: each task makes a [`Worker`] and calls
//!   [`Worker::step`]; interrupts call [`Test::interrupt`] meanwhile; one task calls
//!   [`Test::change_range`]. When all have ended, one CPU calls [`Test::conclude`].
//! - The first [`Finding`] stops all of them.
//!
//! Needs no `std` and no heap: eight bytes for each frame of the zone's span ([`Oracle::bytes`]),
//! 3 KiB of stack for a worker, and the caller's slice for requests in bulk. Nothing here is
//! unsafe: memory is reached through the caller's [`Contents`].
//!
//! The same seed gives a CPU the same operations. With several CPUs the order between them is the
//! machine's; in an emulator that counts instructions the whole run can be repeated.

#![no_std]
#![forbid(unsafe_code)]

#[cfg(test)]
extern crate std;

mod boot;
mod contents;
mod figures;
mod final_check;
mod finding;
mod interrupt;
mod oracle;
mod owner;
mod random;
mod ranges;
mod test;
mod worker;

pub use boot::boot_test;
pub use contents::{Contents, Untouched};
pub use figures::{Figures, Totals};
pub use finding::Finding;
pub use oracle::Oracle;
pub use owner::{By, Owner};
pub use random::Dice;
pub use ranges::RangeChange;
pub use test::{TaskPlan, Test};
pub use worker::Worker;
