//! The model kernel, and what is done with it: traces replayed through every design, and the
//! protocol of 2005 and 2007.
//!
//! | module | what it tells |
//! |---|---|
//! | [`pages`] | who has which frame |
//! | [`mixing`] | which page blocks hold more than one mobility |
//! | [`roles`] | what a recorded allocation was for |
//! | [`script`] | a trace made ready for many replays |
//! | [`machine`] | the machine it is replayed on |
//! | [`build`] | that machine with an allocator of some configuration |
//! | [`kernel`] | processes, page cache, slabs; reclaim and migration |
//! | [`stopwatch`] | what the allocator itself costs |
//! | [`view`] | memory at one moment |
//! | [`outcome`] | what came of a replay |
//! | [`replay`](mod@replay) | a trace through one design |
//! | [`antifrag`] | the protocol of 2005 and 2007 |
//! | [`printed`] | tables that were published, kept as files |
//! | [`jobs`] | traces cut into jobs, the tasks of a simulated multiprocessor |

#![forbid(unsafe_code)]

pub mod antifrag;
pub mod build;
pub mod jobs;
pub mod kernel;
pub mod machine;
pub mod mixing;
pub mod outcome;
pub mod pages;
pub mod printed;
mod processor;
pub mod replay;
pub mod roles;
pub mod script;
pub mod stopwatch;
pub mod view;

pub use brickyard_trace::named;
pub use build::BuildError;
pub use kernel::{Kernel, Rules, Swap};
pub use machine::{Machine, MachineError};
pub use outcome::Outcome;
pub use processor::Processor;
pub use replay::{Options, Start, Watcher, replay};
pub use script::{Script, ScriptError};
pub use view::{FrameUse, View};
