//! The loads. What is common to all: a table of live blocks, the sources and numbers of the
//! originals where they are known, and a count of blocks at the end.

pub(crate) mod alloc_test;
#[allow(unsafe_code, reason = "it writes the same bytes many times")]
pub(crate) mod cache;
#[allow(unsafe_code, reason = "its numbers are memory")]
pub(crate) mod cfrac;
pub(crate) mod glibc;
pub(crate) mod large;
pub(crate) mod larson;
pub(crate) mod mleak;
pub(crate) mod mstress;
pub(crate) mod refill;
pub(crate) mod rptest;
pub(crate) mod smartheap;
pub(crate) mod xmalloc;

use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::loads::block::Block;

/// Blocks that wait for another thread.
type Inbox = Mutex<Vec<Block>>;

/// Locks it; no thread goes on after a panic.
fn locked<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns a table without blocks.
fn empty_table(places: usize) -> Vec<Option<Block>> {
    core::iter::repeat_with(|| None).take(places).collect()
}
