//! The seam: everything that the allocator knows of memory shared between CPUs.
//!
//! The allocator accesses every shared word, atomic or guarded by a lock, only through this crate.
//! Replace this crate by another with the same items, and the same source runs on another machine.
//! It runs on hardware (the backend here), under the `loom` model checker (`--cfg loom`), or on a
//! simulated multiprocessor that charges each access by its address. Only `backend` differs between
//! them; everything else is written on top of it.
//!
//! | file | what it holds |
//! |---|---|
//! | `backend/` | atomic words, guarded words, the spin hint, cache lines fetched in advance |
//! | `lock.rs` | [`RawLock`], [`TicketLock`], [`TestAndSetLock`], and [`Locked`], data with its lock |
//! | `slot.rs` | [`Slot`]: how a CPU accesses its own slot, and whether other CPUs can |
//! | `once.rs` | [`OnceSlot`]: a place for a value that is put in while other CPUs look |
//! | `place.rs` | [`place()`]: typed slices out of the caller's memory |
//! | `scratch.rs` | [`Scratch`]: room for one call's own numbers |
//!
//! A **guarded word** ([`GuardedU32`]) is one that a lock, or the ownership of a frame, makes
//! private to the code that accesses it. On hardware an access is a plain load or store, and can
//! never be undefined behaviour. Under loom, an access that no lock ordered is reported as a race.
//!
//! The feature `lock_api`, off by default, adds `LockApi`: any `lock_api::RawMutex` (of `spin`, of
//! `parking_lot`, a kernel's own) as a [`RawLock`].

#![cfg_attr(not(loom), no_std)]

mod backend;
mod lock;
mod once;
mod place;
mod scratch;
mod slot;

pub use backend::{
    AtomicU8, AtomicU32, AtomicU64, AtomicUsize, GuardedU32, GuardedU64, prefetch,
    prefetch_to_write, spin_hint,
};
pub use core::sync::atomic::Ordering;
#[cfg(feature = "lock_api")]
pub use lock::LockApi;
pub use lock::{Held, Locked, RawLock, TestAndSetLock, TicketLock};
pub use once::{Lease, OnceSlot};
pub use place::{Blank, Zeroable, Zeros, place, place_zeroed};
pub use scratch::Scratch;
pub use slot::{Exclusive, Inside, PATIENCE, Shared, Slot, SlotAccess};
