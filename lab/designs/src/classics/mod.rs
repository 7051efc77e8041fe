//! The designs of the source documents, as zones for the Brickyard page allocator.
//!
//! A [`Zone`] is assembled from type parameters: how its buddy [store] groups pages, a [front] in
//! front of it, and a lock, held as long as a [policy](bulk) allows. It implements
//! [`AnyZone`](brickyard::AnyZone), so nodes, reclaim, compaction and statistics work as they do
//! for the default.
//!
//! | module | what it holds |
//! |---|---|
//! | [`store`] | free blocks on lists by order and type, with records for every frame; three groupings |
//! | [`bulk`] | the zone lock, how long it is held, and measurements at it |
//! | [`linux`] | Linux 6.12 and 6.18: today's kernels |
//! | [`front`] | caches in front of the store: per-CPU lists, magazines, none |
//! | [`LabLock`], [`Contended`], [`OwnLine`] | a zone's lock, what it can tell, and what lies in its cache line |
//! | [`LabZone`], [`Planned`], [`LabPlan`] | what the lab needs of a zone of any design |
//! | [`Zone`] | a zone assembled from these |
//! | [`Configuration`] | the default and the designs of the source documents, by name |

#![forbid(unsafe_code)]

pub mod bulk;
mod configuration;
pub mod front;
mod gfp;
mod lab_zone;
pub mod linux;
mod lock;
mod plan;
pub mod store;
mod zone;

pub use configuration::{Choice, Configuration, Experiment, MachinePlan, UnknownConfiguration};
pub use gfp::{GfpFlags, Retry};
pub use lab_zone::LabZone;
pub use lock::{Contended, LabLock, LineStart, OwnLine};
pub use plan::{LabPlan, Placed, Planned};
pub use zone::Zone;

use brickyard::sync::{Exclusive, TicketLock};

use front::{Magazines, PerCpuLists};
use store::grouping::{NoGrouping, PageBlocks, TwoKinds};

/// The 2.6 kernels up to 2.6.23: no grouping, per-CPU lists.
pub type Vanilla<'m, P, A = Exclusive, L = TicketLock> =
    Zone<'m, NoGrouping, PerCpuLists<'m, A>, L, P>;

/// Gorman 2005: kernel pages and easily reclaimed pages apart.
pub type TwoKinds2005<'m, P, A = Exclusive, L = TicketLock> =
    Zone<'m, TwoKinds, PerCpuLists<'m, A>, L, P>;

/// Gorman 2007, list-based: page blocks by mobility. With a second zone for movable pages it is his
/// combined form; [`Vanilla`] with such a zone is his zone-based form.
pub type List2007<'m, P, A = Exclusive, L = TicketLock> =
    Zone<'m, PageBlocks<'m>, PerCpuLists<'m, A>, L, P>;

/// Gorman 2013: page blocks, and magazines in place of per-CPU lists.
pub type Magazine2013<'m, P, L = TicketLock> = Zone<'m, PageBlocks<'m>, Magazines<'m, L>, L, P>;

/// Linux 6.12: page sets that tune themselves, page blocks claimed or stolen from.
pub type Linux612<'m, P, A = Exclusive, L = TicketLock> = linux::Zone<'m, linux::V6_12, A, L, P>;

/// Linux 6.18, where it differs.
pub type Linux618<'m, P, A = Exclusive, L = TicketLock> = linux::Zone<'m, linux::V6_18, A, L, P>;
