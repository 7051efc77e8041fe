//! The spin locks of Linux on x86 in the years of the documents, access by access.
//!
//! The library's own kinds are no twins of them: its ticket lock has two words, so that a look at
//! who waits reads both, and its test-and-set lock counts waiters by two more atomic instructions.
//! Here each call makes the accesses that Linux's instructions made: a plain `inc` or `mov` that
//! unlocks is one store, and both halves of a ticket lock are read at once.

#![allow(unsafe_code, reason = "implements the contract of a lock")]

use core::sync::atomic::{self, Ordering};

use brickyard::sync::RawLock;
use brickyard_designs::classics::Contended;
use brickyard_machine::seam::{self, AccessKind, Exchanged};

use crate::lock::LockOfWords;

/// A word of a lock, in one access a call.
#[derive(Debug)]
struct Word(atomic::AtomicU32);

impl Word {
    const fn zero() -> Self {
        Self(atomic::AtomicU32::new(0))
    }

    /// One load.
    fn load(&self, order: Ordering) -> u32 {
        seam::begin(self.at(), AccessKind::Load);
        let value = self.0.load(Ordering::Relaxed);
        seam::loaded(self.at(), order);
        value
    }

    /// One locked instruction that returns what it found, and may write nothing.
    fn exchange(&self, order: Ordering, change: impl FnOnce(u32) -> Option<u32>) -> u32 {
        seam::begin(self.at(), AccessKind::Exchange);
        let value = self.0.load(Ordering::Relaxed);
        match change(value) {
            Some(new) => {
                self.0.store(new, Ordering::Relaxed);
                seam::exchanged(self.at(), order, Exchanged::Done);
            }
            None => seam::exchanged(self.at(), Ordering::Relaxed, Exchanged::Refused),
        }
        value
    }

    /// One instruction without a lock prefix that changes what only the holder changes.
    fn change(&self, order: Ordering, change: impl FnOnce(u32) -> u32) {
        seam::begin(self.at(), AccessKind::Store);
        // Nothing comes between here: one thread of the host runs all CPUs.
        let value = self.0.load(Ordering::Relaxed);
        self.0.store(change(value), Ordering::Relaxed);
        seam::stored(self.at(), order);
    }

    fn at(&self) -> usize {
        self.0.as_ptr().addr()
    }
}

/// The lock of Linux before 2.6.25: whoever finds it free takes it, and nobody knows who waits.
#[derive(Debug)]
pub struct LinuxTestAndSet(Word);

// SAFETY: zero where it is not held.
unsafe impl LockOfWords for LinuxTestAndSet {}

// SAFETY: a caller holds it only after its own exchange found zero; only `unlock` writes zero.
unsafe impl RawLock for LinuxTestAndSet {
    const UNLOCKED: Self = Self(Word::zero());

    fn lock(&self, mut relax: impl FnMut()) {
        while !self.try_lock() {
            // Pauses, reads until it looks free, and only then writes again.
            relax();
            while self.is_locked() {
                relax();
            }
        }
    }

    fn try_lock(&self) -> bool {
        // Acquire: pairs with the release in `unlock`.
        self.0.exchange(Ordering::Acquire, |_| Some(1)) == 0
    }

    unsafe fn unlock(&self) {
        // Release: pairs with the acquire in `try_lock` of the next holder.
        self.0.change(Ordering::Release, |_| 0);
    }

    fn is_locked(&self) -> bool {
        self.0.load(Ordering::Relaxed) != 0
    }
}

impl Contended for LinuxTestAndSet {
    fn is_contended(&self) -> bool {
        false
    }
}

/// The lock of Linux 2.6.25 to 4.1: the next ticket in the upper half of a word, the owner's in the
/// lower.
#[derive(Debug)]
pub struct LinuxTicket(Word);

/// One ticket.
const NEXT: u32 = 1 << 16;

const fn next(word: u32) -> u16 {
    (word >> 16) as u16
}

const fn owner(word: u32) -> u16 {
    word as u16
}

// SAFETY: zero where it is not held at first.
unsafe impl LockOfWords for LinuxTicket {}

// SAFETY: a caller returns from `lock` only when the owner is its own ticket. Tickets are drawn by
// one exchange each and fewer than 2^16 wait. The owner moves on by one, in `unlock` alone.
unsafe impl RawLock for LinuxTicket {
    const UNLOCKED: Self = Self(Word::zero());

    fn lock(&self, mut relax: impl FnMut()) {
        // Acquire: pairs with the release in `unlock`, where the lock was free.
        let draw = |word: u32| Some(word.wrapping_add(NEXT));
        let mut found = self.0.exchange(Ordering::Acquire, draw);
        let ticket = next(found);
        while owner(found) != ticket {
            relax();
            // Acquire: pairs with the release in `unlock` of the holder before.
            found = self.0.load(Ordering::Acquire);
        }
    }

    fn try_lock(&self) -> bool {
        let word = self.0.load(Ordering::Relaxed);
        let draw = |found| (found == word).then(|| word.wrapping_add(NEXT));
        // Acquire: pairs with the release in `unlock`.
        next(word) == owner(word) && self.0.exchange(Ordering::Acquire, draw) == word
    }

    unsafe fn unlock(&self) {
        let passed_on = |word: u32| word & !0xffff | u32::from(owner(word).wrapping_add(1));
        // Release: pairs with the acquire of the next holder.
        self.0.change(Ordering::Release, passed_on);
    }

    fn is_locked(&self) -> bool {
        let word = self.0.load(Ordering::Relaxed);
        next(word) != owner(word)
    }
}

impl Contended for LinuxTicket {
    fn is_contended(&self) -> bool {
        let word = self.0.load(Ordering::Relaxed);
        next(word).wrapping_sub(owner(word)) > 1
    }
}
