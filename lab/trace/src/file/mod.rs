//! The trace file: one flat Parquet table, in which a row is an event or a run of page states, and
//! the header as key-value pairs. `docs/book/formats.md` describes every column.
//!
//! | file | contents |
//! |---|---|
//! | `schema` | the columns and how they are stored |
//! | `kind` | the names used in them |
//! | `metadata` | the header as pairs |
//! | `check` | the rules for the rows of every trace |
//! | `columns`, `writer` | rows to columns, row group by row group |
//! | `rows` | columns to rows, with every value checked |
//! | `source` | an open file, whose events are read as often as needed |
//! | `reader` | a whole file |
//!
//! The reader's memory is bounded, whatever a file declares: no page may claim more than 4 MiB, and
//! no file more than 256 rows a byte (the writer starts new pages every 65536 rows, each with a
//! header, so it stays far below that).

mod check;
mod columns;
mod error;
mod kind;
mod metadata;
mod reader;
mod rows;
mod schema;
mod source;
mod writer;

use std::path::Path;

pub use error::{ReadError, WriteError};
pub use metadata::VERSION;
pub use reader::{read, read_bytes};
pub use source::Source;
pub use writer::Writer;

use crate::Trace;

/// Writes `trace` to the file `path`, which appears once it is complete.
///
/// # Errors
///
/// Those of [`Writer`]: events out of order, page states that overlap, a full disk.
pub fn write(path: &Path, trace: &Trace) -> Result<(), WriteError> {
    write_to(Writer::create(path)?, trace)
}

/// Writes all of `trace` with `writer`. A caller that opens the writer before it makes the trace
/// finds out early that the file cannot be written.
///
/// # Errors
///
/// Those of [`write()`].
pub fn write_to(mut writer: Writer, trace: &Trace) -> Result<(), WriteError> {
    writer.start(&trace.start)?;
    writer.events(&trace.events, &trace.names)?;
    writer.end(&trace.end)?;
    writer.finish(&trace.header)
}
