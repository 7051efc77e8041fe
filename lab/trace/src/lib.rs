//! Traces of a real Linux host's page allocator: its requests and frees, and the state of memory
//! before and after them.
//!
//! A [`Trace`] is a header, the state of every frame at the start and at the end, and the events
//! between, in order of time.
//!
//! | module | contents |
//! |---|---|
//! | [`event`] | one event: an allocation, a free, a fallback |
//! | [`state`] | what a frame was used for |
//! | [`header`] | where a trace comes from, the host's own statistics, what was lost |
//! | [`table`] | a flat Parquet table: the form of all files of the lab |
//! | [`mod@file`] | the trace file: Parquet, written incrementally; the reader trusts nothing |
//! | [`record`] | the recorder: from the kernel's ring buffers |
//! | [`import`] | traces from the text that ftrace, perf and trace-cmd print |
//! | [`summary`] | the main figures of a trace |
//! | [`trace`] | a trace in memory, or gone through event by event |

#![forbid(unsafe_code)]

pub mod event;
pub mod file;
mod flags;
pub mod header;
pub mod import;
pub mod record;
pub mod state;
pub mod summary;
pub mod table;
pub mod trace;

pub use event::{Event, NameId, NameIds, Step, What};
pub use header::{Flag, Flags, Header, HostTexts, Lost, Reading, TextTimes};
pub use state::{MOST_READERS, PageState, PageUse, ReadTime, StateRun, States};
pub use trace::{Events, Trace, name_in};
