//! What can go wrong with the files of a run, each with what to do about it.

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
    /// It is no file of a cell, or a damaged one.
    #[error("{} is no result of a cell: {why}; delete it, and run with --resume to have it again", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        why: String,
    },
    /// It is no file of all rows, or a damaged one.
    #[error("{} is no file of rows: {why}; give the rows.parquet of a run", path.display())]
    NoRows {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        why: String,
    },
}

impl ReadError {
    pub(super) fn no_rows(path: &Path, why: impl Into<String>) -> Self {
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
    /// The Parquet layer refused.
    #[error("cannot write {}: {why}", path.display())]
    Parquet {
        /// The file.
        path: PathBuf,
        /// Why not.
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

    pub(super) fn parquet(path: &Path, why: &parquet::errors::ParquetError) -> Self {
        // A full disk comes wrapped; its own words are the useful ones.
        Self::Parquet {
            path: path.to_owned(),
            why: why.to_string(),
        }
    }
}
