//! CPU slots: how a CPU accesses its own data, and whether other CPUs can access it too.
//!
//! Per-CPU data is fast because its owner needs no lock. But pages in it are lost to all other CPUs
//! unless one of them can fetch them. The two answers are a type parameter, because the choice
//! affects the fast path:
//!
//! - [`Exclusive`]: only the owner enters, without an atomic instruction. Other CPUs ask the
//!   platform to run their work on that CPU (by an interrupt sent to it, as Linux drained its lists
//!   in 2013), or cannot reach the slot.
//! - [`Shared`]: the owner takes a lock that is nearly always free, and any other CPU may take it
//!   too (Linux since 5.19).

use core::fmt;
use core::marker::PhantomData;
use core::mem::MaybeUninit;
use core::ops::Deref;

#[cfg(not(loom))]
use crate::place::{is_all_zeros, place_by};
use crate::{AtomicU32, Blank, Ordering};

/// The most waits for another CPU, each a call of `relax`, before the caller goes on without it:
/// for a CPU that is in a slot, or has frames in hand. This is longer than any CPU takes that makes
/// progress: emptying a full stash takes about 100 microseconds.
pub const PATIENCE: u32 = 8192;

/// The way into a CPU's slot.
///
/// No call here waits: each is one try, and [`Slot`] decides how often to retry.
///
/// # Safety
/// Between a `try_enter` or `try_visit` that returned true and the `leave` that ends it, no other
/// caller may be let in. An implementation for only one CPU may let its owner in without a check.
/// Then the data in the slot must be sound to share, as [`Slot`] requires of all data shared
/// between threads: [`Slot::try_enter`] is safe to call.
pub unsafe trait SlotAccess: Sync + 'static {
    /// A slot that nobody is in.
    #[allow(
        clippy::declare_interior_mutable_const,
        reason = "a pattern to make slots from, never used in place"
    )]
    const EMPTY: Self;

    /// Whether a foreign CPU can enter by itself.
    const LENDS: bool;

    /// Lets the owner in. Returns false while a visitor is inside.
    fn try_enter(&self) -> bool;

    /// Lets a foreign CPU in. Returns false while another caller is inside, and if foreign CPUs are
    /// never let in.
    fn try_visit(&self) -> bool;

    /// Leaves the slot.
    ///
    /// # Safety
    /// The caller is inside.
    unsafe fn leave(&self);
}

/// Access for the owner only, without an atomic instruction.
#[derive(Debug, Clone, Copy, Default)]
pub struct Exclusive;

// SAFETY: `try_visit` never lets a caller in, and two `try_enter`s of one slot cannot overlap by
// the trait's own condition.
unsafe impl SlotAccess for Exclusive {
    const EMPTY: Self = Self;
    const LENDS: bool = false;

    #[inline(always)]
    fn try_enter(&self) -> bool {
        true
    }

    #[inline]
    fn try_visit(&self) -> bool {
        false
    }

    #[inline(always)]
    unsafe fn leave(&self) {}
}

/// Access for the owner and, when it is out, for any other CPU. Each slot has a lock of its own,
/// which usually has no waiters.
///
/// Costs one compare-and-swap to enter and a plain store to leave.
#[derive(Debug)]
pub struct Shared {
    // 1 while a caller is inside.
    inside: AtomicU32,
}

impl Shared {
    #[inline(always)]
    fn go_in(&self) -> bool {
        // Acquire: pairs with the release in `leave` by the caller that was inside before. Relaxed
        // on failure: nothing is read then.
        self.inside
            .compare_exchange(0, 1, Ordering::Acquire, Ordering::Relaxed)
            .is_ok()
    }
}

// SAFETY: the caller that turned the word from 0 to 1 is inside, and only `leave` turns it back.
unsafe impl SlotAccess for Shared {
    const EMPTY: Self = Self {
        inside: AtomicU32::new(0),
    };
    const LENDS: bool = true;

    #[inline(always)]
    fn try_enter(&self) -> bool {
        self.go_in()
    }

    #[inline]
    fn try_visit(&self) -> bool {
        self.go_in()
    }

    #[inline]
    unsafe fn leave(&self) {
        // Release: pairs with the acquire in `go_in` by the caller that is inside next.
        self.inside.store(0, Ordering::Release);
    }
}

/// Data of one CPU, on cache lines of its own (128 bytes: two lines, since CPUs fetch them in
/// pairs), against false sharing.
#[derive(Debug)]
#[repr(align(128))]
pub struct Slot<A, T> {
    access: A,
    data: T,
}

impl<A: SlotAccess, T> Slot<A, T> {
    /// Returns an empty slot with `data`.
    #[must_use]
    pub const fn new(data: T) -> Self {
        Self {
            access: A::EMPTY,
            data,
        }
    }

    /// Makes `count` slots at the start of `memory`, each with [`Blank::BLANK`]. They are made in
    /// place: a slot may be larger than a kernel's stack.
    ///
    /// Returns the slots and the memory after them, or `None` if `memory` is too small.
    pub fn place(
        memory: &mut [MaybeUninit<u8>],
        count: usize,
    ) -> Option<(&mut [Self], &mut [MaybeUninit<u8>])>
    where
        T: Blank,
    {
        #[cfg(not(loom))]
        {
            const { assert!(is_all_zeros::<T>(), "`Blank::BLANK` is all zeros") };
            // SAFETY: all of a slot is written: its access, and its data, of which `T::BLANK` is
            // all zeros, so that these zeros are a copy of it.
            unsafe {
                place_by(memory, count, |slot: *mut Self| {
                    (&raw mut (*slot).access).write(A::EMPTY);
                    (&raw mut (*slot).data).write_bytes(0, 1);
                })
            }
        }
        // The words of the model are more than their bytes.
        #[cfg(loom)]
        crate::place(memory, count, || Self::new(T::BLANK))
    }

    /// Lets the owner in. The owner is the CPU that the slot belongs to; the caller stays on it,
    /// with interrupts that use the slot masked.
    ///
    /// Returns `None` if a visitor is inside and has not left after [`PATIENCE`] looks, each with a
    /// call of `relax`. The visitor then stands still, and the owner does without its slot.
    pub fn enter(&self, relax: impl FnMut()) -> Option<Inside<'_, A, T>> {
        self.enter_within(PATIENCE, relax)
    }

    /// Enters the caller's own slot ([`Slot::enter`]), and waits at most `waits` times.
    pub fn enter_within(&self, waits: u32, relax: impl FnMut()) -> Option<Inside<'_, A, T>> {
        let enter = || self.access.try_enter();
        let inside = enter() || wait(enter, waits, relax);
        inside.then(|| self.inside())
    }

    /// Enters the caller's own slot ([`Slot::enter`]) at once or not at all.
    #[inline(always)]
    pub fn try_enter(&self) -> Option<Inside<'_, A, T>> {
        self.access.try_enter().then(|| self.inside())
    }

    /// Lets a foreign CPU in, if this kind of slot can be lent. Returns `None` if it cannot, or if
    /// another caller is inside for longer than [`PATIENCE`] looks.
    pub fn visit(&self, relax: impl FnMut()) -> Option<Inside<'_, A, T>> {
        self.visit_within(PATIENCE, relax)
    }

    /// Enters another CPU's slot ([`Slot::visit`]), and waits at most `waits` times.
    pub fn visit_within(&self, waits: u32, relax: impl FnMut()) -> Option<Inside<'_, A, T>> {
        let visit = || self.access.try_visit();
        let inside = A::LENDS && (visit() || wait(visit, waits, relax));
        inside.then(|| self.inside())
    }

    /// Returns the guard of a caller that has been let in.
    #[inline(always)]
    const fn inside(&self) -> Inside<'_, A, T> {
        Inside {
            of: self,
            stays: PhantomData,
        }
    }

    /// Returns the data without entering: for its atomic words only.
    #[inline]
    #[must_use]
    pub const fn outside(&self) -> &T {
        &self.data
    }
}

/// Retries until `try_again` succeeds, at most `waits` times.
fn wait(try_again: impl Fn() -> bool, waits: u32, mut relax: impl FnMut()) -> bool {
    (0..waits).any(|_| {
        relax();
        try_again()
    })
}

/// The caller is inside the slot as long as this value lives.
///
/// Invariant `inside-while-alive`: it is made only by a call that let its caller in, and cannot be
/// cloned.
#[must_use = "the slot is left as soon as this is dropped"]
pub struct Inside<'s, A: SlotAccess, T> {
    of: &'s Slot<A, T>,
    // A slot must be left on the CPU, or by the visitor, that entered it.
    stays: PhantomData<*const ()>,
}

impl<A: SlotAccess, T> Deref for Inside<'_, A, T> {
    type Target = T;

    #[inline(always)]
    fn deref(&self) -> &T {
        &self.of.data
    }
}

impl<A: SlotAccess, T> Drop for Inside<'_, A, T> {
    #[inline(always)]
    fn drop(&mut self) {
        // SAFETY: by `inside-while-alive`; the caller leaves here, once.
        unsafe { self.of.access.leave() }
    }
}

impl<A: SlotAccess, T> fmt::Debug for Inside<'_, A, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Inside")
    }
}
