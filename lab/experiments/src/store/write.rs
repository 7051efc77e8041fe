//! Writes rows as columns. Rows that the reader would refuse are not written.

use std::io::{self, Write};
use std::path::Path;

use brickyard_trace::table::{self, Group};
use parquet::data_type::{DoubleType, Int32Type, Int64Type};
use parquet::file::metadata::KeyValue;

use super::appear::appear;
use super::error::WriteError;
use super::provenance;
use super::schema::{
    EXPERIMENT, HOST_KEY, NAMES, PROGRAM_KEY, RAN_KEY, VERSION, VERSION_KEY, of_cell, of_rows,
};
use crate::data::Data;
use crate::raw::{CellRows, Raw};

/// A row with its cell.
type CellRow<'r> = (&'r CellRows, &'r Raw);

/// Writes a cell's file, and creates the folders above it. It appears when it is complete.
///
/// # Errors
/// [`WriteError`], with the path; [`WriteError::NoResult`] if the cell has no rows, or one whose
/// value or time is not finite.
pub fn write_cell(path: &Path, cell: &CellRows) -> Result<(), WriteError> {
    if cell.rows.is_empty() {
        let why = format!("the cell {} has no rows", cell.cell);
        return Err(WriteError::no_result(path, why));
    }
    let rows: Vec<CellRow<'_>> = cell.rows.iter().map(|raw| (cell, raw)).collect();
    check_finite(path, &rows)?;
    let host =
        serde_json::to_string(&cell.host).map_err(|error| WriteError::io(path, error.into()))?;
    let pairs = vec![
        KeyValue::new(VERSION_KEY.to_owned(), VERSION.to_string()),
        KeyValue::new(HOST_KEY.to_owned(), host),
        KeyValue::new(PROGRAM_KEY.to_owned(), cell.program.clone()),
    ];
    appear(path, |out| write_table(out, &of_cell(), pairs, &rows, None))
}

/// Writes all rows as one Parquet file, with a column `experiment` before the others. The hosts and
/// the builds of the program are among its key-value pairs.
///
/// # Errors
/// [`WriteError`], with the path; [`WriteError::NoResult`] if a row has a value or time that is not
/// finite.
pub fn write_rows(path: &Path, data: &Data) -> Result<(), WriteError> {
    let rows: Vec<CellRow<'_>> = (0..data.len())
        .filter_map(|place| data.row(place))
        .collect();
    check_finite(path, &rows)?;
    let ran =
        provenance::to_json(data.cells()).map_err(|error| WriteError::io(path, error.into()))?;
    let pairs = vec![
        KeyValue::new(VERSION_KEY.to_owned(), VERSION.to_string()),
        KeyValue::new(RAN_KEY.to_owned(), ran),
    ];
    appear(path, |out| {
        write_table(
            out,
            &of_rows(),
            pairs,
            &rows,
            Some(|(cell, _)| cell.experiment()),
        )
    })
}

/// Checks that all numbers are finite; the error names the first that is not.
fn check_finite(path: &Path, rows: &[CellRow<'_>]) -> Result<(), WriteError> {
    let of = |raw: &Raw| [("value", Some(raw.value)), ("at", raw.at)];
    for (cell, raw) in rows {
        for (column, number) in of(raw) {
            if let Some(number) = number.filter(|number| !number.is_finite()) {
                let Raw {
                    machine,
                    workload,
                    config,
                    metric,
                    run,
                    ..
                } = raw;
                let why = format!(
                    "in the row {machine}, {workload}, {config}, {metric}, run {run} of the cell {} `{column}` is {number}, which is not a finite number",
                    cell.cell
                );
                return Err(WriteError::no_result(path, why));
            }
        }
    }
    Ok(())
}

/// Writes all rows as CSV, with the same columns as [`write_rows`].
///
/// # Errors
/// [`WriteError`], with the path.
pub fn write_csv(path: &Path, data: &Data) -> Result<(), WriteError> {
    let head = core::iter::once(EXPERIMENT).chain(NAMES);
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
    appear(path, |out| {
        let mut out = csv::Writer::from_writer(out);
        for record in records {
            out.write_record(record)?;
        }
        out.flush()
    })
}

/// Returns a text of a row.
type TextOf = for<'r> fn(&CellRow<'r>) -> &'r str;

/// Writes one table of one row group; `first` returns the text of a column before the others.
#[allow(
    clippy::cast_possible_wrap,
    reason = "Parquet has no unsigned numbers: bits as they are"
)]
fn write_table(
    out: &mut (dyn Write + Send),
    message: &str,
    pairs: Vec<KeyValue>,
    rows: &[CellRow<'_>],
    first: Option<TextOf>,
) -> io::Result<()> {
    table::write(out, message, pairs, |group| {
        let texts = |group: &mut Group<'_, _>, of: &[TextOf]| {
            let mut columns = of.iter();
            columns.try_for_each(|of| group.texts(rows.iter().map(of)))
        };
        texts(group, first.as_slice())?;
        texts(
            group,
            &[|(cell, _)| &cell.cell, |(cell, _)| cell.kind.name()],
        )?;
        group.required::<Int64Type>(rows.iter().map(|(cell, _)| cell.seed as i64))?;
        let of_row: [TextOf; 6] = [
            |(_, raw)| &raw.machine,
            |(_, raw)| &raw.workload,
            |(_, raw)| &raw.config,
            |(_, raw)| &raw.metric,
            |(_, raw)| &raw.unit,
            |(_, raw)| raw.better.name(),
        ];
        texts(group, &of_row)?;
        group.required::<Int32Type>(rows.iter().map(|(_, raw)| raw.run as i32))?;
        group.optional::<DoubleType>(rows.iter().map(|(_, raw)| raw.at))?;
        group.required::<DoubleType>(rows.iter().map(|(_, raw)| raw.value))
    })
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by it")]
mod tests {
    use std::fs::File;

    use super::*;
    use crate::raw::{Method, testing};
    use crate::store::read_rows;
    use crate::store::schema::COLUMNS;

    /// Two cells of two rows each.
    fn cells(kind: Method) -> [CellRows; 2] {
        ["e.a", "e.b"].map(|cell| {
            let rows = [1, 2].map(|run| Raw {
                workload: cell.to_owned(),
                run,
                ..testing::row()
            });
            testing::cell(cell, kind, rows.to_vec())
        })
    }

    /// Writes a file of these rows in this order, whose first column has the texts of `first`, and
    /// reads it back.
    fn read(rows: &[CellRow<'_>], message: &str, first: TextOf) -> Result<Vec<CellRows>, String> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("rows.parquet");
        // As an older version wrote it: without the hosts and builds of the cells.
        let pairs = vec![KeyValue::new(VERSION_KEY.to_owned(), VERSION.to_string())];
        let mut file = File::create(&path).unwrap();
        write_table(&mut file, message, pairs, rows, Some(first)).unwrap();
        read_rows(&path).map_err(|error| error.to_string())
    }

    fn experiment<'r>((cell, _): &CellRow<'r>) -> &'r str {
        cell.experiment()
    }

    #[test]
    fn rows_in_another_order_give_the_same_cells() {
        let [a, b] = cells(Method::Timed);
        let rows = [
            (&a, &a.rows[0]),
            (&b, &b.rows[0]),
            (&a, &a.rows[1]),
            (&b, &b.rows[1]),
        ];
        assert_eq!(
            read(&rows, &of_rows(), experiment),
            Ok(cells(Method::Timed).to_vec())
        );
        // All rows of a cell must have the same method and seed.
        let [other, _] = cells(Method::Simulated);
        let rows = [(&a, &a.rows[0]), (&b, &b.rows[0]), (&other, &other.rows[1])];
        let error = read(&rows, &of_rows(), experiment).unwrap_err();
        assert!(
            error.contains("the rows of e.a differ in kind or seed"),
            "{error}"
        );
    }

    #[test]
    fn the_first_column_is_the_experiment_of_its_cell() {
        let [a, _] = cells(Method::Timed);
        let rows = [(&a, &a.rows[0])];
        let other_name = format!("message rows {{ required binary note (STRING); {COLUMNS} }}");
        let error = read(&rows, &other_name, experiment).unwrap_err();
        assert!(
            error.contains("its columns are not experiment, cell, kind"),
            "{error}"
        );
        let error = read(&rows, &of_rows(), |_| "f").unwrap_err();
        assert!(
            error.contains("e.a is not a cell of its experiment \"f\""),
            "{error}"
        );
    }
}
