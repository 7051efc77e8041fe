//! Brickyard: the physical page allocator as a library.
//!
//! It hands out page frames, by number, to many CPUs at once, and keeps memory in pieces large enough for huge pages. It is for whoever writes
//! a kernel, a hypervisor, a unikernel or a large arena: no `std`, no heap, no global state; the embedder brings
//! the metadata's memory, the lock, and a [`Platform`]. It has no line of `unsafe`.
//!
//! - **One zone**: [`zone::Zone`], built by [`zone::ZonePlan`] in a piece of memory; [`alloc`](zone::Zone::alloc),
//!   [`free`](zone::Zone::free), and the rest.
//! - **Several zones and nodes**, with watermarks, reclaim and compaction: [`node::Nodes`].
//! - **Objects smaller than pages** are the crate `brickyard-slab`: caches over a zone, or over pages of one's own.
//! - **Which design**: [`design::Brickyard`], the default, which takes no lock; the other aliases in [`design`], or other combinations of stores, groupings, fronts and locks; by name, [`Configuration`]. Locks and
//!   platforms are yours to write; stores and fronts are this crate's own for now.
//!
//! The memory that is handed out is never touched: only frame numbers go in and out.
//!
//! The modules, each of which uses only those above it:
//!
//! | module | what it holds |
//! |---|---|
//! | [`sync`] | shared memory: atomics, guarded words, locks, slots |
//! | the root | the vocabulary: [`Frame`], [`Order`], [`Mobility`], [`Request`], [`Platform`], the errors |
//! | [`store`] | where free frames are kept: the lock-free bitmap store; the buddy store and its three groupings |
//! | [`bulk`] | the zone lock, how long it is held, and what is measured there |
//! | [`front`] | what stands before the store: stashes, per-CPU lists, magazines, nothing |
//! | [`stats`] | indices of fragmentation, the texts of buddyinfo and pagetypeinfo |
//! | [`design`] | which parts make a zone |
//! | [`zone`] | a store, a lock, a front, watermarks |
//! | [`pressure`] | the embedder's hooks; reclaim, compaction, contiguous ranges |
//! | [`node`] | zones in order, fallback, the slow path, ZONE_MOVABLE |
//! | [`Configuration`] | the default and the designs of the source documents, by name |

#![no_std]
#![forbid(unsafe_code)]

#[cfg(test)]
extern crate std;

pub use brickyard_sync as sync;

pub mod bulk;
pub mod check;
mod configuration;
pub mod design;
mod error;
mod frame;
pub mod front;
mod mobility;
pub mod node;
mod platform;
pub mod pressure;
mod request;
pub mod stats;
pub mod store;
pub mod zone;

pub use configuration::{
    Choice, Configuration, Experiment, MachinePlan, Planned, UnknownConfiguration,
};
pub use error::{AllocError, BulkFreeError, FreeError, PlanError, RangeError};
pub use frame::{Frame, FrameRange, Order};
pub use mobility::{MigrateType, Mobility};
pub use platform::{InterruptState, OneCpu, Platform};
pub use request::{Context, Request, ZoneKind};
