//! A row of words for each CPU, or for each thread, and the few instructions that change one.
//!
//! | file | what it holds |
//! |---|---|
//! | `sequence` | the restartable sequences |
//! | `x86_64`, `aarch64` | their instructions |
//! | `rseq` | a row per CPU: [`Rseq`] |
//! | `thread_rows` | a row per thread, where the system has no restartable sequences: [`ThreadRows`] |
//! | `single_thread`, `weak_symbols` | whether a process has one thread; what the C library may not have |
//! | `cpus` | either, chosen once, as the library's [`Local`](brickyard_slab::Local): [`Cpus`] |
//!
//! # One form for both
//!
//! The system tells a thread its CPU by a word of the thread's *area*, which the C library has
//! registered (`__rseq_offset`). A thread without restartable sequences has an area of the same
//! layout. There the word is the thread's own number, and nobody else reads the area. So the
//! sequences are the same instructions for both. The position of the area, relative to the thread
//! pointer, is a value: one load of a static.
//!
//! # Invariants
//!
//! - Invariant `registered-everywhere`: where `__rseq_size` is not 0, the C library has registered
//!   the area of every thread before the thread runs anything else. So the CPU's number there is
//!   always valid. (A thread made by a bare `clone` with shared memory has no area, nor other
//!   thread-local memory, and must not allocate.)
//! - Invariant `one-store`: a sequence changes what others see only by its last instruction. A
//!   thread that is moved, preempted or interrupted by a signal before that has done nothing, and
//!   is told so.
//! - Invariant `row-of-its-own`: a row's words are written only by sequences on the CPU (or by the
//!   thread) that the row belongs to.

#[macro_use]
mod weak_symbols;
#[cfg(target_arch = "aarch64")]
#[macro_use]
mod aarch64;
#[cfg(target_arch = "x86_64")]
#[macro_use]
mod x86_64;

use core::sync::atomic::{AtomicU32, Ordering};

mod cpus;
mod rseq;
mod sequence;
mod single_thread;
mod thread_rows;

pub use crate::errno::keeping_errno;
pub use crate::thread_local::{rows_given_up, set_rows_given_up, thread_words};
pub use cpus::Cpus;
pub use rseq::Rseq;
pub use sequence::{pop, push, replace};
use sequence::{pop_shifted, push_shifted};
pub use single_thread::{alone, is_alone};
pub use thread_rows::ThreadRows;

/// log2 of the bytes from one row to the next, for [`Rseq`] and [`ThreadRows`]: 64 KiB. Only what
/// is used of a row has memory.
///
/// x86-64 then needs no shift: two bytes of the CPU's number, read with the two zero bytes before
/// them, are the row's offset.
pub const ROW_SHIFT: u32 = 16;

/// Returns the number of the calling thread's row, as sequences find it: the CPU that it is on, or
/// the thread's own; 0 for a thread without one. It may be another number by the time it is used.
///
/// # Safety
/// `area` as in [`pop`].
#[inline(always)]
#[must_use]
pub unsafe fn number(area: isize) -> usize {
    let word = crate::thread_local::thread_pointer().wrapping_offset(area + 4);
    // SAFETY: the caller's promise: the word is `cpu_id` of this thread's area, or its own row.
    // Only the system and this thread write it.
    let number = unsafe { AtomicU32::from_ptr(word.cast()) };
    // Relaxed: a thread's own word.
    number.load(Ordering::Relaxed) as usize
}

/// A top is the last of its sheaf if the address behind it has these bits all zero.
const SHEAF_MASK: u32 = 1023;

const _: () = assert!(SHEAF_MASK as usize == brickyard_slab::sheaf::SHEAF_BYTES - 1);

#[cfg(test)]
mod tests;
