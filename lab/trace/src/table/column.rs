//! One column of a row group, read batch by batch, and its values row by row.

use core::fmt;

use parquet::basic::Type;
use parquet::column::reader::{ColumnReaderImpl, get_typed_column_reader};
use parquet::data_type::DataType;
use parquet::file::reader::RowGroupReader;
use parquet::file::statistics::Statistics;
use parquet::schema::types::SchemaDescriptor;

use super::Fault;

/// A row group of a Parquet file.
pub struct RowGroup<'a> {
    /// Its columns.
    pub reader: &'a dyn RowGroupReader,
    /// The schema of the file.
    pub schema: &'a SchemaDescriptor,
}

/// A column.
pub struct Column<T: DataType> {
    name: &'static str,
    /// `None` if by the file's own statistics no row has a value, as with the columns of page
    /// states in a row group of events: nothing needs to be read. If the statistics are wrong, a
    /// required value will be found missing.
    pages: Option<Box<ColumnReaderImpl<T>>>,
    /// Rows that remain, as the row group declares them.
    left: usize,
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
    ///
    /// # Errors
    /// [`Fault::Foreign`] if there is none, or another one.
    pub fn open(group: &RowGroup<'_>, name: &'static str) -> Result<Self, Fault> {
        place(group, name).ok_or_else(|| Fault::Foreign(format!("column {name}")))?;
        Self::open_newer(group, name)
    }

    /// Opens the column called `name`, which an older file may lack: no row then has a value.
    ///
    /// # Errors
    /// [`Fault::Foreign`] if it has another form.
    pub fn open_newer(group: &RowGroup<'_>, name: &'static str) -> Result<Self, Fault> {
        let metadata = group.reader.metadata();
        let left = usize::try_from(metadata.num_rows()).unwrap_or(0);
        let mut opened = Self {
            name,
            pages: None,
            left,
            optional: true,
            levels: Vec::new(),
            values: Vec::new(),
            next: 0,
        };
        let Some(index) = place(group, name) else {
            return Ok(opened);
        };
        let column = group.schema.column(index);
        let (wanted, found): (Type, Type) = (T::get_physical_type(), column.physical_type());
        if found != wanted || column.max_rep_level() != 0 || column.max_def_level() > 1 {
            return Err(Fault::Foreign(format!(
                "flat column {name} of type {wanted} (it is of type {found})"
            )));
        }
        opened.optional = column.max_def_level() == 1;
        let statistics = metadata.column(index).statistics();
        let nulls = statistics.and_then(Statistics::null_count_opt);
        if !opened.optional || nulls != Some(left as u64) {
            let reader = group.reader.get_column_reader(index)?;
            opened.pages = Some(Box::new(get_typed_column_reader(reader)));
        }
        Ok(opened)
    }

    /// Reads the next rows, at most `rows` of them; returns how many there were.
    ///
    /// # Errors
    /// [`Fault::Damaged`].
    pub fn fill(&mut self, rows: usize) -> Result<usize, Fault> {
        self.levels.clear();
        self.values.clear();
        self.next = 0;
        let Some(reader) = &mut self.pages else {
            let read = rows.min(self.left);
            self.left -= read;
            return Ok(read);
        };
        let read = reader.read_records(rows, Some(&mut self.levels), None, &mut self.values);
        let (read, _, _) = read?;
        let left = self.left.checked_sub(read);
        self.left = left.ok_or_else(|| {
            Fault::Damaged("a row group has more rows than it declares".to_owned())
        })?;
        let found = if self.optional {
            self.levels.len()
        } else {
            self.values.len()
        };
        if found != read {
            let why = format!("column {} has fewer values than rows", self.name);
            return Err(Fault::Damaged(why));
        }
        Ok(read)
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
}

/// Declares the columns of a table, each with the Parquet type of its values, and a row of them. A
/// column that older files lack has `newer` behind its type.
///
/// The columns have `open`, which opens all of a row group, `fill`, which reads the next rows of
/// each and returns how many there were, and `row`, which must be called once for each, in order.
#[macro_export]
macro_rules! columns {
    ($(#[$about:meta])+ $columns:ident of $row:ident {
        $($column:ident: $type:ty $(, $newer:ident)?;)+
    }) => {
        $(#[$about])+
        struct $columns {
            $($column: $crate::table::Column<$type>,)+
        }

        /// The values of a row, `None` for null.
        struct $row<'r> {
            $($column: Option<&'r <$type as parquet::data_type::DataType>::T>,)+
        }

        impl $columns {
            fn open(group: &$crate::table::RowGroup<'_>) -> Result<Self, $crate::table::Fault> {
                Ok(Self {
                    $($column: $crate::columns!(@open group $column $($newer)?)?,)+
                })
            }

            fn fill(&mut self, rows: usize) -> Result<usize, $crate::table::Fault> {
                $crate::table::same([$(self.$column.fill(rows)?),+])
            }

            #[inline]
            fn row(&mut self, row: usize) -> $row<'_> {
                $row {
                    $($column: self.$column.take(row),)+
                }
            }
        }
    };
    (@open $group:ident $column:ident) => {
        $crate::table::Column::open($group, stringify!($column))
    };
    (@open $group:ident $column:ident newer) => {
        $crate::table::Column::open_newer($group, stringify!($column))
    };
}

/// Returns how many rows were read, if it is the same number of every column.
///
/// # Errors
/// [`Fault::Damaged`] if it is not.
pub fn same(rows: impl IntoIterator<Item = usize>) -> Result<usize, Fault> {
    let mut rows = rows.into_iter();
    let first = rows.next().unwrap_or(0);
    if rows.any(|other| other != first) {
        let why = "its columns are of different lengths";
        return Err(Fault::Damaged(why.to_owned()));
    }
    Ok(first)
}
