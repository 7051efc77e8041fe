//! Brickyard: the physical page allocator as a library.
//!
//! It hands out page frames, by number, to many CPUs at once, and keeps memory in pieces large
//! enough for huge pages. It is for whoever writes a kernel, a hypervisor, a unikernel or a large
//! arena: no `std`, no heap, no global state; the embedder brings the metadata's memory, the lock,
//! and a [`Platform`]. It has no line of `unsafe`.
//!
//! - **One zone**: [`zone::Zone`], built by [`zone::ZonePlan`] in a piece of memory;
//!   [`alloc`](zone::Zone::alloc), [`free`](zone::Zone::free), and the rest.
//! - **Several zones and nodes**, with watermarks, reclaim and compaction: [`node::Nodes`].
//! - **Objects smaller than pages** are the crate `brickyard-slab`: caches over a zone, or over
//!   pages of one's own.
//! - **A zone of your own**: whatever implements [`AnyZone`] takes part in nodes, fallback and
//!   pressure.
//!
//! The memory that is handed out is never touched: only frame numbers go in and out.
//!
//! The modules, each of which uses only those above it:
//!
//! | module | what it holds |
//! |---|---|
//! | [`sync`] | shared memory: atomics, guarded words, locks, slots |
//! | the root, [`block`], [`platform`], [`check`] | the vocabulary: [`Frame`], [`Order`], [`Mobility`], [`Request`], [`Platform`], the errors |
//! | [`isolation`], [`transit`], [`patience`], [`watermark`] | what a zone of any make is put together from |
//! | [`bitmap`] | free frames in words: the store, which nobody locks |
//! | [`stash`] | a CPU's own frame numbers, refilled and flushed by words |
//! | [`AnyZone`] | what nodes, pressure and statistics ask of a zone |
//! | [`pressure`] | the embedder's hooks; reclaim, compaction, contiguous ranges |
//! | [`zone`] | the store, the stashes, the watermarks |
//! | [`stats`] | indices of fragmentation, the texts of buddyinfo and pagetypeinfo |
//! | [`node`] | zones in order, fallback, the slow path, ZONE_MOVABLE |

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
