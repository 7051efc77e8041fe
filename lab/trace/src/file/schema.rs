//! The columns: names, types, encodings.
//!
//! Physical types and encodings are those that every Parquet reader supports. Numbers that grow or
//! vary widely (`time`, `frame`, `frames`) are stored as differences, all others with one
//! dictionary a row group; zstd compresses both. On recorded hosts that makes 3 to 5 bytes an
//! event.
//!
//! Invariant `memory-in-proportion`: the memory that a reader allocates is proportional to the size
//! of the file, whatever the file declares.

use parquet::basic::Encoding;
use parquet::errors::ParquetError;
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::schema::types::{ColumnPath, TypePtr};

use crate::table;

/// The columns in their order.
const SCHEMA: &str = "
message trace {
    required binary kind (STRING);
    required int64 time (INTEGER(64,false));
    optional int32 cpu (INTEGER(16,false));
    optional int32 pid;
    optional binary name (STRING);
    required int64 frame (INTEGER(64,false));
    required int32 order (INTEGER(8,false));
    optional binary mobility (STRING);
    optional int64 flags (INTEGER(64,false));
    optional int32 from_order (INTEGER(8,false));
    optional binary from (STRING);
    optional boolean claimed;
    optional int64 frames (INTEGER(64,false));
    optional binary usage (STRING);
    optional boolean active;
    optional boolean dirty;
    optional boolean writeback;
    optional boolean unevictable;
    optional int32 second (INTEGER(32,false));
    optional int32 third (INTEGER(32,false));
    optional boolean shared;
    optional boolean mapped;
}";

/// Columns stored as differences.
const DIFFERENCES: [&str; 3] = ["time", "frame", "frames"];

/// Rows of a row group: what the writer buffers, and what a parallel reader reads at a time.
pub(super) const GROUP_ROWS: usize = 1 << 19;

/// Rows of a page. Because each page has its own header, a file of n rows has at least n /
/// [`ROWS_PER_BYTE`] bytes, however well its rows compress.
const PAGE_ROWS: usize = 1 << 16;

/// More rows a byte of file than this writer can reach: a file that declares more is refused before
/// memory is allocated for them.
pub(super) const ROWS_PER_BYTE: usize = 256;

/// Bytes of a process name, at most. Linux has 16.
pub(super) const NAME_BYTES: usize = 1024;

/// The schema in Parquet's form.
pub(super) fn schema() -> Result<TypePtr, ParquetError> {
    table::schema(SCHEMA)
}

/// How the columns are encoded and compressed.
pub(super) fn properties() -> Result<WriterProperties, ParquetError> {
    let mut properties = table::properties()?
        .set_statistics_enabled(EnabledStatistics::Chunk)
        .set_max_row_group_row_count(Some(GROUP_ROWS))
        .set_data_page_row_count_limit(PAGE_ROWS);
    for name in DIFFERENCES {
        let column = ColumnPath::from(name);
        properties = properties
            .set_column_dictionary_enabled(column.clone(), false)
            .set_column_encoding(column, Encoding::DELTA_BINARY_PACKED);
    }
    Ok(properties.build())
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by it")]
mod tests {
    use super::*;

    #[test]
    fn the_schema_can_be_parsed() {
        assert_eq!(schema().unwrap().get_fields().len(), 22);
        properties().unwrap();
    }
}
