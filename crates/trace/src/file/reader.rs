//! Reads a trace and believes nothing: every count, number and name is checked before it is used, and memory grows with what was read, not with what the file says there is.

use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use bytes::Bytes;
use parquet::file::reader::{FileReader, SerializedFileReader};

use super::column::{Place, damaged};
use super::rows::{Batches, Collector};
use super::schema::ROWS_PER_BYTE;
use super::{ReadError, metadata, pages};
use crate::Trace;

/// Rows that even the smallest file may have.
const FEW_ROWS: usize = 1 << 16;

/// Reads the trace in the file `path`: 40 bytes of memory an event, and those of the file meanwhile.
///
/// # Errors
///
/// If the file cannot be read, is no trace, is cut off or damaged, or was written in a form that is not known. The message says which, and what to do.
pub fn read(path: &Path) -> Result<Trace, ReadError> {
    read_all(Bytes::from(fs::read(path)?))
}

/// Reads the trace that `bytes` are.
///
/// # Errors
///
/// As [`read`].
pub fn read_bytes(bytes: &[u8]) -> Result<Trace, ReadError> {
    read_all(Bytes::copy_from_slice(bytes))
}

fn read_all(bytes: Bytes) -> Result<Trace, ReadError> {
    look(&bytes)?;
    // The Parquet crate has assertions that a damaged file can break. They are no danger, but they are panics.
    let parsed = catch_unwind(AssertUnwindSafe(|| parse(bytes)));
    parsed.unwrap_or_else(|_| {
        Err(ReadError::Damaged(
            "its parts contradict each other".to_owned(),
        ))
    })
}

/// What kind of file is it, by its first and last bytes?
fn look(bytes: &[u8]) -> Result<(), ReadError> {
    const MAGIC: &[u8] = b"PAR1";
    const ZSTD: &[u8] = &[0x28, 0xb5, 0x2f, 0xfd];
    if !bytes.starts_with(MAGIC) {
        let head = &bytes[..bytes.len().min(512)];
        let is_text =
            |byte: &u8| matches!(byte, b'\t' | b'\n' | b'\r' | b' '..=b'~') || *byte >= 0x80;
        return Err(match head {
            [] => ReadError::Truncated,
            _ if head.starts_with(ZSTD) => ReadError::Text("a zstd file, of text perhaps"),
            _ if head.iter().all(is_text) => ReadError::Text("text"),
            _ => ReadError::Foreign,
        });
    }
    if !bytes.ends_with(MAGIC) || bytes.len() < 12 {
        return Err(ReadError::Truncated);
    }
    Ok(())
}

fn parse(bytes: Bytes) -> Result<Trace, ReadError> {
    let limit = bytes
        .len()
        .saturating_mul(ROWS_PER_BYTE)
        .saturating_add(FEW_ROWS);
    let file = SerializedFileReader::new(bytes.clone()).map_err(damaged)?;
    let about = file.metadata().file_metadata();
    let pairs = about.key_value_metadata().map_or(&[][..], Vec::as_slice);
    let header = metadata::from_pairs(pairs)?;
    let schema = about.schema_descr();
    for index in 0..file.num_row_groups() {
        for chunk in file.metadata().row_group(index).columns() {
            let (start, length) = chunk.byte_range();
            let end = start
                .checked_add(length)
                .and_then(|end| usize::try_from(end).ok());
            let chunk = end.and_then(|end| bytes.get(usize::try_from(start).ok()?..end));
            let chunk = chunk.ok_or_else(|| {
                ReadError::Damaged("a column lies outside of the file".to_owned())
            })?;
            pages::check_pages(chunk).map_err(|why| ReadError::Damaged(why.to_owned()))?;
        }
    }
    let mut rows = Collector::new(limit);
    for index in 0..file.num_row_groups() {
        let group = file.get_row_group(index).map_err(damaged)?;
        let place = Place {
            group: group.as_ref(),
            schema,
        };
        let claimed = group.metadata().num_rows();
        let mut batches = Batches::open(&place)?;
        let read = batches.read_all(&mut rows)?;
        if i64::try_from(read) != Ok(claimed) {
            let why = format!("a row group of {claimed} rows has {read}");
            return Err(ReadError::Damaged(why));
        }
    }
    Ok(rows.into_trace(header))
}
