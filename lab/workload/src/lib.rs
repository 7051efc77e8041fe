//! The model kernel and its uses: traces replayed through every design, and the fragmentation
//! protocol of 2005 and 2007.
//!
//! | module | what it holds |
//! |---|---|
//! | [`pages`] | the owner of each frame |
//! | [`mixing`] | page blocks with more than one mobility |
//! | [`roles`] | the purpose of recorded allocations |
//! | [`start`] | what the page states of a recorded host do not show |
//! | `unrecorded` | pages that are taken without an event |
//! | `passes` | the events of a trace, gone through several times |
//! | `steps` | steps in memory, or in a temporary file |
//! | [`script`] | a trace prepared for many replays |
//! | [`machine`] | the machine it is replayed on |
//! | [`build`] | that machine with an allocator of some configuration |
//! | [`kernel`] | processes, page cache, slabs; reclaim and migration |
//! | [`stopwatch`] | the time of the allocator's own calls |
//! | [`view`] | the state of memory at one moment |
//! | [`outcome`] | the results of a replay |
//! | [`decisions`] | step by step beside a recorded host |
//! | [`round_trip`] | a replay recorded as a host is |
//! | [`fidelity`] | a replay's end beside that of the recorded host |
//! | [`replay`](mod@replay) | replaying a trace through one design |
//! | [`antifrag`] | the protocol of 2005 and 2007 |
//! | [`printed`] | published tables, kept as files |
//! | [`jobs`] | traces cut into jobs, the tasks of a simulated multiprocessor |

#![forbid(unsafe_code)]

pub mod antifrag;
pub mod build;
pub mod decisions;
pub mod fidelity;
pub mod jobs;
pub mod kernel;
pub mod machine;
pub mod mixing;
pub mod outcome;
pub mod pages;
mod passes;
pub mod printed;
mod processor;
pub mod replay;
pub mod roles;
pub mod round_trip;
pub mod script;
pub mod start;
mod steps;
pub mod stopwatch;
mod unrecorded;
pub mod view;

pub use build::BuildError;
pub use kernel::{Kernel, Rules, Swap};
pub use machine::{Machine, MachineError};
pub use outcome::Outcome;
pub use processor::Processor;
pub use replay::{Options, Start, Watcher, replay};
pub use script::{Script, ScriptError};
pub use view::{FrameUse, View};
