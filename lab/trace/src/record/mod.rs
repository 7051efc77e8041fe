//! The recorder: what a running Linux host asks of its page allocator, taken from the kernel's ring
//! buffers as raw bytes.
//!
//! ```text
//! kernel: a buffer a CPU --trace_pipe_raw--> reader --> spool (a file) --merge by time--> whoever writes the trace
//!                                               |
//!                          page, format, decode: what the bytes mean, as the kernel describes them itself
//! ```
//!
//! | module | what it tells |
//! |---|---|
//! | `tracefs`, `instance` | where the kernel's tracing files are; an instance of our own there, so that the host's settings stay as they are |
//! | [`mod@format`] | the kernel's description of an event |
//! | [`page`] | a sub-buffer of the ring buffer |
//! | [`decode`] | an event's bytes as a record |
//! | [`row`] | what is kept of an event, and its bytes in the spool |
//! | [`spool`] | where records wait |
//! | `reader` | the thread between buffers and spool |
//! | `names` | which name a task had when |
//! | `merge` | all CPUs' records in order of time |
//! | `recorder` | a recording from start to end |
//! | [`fallbacks`] | who fell back on memory of another mobility, as it happens |
//!
//! The trace begins when tracing is switched on. Then the page states are read, chunk by chunk,
//! each with the time it was read at; events of a frame before its chunk's time are left out, since
//! the state knows them. At the end it is the other way round. So states and events fit together to
//! the frame, but for what happens while a chunk is being read.

pub mod decode;
mod error;
pub mod fallbacks;
pub mod format;
mod instance;
mod merge;
mod names;
pub mod page;
mod reader;
mod recorder;
pub mod row;
pub mod spool;
mod tracefs;

pub use error::RecordError;
pub use merge::Merged;
pub use recorder::{Clock, Disk, Plan, Progress, Recorded, Recorder};
