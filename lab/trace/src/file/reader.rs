//! Reads a trace and believes nothing: every count, number and name is checked before it is used,
//! and memory grows with what was read, not with what the file says there is.

use core::num::NonZero;
use std::fs;
use std::path::Path;
use std::thread;

use bytes::Bytes;
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::schema::types::SchemaDescriptor;

use super::rows::{Batches, Part, Whole};
use super::schema::ROWS_PER_BYTE;
use super::{ReadError, metadata};
use crate::Trace;
use crate::table::{self, Fault, RowGroup};

/// Rows that even the smallest file may have.
const FEW_ROWS: usize = 1 << 16;

/// Row groups that are read at the same time: each takes 20 MB meanwhile.
const MOST_WORKERS: usize = 16;

/// Reads the trace in the file `path`: 40 bytes of memory an event, and those of the file
/// meanwhile.
///
/// # Errors
///
/// If the file cannot be read, is no trace, is cut off or damaged, or was written in a form that is
/// not known. The message says which, and what to do.
pub fn read(path: &Path) -> Result<Trace, ReadError> {
    if !fs::metadata(path)?.is_file() {
        return Err(ReadError::NoFile);
    }
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
    table::guarded(|| parse(&bytes))
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
            [] => ReadError::Empty,
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

fn parse(bytes: &Bytes) -> Result<Trace, ReadError> {
    let limit = bytes
        .len()
        .saturating_mul(ROWS_PER_BYTE)
        .saturating_add(FEW_ROWS);
    let file = table::open(bytes)?;
    let about = file.metadata().file_metadata();
    let pairs = about.key_value_metadata().map_or(&[][..], Vec::as_slice);
    let header = metadata::from_pairs(pairs)?;
    let schema = about.schema_descr();
    table::check_claims(&file, bytes)?;
    let mut trace = Trace {
        header,
        ..Trace::default()
    };
    // Room for as many events as real files of this size have at most, whatever this one says.
    trace.events.reserve(bytes.len().min(rows_said(&file)));
    let mut whole = Whole::default();
    let groups: Vec<usize> = (0..file.num_row_groups()).collect();
    let workers = thread::available_parallelism()
        .map_or(1, NonZero::get)
        .min(MOST_WORKERS);
    let mut first = 0;
    for wave in groups.chunks(workers) {
        let work: Vec<_> = wave
            .iter()
            .map(|&index| {
                let rows = usize::try_from(file.metadata().row_group(index).num_rows())
                    .unwrap_or(usize::MAX);
                let work = Work { index, rows, first };
                first = first.saturating_add(rows);
                work
            })
            .collect();
        if first > limit {
            return Err(ReadError::Damaged(
                "it says that it has more rows than a file of its size can have".to_owned(),
            ));
        }
        for part in read_wave(&file, schema, &work) {
            whole.append(&mut trace, part?)?;
        }
    }
    Ok(trace)
}

fn rows_said(file: &SerializedFileReader<Bytes>) -> usize {
    let groups = file.metadata().row_groups().iter();
    let rows = groups.map(|group| usize::try_from(group.num_rows()).unwrap_or(0));
    rows.fold(0, usize::saturating_add)
}

/// A row group to read: which, how many rows it says it has, and how many are before it.
struct Work {
    index: usize,
    rows: usize,
    first: usize,
}

/// Reads row groups at the same time, each in a thread. (A panic in one is no panic here.)
fn read_wave(
    file: &SerializedFileReader<Bytes>,
    schema: &SchemaDescriptor,
    wave: &[Work],
) -> Vec<Result<Part, ReadError>> {
    if let [work] = wave {
        return vec![read_group(file, schema, work)];
    }
    thread::scope(|scope| {
        let threads: Vec<_> = wave
            .iter()
            .map(|work| scope.spawn(|| read_group(file, schema, work)))
            .collect();
        let parts = threads.into_iter().map(|thread| {
            thread
                .join()
                .unwrap_or_else(|_| Err(Fault::contradicts().into()))
        });
        parts.collect()
    })
}

fn read_group(
    file: &SerializedFileReader<Bytes>,
    schema: &SchemaDescriptor,
    work: &Work,
) -> Result<Part, ReadError> {
    let reader = file.get_row_group(work.index).map_err(Fault::from)?;
    let group = RowGroup {
        reader: reader.as_ref(),
        schema,
    };
    let mut part = Part::new(work.first, work.rows);
    let read = Batches::open(&group)?.read_all(&mut part)?;
    if read != work.rows {
        let why = format!("a row group of {} rows has {read}", work.rows);
        return Err(ReadError::Damaged(why));
    }
    Ok(part)
}
