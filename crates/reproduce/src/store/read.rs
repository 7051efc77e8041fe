//! Columns to rows. A file may come from another machine, and may be cut off or damaged: nothing in it is believed before it is checked, and no page is unpacked before its claim
//! is.

use core::panic::AssertUnwindSafe;
use std::fs;
use std::panic::catch_unwind;
use std::path::Path;

use brickyard_report::{Better, Host};
use brickyard_trace::file::check_claims;
use bytes::Bytes;
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::{Field, Row};

use super::VERSION;
use super::error::ReadError;
use super::schema::{HOST_KEY, NAMES, VERSION_KEY};
use crate::raw::{CellRows, Kind, Raw};

/// More rows no run has: the longest series has some thousands.
const ROWS_MOST: usize = 1 << 20;

/// Larger is no cell's file.
const BYTES_MOST: u64 = 64 << 20;

/// Reads a cell's file.
///
/// # Errors
/// [`ReadError`]: it cannot be read, or is not what a cell gives.
pub fn read_cell(path: &Path) -> Result<CellRows, ReadError> {
    let bytes = bytes_of(path)?;
    guarded(|| one_cell(&bytes)).map_err(|why| ReadError::damaged(path, why))
}

/// Reads what the bytes of a cell's file say.
///
/// # Errors
/// What is wrong with them.
pub fn read_cell_bytes(bytes: &[u8]) -> Result<CellRows, String> {
    let bytes = Bytes::copy_from_slice(bytes);
    guarded(|| one_cell(&bytes))
}

/// Reads the file of all rows that [`write_rows`](super::write_rows) wrote: the cells in the order of the file.
///
/// # Errors
/// [`ReadError`]: it cannot be read, or is no such file.
pub fn read_rows(path: &Path) -> Result<Vec<CellRows>, ReadError> {
    let bytes = bytes_of(path)?;
    guarded(|| parse(&bytes, 1)).map_err(|why| ReadError::no_rows(path, why))
}

/// The bytes of a file that is not too large.
fn bytes_of(path: &Path) -> Result<Bytes, ReadError> {
    let io = |source| ReadError::Io {
        path: path.to_owned(),
        source,
    };
    if fs::metadata(path).map_err(io)?.len() > BYTES_MOST {
        return Err(ReadError::damaged(path, "it is larger than 64 MiB"));
    }
    Ok(Bytes::from(fs::read(path).map_err(io)?))
}

/// The Parquet crate has assertions that a damaged file can break. They are no danger, but they are panics.
fn guarded<T>(parse: impl FnOnce() -> Result<T, String>) -> Result<T, String> {
    let parsed = catch_unwind(AssertUnwindSafe(parse));
    parsed.unwrap_or_else(|_| Err("its parts contradict each other".to_owned()))
}

fn one_cell(bytes: &Bytes) -> Result<CellRows, String> {
    let mut cells = parse(bytes, 0)?;
    match (cells.pop(), cells.pop()) {
        (Some(cell), None) => Ok(cell),
        (None, _) => Err("it has no row".to_owned()),
        _ => Err("it has rows of two cells".to_owned()),
    }
}

/// The cells of a table whose columns are those of a cell, after `before` others.
fn parse(bytes: &Bytes, before: usize) -> Result<Vec<CellRows>, String> {
    let text = |error: parquet::errors::ParquetError| error.to_string();
    let file = SerializedFileReader::new(bytes.clone()).map_err(text)?;
    check_claims(&file, bytes)?;
    let about = file.metadata().file_metadata();
    let columns = about.schema_descr().columns().iter().skip(before);
    if !columns.map(|column| column.name()).eq(NAMES) {
        return Err(format!("its columns are not {}", NAMES.join(", ")));
    }
    let said = |key: &str| {
        let pairs = about.key_value_metadata().into_iter().flatten();
        let mut pairs = pairs.filter(|pair| pair.key == key);
        pairs.find_map(|pair| pair.value.clone())
    };
    match said(VERSION_KEY) {
        Some(version) if version == VERSION.to_string() => {}
        Some(version) => return Err(format!("it is of version `{version}`, not {VERSION}")),
        None => return Err(format!("it has no key `{VERSION_KEY}`")),
    }
    let host = said(HOST_KEY).and_then(|json| serde_json::from_str(&json).ok());
    let host: Host = host.unwrap_or_else(Host::unknown);
    let mut cells: Vec<CellRows> = Vec::new();
    for (rows, row) in file.get_row_iter(None).map_err(text)?.enumerate() {
        if rows == ROWS_MOST {
            return Err(format!("it has more than {ROWS_MOST} rows"));
        }
        let next = Next::of(&row.map_err(text)?, before)?;
        match cells.last_mut() {
            Some(cell) if cell.cell == next.cell => {
                if (next.kind, next.seed) != (cell.kind, cell.seed) {
                    return Err(format!(
                        "the rows of {} do not agree on kind and seed",
                        cell.cell
                    ));
                }
                cell.rows.push(next.raw);
            }
            _ => cells.push(CellRows {
                cell: next.cell,
                kind: next.kind,
                seed: next.seed,
                host: host.clone(),
                rows: vec![next.raw],
            }),
        }
    }
    Ok(cells)
}

/// A row, taken apart.
struct Next {
    cell: String,
    kind: Kind,
    seed: u64,
    raw: Raw,
}

impl Next {
    #[allow(
        clippy::cast_sign_loss,
        reason = "signed and unsigned numbers of Parquet have the same bits"
    )]
    fn of(row: &Row, before: usize) -> Result<Self, String> {
        let fields = row.get_column_iter().skip(before);
        let fields: Vec<&Field> = fields.map(|(_, field)| field).collect();
        let text = |place: usize| match fields.get(place) {
            Some(Field::Str(text)) => Ok(text.clone()),
            _ => Err(wrong(place, "text")),
        };
        let number = |place: usize| match fields.get(place) {
            Some(Field::Double(value)) if value.is_finite() => Ok(*value),
            _ => Err(wrong(place, "a finite number")),
        };
        let kind = text(1)?
            .parse::<Kind>()
            .map_err(|error| error.to_string())?;
        let seed = match fields.get(2) {
            Some(Field::ULong(seed)) => *seed,
            Some(Field::Long(seed)) => *seed as u64,
            _ => return Err(wrong(2, "a whole number")),
        };
        let run = match fields.get(9) {
            Some(Field::UInt(run)) => *run,
            Some(Field::Int(run)) => *run as u32,
            _ => return Err(wrong(9, "a whole number")),
        };
        let better = match text(8)?.as_str() {
            "higher" => Better::Higher,
            "lower" => Better::Lower,
            _ => return Err(wrong(8, "higher or lower")),
        };
        let at = match fields.get(10) {
            Some(Field::Null) => None,
            _ => Some(number(10)?),
        };
        Ok(Self {
            cell: text(0)?,
            kind,
            seed,
            raw: Raw {
                machine: text(3)?,
                workload: text(4)?,
                config: text(5)?,
                metric: text(6)?,
                unit: text(7)?,
                better,
                run,
                at,
                value: number(11)?,
            },
        })
    }
}

fn wrong(place: usize, wanted: &str) -> String {
    let name = NAMES.get(place).copied().unwrap_or_default();
    format!("its column {name} has something else than {wanted}")
}
