//! Reads columns as rows. A file may come from another machine, and may be truncated or damaged:
//! nothing in it is trusted before it is checked, and no page is decompressed before the size that
//! it claims is checked.

use std::collections::HashMap;
use std::fs::File;
use std::io::Read as _;
use std::path::Path;

use brickyard_results::{Better, Host};
use brickyard_trace::columns;
use brickyard_trace::table::{self, Fault, Input, RowGroup, check_claims, guarded};
use bytes::Bytes;
use parquet::data_type::{ByteArray, ByteArrayType, DoubleType, Int32Type, Int64Type};
use parquet::file::metadata::FileMetaData;
use parquet::file::reader::FileReader;

use super::error::ReadError;
use super::provenance::Provenance;
use super::schema::{EXPERIMENT, HOST_KEY, NAMES, PROGRAM_KEY, RAN_KEY, VERSION, VERSION_KEY};
use crate::raw::{CellRows, Method, Raw, experiment_of};

/// The most rows of a file: the longest series has some thousands.
const ROWS_MOST: usize = 1 << 20;

/// The largest file that is read.
const BYTES_MOST: u64 = 64 << 20;

/// Reads a cell's file.
///
/// # Errors
/// [`ReadError`] if it cannot be read or is not a valid result of a cell.
pub fn read_cell(path: &Path) -> Result<CellRows, ReadError> {
    let bytes = bytes_of(path, ReadError::damaged)?;
    let parsed = guarded(|| one_cell(&bytes));
    parsed.map_err(|why| ReadError::damaged(path, why.to_string()))
}

/// Parses the bytes of a cell's file.
///
/// # Errors
/// What is wrong with them.
pub fn read_cell_bytes(bytes: &[u8]) -> Result<CellRows, String> {
    let bytes = Bytes::copy_from_slice(bytes);
    guarded(|| one_cell(&bytes)).map_err(|why| why.to_string())
}

/// Reads the file of all rows that [`write_rows`](super::write_rows) wrote, even if its rows have
/// been reordered: the cells are in the order of their first rows, and their rows in the order of
/// the file. Hosts and builds are unknown if an older version wrote it.
///
/// # Errors
/// [`ReadError`] if it cannot be read or is not such a file.
pub fn read_rows(path: &Path) -> Result<Vec<CellRows>, ReadError> {
    let bytes = bytes_of(path, ReadError::no_rows)?;
    let parsed = guarded(|| parse(&bytes, Form::Rows));
    parsed.map_err(|why| ReadError::no_rows(path, why.to_string()))
}

/// Parses the bytes of a file of all rows.
///
/// # Errors
/// What is wrong with them.
pub fn read_rows_bytes(bytes: &[u8]) -> Result<Vec<CellRows>, String> {
    let bytes = Bytes::copy_from_slice(bytes);
    guarded(|| parse(&bytes, Form::Rows)).map_err(|why| why.to_string())
}

/// Reads the bytes of a file that is not too large. Its length from the system is not used: a
/// device or a pipe has none. `too_large` makes the error for a file that is too large.
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

fn one_cell(bytes: &Bytes) -> Result<CellRows, Fault> {
    let mut cells = parse(bytes, Form::Cell)?;
    match (cells.pop(), cells.pop()) {
        (Some(cell), None) => Ok(cell),
        (None, _) => Err(Fault::Damaged("it has no rows".to_owned())),
        _ => Err(Fault::Damaged("it has rows of two cells".to_owned())),
    }
}

/// Which of the two files it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    /// The file of a cell.
    Cell,
    /// The file of all rows, with the experiment before the other columns.
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

/// Returns the cells of a table, in the order of their first rows.
fn parse(bytes: &Bytes, form: Form) -> Result<Vec<CellRows>, Fault> {
    let input = Input::Bytes(bytes.clone());
    let file = table::open(&input)?;
    check_claims(&file, &input)?;
    let about = file.metadata().file_metadata();
    let schema = about.schema_descr();
    let columns = schema.columns().iter().map(|column| column.name());
    let wanted = form.columns().iter().chain(&NAMES);
    if !columns.eq(wanted.clone().copied()) {
        let wanted: Vec<&str> = wanted.copied().collect();
        let why = format!("its columns are not {}", wanted.join(", "));
        return Err(Fault::Damaged(why));
    }
    let ran = check_pairs(about, form).map_err(Fault::Damaged)?;
    let mut cells: Vec<CellRows> = Vec::new();
    let mut places: HashMap<String, usize> = HashMap::new();
    let mut rows = 0;
    for index in 0..file.num_row_groups() {
        let reader = file.get_row_group(index)?;
        let group = RowGroup {
            reader: reader.as_ref(),
            schema,
        };
        let mut columns = Columns::open(&group)?;
        loop {
            let read = columns.fill(BATCH)?;
            if read == 0 {
                break;
            }
            rows += read;
            if rows > ROWS_MOST {
                let why = format!("it has more than {ROWS_MOST} rows");
                return Err(Fault::Damaged(why));
            }
            for row in 0..read {
                let next = next_row(&columns.row(row), form).map_err(Fault::Damaged)?;
                match places.get(&next.cell) {
                    Some(&place) => next.join(&mut cells[place]).map_err(Fault::Damaged)?,
                    None => {
                        places.insert(next.cell.clone(), cells.len());
                        cells.push(next.begin(&ran));
                    }
                }
            }
        }
    }
    Ok(cells)
}

/// Reads the hosts and builds from the key-value pairs, if the version is that of this reader.
fn check_pairs(about: &FileMetaData, form: Form) -> Result<Provenance, String> {
    let pairs = about.key_value_metadata().map_or(&[][..], Vec::as_slice);
    let value_of = |key| table::value(pairs, key);
    match value_of(VERSION_KEY) {
        Some(version) if version == VERSION.to_string() => {}
        Some(version) => return Err(format!("it is of version `{version}`, not {VERSION}")),
        None => return Err(format!("it has no key `{VERSION_KEY}`")),
    }
    if form == Form::Rows
        && let Some(json) = value_of(RAN_KEY)
    {
        return Provenance::from_json(json).map_err(|error| {
            format!("its key `{RAN_KEY}` is not a list of hosts and builds: {error}")
        });
    }
    let host = value_of(HOST_KEY).and_then(|json| serde_json::from_str(json).ok());
    let host: Host = host.unwrap_or_else(Host::unknown);
    Ok(Provenance::all(
        host,
        value_of(PROGRAM_KEY).unwrap_or_default().to_owned(),
    ))
}

/// A row and the columns of its cell.
struct NextRow {
    cell: String,
    kind: Method,
    seed: u64,
    raw: Raw,
}

impl NextRow {
    /// Returns a new cell with this as its first row.
    fn begin(self, ran: &Provenance) -> CellRows {
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

    /// Adds this row to its cell.
    fn join(self, cell: &mut CellRows) -> Result<(), String> {
        if (self.kind, self.seed) != (cell.kind, cell.seed) {
            let cell = &cell.cell;
            return Err(format!("the rows of {cell} differ in kind or seed"));
        }
        cell.rows.push(self.raw);
        Ok(())
    }
}

/// The number of rows that are read from the columns at a time.
const BATCH: usize = 1 << 10;

columns! {
    /// The columns of a row group.
    Columns of Row {
        // Only the file of all rows has it.
        experiment: ByteArrayType, newer;
        cell: ByteArrayType;
        kind: ByteArrayType;
        seed: Int64Type;
        machine: ByteArrayType;
        workload: ByteArrayType;
        config: ByteArrayType;
        metric: ByteArrayType;
        unit: ByteArrayType;
        better: ByteArrayType;
        run: Int32Type;
        at: DoubleType;
        value: DoubleType;
    }
}

/// Returns a row with its cell.
#[allow(
    clippy::cast_sign_loss,
    reason = "signed and unsigned numbers of Parquet have the same bits"
)]
fn next_row(row: &Row<'_>, form: Form) -> Result<NextRow, String> {
    let cell = text(row.cell, "cell")?;
    if form == Form::Rows {
        let experiment = text(row.experiment, EXPERIMENT)?;
        if experiment != experiment_of(&cell) {
            return Err(format!(
                "{cell} is not a cell of its {EXPERIMENT} {experiment:?}"
            ));
        }
    }
    let kind = text(row.kind, "kind")?.parse::<Method>();
    let seed = row.seed.ok_or_else(|| wrong("seed", WHOLE))?;
    let run = row.run.ok_or_else(|| wrong("run", WHOLE))?;
    let better = match text(row.better, "better")?.as_str() {
        "higher" => Better::Higher,
        "lower" => Better::Lower,
        "neither" => Better::Neither,
        _ => return Err(wrong("better", "higher, lower or neither")),
    };
    if !row.at.is_none_or(|at| at.is_finite()) {
        return Err(wrong("at", FINITE));
    }
    let value = row.value.filter(|value| value.is_finite());
    Ok(NextRow {
        cell,
        kind: kind.map_err(|error| error.to_string())?,
        seed: *seed as u64,
        raw: Raw {
            machine: text(row.machine, "machine")?,
            workload: text(row.workload, "workload")?,
            config: text(row.config, "config")?,
            metric: text(row.metric, "metric")?,
            unit: text(row.unit, "unit")?,
            better,
            run: *run as u32,
            at: row.at.copied(),
            value: *value.ok_or_else(|| wrong("value", FINITE))?,
        },
    })
}

const WHOLE: &str = "a whole number";
const FINITE: &str = "a finite number";

fn text(text: Option<&ByteArray>, name: &str) -> Result<String, String> {
    let text = text.and_then(|text| text.as_utf8().ok());
    text.map(str::to_owned).ok_or_else(|| wrong(name, "text"))
}

fn wrong(name: &str, wanted: &str) -> String {
    format!("its column {name} has something other than {wanted}")
}
