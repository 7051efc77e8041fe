//! What the lab measures on this machine: loops on real threads and real memory, as rows of
//! results. No arguments, no printing: who asks for a measurement says so by a struct, and is told
//! how far it is by [`Progress`](progress::Progress).
//!
//! | file | what it holds |
//! |---|---|
//! | [`pagealloc`], [`scarce`], [`fragmentation`], [`locks`], [`pft`] | one benchmark each: what it is told, and its results |
//! | [`subject`] | what the measured loops allocate from, as two traits |
//! | `design.rs`, [`yardstick`], [`peer`] | who stands behind those: our designs, two yardsticks, other people's crates |
//! | [`contestant`] | any of these by its name |
//! | [`conditions`] | what `pagealloc` builds for a contestant, and its turn there |
//! | [`zone2007`] | what `locks` builds for a column |
//! | [`machine`], [`choice`] | the machine that a configuration is built on, and what of it people choose by name |
//! | [`schedule`] | which workloads there are |
//! | `turns.rs`, [`rounds`] | whose turn it is; what is done in a turn |
//! | [`progress`], [`stop`], [`side_by_side`] | how far a measurement is; an end that is asked for; runs at once |
//! | [`slab`] | the benchmark of heaps, with all that is its own |
//! | [`bursts`], [`faults`] | the loads of `locks` and `pft` |
//! | [`instructions`], `callgrind.rs` | the instructions of `pagealloc`'s pairs, by valgrind |
//! | [`pages`]; [`aim9`], [`render`] | pages with real bytes; the loops of 2005 on them |
//! | `batch.rs`, `remote.rs`, `fill.rs`, `clock.rs`, [`random`] | the measured loops and what they need |

// Allowed, file by file, only where memory that an allocator gave is written: the objects of
// `slab`, the pages of `pft` and of the loops of 2005.
#![deny(unsafe_code)]

pub mod aim9;
pub mod batch;
pub mod bursts;
mod callgrind;
pub mod choice;
mod clock;
pub mod conditions;
pub mod contestant;
mod design;
#[allow(unsafe_code, reason = "it clears pages")]
pub mod faults;
mod fill;
pub mod fragmentation;
pub mod instructions;
pub mod locks;
pub mod machine;
pub mod pagealloc;
#[allow(unsafe_code, reason = "pages have bytes")]
pub mod pages;
pub mod peer;
pub mod pft;
pub mod progress;
pub mod random;
mod remote;
pub mod render;
pub mod rounds;
pub mod scarce;
pub mod schedule;
pub mod side_by_side;
pub mod slab;
pub mod stop;
pub mod subject;
mod together;
mod turns;
pub mod yardstick;
pub mod zone2007;
