//! Why something could not be read from the host, and what to do about it.

use std::io;
use std::path::PathBuf;

use thiserror::Error;

/// A text that is not in the form of its file.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{file}, line {line}: {what}")]
pub struct ParseError {
    /// Which file, such as `zoneinfo`.
    pub file: &'static str,
    /// The line, from 1.
    pub line: usize,
    /// What is wrong with it.
    pub what: String,
}

/// Why something could not be read.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum HostError {
    /// Only root may read it.
    #[error("only root may read {}: run the same command with sudo, outside of any container", path.display())]
    Denied {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The kernel does not have it, or it is not mounted.
    #[error("there is no {}: {fix}", path.display())]
    Absent {
        /// The file.
        path: PathBuf,
        /// What would bring it.
        fix: &'static str,
    },
    /// The file is there and tells nothing.
    #[error("{} tells nothing: a container may hide it; run the command on the host itself", path.display())]
    Empty {
        /// The file.
        path: PathBuf,
    },
    /// It could not be read for another reason.
    #[error("cannot read {}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// It is not in the form that Linux gives it.
    #[error("{} is not what Linux writes", path.display())]
    Text {
        /// The file.
        path: PathBuf,
        /// Where, and what is wrong.
        source: ParseError,
    },
}
