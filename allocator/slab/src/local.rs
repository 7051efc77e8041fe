//! How a CPU reaches what is its own: a row of words, each changed by one store.
//!
//! Two of a cache's words are a CPU's own: `main` and `spare` (see [`sheaf`](crate::sheaf)).
//! Everything that the CPU does with them ends in **one store of one word**, so whoever is stopped
//! midway has done nothing yet. That is all that a kernel needs to be safe with a pin (and, where
//! interrupts use the cache, a mask), and all that user space needs to be safe by restartable
//! sequences, where a thread cannot be pinned but is made to begin again.

use core::ops::Deref;
use core::ptr::NonNull;

use brickyard::Platform;
use brickyard_sync::Ordering;

use crate::caller::{Caller, Inside};
use crate::layout::{SHEAF_BYTES, WORD_BYTES};
use crate::rows::{Rows, word_at};
use crate::wrapped::pass_on_platform;

/// What became of a push.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use = "an object that was not taken is lost"]
pub enum Pushed {
    /// The object is in the sheaf.
    Done,
    /// The sheaf is full, or the CPU has no row.
    Full,
    /// The object is the last one of the sheaf already: it has been freed twice. Nothing has
    /// changed.
    Twice,
}

/// Objects that a CPU, or all of them, gave out and took back alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Hits {
    /// Given out.
    pub allocs: u64,
    /// Taken back.
    pub frees: u64,
}

/// How a CPU reaches its own row: every change of it is one store of one word.
///
/// # Safety
/// Each operation happens at one moment, as far as all others of this row can tell, and only while
/// the caller runs on the row's CPU. `pop` and `push` work on the sheaf whose top the word holds,
/// as [`sheaf`](crate::sheaf) lays it out. Words of rows are changed by nothing else, and pointers
/// to them are not kept: rows may go with the slabs that they are of.
pub unsafe trait Local: Platform {
    /// The last object of the sheaf in `column` of this CPU's row; `None` if it has none, or the
    /// CPU has no row.
    ///
    /// # Safety
    /// `column` of these rows holds tops (`top-in-sheaf`), of a cache that is used by callers of
    /// kind `C`. So it is of a cache's `main` in the rows of [`Sheafed`](crate::Sheafed).
    unsafe fn pop<C: Caller>(&self, rows: &Rows<'_>, column: usize) -> Option<NonNull<u8>>;

    /// Puts an object behind the last one of the sheaf in `column` of this CPU's row, unless it is
    /// that one.
    ///
    /// # Safety
    /// As [`Local::pop`]; and the object is the column's cache's, and nobody uses it any more.
    unsafe fn push<C: Caller>(&self, rows: &Rows<'_>, column: usize, object: NonNull<u8>)
    -> Pushed;

    /// The CPU that the caller is on, and what its row holds in `column`; a word of 0 where the CPU
    /// has no row. Out of date at once.
    fn read<C: Caller>(&self, rows: &Rows<'_>, column: usize) -> (usize, usize);

    /// Puts `new` in `column` of the row of `cpu`, if the caller is on that CPU now and the word is
    /// `expected`.
    ///
    /// # Safety
    /// `new` is what the column may hold: the top of a sheaf that is the caller's and is given up
    /// with it, or that of none. What it held is the caller's from then on.
    unsafe fn replace<C: Caller>(
        &self,
        rows: &Rows<'_>,
        cpu: usize,
        column: usize,
        expected: usize,
        new: usize,
    ) -> bool;

    /// What `pop` and `push` did with the sheaves in `column`, on all CPUs together; `None` if that
    /// is not counted ([`Counted`](crate::Counted) does).
    fn hits(&self, _column: usize) -> Option<Hits> {
        None
    }

    /// Counts begin anew for `column`, which is another cache's from now on.
    fn forget_hits(&self, _column: usize) {}
}

/// The way of kernels, and of anything where a caller can be kept on its CPU: pin, mask where the
/// cache says so, and touch the words.
#[derive(Debug, Clone, Copy)]
pub struct Pinned<P>(P);

impl<P> Pinned<P> {
    /// The way by `platform`.
    ///
    /// Of its copies each is as good as the first: what they keep apart is CPUs, and each system of
    /// slabs has rows of its own.
    ///
    /// # Safety
    /// As long as slabs use it or a copy of it:
    /// - Whoever is between [`Platform::pin`] and [`Platform::unpin`] of this platform is the only
    ///   one on the CPU that `pin` told: no other thread is told the same CPU, or enters there, and
    ///   between [`Platform::mask_interrupts`] and [`Platform::restore_interrupts`] no interrupt
    ///   either; [`Platform::in_interrupt`] is true where one may have come between.
    /// - What the platform's methods do uses no slabs: they are called in the middle of it.
    ///   ([`Platform::run_on`] alone is called outside.)
    /// - Nobody unpins or restores what it has not pinned or masked itself. The methods are safe to
    ///   call, and [`Slabs::local`](crate::Slabs::local) shows the platform.
    /// - The CPUs that it tells are below 2^32; `usize::MAX` and the number below it are nobody's.
    ///
    /// So [`OneCpu`](brickyard::OneCpu) is for slabs that one thread uses. Their type can be shared
    /// between threads like any other, so it is on the caller to keep them from other threads.
    #[must_use]
    pub const unsafe fn new(platform: P) -> Self {
        Self(platform)
    }
}

impl<P> Deref for Pinned<P> {
    type Target = P;

    fn deref(&self) -> &P {
        &self.0
    }
}

pass_on_platform!(self.0: impl<P> for Pinned<P>);

/// Pins the caller, masks what is to be masked, and undoes both, whatever panics in between.
#[inline(always)]
fn inside<C: Caller, P: Platform, R>(platform: &P, work: impl FnOnce(usize) -> R) -> R {
    let inside = Inside::new::<C>(platform);
    work(inside.cpu)
}

// SAFETY: between pin and unpin nobody else runs on this CPU but interrupts, and those are masked
// where the cache says that they come here, or refused.
unsafe impl<P: Platform> Local for Pinned<P> {
    #[inline(always)]
    unsafe fn pop<C: Caller>(&self, rows: &Rows<'_>, column: usize) -> Option<NonNull<u8>> {
        inside::<C, P, _>(&self.0, |cpu| {
            let main = rows.word(cpu, column)?;
            // Relaxed, here and below: the row is this CPU's own.
            let top = main.load(Ordering::Relaxed);
            // SAFETY: `top-in-sheaf`: the word is the address of an entry, or of the sentinel
            // before the entries, of a sheaf that is this CPU's.
            let object = unsafe { word_at(top) }.load(Ordering::Relaxed);
            let object = NonNull::new(core::ptr::with_exposed_provenance_mut(object))?;
            main.store(top - WORD_BYTES, Ordering::Relaxed);
            Some(object)
        })
    }

    #[inline(always)]
    unsafe fn push<C: Caller>(
        &self,
        rows: &Rows<'_>,
        column: usize,
        object: NonNull<u8>,
    ) -> Pushed {
        inside::<C, P, _>(&self.0, |cpu| {
            let Some(main) = rows.word(cpu, column) else {
                return Pushed::Full;
            };
            let object = object.as_ptr().expose_provenance();
            let top = main.load(Ordering::Relaxed);
            // The object is in use, or this is a mistake: what is in a sheaf is free
            // (`object-in-one-place`). The sentinel is no object. SAFETY: `top-in-sheaf`.
            if unsafe { word_at(top) }.load(Ordering::Relaxed) == object {
                return Pushed::Twice;
            }
            let next = top + WORD_BYTES;
            if next.is_multiple_of(SHEAF_BYTES) {
                return Pushed::Full;
            }
            // SAFETY: `top-in-sheaf`, and the entry behind the top is still in the sheaf, since a
            // sheaf ends at a multiple of its size.
            unsafe { word_at(next) }.store(object, Ordering::Relaxed);
            main.store(next, Ordering::Relaxed);
            Pushed::Done
        })
    }

    #[inline]
    fn read<C: Caller>(&self, rows: &Rows<'_>, column: usize) -> (usize, usize) {
        inside::<C, P, _>(&self.0, |cpu| {
            let word = rows.word(cpu, column);
            (cpu, word.map_or(0, |word| word.load(Ordering::Relaxed)))
        })
    }

    #[inline]
    unsafe fn replace<C: Caller>(
        &self,
        rows: &Rows<'_>,
        cpu: usize,
        column: usize,
        expected: usize,
        new: usize,
    ) -> bool {
        inside::<C, P, _>(&self.0, |here| match rows.word(here, column) {
            Some(word) if here == cpu && word.load(Ordering::Relaxed) == expected => {
                word.store(new, Ordering::Relaxed);
                true
            }
            _ => false,
        })
    }
}
