//! Rows of words, one a CPU, in the caller's memory; and the words of sheaves, which rows lead to.

use core::ptr::with_exposed_provenance;

use brickyard_sync::AtomicUsize;

use crate::error::BuildError;
use crate::layout::WORD_BYTES;

/// All CPUs' rows, in the caller's memory.
///
/// Invariant `rows-of-one-system`: the words are one value's, made from a borrow that nobody shares
/// and neither copied nor cloned; a system of slabs takes that value. So no word is in two systems,
/// and what one of them puts into a row comes out of no cache of another. Others see rows by
/// reference, and reach their words through raw pointers alone.
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
    /// log2 of the bytes that a row has at least: two lines.
    pub const LEAST_SHIFT: u32 = 7;

    /// As many rows of `1 << row_shift` bytes as `words` have room for, for one system of slabs.
    ///
    /// # Errors
    /// [`BuildError::Rows`], if a row would be less than two lines, or more than there can be.
    pub fn new(words: &'m mut [AtomicUsize], row_shift: u32) -> Result<Self, BuildError> {
        let needed = 1 << Self::LEAST_SHIFT;
        // Half of all addresses is more than any slice has.
        if !(Self::LEAST_SHIFT..usize::BITS - 1).contains(&row_shift) {
            return Err(BuildError::Rows { needed });
        }
        // What is left behind the last whole row would be a row with words that nobody has set.
        let per_row = (1 << row_shift) / WORD_BYTES;
        let whole = words.len() - words.len() % per_row;
        Ok(Self {
            words: &words[..whole],
            row_shift,
        })
    }

    /// The first word of CPU 0.
    #[must_use]
    pub const fn start(&self) -> *const AtomicUsize {
        self.words.as_ptr()
    }

    /// log2 of the bytes of a row.
    #[must_use]
    pub const fn row_shift(&self) -> u32 {
        self.row_shift
    }

    /// How many CPUs have one.
    #[must_use]
    pub const fn rows(&self) -> usize {
        (self.words.len() * WORD_BYTES) >> self.row_shift
    }

    /// Where a word of a CPU's row lies, if it has one: for who writes a [`Local`](crate::Local).
    /// What may be done with it, and when, is said there.
    #[inline(always)]
    #[must_use]
    pub fn place(&self, cpu: usize, column: usize) -> Option<*const AtomicUsize> {
        self.word(cpu, column).map(core::ptr::from_ref)
    }

    /// A word of a CPU's row, if it has one.
    #[inline(always)]
    #[must_use]
    pub(crate) fn word(&self, cpu: usize, column: usize) -> Option<&'m AtomicUsize> {
        let per_row = (1 << self.row_shift) / WORD_BYTES;
        debug_assert!(column < per_row);
        self.words
            .get(cpu.checked_mul(per_row)?.checked_add(column)?)
    }
}

/// The word of a sheaf at an address.
///
/// # Safety
/// It is a word of a sheaf that the caller has.
#[inline(always)]
pub(crate) unsafe fn word_at<'s>(address: usize) -> &'s AtomicUsize {
    // SAFETY: `sheaf-words`, and the caller's promise.
    unsafe { &*with_exposed_provenance::<AtomicUsize>(address) }
}
