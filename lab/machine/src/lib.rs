//! A simulated multiprocessor: CPUs, caches, coherence, interrupts, a disk and a clock,
//! deterministic for a seed.
//!
//! | file | what it holds |
//! |---|---|
//! | `profile.rs` | [`Profile`]: the machines, by name |
//! | `cache.rs`, `directory.rs`, `memory.rs` | [`CacheSystem`]: what an access costs, by address and state |
//! | `footprint.rs` | [`Footprint`]: what computing displaces from a CPU's caches |
//! | `order.rs` | [`HappensBefore`]: vector clocks of the CPUs; data races on guarded words |
//! | `region.rs` | which host memory is memory of the machine, and at which simulated address; memory that the host does not have |
//! | `fiber.rs` | a task's own stack |
//! | `task.rs`, `state.rs` | tasks, CPUs, clocks: the state of a machine |
//! | `schedule.rs` | which task runs where |
//! | `charge.rs` | charging an access; what comes between two accesses; waiting for another CPU |
//! | `engine.rs` | [`Machine`]: setting one up and running it to its end |
//! | `failure.rs` | [`Failure`]: the ways a run can fail |
//! | [`seam`] | what the simulated atomics report to the machine |
//! | [`current`], `wait.rs` | what a task can request of its machine; [`WaitQueue`] |
//!
//! A machine runs on one thread of the host; several threads may run one machine each. Each CPU has
//! its own clock. The CPU with the earliest clock runs until its next shared access would come
//! after another CPU's. So every shared access happens in the order of simulated time, whatever the
//! host does, and a run depends on nothing but its [`Setup`] and its tasks.

mod cache;
mod charge;
pub mod current;
mod directory;
mod engine;
mod failure;
mod fiber;
mod footprint;
mod memory;
mod order;
mod profile;
mod region;
mod schedule;
pub mod seam;
mod state;
mod task;
mod wait;

pub use directory::MOST_CPUS;
pub use engine::{Ended, Machine, Setup, Stops, Timing, Watch};
pub use failure::{Failure, Moment};
pub use footprint::Footprint;
pub use memory::{CacheSystem, Incoherent, Traffic};
pub use order::{Conflict, HappensBefore, Race};
pub use profile::{CacheShape, Profile, UnknownProfile};
pub use region::{Spread, Unbacked};
pub use seam::AccessKind;
pub use task::{Affinity, CpuTimes, Steps, TaskTimes};
pub use wait::WaitQueue;
