//! The seam on the simulated multiprocessor: the same items as `brickyard-sync`, each shared access
//! charged by its address.
//!
//! Locks, slots and typed memory are the very files of `brickyard-sync`; only `backend` is another.
//! A word lies in the host's memory and is changed there; before that the machine is told, which
//! charges the access and may let another CPU go first. Where no machine runs on this thread of the
//! host, an access is just the access.
//!
//! One item is not in `brickyard-sync`: [`Timed`], a lock that tells how long it was waited for and
//! held, at no cost in simulated time.

mod backend;
mod lock;
mod once;
mod place;
mod slot;
mod timed;

pub use backend::{AtomicU8, AtomicU32, AtomicU64, AtomicUsize, GuardedU32, GuardedU64, spin_hint};
pub use core::sync::atomic::Ordering;
#[cfg(feature = "lock_api")]
pub use lock::LockApi;
pub use lock::{Held, Locked, OwnLine, RawLock, TestAndSetLock, TicketLock};
pub use once::{Lease, OnceSlot};
pub use place::{Zeroable, place, place_zeroed};
pub use slot::{Exclusive, Inside, PATIENCE, Shared, Slot, SlotAccess};
pub use timed::{Found, LockLog, Timed, timed};
