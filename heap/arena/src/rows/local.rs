//! Both kinds of rows as the library's [`Local`]: wherever the rows lie, and however far apart.
//!
//! What a heap composes for itself is a little shorter, since it knows its rows.

use core::ptr::NonNull;
use core::sync::atomic::Ordering;

use brickyard::Platform;
use brickyard_slab::{Caller, Local, Pushed, Rows};

use super::{Rseq, ThreadRows, pop_shifted, push_shifted, replace};

impl Rseq {
    /// Has every CPU a row?
    #[inline(always)]
    const fn reaches(&self, rows: &Rows<'_>) -> bool {
        rows.rows() >= self.cpus()
    }
}

impl ThreadRows {
    /// Has every number a row?
    #[inline(always)]
    const fn reaches(&self, rows: &Rows<'_>) -> bool {
        rows.rows() >= Self::ROWS
    }
}

macro_rules! local {
    ($type:ty) => {
        // SAFETY: `one-store` and `row-of-its-own` are the trait's conditions. `reaches` keeps sequences from rows that are not there.
        unsafe impl Local for $type {
            #[inline(always)]
            unsafe fn pop<C: Caller>(&self, rows: &Rows<'_>, column: usize) -> Option<NonNull<u8>> {
                if !self.reaches(rows) {
                    return None;
                }
                let place = (rows.start(), rows.row_shift());
                // SAFETY: there is a row for every number, and `top-in-sheaf`, the library's own invariant, says what its words are.
                NonNull::new(unsafe { pop_shifted(self.area(), place, column) })
            }

            #[inline(always)]
            unsafe fn push<C: Caller>(
                &self,
                rows: &Rows<'_>,
                column: usize,
                object: NonNull<u8>,
            ) -> Pushed {
                if !self.reaches(rows) {
                    return Pushed::Full;
                }
                let place = (rows.start(), rows.row_shift());
                let _ = object.as_ptr().expose_provenance();
                // SAFETY: as in `pop`.
                unsafe { push_shifted(self.area(), place, column, object.as_ptr()) }
            }

            fn read<C: Caller>(&self, rows: &Rows<'_>, column: usize) -> (usize, usize) {
                let cpu = self.cpu();
                // Relaxed: it may be another CPU's by now, and is compared again before it is changed.
                // SAFETY: a word of the rows, which are there as long as this view of them.
                let word = rows.place(cpu, column).map(|word| unsafe { &*word });
                (cpu, word.map_or(0, |word| word.load(Ordering::Relaxed)))
            }

            unsafe fn replace<C: Caller>(
                &self,
                rows: &Rows<'_>,
                cpu: usize,
                column: usize,
                expected: usize,
                new: usize,
            ) -> bool {
                let Some(word) = rows.place(cpu, column) else {
                    return false;
                };
                // SAFETY: the word is one of the row of `cpu`, and is there as long as this view of the rows.
                unsafe { replace(self.area(), cpu as u32, &*word, expected, new) }
            }
        }
    };
}

// A thread can be moved at any moment.
local!(Rseq);
// A thread never leaves its own row.
local!(ThreadRows);
