//! Errors of reading from the host, each with what to do about it.

use std::io;
use std::path::PathBuf;

use thiserror::Error;

/// A text that could not be parsed.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{file}, line {line}: {what}")]
#[non_exhaustive]
pub struct ParseError {
    /// The file, such as `zoneinfo`.
    pub file: &'static str,
    /// The line, from 1.
    pub line: usize,
    /// What is wrong with it.
    pub what: String,
}

/// Why a file could not be read.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum HostError {
    /// Only root may read it.
    #[error("only root may read {}: run the same command with sudo, outside of any container", path.display())]
    Denied {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The kernel does not provide it, or it is not mounted.
    #[error("there is no {}: {fix}", path.display())]
    Absent {
        /// The file.
        path: PathBuf,
        /// What to do about it.
        fix: &'static str,
    },
    /// The folder that should have the files of a host is none.
    #[error("{} {fault}: give a folder with a host's files in it, such as {}", root.display(), root.join("proc/zoneinfo").display())]
    Root {
        /// The folder.
        root: PathBuf,
        /// What is wrong with it.
        fault: &'static str,
    },
    /// The file exists but has no data.
    #[error("{} has no data: a container may hide it; run the command on the host itself", path.display())]
    Empty {
        /// The file.
        path: PathBuf,
    },
    /// It could not be read for another reason.
    #[error("cannot read {}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// It is not in the format that Linux writes.
    #[error("{} is not in the format that Linux writes", path.display())]
    Text {
        /// The file.
        path: PathBuf,
        /// The line, and what is wrong with it.
        source: ParseError,
    },
}
