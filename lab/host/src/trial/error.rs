//! Why a trial cannot be made, with what to do about it.

use std::io;
use std::path::{Path, PathBuf};

use thiserror::Error;

/// Why a trial cannot be made.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum TrialError {
    /// Only root may write it.
    #[error("only root may write {}: run the same command with sudo, outside of any container", path.display())]
    Denied {
        /// The file.
        path: PathBuf,
    },
    /// The kernel has no pool of blocks of this size.
    #[error("this kernel has no pool of huge pages of {kib} KiB (no {}): ask for the order of one that it has", path.display())]
    NoPool {
        /// The size of a block in KiB.
        kib: u64,
        /// The file that is missing.
        path: PathBuf,
    },
    /// Another process uses the pool.
    #[error("another brickyard asks for huge pages at the moment (it holds {}): wait until it has ended", path.display())]
    Busy {
        /// The file that it has locked.
        path: PathBuf,
    },
    /// A file does not have the number that it should.
    #[error("{} has no number: {text:?}", path.display())]
    NoNumber {
        /// The file.
        path: PathBuf,
        /// What it has.
        text: String,
    },
    /// The pool could not be put back as it was.
    #[error("{} has {now} and could not be put back to {before}: echo {before} | sudo tee {}", path.display(), path.display())]
    NotPutBack {
        /// The file.
        path: PathBuf,
        /// What it was.
        before: u64,
        /// What it is.
        now: u64,
    },
    /// Something else failed.
    #[error("cannot {what}")]
    Failed {
        /// What was tried.
        what: String,
        /// The system's error.
        source: io::Error,
    },
}

impl TrialError {
    /// Converts an error of reading or writing a file of the kernel.
    pub(crate) fn of(path: &Path, source: io::Error) -> Self {
        match source.kind() {
            io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
                Self::Denied { path: path.into() }
            }
            _ => Self::Failed {
                what: format!("use {}", path.display()),
                source,
            },
        }
    }

    pub(crate) fn failed(what: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        let what = what.into();
        move |source| Self::Failed { what, source }
    }
}
