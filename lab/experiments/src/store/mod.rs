//! The folder of a run: a Parquet file a cell, and what is made of all of them.
//!
//! ```text
//! DIR/raw/experiment=locks/locks.metatm-2007.find-8.hold.1.parquet     a cell
//! DIR/rows.parquet, DIR/rows.csv                                     all rows in one
//! DIR/report.html, DIR/figures.csv, DIR/results.json                 what is derived
//! ```
//!
//! The folder `experiment=…` is a partition as Hive has it, which DuckDB, Spark and pandas read as
//! a column. Every file of a run takes its name when it is whole and on the disk ([`appear`]), so a
//! cell is done exactly if its file is there, whoever ran it and wherever.
//!
//! | file | what it holds |
//! |---|---|
//! | `schema` | the columns |
//! | `write`, `read` | rows to columns and back, believing nothing |
//! | `ran` | where cells were run and by which build, beside all rows |
//! | `appear` | a file that appears when it is whole |
//! | `error` | what can go wrong, and what to do about it |

mod appear;
mod error;
mod ran;
mod read;
mod schema;
mod write;

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

pub use appear::appear;
pub use error::{ReadError, WriteError};
pub use read::{read_cell, read_cell_bytes, read_rows, read_rows_bytes};
pub use write::{write_cell, write_csv, write_records, write_rows};

use crate::raw::{CellRows, experiment_of};

/// The version of the form of cells' files.
pub const VERSION: u32 = 1;

/// The folder of a run.
#[derive(Debug, Clone)]
pub struct Folder {
    path: PathBuf,
}

impl Folder {
    /// The folder at `path`, whether it is there or not.
    #[must_use]
    pub fn new(path: &Path) -> Self {
        Self {
            path: path.to_owned(),
        }
    }

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// A file in it.
    #[must_use]
    pub fn file(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// The file of a cell.
    #[must_use]
    pub fn cell(&self, cell: &str) -> PathBuf {
        let partition = format!("experiment={}", experiment_of(cell));
        let name = format!("{cell}.parquet");
        self.path.join("raw").join(partition).join(name)
    }

    /// The names of all cells that are done, sorted.
    ///
    /// # Errors
    /// Those of the system; a folder that is not there has none.
    pub fn cells(&self) -> io::Result<Vec<String>> {
        let mut cells = Vec::new();
        for partition in entries(&self.path.join("raw"))? {
            for path in entries(&partition)? {
                if path.extension() == Some(OsStr::new("parquet")) {
                    let name = path.file_stem().and_then(OsStr::to_str);
                    cells.extend(name.map(str::to_owned));
                }
            }
        }
        cells.sort();
        Ok(cells)
    }

    /// Writes a cell's file, with the folders above it.
    ///
    /// # Errors
    /// [`WriteError`], with the path.
    pub fn write(&self, cell: &CellRows) -> Result<(), WriteError> {
        write_cell(&self.cell(&cell.cell), cell)
    }

    /// Reads a cell's file.
    ///
    /// # Errors
    /// [`ReadError`], with the path.
    pub fn read(&self, cell: &str) -> Result<CellRows, ReadError> {
        let path = self.cell(cell);
        let read = read_cell(&path)?;
        if read.cell == cell {
            Ok(read)
        } else {
            let why = format!("it has the rows of the cell {}", read.cell);
            Err(ReadError::damaged(&path, why))
        }
    }
}

/// What is in a folder; nothing, if it is not there.
fn entries(folder: &Path) -> io::Result<Vec<PathBuf>> {
    match fs::read_dir(folder) {
        Ok(entries) => entries.map(|entry| Ok(entry?.path())).collect(),
        Err(error)
            if matches!(
                error.kind(),
                io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
            ) =>
        {
            Ok(Vec::new())
        }
        Err(error) => Err(error),
    }
}
