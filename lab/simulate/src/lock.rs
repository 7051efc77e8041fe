//! A lock whose kind is chosen when an allocator is built. Elsewhere a kind of lock is a type; here
//! each would have every design compiled once more.

#![allow(unsafe_code, reason = "a lock in the words of another")]

use core::cell::Cell;

use brickyard::sync::{AtomicU32, RawLock, TestAndSetLock, TicketLock};
use brickyard_designs::classics::Contended;

use crate::linux_lock::{LinuxTestAndSet, LinuxTicket};

/// A kind of lock for a machine.
///
/// # Safety
/// It is at most two atomic words of 32 bits, which are zero when it is unlocked.
pub unsafe trait LockOfWords: Contended {}

// SAFETY: two words from zero: the next ticket, and the owner's.
unsafe impl LockOfWords for TicketLock {}
// SAFETY: one word, zero where it is neither held nor waited for.
unsafe impl LockOfWords for TestAndSetLock {}

/// The words of a lock of any kind.
type Words = [AtomicU32; 2];

/// A kind of lock, as a value.
#[derive(Debug, Clone, Copy)]
pub struct LockKind(fn(&Words) -> &dyn Calls);

impl LockKind {
    /// The library's own: first come, first served.
    pub const TICKET: Self = Self::of::<TicketLock>();
    /// The library's own: whoever finds it free takes it.
    pub const TEST_AND_SET: Self = Self::of::<TestAndSetLock>();
    /// Linux's from 2.6.25 to 4.1: first come, first served.
    pub const LINUX_TICKET: Self = Self::of::<LinuxTicket>();
    /// Linux's before: whoever finds it free takes it.
    pub const LINUX_TEST_AND_SET: Self = Self::of::<LinuxTestAndSet>();

    /// Returns the kind of `L`.
    #[must_use]
    pub const fn of<L: LockOfWords>() -> Self {
        const {
            assert!(size_of::<L>() <= size_of::<Words>());
            assert!(align_of::<L>() <= align_of::<Words>());
        }
        // SAFETY: words that are zero at first are an unlocked `L`, by its contract. All changes go
        // through the same kind, as an allocator lives no longer than its kind is chosen.
        Self(|words| unsafe { &*core::ptr::from_ref(words).cast::<L>() })
    }

    /// Runs `work`, in which this is the kind of all [`ChosenLock`]s of this thread of the host.
    ///
    /// # Panics
    /// Within another `work`: the locks of that would change their kind.
    pub(crate) fn during<R>(self, work: impl FnOnce() -> R) -> R {
        struct Chosen;
        impl Drop for Chosen {
            fn drop(&mut self) {
                CHOSEN.set(None);
            }
        }
        let outer = CHOSEN.replace(Some(self));
        assert!(outer.is_none(), "one machine at a time on a thread");
        let _until_the_end = Chosen;
        work()
    }
}

thread_local! {
    // A machine runs on one thread of the host.
    static CHOSEN: Cell<Option<LockKind>> = const { Cell::new(None) };
}

/// The calls of a lock, of any type.
trait Calls {
    fn lock(&self, relax: &mut dyn FnMut());
    fn try_lock(&self) -> bool;
    /// # Safety
    /// The caller holds the lock.
    unsafe fn unlock(&self);
    fn is_locked(&self) -> bool;
    fn is_contended(&self) -> bool;
}

impl<L: Contended> Calls for L {
    fn lock(&self, relax: &mut dyn FnMut()) {
        RawLock::lock(self, relax);
    }

    fn try_lock(&self) -> bool {
        RawLock::try_lock(self)
    }

    unsafe fn unlock(&self) {
        // SAFETY: forwarded.
        unsafe { RawLock::unlock(self) };
    }

    fn is_locked(&self) -> bool {
        RawLock::is_locked(self)
    }

    fn is_contended(&self) -> bool {
        Contended::is_contended(self)
    }
}

/// A lock of the kind that was chosen for the allocator that it is in. Each call panics outside of
/// that allocator's machine.
#[derive(Debug)]
pub struct ChosenLock(Words);

impl ChosenLock {
    fn calls(&self) -> &dyn Calls {
        let kind = CHOSEN
            .get()
            .unwrap_or_else(|| panic!("a lock outside of its machine"));
        kind.0(&self.0)
    }
}

// SAFETY: each call is forwarded to a lock that keeps the contract.
unsafe impl RawLock for ChosenLock {
    const UNLOCKED: Self = Self([const { AtomicU32::new(0) }; 2]);

    fn lock(&self, mut relax: impl FnMut()) {
        self.calls().lock(&mut relax);
    }

    fn try_lock(&self) -> bool {
        self.calls().try_lock()
    }

    unsafe fn unlock(&self) {
        // SAFETY: forwarded.
        unsafe { self.calls().unlock() };
    }

    fn is_locked(&self) -> bool {
        self.calls().is_locked()
    }
}

impl Contended for ChosenLock {
    fn is_contended(&self) -> bool {
        self.calls().is_contended()
    }
}
