//! Rows to columns. Each file grows under a temporary name beside its own, and takes its name when it is whole.

use std::fs;
use std::io::{self, Write};
use std::path::Path;
use std::sync::Arc;

use parquet::data_type::{ByteArray, ByteArrayType, DataType, DoubleType, Int32Type, Int64Type};
use parquet::errors::{ParquetError, Result as ParquetResult};
use parquet::file::metadata::KeyValue;
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::types::TypePtr;
use tempfile::NamedTempFile;

use super::VERSION;
use super::error::WriteError;
use super::schema::{HOST_KEY, VERSION_KEY, of_cell, of_rows, properties};
use crate::data::Data;
use crate::raw::{CellRows, Raw};

/// A row with the cell it is of.
type Placed<'r> = (&'r CellRows, &'r Raw);

/// Writes a cell's file, with the folders above it. It appears when it is whole.
///
/// # Errors
/// [`WriteError`], with the path.
pub fn write_cell(path: &Path, cell: &CellRows) -> Result<(), WriteError> {
    let rows: Vec<Placed<'_>> = cell.rows.iter().map(|raw| (cell, raw)).collect();
    let host = serde_json::to_string(&cell.host)
        .map_err(|error| WriteError::io(path, io::Error::other(error)))?;
    let pairs = vec![
        KeyValue::new(VERSION_KEY.to_owned(), VERSION.to_string()),
        KeyValue::new(HOST_KEY.to_owned(), host),
    ];
    appear(path, |file| {
        let done = table(file, of_cell, pairs, &rows, None);
        done.map_err(|why| WriteError::parquet(path, &why))
    })
}

/// Writes all rows as one Parquet file, with a column `experiment` before the others.
///
/// # Errors
/// [`WriteError`], with the path.
pub fn write_rows(path: &Path, data: &Data) -> Result<(), WriteError> {
    let rows: Vec<Placed<'_>> = (0..data.len())
        .filter_map(|place| data.row(place))
        .collect();
    let pairs = vec![KeyValue::new(VERSION_KEY.to_owned(), VERSION.to_string())];
    appear(path, |file| {
        let experiment = |(cell, _): &Placed<'_>| text(cell.experiment());
        let done = table(file, of_rows, pairs, &rows, Some(&experiment));
        done.map_err(|why| WriteError::parquet(path, &why))
    })
}

/// Writes all rows as CSV, with the same columns as [`write_rows`].
///
/// # Errors
/// [`WriteError`], with the path.
pub fn write_csv(path: &Path, data: &Data) -> Result<(), WriteError> {
    let head = core::iter::once("experiment").chain(super::schema::NAMES);
    let head = head.map(str::to_owned).collect();
    let rows = (0..data.len()).filter_map(|place| data.row(place));
    let rows = rows.map(|(cell, raw)| {
        vec![
            cell.experiment().to_owned(),
            cell.cell.clone(),
            cell.kind.name().to_owned(),
            cell.seed.to_string(),
            raw.machine.clone(),
            raw.workload.clone(),
            raw.config.clone(),
            raw.metric.clone(),
            raw.unit.clone(),
            raw.better.name().to_owned(),
            raw.run.to_string(),
            raw.at.map(|at| at.to_string()).unwrap_or_default(),
            raw.value.to_string(),
        ]
    });
    let records: Vec<Vec<String>> = core::iter::once(head).chain(rows).collect();
    write_records(path, &records)
}

/// Writes records as CSV, the first of which is the head.
///
/// # Errors
/// [`WriteError`], with the path.
pub fn write_records(path: &Path, records: &[Vec<String>]) -> Result<(), WriteError> {
    appear(path, |file| {
        let mut out = csv::Writer::from_writer(file);
        let mut written = records
            .iter()
            .try_for_each(|record| out.write_record(record));
        written = written.and_then(|()| Ok(out.flush()?));
        written.map_err(|error| WriteError::io(path, error.into()))
    })
}

/// Lets `fill` write a file that appears as `path` when it is whole.
fn appear(
    path: &Path,
    fill: impl FnOnce(&mut NamedTempFile) -> Result<(), WriteError>,
) -> Result<(), WriteError> {
    let io = |error| WriteError::io(path, error);
    let folder = match path.parent() {
        Some(folder) if folder != Path::new("") => folder,
        _ => Path::new("."),
    };
    fs::create_dir_all(folder).map_err(io)?;
    let mut builder = tempfile::Builder::new();
    builder.prefix(".brickyard-").suffix(".unfinished");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        builder.permissions(fs::Permissions::from_mode(0o666)); // less the umask
    }
    let mut file = builder.tempfile_in(folder).map_err(io)?;
    fill(&mut file)?;
    file.flush().map_err(io)?;
    file.persist(path).map_err(|error| io(error.error))?;
    Ok(())
}

fn text(text: &str) -> ByteArray {
    ByteArray::from(text)
}

/// Writes one table of one row group; `first` gives a column of text before the others.
#[allow(
    clippy::cast_possible_wrap,
    reason = "Parquet has no unsigned numbers: bits as they are"
)]
fn table(
    out: &mut NamedTempFile,
    schema: fn() -> ParquetResult<TypePtr>,
    pairs: Vec<KeyValue>,
    rows: &[Placed<'_>],
    first: Option<&dyn Fn(&Placed<'_>) -> ByteArray>,
) -> ParquetResult<()> {
    let mut writer = SerializedFileWriter::new(out, schema()?, Arc::new(properties()?))?;
    for pair in pairs {
        writer.append_key_value_metadata(pair);
    }
    let mut group = writer.next_row_group()?;
    if let Some(first) = first {
        texts(&mut group, rows, first)?;
    }
    texts(&mut group, rows, |(cell, _)| text(&cell.cell))?;
    texts(&mut group, rows, |(cell, _)| text(cell.kind.name()))?;
    let seeds: Vec<i64> = rows.iter().map(|(cell, _)| cell.seed as i64).collect();
    column::<Int64Type>(&mut group, &seeds, None)?;
    texts(&mut group, rows, |(_, raw)| text(&raw.machine))?;
    texts(&mut group, rows, |(_, raw)| text(&raw.workload))?;
    texts(&mut group, rows, |(_, raw)| text(&raw.config))?;
    texts(&mut group, rows, |(_, raw)| text(&raw.metric))?;
    texts(&mut group, rows, |(_, raw)| text(&raw.unit))?;
    texts(&mut group, rows, |(_, raw)| text(raw.better.name()))?;
    let runs: Vec<i32> = rows.iter().map(|(_, raw)| raw.run as i32).collect();
    column::<Int32Type>(&mut group, &runs, None)?;
    let at: Vec<f64> = rows.iter().filter_map(|(_, raw)| raw.at).collect();
    let levels: Vec<i16> = rows
        .iter()
        .map(|(_, raw)| i16::from(raw.at.is_some()))
        .collect();
    column::<DoubleType>(&mut group, &at, Some(&levels))?;
    let values: Vec<f64> = rows.iter().map(|(_, raw)| raw.value).collect();
    column::<DoubleType>(&mut group, &values, None)?;
    group.close()?;
    writer.close()?;
    Ok(())
}

fn texts<W: Write + Send>(
    group: &mut SerializedRowGroupWriter<'_, W>,
    rows: &[Placed<'_>],
    of: impl Fn(&Placed<'_>) -> ByteArray,
) -> ParquetResult<()> {
    let values: Vec<ByteArray> = rows.iter().map(of).collect();
    column::<ByteArrayType>(group, &values, None)
}

fn column<T: DataType>(
    group: &mut SerializedRowGroupWriter<'_, impl Write + Send>,
    values: &[T::T],
    levels: Option<&[i16]>,
) -> ParquetResult<()> {
    let next = group.next_column()?;
    let mut next =
        next.ok_or_else(|| ParquetError::General("the schema has fewer columns".to_owned()))?;
    next.typed::<T>().write_batch(values, levels, None)?;
    next.close()
}
