//! The atomics and locks of the real machine, with a call before each atomic access: the same items
//! as `brickyard-sync`.
//!
//! Locks, slots and typed memory are the same files as in `brickyard-sync`; only `backend` differs.
//! A test [sets](before_each_access) what is called, and can stop a CPU there while another runs.
//! Guarded words are accessed without a call: only one CPU at a time can see them.

mod backend;
mod lock;
mod once;
mod place;
mod scratch;
mod slot;

pub use backend::{
    AtomicU8, AtomicU32, AtomicU64, AtomicUsize, GuardedU32, GuardedU64, before_each_access,
    prefetch, prefetch_to_write, spin_hint,
};
pub use core::sync::atomic::Ordering;
#[cfg(feature = "lock_api")]
pub use lock::LockApi;
pub use lock::{Held, Locked, RawLock, TestAndSetLock, TicketLock};
pub use once::{Lease, OnceSlot};
pub use place::{Blank, Zeroable, Zeros, place, place_zeroed};
pub use scratch::Scratch;
pub use slot::{Exclusive, Inside, PATIENCE, Shared, Slot, SlotAccess};
