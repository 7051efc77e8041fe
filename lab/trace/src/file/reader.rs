//! Reads a trace from an untrusted file: every count, number and name is checked before it is used,
//! and memory grows with what was read, not with what the file declares.

use core::num::NonZero;
use std::fs;
use std::path::Path;
use std::thread;

use bytes::Bytes;
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::schema::types::SchemaDescriptor;

use super::rows::{Assembly, Batches, GroupRows};
use super::schema::ROWS_PER_BYTE;
use super::{ReadError, metadata};
use crate::Trace;
use crate::table::{self, Fault, RowGroup};

/// Rows that any file may declare, however small it is.
const FEW_ROWS: usize = 1 << 16;

/// Row groups that are read in parallel, at most: each takes 20 MB while it is read.
const MOST_WORKERS: usize = 16;

/// Reads the trace in the file `path`. Takes 48 bytes of memory an event, and while it reads, the
/// size of the file.
///
/// # Errors
///
/// If the file cannot be read, is not a trace, is truncated or damaged, or has an unknown version.
/// The message says which, and what to do.
pub fn read(path: &Path) -> Result<Trace, ReadError> {
    if !fs::metadata(path)?.is_file() {
        return Err(ReadError::NoFile);
    }
    read_all(Bytes::from(fs::read(path)?))
}

/// Reads the trace in `bytes`, the contents of a trace file.
///
/// # Errors
///
/// As [`read`].
pub fn read_bytes(bytes: &[u8]) -> Result<Trace, ReadError> {
    read_all(Bytes::copy_from_slice(bytes))
}

fn read_all(bytes: Bytes) -> Result<Trace, ReadError> {
    check_magic(&bytes)?;
    table::guarded(|| parse(&bytes))
}

/// Refuses what is not a Parquet file, by its first and last bytes.
fn check_magic(bytes: &[u8]) -> Result<(), ReadError> {
    const MAGIC: &[u8] = b"PAR1";
    const ZSTD: &[u8] = &[0x28, 0xb5, 0x2f, 0xfd];
    if !bytes.starts_with(MAGIC) {
        let head = &bytes[..bytes.len().min(512)];
        let is_text =
            |byte: &u8| matches!(byte, b'\t' | b'\n' | b'\r' | b' '..=b'~') || *byte >= 0x80;
        return Err(match head {
            [] => ReadError::Empty,
            _ if head.starts_with(ZSTD) => ReadError::Text("a zstd file, perhaps compressed text"),
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
    // Real files have fewer than one event a byte, so no more is reserved, whatever this one
    // declares.
    trace.events.reserve(bytes.len().min(rows_declared(&file)));
    let mut assembly = Assembly::default();
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
                "it declares more rows than a file of its size can have".to_owned(),
            ));
        }
        for rows in read_wave(&file, schema, &work) {
            assembly.append(&mut trace, rows?)?;
        }
    }
    Ok(trace)
}

fn rows_declared(file: &SerializedFileReader<Bytes>) -> usize {
    let groups = file.metadata().row_groups().iter();
    let rows = groups.map(|group| usize::try_from(group.num_rows()).unwrap_or(0));
    rows.fold(0, usize::saturating_add)
}

/// A row group to read: its index, how many rows it declares, and how many rows precede it.
struct Work {
    index: usize,
    rows: usize,
    first: usize,
}

/// Reads row groups in parallel, each in a thread. A panic in one of them becomes an error.
fn read_wave(
    file: &SerializedFileReader<Bytes>,
    schema: &SchemaDescriptor,
    wave: &[Work],
) -> Vec<Result<GroupRows, ReadError>> {
    if let [work] = wave {
        return vec![read_group(file, schema, work)];
    }
    thread::scope(|scope| {
        let threads: Vec<_> = wave
            .iter()
            .map(|work| scope.spawn(|| read_group(file, schema, work)))
            .collect();
        let groups = threads.into_iter().map(|thread| {
            thread
                .join()
                .unwrap_or_else(|_| Err(Fault::contradicts().into()))
        });
        groups.collect()
    })
}

fn read_group(
    file: &SerializedFileReader<Bytes>,
    schema: &SchemaDescriptor,
    work: &Work,
) -> Result<GroupRows, ReadError> {
    let reader = file.get_row_group(work.index).map_err(Fault::from)?;
    let group = RowGroup {
        reader: reader.as_ref(),
        schema,
    };
    let mut rows = GroupRows::new(work.first, work.rows);
    let read = Batches::open(&group)?.read_all(&mut rows)?;
    if read != work.rows {
        let why = format!("a row group declares {} rows but has {read}", work.rows);
        return Err(ReadError::Damaged(why));
    }
    Ok(rows)
}
