//! SLAB and SLUB, the two slab allocators that Linux 2.6.28 could be built with, as designs for the
//! slabs of [`brickyard_slab`]: what Dumazet compared Piggin's SLQB with in 2008.
//!
//! Their rules and numbers are in our own words, from public descriptions: Bonwick, "The Slab
//! Allocator" (1994) and "Magazines and Vmem" (2001); the kernel's documentation; the mails of
//! Lameter, Manfred and Piggin. What Linux has beside them (debugging, statistics, hot-plugged
//! CPUs) is left out, or is the library's.
//!
//! | | SLAB ([`Slab2008`]) | SLUB ([`Slub2008`]) |
//! |---|---|---|
//! | a CPU has | an array of free objects | one slab, and a chain of free objects of that slab |
//! | a hit | takes the last entry of the array | takes the first object of the chain |
//! | a free | appends to the array | joins the chain if it is of the CPU's slab, else goes into its slab under that slab's lock |
//! | a miss | fetches half an array, under the lock of the node | takes a slab from the node's list of partial slabs, under the lock of that list |
//! | what CPUs share | an array for each node (none on a machine with one CPU), and one for each pair of nodes ("alien"); lists of full, partial and free slabs | a list of partial slabs for each node |
//! | free objects are found by | indices beside the objects | links in the objects |
//! | slabs | order 0 if that wastes an eighth at most, else order 1 | up to order 3, so that 20 objects fit if they can |
//! | periodic work | every 2 s | none |
//!
//! Both mask interrupts in every call, as [`Everywhere`](brickyard_slab::Everywhere) does.
//!
//! | file | what it holds |
//! |---|---|
//! | `slab_list.rs` | a list of slabs |
//! | `slab/parameters.rs`, `slub/parameters.rs` | the numbers, and the shapes of slabs |
//! | `slab/indices.rs` | which objects of a slab are free, by index |
//! | `slab/array.rs`, `slab/lists.rs` | a CPU's array; what a node has |
//! | `slab/slow_path.rs`, `slub/slow_path.rs` | the slow paths |
//! | `slub/record.rs` | a slab under its own lock |
//! | `slab/mod.rs`, `slub/mod.rs` | the fast paths and the [`SlabDesign`](brickyard_slab::SlabDesign) implementations |

mod slab;
mod slab_list;
mod slub;

pub use slab::Slab2008;
pub use slub::Slub2008;
