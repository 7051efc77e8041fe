//! Rows of words, one per CPU, in the caller's memory; and the words of sheaves, which rows point
//! to.

use core::ptr::with_exposed_provenance;

use brickyard_sync::AtomicUsize;

use crate::error::BuildError;
use crate::layout::WORD_BYTES;

/// All CPUs' rows, in the caller's memory.
///
/// Invariant `rows-of-one-system`: the words belong to one value, made from a borrow that nobody
/// shares. The value is neither copied nor cloned, and a system of slabs takes it. So no word is in
/// two systems, and what one system puts into a row comes out of no cache of another. Others see
/// rows by reference, and reach their words only through raw pointers.
///
/// ```
/// # use brickyard_slab::Rows;
/// # use brickyard::sync::AtomicUsize;
/// let words: &mut [AtomicUsize] = &mut [const { AtomicUsize::new(0) }; 64];
/// let rows = Rows::new(words, 8)?;
/// assert_eq!((rows.rows(), rows.row_shift()), (2, 8));
/// # Ok::<(), brickyard_slab::BuildError>(())
/// ```
///
/// Two values over the same words do not compile:
/// ```compile_fail,E0499
/// # use brickyard_slab::Rows;
/// # use brickyard::sync::AtomicUsize;
/// let words: &mut [AtomicUsize] = &mut [const { AtomicUsize::new(0) }; 64];
/// let first = Rows::new(words, 8);
/// let second = Rows::new(words, 8);
/// drop(first);
/// ```
/// nor does a copy of what a system shows:
/// ```compile_fail,E0507
/// # use brickyard_slab::{Local, PageSource, Rows, Sheafed};
/// fn steal<'m, S: PageSource, L: Local>(sheaves: &Sheafed<'m, S, L>) -> Rows<'m> {
///     *sheaves.rows()
/// }
/// ```
/// ```compile_fail,E0277
/// # use brickyard_slab::{Local, PageSource, Rows, Sheafed};
/// fn steal<'m, S: PageSource, L: Local>(sheaves: &Sheafed<'m, S, L>) -> Rows<'m> {
///     Rows::clone(sheaves.rows())
/// }
/// ```
#[derive(Debug)]
pub struct Rows<'m> {
    /// Whole rows.
    words: &'m [AtomicUsize],
    /// log2 of the bytes of a row, [`Rows::LEAST_SHIFT`] at least.
    row_shift: u32,
}

impl<'m> Rows<'m> {
    /// log2 of the bytes that a row has at least: two cache lines.
    pub const LEAST_SHIFT: u32 = 7;

    /// Makes as many rows of `1 << row_shift` bytes as `words` have room for, for one system of
    /// slabs.
    ///
    /// # Errors
    /// [`BuildError::Rows`], if a row would be less than two cache lines, or larger than any slice.
    pub fn new(words: &'m mut [AtomicUsize], row_shift: u32) -> Result<Self, BuildError> {
        let needed = 1 << Self::LEAST_SHIFT;
        // Half of the address space is more than any slice has.
        if !(Self::LEAST_SHIFT..usize::BITS - 1).contains(&row_shift) {
            return Err(BuildError::Rows { needed });
        }
        // The words left behind the last whole row would be a row with words that nobody has set.
        let per_row = (1 << row_shift) / WORD_BYTES;
        let whole = words.len() - words.len() % per_row;
        Ok(Self {
            words: &words[..whole],
            row_shift,
        })
    }

    /// Returns the first word of CPU 0.
    #[must_use]
    pub const fn start(&self) -> *const AtomicUsize {
        self.words.as_ptr()
    }

    /// Returns log2 of the bytes of a row.
    #[must_use]
    pub const fn row_shift(&self) -> u32 {
        self.row_shift
    }

    /// Returns how many CPUs have a row.
    #[must_use]
    pub const fn rows(&self) -> usize {
        (self.words.len() * WORD_BYTES) >> self.row_shift
    }

    /// Returns where a word of a CPU's row lies, if the CPU has a row. For implementers of
    /// [`Local`](crate::Local), which says what may be done with the word, and when.
    #[inline(always)]
    #[must_use]
    pub fn place(&self, cpu: usize, column: usize) -> Option<*const AtomicUsize> {
        self.word(cpu, column).map(core::ptr::from_ref)
    }

    /// Returns a word of a CPU's row, if the CPU has one.
    #[inline(always)]
    #[must_use]
    pub(crate) fn word(&self, cpu: usize, column: usize) -> Option<&'m AtomicUsize> {
        let per_row = (1 << self.row_shift) / WORD_BYTES;
        debug_assert!(column < per_row);
        self.words
            .get(cpu.checked_mul(per_row)?.checked_add(column)?)
    }
}

/// Returns the word of a sheaf at an address.
///
/// # Safety
/// It is a word of a sheaf that the caller holds.
#[inline(always)]
pub(crate) unsafe fn word_at<'s>(address: usize) -> &'s AtomicUsize {
    // SAFETY: `sheaf-words`, and the caller's promise.
    unsafe { &*with_exposed_provenance::<AtomicUsize>(address) }
}
