//! The errors of reading and writing the files of a run, each with its remedy.

use std::io;
use std::path::{Path, PathBuf};

use thiserror::Error;

/// Why a cell's file could not be read.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ReadError {
    /// The system could not read it.
    #[error("cannot read {}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// It is not the file of a cell, or damaged.
    #[error("{} is not a cell's result: {why}; run with --resume to run the cell again", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        why: String,
    },
    /// It is not a file of all rows, or damaged.
    #[error("{} is not a file of rows: {why}; give the rows.parquet of a run", path.display())]
    NoRows {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        why: String,
    },
}

impl ReadError {
    pub(crate) fn no_rows(path: &Path, why: impl Into<String>) -> Self {
        Self::NoRows {
            path: path.to_owned(),
            why: why.into(),
        }
    }

    pub(super) fn damaged(path: &Path, why: impl Into<String>) -> Self {
        Self::Damaged {
            path: path.to_owned(),
            why: why.into(),
        }
    }
}

/// Why a file could not be written.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum WriteError {
    /// The system refused.
    #[error("cannot write {}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// The rows of the cell are not a valid result: they would be refused when read.
    #[error("cannot write {}: {why}; run the cell again, and if that does not help, fix its measurement", path.display())]
    NoResult {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
}

impl WriteError {
    pub(super) fn io(path: &Path, source: io::Error) -> Self {
        Self::Io {
            path: path.to_owned(),
            source,
        }
    }

    pub(super) fn no_result(path: &Path, why: String) -> Self {
        Self::NoResult {
            path: path.to_owned(),
            why,
        }
    }
}
