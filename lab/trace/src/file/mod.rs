//! The trace file: one flat Parquet table, a row an event or a run of page states, and the header
//! as key-value pairs. `docs/book/trace-format.md` tells it column by column.
//!
//! | file | what it tells |
//! |---|---|
//! | `schema` | the columns and how they are stored |
//! | `kind` | the names that stand in them |
//! | `metadata` | the header as pairs |
//! | `check` | what holds for the rows of every trace |
//! | `columns`, `writer` | rows to columns, row group by row group |
//! | `rows`, `reader` | back again, believing nothing |
//!
//! The reader's memory is bounded by the size of the file: no page may claim more than 4 MiB, and
//! no file more than 256 rows a byte (the writer gives every 65536 rows page heads of their own, so
//! it stays far below that).

mod check;
mod columns;
mod error;
mod kind;
mod metadata;
mod reader;
mod rows;
mod schema;
mod writer;

use std::path::Path;

pub use error::{ReadError, WriteError};
pub use metadata::VERSION;
pub use reader::{read, read_bytes};
pub use writer::Writer;

use crate::Trace;

/// Writes `trace` to the file `path`, which appears when it is whole.
///
/// # Errors
///
/// As [`Writer`]: events out of order, page states that overlap, a full disk.
pub fn write(path: &Path, trace: &Trace) -> Result<(), WriteError> {
    write_to(Writer::create(path)?, trace)
}

/// Writes all of `trace` by `writer`, which was made before the trace: so a file that cannot be
/// written is known early.
///
/// # Errors
///
/// As [`write()`].
pub fn write_to(mut writer: Writer, trace: &Trace) -> Result<(), WriteError> {
    writer.start(&trace.start)?;
    writer.events(&trace.events, &trace.names)?;
    writer.end(&trace.end)?;
    writer.finish(&trace.header)
}
