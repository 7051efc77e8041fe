//! Traces: what the page allocator of a real Linux host was asked for, and what its memory looked
//! like before and after.
//!
//! A [`Trace`] is a header, the state of every frame at the start and at the end, and the events
//! between, in order of time.
//!
//! | module | what it tells |
//! |---|---|
//! | [`event`] | one event: an allocation, a free, a fallback |
//! | [`state`] | what a frame was used for |
//! | [`header`] | where a trace comes from, what the host said of itself, what was lost |
//! | [`mod@file`] | the trace file: Parquet, written bit by bit; the reader believes nothing |
//! | [`table`] | what every file of the lab is: a flat Parquet table |
//! | [`record`] | the recorder: from the kernel's ring buffers |
//! | [`import`] | traces out of the text that ftrace, perf and trace-cmd print |
//! | [`summary`] | what a trace tells at a glance |
//! | [`trace`] | all of it in memory |

#![forbid(unsafe_code)]

pub mod event;
pub mod file;
mod flags;
pub mod header;
pub mod import;
mod named;
pub mod record;
pub mod state;
pub mod summary;
pub mod table;
pub mod trace;

pub use event::{Event, NameId, NameIds, What};
pub use header::{Flag, Flags, Header, HostTexts, Lost};
pub use state::{PageState, PageUse, StateRun};
pub use trace::Trace;
