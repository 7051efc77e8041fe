//! What goes wrong with the history.

use std::io;
use std::path::{Path, PathBuf};

use brickyard_trace::table::Fault;
use thiserror::Error;

/// What goes wrong with the history.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum HistoryError {
    /// A file or folder cannot be read or written.
    #[error("{}: {source}", path.display())]
    Io {
        /// Its path.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// A file is not of the history, or damaged.
    #[error("{}: not a file of the history: {source}; remove it", path.display())]
    File {
        /// Its path.
        path: PathBuf,
        /// What is wrong.
        source: Fault,
    },
    /// A folder has no history.
    #[error("{}: no history; `brickyard serve --history {}` writes one", folder.display(), folder.display())]
    Empty {
        /// The folder.
        folder: PathBuf,
    },
}

impl HistoryError {
    pub(crate) fn io(path: &Path, source: io::Error) -> Self {
        Self::Io {
            path: path.to_owned(),
            source,
        }
    }

    pub(crate) fn file(path: &Path, source: Fault) -> Self {
        Self::File {
            path: path.to_owned(),
            source,
        }
    }
}
