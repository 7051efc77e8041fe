//! A simulated multiprocessor: CPUs, caches, coherence, interrupts, a disk and a clock,
//! deterministic for a seed.
//!
//! | file | what it holds |
//! |---|---|
//! | `profile.rs` | [`Profile`]: the machines, by name |
//! | `cache.rs`, `directory.rs`, `memory.rs` | [`Memory`]: what an access costs, by address and state |
//! | `dice.rs`, `hash.rs` | [`Dice`]: random numbers from a seed; [`fnv1a`]: a hash that is the same in every build |
//! | `order.rs` | [`HappensBefore`]: who has seen what; races of guarded words |
//! | `region.rs` | which memory of the host is memory of the machine |
//! | `fiber.rs` | a task's own stack |
//! | `task.rs`, `state.rs` | tasks, CPUs, clocks: the machine at one moment |
//! | `schedule.rs` | which task runs where |
//! | `charge.rs` | what comes between two accesses; waiting for another CPU |
//! | `engine.rs` | [`Machine`]: from its making to its end |
//! | `failure.rs` | [`Failure`]: how a run ends badly |
//! | [`seam`] | what simulated words tell the machine |
//! | [`here`], `wait.rs` | what a task asks of it; [`WaitQueue`] |
//!
//! A machine runs on one thread of the host, as many as one likes at a time. Each CPU has a clock
//! of its own; always the CPU that is earliest goes on, until its next shared access would come
//! after another CPU's. So every shared access happens in the order of simulated time, whatever the
//! host does, and a run depends on nothing but its [`Setup`] and its tasks.

mod cache;
mod charge;
mod dice;
mod directory;
mod engine;
mod failure;
mod fiber;
mod hash;
pub mod here;
mod memory;
mod order;
mod profile;
mod region;
mod schedule;
pub mod seam;
mod state;
mod task;
mod wait;

pub use dice::Dice;
pub use directory::MOST_CPUS;
pub use engine::{Ended, Machine, Setup, Stops, Timing, Watch};
pub use failure::{Failure, Moment};
pub use hash::fnv1a;
pub use memory::{Incoherent, Memory, Traffic};
pub use order::{Conflict, HappensBefore, Race};
pub use profile::{CacheShape, Profile, UnknownProfile};
pub use seam::AccessKind;
pub use task::{Affinity, CpuTimes, Steps, TaskTimes};
pub use wait::WaitQueue;
