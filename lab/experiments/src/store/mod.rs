//! The folder of a run: a Parquet file for each cell, and what is derived from all of them.
//!
//! ```text
//! DIR/raw/experiment=locks/locks.metatm-2007.find-8.hold.1.parquet     a cell
//! DIR/rows.parquet, DIR/rows.csv                                     all rows in one
//! DIR/report.html, DIR/figures.csv, DIR/results.json                 what is derived
//! ```
//!
//! The folder `experiment=…` is a partition in the style of Hive, which DuckDB, Spark and pandas
//! read as a column. Every file of a run takes its name when it is complete and on the disk
//! ([`appear`]), so a cell is done if and only if its file exists, on whatever host it was run.
//!
//! | file | what it holds |
//! |---|---|
//! | `schema` | the columns |
//! | `write`, `read` | rows to columns and back, trusting nothing |
//! | `provenance` | where cells were run and by which build, stored with all rows |
//! | `appear` | a file that appears when it is complete |
//! | `error` | the errors, each with its remedy |

mod appear;
mod error;
mod provenance;
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
pub use schema::VERSION;
pub use write::{write_cell, write_csv, write_records, write_rows};

use crate::raw::{CellRows, experiment_of};

/// The folder of a run.
#[derive(Debug, Clone)]
pub struct Folder {
    path: PathBuf,
}

impl Folder {
    /// Returns the folder at `path`, which need not exist.
    #[must_use]
    pub fn new(path: &Path) -> Self {
        Self {
            path: path.to_owned(),
        }
    }

    /// Returns its path.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the path of a file in it.
    #[must_use]
    pub fn file(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// Returns the path of a cell's file.
    #[must_use]
    pub fn cell(&self, cell: &str) -> PathBuf {
        let partition = format!("experiment={}", experiment_of(cell));
        let name = format!("{cell}.parquet");
        self.path.join("raw").join(partition).join(name)
    }

    /// Returns the names of all cells that are done, sorted; none if the folder does not exist.
    ///
    /// # Errors
    /// Those of the system.
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

    /// Writes a cell's file, and creates the folders above it.
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

/// Returns the entries of a folder; none if it does not exist.
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
