//! Linux 6.12 and 6.18: the page allocator of today's kernels, as far as it decides which frame a
//! request gets.
//!
//! | module | what it holds |
//! |---|---|
//! | [`Rights`] | what a request may do beyond taking a free block |
//! | [`Blocks`] | the types of page blocks; what a request gets: own list, claim, theft; the boost |
//! | `marks` | the two tests of a zone's marks |
//! | [`Pagesets`] | the per-CPU lists, which set their own size |
//! | [`Zone`] | a zone of these, with the store, lock and drains of the older designs |
//! | `lab_zone` | what the lab asks of it |
//! | `compact` | compaction: scanners, what it remembers, when it is put off |
//! | `walk` | zones in order, and the slow path |
//!
//! What decides nothing here is left out: unaccepted memory, CMA areas (their blocks count as
//! movable), page reporting, and the drift of the free counters between CPUs, which hold back up to
//! 125 frames each.

mod blocks;
mod compact;
mod lab_zone;
mod marks;
mod pageset;
mod rights;
mod walk;
mod zone;

pub use blocks::{Blocks, Choice, Mode, Search, Settings, Way};
pub use compact::aim::Priority;
pub use marks::min_free_for_huge_pages;
pub use pageset::{Burst, Course, Pageset, Pagesets, Sizes};
pub use rights::Rights;
pub use zone::{V6_12, V6_18, Version, Zone};
