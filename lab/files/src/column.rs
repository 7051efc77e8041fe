//! One column of a row group, read batch by batch, and its values row by row.

use core::fmt;

use parquet::basic::Type;
use parquet::column::reader::{ColumnReaderImpl, get_typed_column_reader};
use parquet::data_type::DataType;
use parquet::file::reader::RowGroupReader;
use parquet::file::statistics::Statistics;
use parquet::schema::types::SchemaDescriptor;

use crate::Fault;

/// A row group of a Parquet file.
pub struct RowGroup<'a> {
    /// Its columns.
    pub reader: &'a dyn RowGroupReader,
    /// The schema of the file.
    pub schema: &'a SchemaDescriptor,
}

/// Where a column's rows come from.
enum Rows<T: DataType> {
    /// From its pages.
    Pages(Box<ColumnReaderImpl<T>>),
    /// By the file's own statistics none of them has a value, as with the columns of page states in
    /// a row group of events: `left` rows remain, and nothing needs to be read. If the statistics
    /// are wrong, a required value will be found missing.
    Nothing { left: usize },
}

/// A column.
pub struct Column<T: DataType> {
    name: &'static str,
    rows: Rows<T>,
    /// Whether rows may be null; `levels` then says which are.
    optional: bool,
    levels: Vec<i16>,
    values: Vec<T::T>,
    next: usize,
}

impl fmt::Debug for RowGroup<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RowGroup").finish_non_exhaustive()
    }
}

impl<T: DataType> fmt::Debug for Column<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Column").field(&self.name).finish()
    }
}

/// Returns the index of the column called `name`.
fn place(group: &RowGroup<'_>, name: &str) -> Option<usize> {
    let mut columns = group.schema.columns().iter();
    columns.position(|column| column.path().parts() == [name])
}

impl<T: DataType> Column<T> {
    /// Opens the column called `name`, which must be of type `T` and flat.
    pub fn open(group: &RowGroup<'_>, name: &'static str) -> Result<Self, Fault> {
        let index = place(group, name).ok_or_else(|| Fault::Foreign(format!("column {name}")))?;
        Self::open_at(group, name, index)
    }

    /// Opens the column called `name`, which an older file may lack: no row then has a value.
    pub fn open_newer(group: &RowGroup<'_>, name: &'static str) -> Result<Self, Fault> {
        if let Some(index) = place(group, name) {
            return Self::open_at(group, name, index);
        }
        let left = usize::try_from(group.reader.metadata().num_rows()).unwrap_or(0);
        Ok(Self {
            name,
            rows: Rows::Nothing { left },
            optional: true,
            levels: Vec::new(),
            values: Vec::new(),
            next: 0,
        })
    }

    fn open_at(group: &RowGroup<'_>, name: &'static str, index: usize) -> Result<Self, Fault> {
        let column = group.schema.column(index);
        let wanted: Type = T::get_physical_type();
        if column.physical_type() != wanted
            || column.max_rep_level() != 0
            || column.max_def_level() > 1
        {
            let found = column.physical_type();
            return Err(Fault::Foreign(format!(
                "flat column {name} of type {wanted} (it is of type {found})"
            )));
        }
        let metadata = group.reader.metadata();
        let statistics = metadata.column(index).statistics();
        let nulls = statistics.and_then(Statistics::null_count_opt);
        let left = usize::try_from(metadata.num_rows()).unwrap_or(0);
        let optional = column.max_def_level() == 1;
        let rows = if optional && nulls == Some(left as u64) {
            Rows::Nothing { left }
        } else {
            let reader = group.reader.get_column_reader(index)?;
            Rows::Pages(Box::new(get_typed_column_reader(reader)))
        };
        Ok(Self {
            name,
            rows,
            optional,
            levels: Vec::new(),
            values: Vec::new(),
            next: 0,
        })
    }

    /// Reads the next rows, at most `rows` of them; returns how many there were.
    pub fn fill(&mut self, rows: usize) -> Result<usize, Fault> {
        self.levels.clear();
        self.values.clear();
        self.next = 0;
        let reader = match &mut self.rows {
            Rows::Pages(reader) => reader,
            Rows::Nothing { left } => {
                let read = rows.min(*left);
                *left -= read;
                return Ok(read);
            }
        };
        let read = reader.read_records(rows, Some(&mut self.levels), None, &mut self.values);
        let (read, _, _) = read?;
        let whole = if self.optional {
            self.levels.len() == read
        } else {
            self.values.len() == read
        };
        if whole {
            Ok(read)
        } else {
            Err(Fault::Damaged(format!(
                "column {} has fewer values than rows",
                self.name
            )))
        }
    }

    /// Returns the value in this row of the batch, `None` for null. Must be called once for each
    /// row, in order.
    #[inline]
    pub fn take(&mut self, row: usize) -> Option<&T::T> {
        if self.optional && (self.values.is_empty() || self.levels.get(row) != Some(&1)) {
            return None;
        }
        let value = self.values.get(self.next);
        self.next += 1;
        value
    }

    /// Returns the column's name.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        self.name
    }
}
