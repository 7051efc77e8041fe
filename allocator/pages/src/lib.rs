//! Brickyard: the physical page allocator as a library.
//!
//! It hands out page frames, by number, to many CPUs at once, and keeps free memory in pieces large
//! enough for huge pages. It is for authors of kernels, hypervisors, unikernels and large arenas.
//! It needs no `std` and no heap, and has no global state. The embedder supplies the memory for
//! metadata, the lock, and a [`Platform`]. The crate contains no `unsafe` code.
//!
//! - **One zone**: [`zone::Zone`], built by [`zone::ZonePlan`] in a piece of memory, with
//!   [`alloc`](zone::Zone::alloc), [`free`](zone::Zone::free), and the rest.
//! - **Several zones and nodes**, with watermarks, reclaim and compaction: [`node::Nodes`].
//! - **Objects smaller than pages** are the subject of the crate `brickyard-slab`: caches over a
//!   zone, or over pages of your own.
//! - **A zone of your own**: any type that implements [`AnyZone`] takes part in nodes, fallback and
//!   pressure.
//!
//! The allocator never touches the memory that it hands out: only frame numbers go in and out.
//!
//! The modules, each of which uses only those above it:
//!
//! | module | what it holds |
//! |---|---|
//! | [`sync`] | shared memory: atomics, guarded words, locks, slots |
//! | the root, [`block`], [`platform`], [`check`] | the vocabulary: [`Frame`], [`Order`], [`Mobility`], [`Request`], [`Platform`], the errors |
//! | [`isolation`], [`transit`], [`patience`], [`watermark`] | the parts that a zone of any design is built from |
//! | [`bitmap`] | the store of free frames: words of bits, without a lock |
//! | [`stash`] | a CPU's own frame numbers, refilled and flushed a word at a time |
//! | [`pressure::hooks`] | what the embedder does when memory is short |
//! | [`AnyZone`] | what nodes, pressure and statistics require of a zone |
//! | [`pressure`] | reclaim, compaction, contiguous ranges |
//! | [`zone`] | the store, the stashes and the watermarks together |
//! | [`stats`] | fragmentation indices, the texts of buddyinfo and pagetypeinfo |
//! | [`node`] | zones in order, fallback, the slow path, ZONE_MOVABLE |
//!
//! # Features
//!
//! | feature | what it adds |
//! |---|---|
//! | `lock_api` | `sync::LockApi`: any `lock_api::RawMutex` as a lock of a design that has one |
//!
//! No feature is on by default.
//!
//! # What may grow
//!
//! Errors and results are `#[non_exhaustive]`: a later version may report more. Plans are not, so
//! that a constant can hold one. `ZonePlan { max_order, ..ZonePlan::new(kind, span, cpus) }` still
//! compiles when a field is added.

#![no_std]
#![forbid(unsafe_code)]

#[cfg(test)]
extern crate std;

pub use brickyard_sync as sync;

pub mod bitmap;
pub mod block;
pub mod check;
mod error;
mod frame;
pub mod isolation;
mod mobility;
pub mod node;
pub mod patience;
pub mod platform;
pub mod pressure;
mod request;
pub mod stash;
pub mod stats;
pub mod transit;
pub mod watermark;
pub mod zone;
mod zones;

pub use error::{AllocError, BulkFreeError, FreeError, PlanError, RangeError};
pub use frame::{FRAMES_MOST, Frame, FrameRange, Order};
pub use mobility::{MigrateType, Mobility};
pub use platform::{InterruptState, OneCpu, Platform};
pub use request::{Context, Request, ZoneKind};
pub use zone::{Zone, ZonePlan};
pub use zones::{AnyZone, Shape};
