//! The heap of a process: general sizes on slabs, runs of pages, large blocks. There is one for the
//! whole process.
//!
//! | bytes | where from | found again by |
//! |---|---|---|
//! | up to 128 KiB | a slab of the general size ([`SIZES`](brickyard_slab::sizes::process::SIZES)) | the byte of its page |
//! | up to 2 MiB, and zeros from 32 KiB | a run of pages of the same span | a word of its first page |
//! | above | a mapping of its own | a table |
//!
//! From the ground up; a file uses only those above it in this table:
//!
//! | file | what it holds |
//! |---|---|
//! | `complaints.rs` | what is said of mistakes |
//! | `fast_path.rs` | what the fast paths read, and the fast paths |
//! | `zero_sized.rs`, `perturb.rs` | memory of no bytes; values that new and freed memory hold on request |
//! | `seccomp.rs`, `huge.rs`, `surplus.rs` | what is left out where system calls are filtered; whether the system gives huge pages; how much free memory stays while a program goes on |
//! | `span/` | the pages of slabs and runs, and which of them go back to the system |
//! | `large/` | mappings of their own |
//! | `gate.rs`, `instance.rs` | the gate; the heap, and the ways of it that are chosen when it is built |
//! | `closed_gate.rs` | requests while a fork takes long |
//! | `sampling.rs` | what is sampled, by `brickyard-sampled`: heap profiles, guarded memory |
//! | `background.rs`, `maintenance.rs` | the background thread; its work, and fork |
//! | `plain.rs`, `hardened/` | the two ways: requests that are no hits; requests that find every mistake they can |
//! | `build.rs` | builds the heap at its first use, on the thread that comes first |
//! | `addresses.rs` | limits of addresses that come later |
//! | `vfork.rs` | the heap in a child that runs in its parent's memory |
//! | `slow_path.rs`, `request.rs`, `resize.rs` | what is not a hit; requests; other sizes |
//! | `statistics.rs`, `report.rs` | what the heap holds, as numbers and as text |
//! | `global.rs` | [`Global`], for `#[global_allocator]` |
//! | `bump.rs` | [`Bump`], memory that ends as a whole |
//! | `object.rs` | [`Object`], a box in the heap |
//! | `collections.rs` | [`Global`] for collections, behind the feature `allocator-api2` |

#![cfg(all(
    target_os = "linux",
    any(target_arch = "x86_64", target_arch = "aarch64")
))]

mod addresses;
mod background;
mod build;
mod bump;
mod closed_gate;
#[cfg(feature = "allocator-api2")]
mod collections;
mod complaints;
mod fast_path;
mod gate;
mod global;
mod hardened;
mod huge;
mod instance;
mod large;
mod maintenance;
mod object;
mod perturb;
mod plain;
mod report;
mod request;
mod resize;
mod sampling;
mod seccomp;
mod slow_path;
mod span;
mod statistics;
mod surplus;
mod vfork;
mod zero_sized;

pub use addresses::fit_addresses;
pub use brickyard_arena::environment::switch;
pub use brickyard_arena::messages::print;
pub use brickyard_sampled::write_profile;
pub use brickyard_slab::sheaf::SHEAF_BYTES;
pub use build::wants_hardening;
pub use bump::Bump;
pub use fast_path::{AWAY, AWAY_BELOW, FAST, Fast, GRANULE_SHIFT, PAGE_SHIFT, quick, quick_free};
pub use global::Global;
pub use hardened::{
    From, Rest, after_free, allocate_hardened_or, check_range, check_size, free_hardened_or,
};
pub use instance::HeapError;
pub use object::{NoMemory, Object};
pub use report::{Format, Report};
pub use request::{alloc, alloc_aligned, free, quick_reallocate};
pub use resize::{reallocate, usable_size};
pub use slow_path::{
    allocate, allocate_aligned, allocate_zeroed, free_slow, free_slow_under_locks, keep_idle,
    perturb, trim,
};
pub use span::{Contents, RUN_BYTES_MAX, SPAN_BYTES, Span};
pub use statistics::{SizeStatistics, Statistics, statistics};
pub use vfork::{after_vfork, before_vfork};

#[cfg(test)]
mod tests;
