//! Randomised schedules: the real allocator under every operation, on up to 64 CPUs that run at
//! random speeds, with interrupts, and every result checked.
//!
//! A seed chooses a [`Case`]: a configuration, sizes, a machine, tasks. The machine's time is
//! random (CPU speeds that change, delays at shared accesses), so each seed gives another schedule,
//! and the same one each time it is run. A run fails by: an assertion of the library, unordered
//! accesses of two CPUs to a guarded word, a frame with two owners, a valid free refused or an
//! invalid one accepted, a single frame refused although one was free all the while, a violated
//! invariant, a CPU left pinned or masked, a deadlock, or no end. [`explore`] runs many seeds and
//! shrinks the first case that fails.
//!
//! | file | what it holds |
//! |---|---|
//! | `case.rs` | what a seed chooses, and its command line |
//! | `system.rs` | what can be explored, and how a run fails |
//! | `covered.rs`, `log.rs` | what happened, in numbers; the last operations |
//! | `frames.rs`, `cache.rs`, `supply.rs` | the oracle: owners, pages that others may move, what must have been free |
//! | `world.rs`, `worker.rs`, `rare.rs`, `quiet.rs` | what tasks, interrupts and hooks do; quiet moments, at which all invariants are checked |
//! | `prefill.rs` | cases in which nearly all memory is in use from the beginning |
//! | `starve.rs`, `bound.rs` | requests under steady contention; the bound of their steps |
//! | `library.rs` | the allocator as a system |
//! | `seeds.rs`, `shrink.rs` | many seeds; shrinking a case that fails |

mod bound;
mod cache;
mod case;
mod covered;
mod frames;
mod library;
mod log;
mod prefill;
mod quiet;
mod rare;
mod seeds;
mod shrink;
mod starve;
mod supply;
mod system;
mod worker;
mod world;

pub use brickyard_designs::classics::Configuration;
pub use brickyard_designs::classics::bulk::BulkPolicy;
pub use case::{Case, FreeMemory, Interrupts, Marks, Mode, POLICIES, Pressure, Sizes};
pub use covered::{Covered, Event};
pub use library::{Library, WithLock};
pub use log::{About, Log, Who};
pub use seeds::{Explored, Failed, SeedPlan, explore};
pub use shrink::{Shrunk, shrink};
pub use system::{Fault, System};
