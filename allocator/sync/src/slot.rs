//! CPU slots: how a CPU reaches what is its own, and whether another CPU can reach it too.
//!
//! Per-CPU data is fast because its owner needs no lock. But pages that lie in it are lost to all
//! others unless someone can fetch them. The two answers are a type parameter, because the fast
//! path meets it:
//!
//! - [`Exclusive`]: only the owner enters, with no atomic instruction. Others ask the platform to
//!   run them on that CPU (an interrupt sent to it, as Linux drained its lists in 2013), or cannot.
//! - [`Shared`]: the owner takes a lock that is nearly always free, and anybody else may take it
//!   too (Linux since 5.19).

use core::fmt;
use core::marker::PhantomData;
use core::ops::Deref;

use crate::{AtomicU32, Ordering};

/// How often somebody else is waited for, with a call of `relax` each time, before the caller does
/// without: for whoever is in a slot, or has frames in hand. Longer than anybody who goes on takes;
/// emptying a full stash takes some 100 microseconds.
pub const PATIENCE: u32 = 8192;

/// The way into a CPU's slot.
///
/// Nobody waits in here: each call is one try, and how often it is made again is [`Slot`]'s to say.
///
/// # Safety
/// Between a `try_enter` or `try_visit` that returned true and the `leave` that ends it, nobody
/// else may be let in. An implementation for one CPU's use alone may let its owner in without a
/// look; then what lies in the slot must be sound to share, as [`Slot`] asks of all data that is
/// shared between threads: [`Slot::try_enter`] is safe to call.
pub unsafe trait SlotAccess: Sync + 'static {
    /// A slot that nobody is in.
    #[allow(
        clippy::declare_interior_mutable_const,
        reason = "a pattern to make slots from, never used in place"
    )]
    const EMPTY: Self;

    /// Can a foreign CPU let itself in?
    const LENDS: bool;

    /// The owner goes in; false while a visitor is inside.
    fn try_enter(&self) -> bool;

    /// A foreign CPU goes in; false while someone is inside, and where foreign CPUs are never let
    /// in.
    fn try_visit(&self) -> bool;

    /// Whoever is inside goes out.
    ///
    /// # Safety
    /// The caller is inside.
    unsafe fn leave(&self);
}

/// Nobody but the owner; no atomic instruction.
#[derive(Debug, Clone, Copy, Default)]
pub struct Exclusive;

// SAFETY: `try_visit` never lets anyone in, and two `try_enter`s of one slot cannot overlap by the
// trait's own condition.
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

/// The owner and, when it is out, anybody: a lock of its own per slot, which nobody else waits for
/// as a rule.
///
/// One compare-and-swap to go in, a plain store to go out.
#[derive(Debug)]
pub struct Shared {
    // 1 while somebody is inside.
    inside: AtomicU32,
}

impl Shared {
    #[inline(always)]
    fn go_in(&self) -> bool {
        // Acquire: pairs with the release in `leave` of who was inside before. Relaxed where it
        // fails: then nothing is read.
        self.inside
            .compare_exchange(0, 1, Ordering::Acquire, Ordering::Relaxed)
            .is_ok()
    }
}

// SAFETY: whoever turned the word from 0 to 1 is inside, and only `leave` turns it back.
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
        // Release: pairs with the acquire in `go_in` of who is inside next.
        self.inside.store(0, Ordering::Release);
    }
}

/// What is one CPU's own, on cache lines of its own (128 bytes: two lines, since CPUs fetch them in
/// pairs).
#[derive(Debug)]
#[repr(align(128))]
pub struct Slot<A, T> {
    access: A,
    data: T,
}

impl<A: SlotAccess, T> Slot<A, T> {
    /// A slot with `data` that nobody is in.
    #[must_use]
    pub const fn new(data: T) -> Self {
        Self {
            access: A::EMPTY,
            data,
        }
    }

    /// Lets the owner in: the CPU that the slot belongs to, kept there, with interrupts that use
    /// the slot masked.
    ///
    /// `None` where a visitor is inside and is not out after [`PATIENCE`] looks, each with a call
    /// of `relax`: it stands still, and the owner does without its slot.
    pub fn enter(&self, relax: impl FnMut()) -> Option<Inside<'_, A, T>> {
        self.enter_within(PATIENCE, relax)
    }

    /// As [`Slot::enter`], waiting so often at most.
    pub fn enter_within(&self, waits: u32, relax: impl FnMut()) -> Option<Inside<'_, A, T>> {
        let enter = || self.access.try_enter();
        let inside = enter() || wait(enter, waits, relax);
        inside.then(|| self.inside())
    }

    /// As [`Slot::enter`], at once or not at all.
    #[inline(always)]
    pub fn try_enter(&self) -> Option<Inside<'_, A, T>> {
        self.access.try_enter().then(|| self.inside())
    }

    /// Lets a foreign CPU in, if this kind of slot can be lent, and nobody is inside for longer
    /// than [`PATIENCE`] looks.
    pub fn visit(&self, relax: impl FnMut()) -> Option<Inside<'_, A, T>> {
        self.visit_within(PATIENCE, relax)
    }

    /// As [`Slot::visit`], waiting so often at most.
    pub fn visit_within(&self, waits: u32, relax: impl FnMut()) -> Option<Inside<'_, A, T>> {
        let visit = || self.access.try_visit();
        let inside = A::LENDS && (visit() || wait(visit, waits, relax));
        inside.then(|| self.inside())
    }

    /// The caller has been let in.
    #[inline(always)]
    const fn inside(&self) -> Inside<'_, A, T> {
        Inside {
            of: self,
            stays: PhantomData,
        }
    }

    /// The data from outside: for its atomic words only.
    #[inline]
    #[must_use]
    pub const fn outside(&self) -> &T {
        &self.data
    }
}

/// Tries again until it works, so many times at most.
fn wait(try_again: impl Fn() -> bool, waits: u32, mut relax: impl FnMut()) -> bool {
    (0..waits).any(|_| {
        relax();
        try_again()
    })
}

/// Somebody is inside the slot as long as this lives.
///
/// Invariant `inside-while-alive`: it is made only by a call that let its caller in, and cannot be
/// cloned.
#[must_use = "the slot is left as soon as this is dropped"]
pub struct Inside<'s, A: SlotAccess, T> {
    of: &'s Slot<A, T>,
    // A slot is left on the CPU, or by the visitor, that went in.
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
        // SAFETY: by `inside-while-alive`; it leaves here, once.
        unsafe { self.of.access.leave() }
    }
}

impl<A: SlotAccess, T> fmt::Debug for Inside<'_, A, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Inside")
    }
}
