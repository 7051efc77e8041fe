//! Experiments with the page allocator on a simulated multiprocessor: its unchanged source, on 1 to
//! 256 CPUs, deterministic for a seed.
//!
//! | file | what it holds |
//! |---|---|
//! | `platform.rs` | [`Simulated`]: the machine as the allocator's platform |
//! | [`explore`] | randomised schedules of the real allocator, with every result checked |
//! | `build.rs` | [`Blueprint`]: an allocator built in memory that a machine can map |
//! | `frames.rs` | what is behind the frames: their contents, and the kernel's record of each |
//! | [`locks`] | how long to hold the zone lock: the experiment of 2007 |
//! | [`setting`] | [`Setting`]: machine, allocator, memory, seed; [`instructions`]: how many come between two accesses |
//! | [`tasks`] | [`Runner`]: recorded jobs as tasks |
//! | [`lock`] | a lock whose kind is chosen at run time; [`linux_lock`]: those of Linux |
//! | [`timed`] | a lock that records how long it was waited for and held |
//! | [`storm`], [`pft`], [`drains`], [`kernbench`] | the experiments |
//! | [`slabs`] | the experiments with objects: sockets, remote frees, memory |

#![deny(unsafe_code)]

mod barrier;
pub mod build;
pub mod drains;
pub mod explore;
mod frames;
pub mod instructions;
pub mod kernbench;
pub mod linux_lock;
pub mod lock;
pub mod locks;
pub mod pft;
mod platform;
mod ring;
pub mod setting;
pub mod slabs;
pub mod storm;
pub mod tasks;
pub mod timed;

pub use brickyard_designs::classics::Configuration;
pub use build::{Blueprint, Job, OwnPages, SharedPages, Slots};
pub use platform::Simulated;
pub use setting::{RunError, Setting};
pub use tasks::Runner;
