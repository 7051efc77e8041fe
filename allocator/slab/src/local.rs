//! How a CPU reaches its own words: a row of words, each changed by one store.
//!
//! Two of a cache's words belong to a CPU: `main` and `spare` (see [`sheaf`](crate::sheaf)).
//! Everything that the CPU does with them ends in **one store of one word**. So a caller that is
//! stopped midway has done nothing yet. In a kernel a pin is enough to make that safe, and a mask
//! where interrupts use the cache. In user space a thread cannot be pinned, but restartable
//! sequences make it begin again, and that is enough too.

use core::ops::Deref;
use core::ptr::NonNull;

use brickyard::Platform;
use brickyard_sync::Ordering;

use crate::caller::{Caller, Inside};
use crate::layout::{SHEAF_BYTES, WORD_BYTES};
use crate::rows::{Rows, word_at};

/// The outcome of a push.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use = "an object that was not taken is lost"]
pub enum Pushed {
    /// The object is in the sheaf.
    Done,
    /// The sheaf is full, or the CPU has no row.
    Full,
    /// The object is the last one of the sheaf already: a double free. Nothing has changed.
    Twice,
}

/// Objects that a CPU, or all of them together, gave out and took back without a lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Hits {
    /// Given out.
    pub allocs: u64,
    /// Taken back.
    pub frees: u64,
}

/// The way in which a CPU reaches its own row: every change of it is one store of one word.
///
/// # Safety
/// Each operation is atomic as far as all other users of this row can tell, and happens only while
/// the caller runs on the row's CPU. `pop` and `push` work on the sheaf whose top the word holds,
/// as [`sheaf`](crate::sheaf) lays it out. Nothing else changes the words of rows. Pointers to them
/// are not kept: rows may go with the slabs that they belong to.
pub unsafe trait Local: Platform {
    /// Takes the last object of the sheaf in `column` of this CPU's row. `None` if it has none, or
    /// if the CPU has no row.
    ///
    /// # Safety
    /// `column` of these rows holds tops (`top-in-sheaf`) of a cache whose callers are of kind `C`.
    /// So it is the column of a cache's `main` in the rows of [`Sheafed`](crate::Sheafed).
    unsafe fn pop<C: Caller>(&self, rows: &Rows<'_>, column: usize) -> Option<NonNull<u8>>;

    /// Puts an object behind the last one of the sheaf in `column` of this CPU's row, unless it is
    /// that one.
    ///
    /// # Safety
    /// The conditions of [`Local::pop`]. The object belongs to the column's cache, and nobody uses
    /// it any more.
    unsafe fn push<C: Caller>(&self, rows: &Rows<'_>, column: usize, object: NonNull<u8>)
    -> Pushed;

    /// Returns the CPU that the caller is on, and what its row holds in `column`; a word of 0 if
    /// the CPU has no row. Out of date at once.
    fn read<C: Caller>(&self, rows: &Rows<'_>, column: usize) -> (usize, usize);

    /// Puts `new` in `column` of the row of `cpu`, if the caller is on that CPU now and the word is
    /// `expected`. Returns true if it did.
    ///
    /// # Safety
    /// `new` is what the column may hold: the top of a sheaf that the caller holds and gives up
    /// with it, or the value for no sheaf. The caller owns what the column held from then on.
    unsafe fn replace<C: Caller>(
        &self,
        rows: &Rows<'_>,
        cpu: usize,
        column: usize,
        expected: usize,
        new: usize,
    ) -> bool;

    /// Returns true if one thread uses the rows of all CPUs: then it does not matter which CPU an
    /// object is used on, and [homes](crate::Homes) are left out of account. By default, false.
    fn is_alone(&self) -> bool {
        false
    }

    /// Returns how often `pop` and `push` succeeded on the sheaves in `column`, on all CPUs
    /// together. `None` if that is not counted ([`Counted`](crate::Counted) does).
    fn hits(&self, _column: usize) -> Option<Hits> {
        None
    }

    /// Restarts the counts for `column`, which belongs to another cache from now on.
    fn forget_hits(&self, _column: usize) {}
}

/// The [`Local`] of kernels, and of any system that can keep a caller on its CPU: pin, mask where
/// the cache says so, and touch the words.
#[derive(Debug, Clone, Copy)]
pub struct Pinned<P>(P);

impl<P> Pinned<P> {
    /// Makes one from `platform`.
    ///
    /// A copy is as good as the original: what they keep apart is CPUs, and each system of slabs
    /// has rows of its own.
    ///
    /// # Safety
    /// While slabs use it or a copy of it:
    /// - A caller between [`Platform::pin`] and [`Platform::unpin`] of this platform is the only
    ///   one on the CPU that `pin` told. No other thread is told the same CPU or enters there.
    ///   Between [`Platform::mask_interrupts`] and [`Platform::restore_interrupts`] no interrupt
    ///   enters either: one that cannot be masked uses no cache for
    ///   [`Everywhere`](crate::Everywhere), nor what works on all caches.
    ///   [`Platform::in_interrupt`] is true where an interrupt may have come between, of either
    ///   kind.
    /// - The platform's methods use no slabs: they are called in the middle of slab operations.
    ///   (Only [`Platform::run_on`] is called outside.)
    /// - Nobody unpins or restores what they have not pinned or masked themselves. The methods are
    ///   safe to call, and [`Slabs::local`](crate::Slabs::local) shows the platform.
    /// - The CPUs that it tells are below 2^32. `usize::MAX` and the number below it belong to no
    ///   CPU.
    ///
    /// So [`OneCpu`](brickyard::OneCpu) is for slabs that one thread uses. Their type can be shared
    /// between threads like any other, so the caller has to keep them from other threads.
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

brickyard::pass_on_platform!(self => self.0, impl<P> for Pinned<P>);

/// Pins the caller, masks what is to be masked, and undoes both, even if `work` panics.
#[inline(always)]
fn inside<C: Caller, P: Platform, R>(platform: &P, work: impl FnOnce(usize) -> R) -> R {
    let inside = Inside::new::<C>(platform);
    work(inside.cpu)
}

// SAFETY: between pin and unpin nothing else runs on this CPU except interrupts. Those are masked
// where the cache admits them, and refused elsewhere.
unsafe impl<P: Platform> Local for Pinned<P> {
    #[inline(always)]
    unsafe fn pop<C: Caller>(&self, rows: &Rows<'_>, column: usize) -> Option<NonNull<u8>> {
        inside::<C, P, _>(&self.0, |cpu| {
            let main = rows.word(cpu, column)?;
            // Relaxed, here and below: the row is this CPU's own.
            let top = main.load(Ordering::Relaxed);
            // SAFETY: `top-in-sheaf`: the word is the address of an entry, or of the sentinel
            // before the entries, of a sheaf that belongs to this CPU.
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
            // An object that is being freed is in use, and so in no sheaf (`object-in-one-place`).
            // If it is the top entry, this is a double free. The sentinel is no object.
            // SAFETY: `top-in-sheaf`.
            if unsafe { word_at(top) }.load(Ordering::Relaxed) == object {
                return Pushed::Twice;
            }
            let next = top + WORD_BYTES;
            if next.is_multiple_of(SHEAF_BYTES) {
                return Pushed::Full;
            }
            // SAFETY: `top-in-sheaf`. The entry behind the top is still in the sheaf, since a sheaf
            // ends at a multiple of its size.
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
