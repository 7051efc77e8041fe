//! Randomised schedules: the real allocator under every operation, on up to 64 CPUs that run at
//! random speeds, with interrupts, and everything looked at.
//!
//! A seed chooses a [`Case`]: a configuration, sizes, a machine, tasks. The machine's time is
//! random (priorities that change, delays at shared accesses), so each seed is another schedule,
//! and the same one each time it is run. What ends a run badly: an assertion of the library, two
//! CPUs at a word that only one may touch, a frame with two owners, a good free refused or a bad
//! one accepted, a single frame refused while one was free all the while, an invariant that does
//! not hold, a CPU left pinned or masked, everybody asleep, no end. [`explore`] runs many seeds and
//! makes the first that fails small.
//!
//! | file | what it tells |
//! |---|---|
//! | `case.rs` | what a seed chooses, and how it is said on a command line |
//! | `system.rs` | what can be explored, and how a run goes wrong |
//! | `covered.rs`, `log.rs` | what happened, in numbers; what happened last |
//! | `frames.rs`, `cache.rs`, `supply.rs` | the oracle: owners, pages that others may move, what must have been free |
//! | `world.rs`, `worker.rs`, `rare.rs`, `quiet.rs` | what tasks, interrupts and hooks do; moments at which all is looked at |
//! | `library.rs` | the allocator as a system |
//! | `seeds.rs`, `shrink.rs` | many seeds; a failing one made small |

mod bound;
mod cache;
mod case;
mod covered;
mod frames;
mod library;
mod log;
mod quiet;
mod rare;
mod seeds;
mod settler;
mod shrink;
mod starve;
mod supply;
mod system;
mod worker;
mod world;

pub use brickyard_classics::Configuration;
pub use brickyard_classics::bulk::BulkPolicy;
pub use case::{Case, Interrupts, Marks, Memory, Mode, POLICIES, Pressure, SLOTS, Sizes};
pub use covered::{Covered, Event};
pub use library::{Library, WithLock};
pub use log::{About, Log, Who};
pub use seeds::{Explored, Failed, Plan, explore};
pub use shrink::{Shrunk, shrink};
pub use system::{Fault, System};
