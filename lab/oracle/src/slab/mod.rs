//! Test tools for slabs.
//!
//! - A naive model: where each object is, who owns it, and what the owner has written into every
//!   byte of it.
//! - A generator of operations from bytes: caches of every kind, objects one by one and in batches,
//!   general sizes, bad frees, reserves, trims, drains, destroyed caches, pages that run out.
//! - [`SlabCase`]: a design, a level of checking, a machine; [`SlabCase::drive`] runs operations on
//!   slabs and on the model, and compares every result, byte and count. While an operation runs,
//!   interrupts come, other tasks run, and the caller is moved to another CPU, wherever the
//!   platform allows it.
//! - [`ownership`]: threads that fill every object they get, hand objects to each other, and check
//!   every byte before they free.

#[allow(
    unsafe_code,
    reason = "the caller of a free promises that the object is unused"
)]
mod caches;
#[allow(unsafe_code, reason = "it promises how its CPUs behave")]
mod case;
#[allow(unsafe_code, reason = "it writes objects")]
mod constructed;
#[allow(
    unsafe_code,
    reason = "a closure is called by pointer, within its scope"
)]
mod cpus;
mod drive;
mod events;
#[allow(unsafe_code, reason = "a lock promises to exclude")]
mod lock;
mod model;
mod operation;
pub mod ownership;
#[allow(unsafe_code, reason = "a source promises pages with one owner")]
mod pages;
mod whole;

pub use case::{LEVELS, SlabCase, SlabDriven, SlabKind};
