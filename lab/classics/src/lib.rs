//! The designs of the source documents, as zones for the Brickyard page allocator.
//!
//! They are yardsticks: complete, tested, and never what anybody should embed. A [`Zone`] is put
//! together by type parameters: how its buddy [store] groups pages, a [front] before it, a lock
//! that is held for as long as a [policy](bulk) says. It implements
//! [`AnyZone`](brickyard::AnyZone), so that nodes, reclaim, compaction and statistics are those of
//! the default.
//!
//! | module | what it holds |
//! |---|---|
//! | [`store`] | free blocks on lists by order and type, with records for every frame; three groupings |
//! | [`bulk`] | the zone lock, how long it is held, and what is measured there |
//! | [`front`] | what stands before the store: per-CPU lists, magazines, nothing |
//! | [`LabZone`], [`Planned`], [`LabPlan`] | what the lab asks of a zone of any make |
//! | [`Zone`] | all of it together |
//! | [`Configuration`] | the default and the designs of the source documents, by name |

#![no_std]
#![forbid(unsafe_code)]

pub mod bulk;
mod configuration;
pub mod front;
mod lab_zone;
mod plan;
pub mod store;
mod zone;

pub use configuration::{Choice, Configuration, Experiment, MachinePlan, UnknownConfiguration};
pub use lab_zone::{LabZone, Planned};
pub use plan::{LabPlan, Placed};
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
