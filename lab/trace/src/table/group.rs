//! Rows to columns: one row group.

use core::fmt;
use std::io::{self, Write};
use std::sync::Arc;

use parquet::data_type::{ByteArray, ByteArrayType, DataType};
use parquet::errors::{ParquetError, Result};
use parquet::file::metadata::KeyValue;
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};

/// Writes a table of one row group: `message` is its schema in Parquet's form, `pairs` what its
/// header has, and `fill` writes its columns.
///
/// # Errors
/// Those of `out` and `fill`.
pub fn write(
    out: &mut (dyn Write + Send),
    message: &str,
    pairs: Vec<KeyValue>,
    fill: impl FnOnce(&mut Group<'_, &mut (dyn Write + Send)>) -> Result<()>,
) -> io::Result<()> {
    let written = (|| {
        let properties = super::properties()?
            .set_key_value_metadata(Some(pairs))
            .build();
        let mut file =
            SerializedFileWriter::new(out, super::schema(message)?, Arc::new(properties))?;
        let mut group = Group::begin(&mut file)?;
        fill(&mut group)?;
        group.end()?;
        file.close()
    })();
    written.map(drop).map_err(io::Error::other)
}

/// Writes the columns of a row group, in the order of the schema.
pub struct Group<'a, W: Write + Send> {
    out: SerializedRowGroupWriter<'a, W>,
}

impl<W: Write + Send> fmt::Debug for Group<'_, W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Group").finish_non_exhaustive()
    }
}

impl<'a, W: Write + Send> Group<'a, W> {
    /// Begins the next row group of a file.
    ///
    /// # Errors
    /// Those of the file.
    pub fn begin(file: &'a mut SerializedFileWriter<W>) -> Result<Self> {
        let out = file.next_row_group()?;
        Ok(Self { out })
    }

    /// Ends the row group.
    ///
    /// # Errors
    /// Those of the file, and if columns are missing.
    pub fn end(self) -> Result<()> {
        self.out.close()?;
        Ok(())
    }

    /// Writes the next column, in which every row has a value.
    ///
    /// # Errors
    /// Those of the file, and if the schema has no further column or one of another type.
    pub fn required<T: DataType>(&mut self, values: impl Iterator<Item = T::T>) -> Result<()> {
        let values: Vec<_> = values.collect();
        self.write::<T>(&values, None)
    }

    /// Writes the next column, in which every row has a text.
    ///
    /// # Errors
    /// Those of [`required`](Self::required).
    pub fn texts<'t>(&mut self, texts: impl Iterator<Item = &'t str>) -> Result<()> {
        self.required::<ByteArrayType>(texts.map(ByteArray::from))
    }

    /// Writes the next column, in which rows may be null.
    ///
    /// # Errors
    /// Those of the file, and if the schema has no further column or one of another type.
    pub fn optional<T: DataType>(
        &mut self,
        rows: impl Iterator<Item = Option<T::T>>,
    ) -> Result<()> {
        let mut values = Vec::new();
        let mut levels = Vec::with_capacity(rows.size_hint().0);
        for value in rows {
            levels.push(i16::from(value.is_some()));
            values.extend(value);
        }
        self.write::<T>(&values, Some(&levels))
    }

    fn write<T: DataType>(&mut self, values: &[T::T], levels: Option<&[i16]>) -> Result<()> {
        let column = self.out.next_column()?;
        let mut column = column
            .ok_or_else(|| ParquetError::General("the schema has fewer columns".to_owned()))?;
        column.typed::<T>().write_batch(values, levels, None)?;
        column.close()
    }

    /// Writes the next column with every row null.
    ///
    /// # Errors
    /// Those of the file, and if the schema has no further column or one of another type.
    pub fn nothing<T: DataType>(&mut self, rows: usize) -> Result<()> {
        self.write::<T>(&[], Some(&vec![0; rows]))
    }
}
