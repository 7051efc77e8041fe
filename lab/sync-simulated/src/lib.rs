//! The atomics and locks of the simulated multiprocessor: the same items as `brickyard-sync`, each
//! shared access charged by its address.
//!
//! Locks, slots and typed memory are the same files as in `brickyard-sync`; only `backend` differs.
//! A word is in the host's memory and is changed there. Before each access the machine is called,
//! which charges the access and may let another CPU run first. Where no machine runs on this thread
//! of the host, an access is a plain host access, before which a test may have itself
//! [called](brickyard_machine::seam::before_each_access).

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
