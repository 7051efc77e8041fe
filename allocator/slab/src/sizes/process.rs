//! The general sizes of a heap.
//!
//! They end at 128 KiB: a program that reads and writes by 64 KiB asks for them as often as for
//! small ones, and pages taken for each by itself cost it several times as much. Above 32 KiB there
//! are eight steps per doubling, and above 4, 8 and 16 KiB one more, an eighth larger: for what a
//! program keeps in pages of that size with a header of its own before each.

use core::alloc::Layout;

use super::{ExtraSteps, STEP, class_in, classes, sizes};

/// All general sizes, ascending.
pub const SIZES: [u32; 59] = sizes(ExtraSteps {
    eighth_from: 4 << 10,
    eighths_from: SINGLE_ABOVE as u32,
});

/// An object that is larger, and whole pages, has a slab of its own: a survivor among such objects
/// would keep much memory.
pub const SINGLE_ABOVE: usize = 32 << 10;

/// The largest general size.
pub const MAX_GENERAL: usize = 128 << 10;

/// The number of the size that serves a request, as [`super::CLASSES`].
pub static CLASSES: [u8; MAX_GENERAL / STEP + 1] = classes(&SIZES);

/// Returns the number of the smallest size that serves `layout`, as [`super::class_of`].
#[inline]
#[must_use]
pub const fn class_of(layout: Layout) -> Option<usize> {
    class_in(&SIZES, &CLASSES, layout)
}
