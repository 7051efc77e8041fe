//! Slabs: objects smaller than a page, allocated out of pages.
//!
//! A cache hands out objects of one size. Its free objects lie in per-CPU arrays ([`Sheafed`]).
//! Caches take pages from a [`PageSource`]; the page allocator is one ([`ZonePages`]). They reach a
//! CPU's own words through [`Local`]. Implement [`SlabDesign`] to queue free objects in another
//! way.
//!
//! The modules. Each uses only those above it:
//!
//! | module | what it holds |
//! |---|---|
//! | `layout` | numbers that all modules agree on: caches, pages, the bytes of a sheaf |
//! | [`geometry`], [`sizes`] | the shape of slabs; general sizes |
//! | `error`, [`debug`] | errors, as values; checks on request, and what they report |
//! | `source`, `zone`, `nodes` | where pages come from; a zone, and all zones of a machine, as such a source |
//! | `plan`, `caller` | what a system is built with; the kinds of callers |
//! | `rows`, `local`, `counting_local` | a CPU's own words; how it reaches them; the same with hits counted |
//! | `cache_info`, `pages`, `homes` | a cache's shape and rules; what is known of each page; the CPU it is at home on |
//! | `statistics`, `counts`, `slab_list` | statistics; counters; the slabs of a list |
//! | `backend`, [`design`] | what a design builds on; what it implements, and what it is made of |
//! | `object_checks`, `slab_lifetime` | what is done to checked objects; how a slab begins and ends |
//! | [`sheaf`] | the design |
//! | `slabs` | all caches over one source of pages |
//! | `cache`, `typed_cache`, `general`, `reserve`, `slabinfo` | caches as users see them, and their text |
//!
//! **Bootstrap**: all that slabs need lies in memory that the embedder gives to [`Slabs::new`]:
//! rows of words for the CPUs, the tables of pages, and room for as many caches as planned. Slabs
//! need one cache for themselves, the cache of sheaves. `Slabs::new` makes it first, and it is
//! served without queues. There are no phases: when `new` returns, everything works. Memory grows
//! linearly with CPUs, with nodes and with caches.
//!
//! ```
//! use brickyard_slab::{CacheSpec, Sheafed, SlabPlan, Slabs, TaskOnly};
//! # use brickyard_slab::Pinned;
//! # use brickyard::OneCpu;
//! # mod support { include!("../tests/support/pages.rs"); }
//! # fn main() -> Result<(), Box<dyn core::error::Error>> {
//! # let source = support::TestPages::new(64, 1);
//! # let plan = SlabPlan::new(8, 1).pages(64);
//! # let mut memory = vec![core::mem::MaybeUninit::uninit(); Slabs::<Sheafed<&support::TestPages, Pinned<OneCpu>>>::bytes(&plan)];
//! // `source` gives pages; `memory` is the embedder's.
//! // SAFETY: one thread uses these slabs.
//! let cpus = unsafe { Pinned::new(OneCpu) };
//! let slabs = Slabs::<Sheafed<_, _>>::new(plan, &source, cpus, &mut memory)?;
//! let inodes = slabs.cache::<TaskOnly>(CacheSpec::new("inode", 600).reclaimable())?;
//! let object = inodes.alloc()?;
//! // SAFETY: the object came from this cache, and is not used any more.
//! unsafe { inodes.free(object)? };
//! # Ok(()) }
//! ```

#![no_std]

#[cfg(test)]
extern crate std;

mod backend;
mod cache;
mod cache_info;
mod caller;
mod counting_local;
mod counts;
pub mod debug;
pub mod design;
mod error;
mod general;
pub mod geometry;
mod homes;
mod layout;
mod local;
mod nodes;
mod object_checks;
mod pages;
mod plan;
mod reserve;
mod rows;
pub mod sheaf;
pub mod sizes;
mod slab_lifetime;
mod slab_list;
mod slabinfo;
mod slabs;
mod source;
mod statistics;
mod typed_cache;
mod zone;

pub use cache::{Leak, RawCache, Remains};
pub use cache_info::{CacheSpec, Constructor};
pub use caller::{Caller, Everywhere, TaskOnly};
pub use counting_local::Counted;
pub use debug::{Checks, DebugRule, Finding, RuleText, Rules, Track};
pub use design::SlabDesign;
pub use error::{BuildError, CacheError, FreeFault, SlabError};
pub use general::General;
pub use homes::Homes;
pub use layout::{CacheId, MAX_CACHES, MAX_PAGES};
pub use local::{Hits, Local, Pinned, Pushed};
pub use nodes::NodesPages;
pub use pages::{PageCaches, Tables};
pub use plan::{Reporter, SlabPlan};
pub use reserve::Reserve;
pub use rows::Rows;
pub use sheaf::Sheafed;
pub use slabinfo::SlabInfo;
pub use slabs::{Parts, Slabs};
pub use source::{PageAsk, PageSource};
pub use statistics::{CacheNumbers, Waste};
pub use typed_cache::{Cache, Object};
pub use zone::{DirectMap, DirectMapped, ZonePages};
