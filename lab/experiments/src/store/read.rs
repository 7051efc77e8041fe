//! Columns to rows. A file may come from another machine, and may be cut off or damaged: nothing in it is believed before it is checked, and no page is unpacked before its claim
//! is.

use core::panic::AssertUnwindSafe;
use std::collections::HashMap;
use std::fs::File;
use std::io::Read as _;
use std::panic::catch_unwind;
use std::path::Path;

use brickyard_report::{Better, Host};
use brickyard_trace::file::check_claims;
use bytes::Bytes;
use parquet::file::metadata::FileMetaData;
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::{Field, Row};

use super::VERSION;
use super::error::ReadError;
use super::ran::Ran;
use super::schema::{EXPERIMENT, HOST_KEY, NAMES, PROGRAM_KEY, RAN_KEY, VERSION_KEY};
use crate::raw::{CellRows, Kind, Raw, experiment_of};

/// More rows no run has: the longest series has some thousands.
const ROWS_MOST: usize = 1 << 20;

/// Larger is no cell's file.
const BYTES_MOST: u64 = 64 << 20;

/// Reads a cell's file.
///
/// # Errors
/// [`ReadError`]: it cannot be read, or is not what a cell gives.
pub fn read_cell(path: &Path) -> Result<CellRows, ReadError> {
    let bytes = bytes_of(path, ReadError::damaged)?;
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

/// Reads the file of all rows that [`write_rows`](super::write_rows) wrote, in whatever order its rows are by now: the cells in the order of their first rows, each with its rows in the
/// order of the file. Hosts and builds are unknown where an older version wrote it.
///
/// # Errors
/// [`ReadError`]: it cannot be read, or is no such file.
pub fn read_rows(path: &Path) -> Result<Vec<CellRows>, ReadError> {
    let bytes = bytes_of(path, ReadError::no_rows)?;
    guarded(|| parse(&bytes, Form::Rows)).map_err(|why| ReadError::no_rows(path, why))
}

/// Reads what the bytes of a file of all rows say.
///
/// # Errors
/// What is wrong with them.
pub fn read_rows_bytes(bytes: &[u8]) -> Result<Vec<CellRows>, String> {
    let bytes = Bytes::copy_from_slice(bytes);
    guarded(|| parse(&bytes, Form::Rows))
}

/// The bytes of a file that is not too large, whatever the system says of its length: a device or a pipe has none. `too_large` makes the error of one that is.
fn bytes_of(
    path: &Path,
    too_large: fn(&Path, &'static str) -> ReadError,
) -> Result<Bytes, ReadError> {
    let io = |source| ReadError::Io {
        path: path.to_owned(),
        source,
    };
    let mut bytes = Vec::new();
    let file = File::open(path).map_err(io)?;
    let read = file.take(BYTES_MOST + 1).read_to_end(&mut bytes);
    if read.map_err(io)? as u64 > BYTES_MOST {
        return Err(too_large(path, "it is larger than 64 MiB"));
    }
    Ok(Bytes::from(bytes))
}

/// The Parquet crate has assertions that a damaged file can break. They are no danger, but they are panics.
fn guarded<T>(parse: impl FnOnce() -> Result<T, String>) -> Result<T, String> {
    let parsed = catch_unwind(AssertUnwindSafe(parse));
    parsed.unwrap_or_else(|_| Err("its parts contradict each other".to_owned()))
}

fn one_cell(bytes: &Bytes) -> Result<CellRows, String> {
    let mut cells = parse(bytes, Form::Cell)?;
    match (cells.pop(), cells.pop()) {
        (Some(cell), None) => Ok(cell),
        (None, _) => Err("it has no row".to_owned()),
        _ => Err("it has rows of two cells".to_owned()),
    }
}

/// Whose file it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    /// Of a cell.
    Cell,
    /// Of all rows, with the experiment before the other columns.
    Rows,
}

impl Form {
    const fn columns(self) -> &'static [&'static str] {
        match self {
            Self::Cell => &[],
            Self::Rows => &[EXPERIMENT],
        }
    }
}

/// The cells of a table, in the order in which they first come.
fn parse(bytes: &Bytes, form: Form) -> Result<Vec<CellRows>, String> {
    let text = |error: parquet::errors::ParquetError| error.to_string();
    let file = SerializedFileReader::new(bytes.clone()).map_err(text)?;
    check_claims(&file, bytes)?;
    let about = file.metadata().file_metadata();
    let columns = about.schema_descr().columns().iter();
    let wanted = form.columns().iter().chain(&NAMES);
    if !columns
        .map(|column| column.name())
        .eq(wanted.clone().copied())
    {
        let wanted: Vec<&str> = wanted.copied().collect();
        return Err(format!("its columns are not {}", wanted.join(", ")));
    }
    let ran = check_pairs(about, form)?;
    let mut cells: Vec<CellRows> = Vec::new();
    let mut places: HashMap<String, usize> = HashMap::new();
    for (rows, row) in file.get_row_iter(None).map_err(text)?.enumerate() {
        if rows == ROWS_MOST {
            return Err(format!("it has more than {ROWS_MOST} rows"));
        }
        let next = Next::of(&row.map_err(text)?, form)?;
        match places.get(&next.cell) {
            Some(&place) => next.join(&mut cells[place])?,
            None => {
                places.insert(next.cell.clone(), cells.len());
                cells.push(next.begin(&ran));
            }
        }
    }
    Ok(cells)
}

/// What the key-value pairs say, if the version is that of this reader.
fn check_pairs(about: &FileMetaData, form: Form) -> Result<Ran, String> {
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
    if form == Form::Rows
        && let Some(json) = said(RAN_KEY)
    {
        return Ran::from_json(&json)
            .map_err(|error| format!("its key `{RAN_KEY}` does not say where cells ran: {error}"));
    }
    let host = said(HOST_KEY).and_then(|json| serde_json::from_str(&json).ok());
    let host: Host = host.unwrap_or_else(Host::unknown);
    Ok(Ran::all(host, said(PROGRAM_KEY).unwrap_or_default()))
}

/// A row, taken apart.
struct Next {
    cell: String,
    kind: Kind,
    seed: u64,
    raw: Raw,
}

impl Next {
    /// The first row of its cell.
    fn begin(self, ran: &Ran) -> CellRows {
        let (host, program) = ran.of(&self.cell);
        CellRows {
            cell: self.cell,
            kind: self.kind,
            seed: self.seed,
            host,
            program,
            rows: vec![self.raw],
        }
    }

    /// One more row of its cell.
    fn join(self, cell: &mut CellRows) -> Result<(), String> {
        if (self.kind, self.seed) != (cell.kind, cell.seed) {
            let cell = &cell.cell;
            return Err(format!("the rows of {cell} do not agree on kind and seed"));
        }
        cell.rows.push(self.raw);
        Ok(())
    }

    #[allow(
        clippy::cast_sign_loss,
        reason = "signed and unsigned numbers of Parquet have the same bits"
    )]
    fn of(row: &Row, form: Form) -> Result<Self, String> {
        let fields: Vec<&Field> = row.get_column_iter().map(|(_, field)| field).collect();
        let (before, fields) = fields
            .split_at_checked(form.columns().len())
            .ok_or("a row has too few columns")?;
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
            "neither" => Better::Neither,
            _ => return Err(wrong(8, "higher, lower or neither")),
        };
        let at = match fields.get(10) {
            Some(Field::Null) => None,
            _ => Some(number(10)?),
        };
        let cell = text(0)?;
        if let [experiment] = before
            && **experiment != Field::Str(experiment_of(&cell).to_owned())
        {
            return Err(format!(
                "{cell} is no cell of its {EXPERIMENT} {experiment}"
            ));
        }
        Ok(Self {
            cell,
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
