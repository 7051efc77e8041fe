//! Stops a CPU of the allocator before each atomic access while another one runs.
//!
//! The allocator's own source runs on the simulated words, without a simulated machine: each is a
//! word of the host, with [a call](brickyard_machine::seam::before_each_access) before each access. A
//! *situation* is two public calls, what is free at the start, and who the second caller is: another
//! CPU, one for which the first stands still, a task that preempts the first, or an interrupt. Every
//! access of the first call is tried as a stopping point; so are pairs, where the second stops too.
//! After each, what the callers hold is compared with every count and invariant of the allocator.
//!
//! | module | what it holds |
//! |---|---|
//! | `machine` | the parties on one thread, and the platform |
//! | `model` | who holds which frame, and how many were free |
//! | `world` | a small machine, the states that it starts in, and what must hold at rest |
//! | `calls`, `slabs` | the calls, and objects |
//! | `tries` | the situations, one after the other, and their tallies |

mod calls;
mod machine;
mod model;
mod slabs;
mod tries;
mod world;

pub use tries::{StopPlan, Tally, try_all};
