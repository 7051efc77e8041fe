//! The recorder: the page allocator's events of a running Linux host, read from the kernel's ring
//! buffers as raw bytes.
//!
//! ```text
//! kernel: a buffer a CPU --trace_pipe_raw--> reader --> spool (a file) --merge by time--> writer of the trace
//!                                               |
//!                          page, format, decode: the bytes' meaning, by the kernel's own description
//! ```
//!
//! | module | contents |
//! |---|---|
//! | `tracefs`, `instance` | the kernel's tracing files, and a tracing instance of our own, so that the host's settings are not changed |
//! | [`mod@format`] | the kernel's description of an event |
//! | [`page`] | a sub-buffer of the ring buffer |
//! | [`decode`] | an event's bytes to a record |
//! | `optional` | events of zones, compaction and reclaim, in groups |
//! | [`row`] | a record, and its encoding in the spool |
//! | [`spool`] | the file that holds records until the recording ends |
//! | `reader` | the thread that empties the buffers into the spool |
//! | `names` | the name that a task had at each moment |
//! | `merge` | all CPUs' records in order of time |
//! | `recorder` | a recording from start to end |
//! | [`fallbacks`] | live counts of requests that fell back on memory of another mobility |
//!
//! The trace begins when tracing is switched on. Then the page states are read in chunks, each with
//! the time at which its read began. Events of a frame before that time are left out, since its
//! state includes them; at the end, events after it are. So states and events agree for every
//! frame, except for events while its chunk is being read.

pub mod decode;
mod error;
pub mod fallbacks;
pub mod format;
mod instance;
mod merge;
mod names;
mod optional;
pub mod page;
mod reader;
mod recorder;
pub mod row;
pub mod spool;
mod tracefs;

pub use error::RecordError;
pub use merge::Merged;
pub use optional::Group;
pub use recorder::{Clock, Disk, Plan, Progress, Recorded, Recorder};
pub use tracefs::Tracefs;
