//! Errors of the trace file, each with what to do about it.

use std::io;

use thiserror::Error;

use crate::table::Fault;

/// Why a trace could not be read.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ReadError {
    /// The operating system could not read it.
    #[error("cannot read it")]
    Io(#[from] io::Error),
    /// It is not a regular file, so it has no size.
    #[error("this is not a regular file but a device, a pipe or a directory: give a trace file")]
    NoFile,
    /// The file is empty.
    #[error("the file is empty")]
    Empty,
    /// It is text, or compressed text.
    #[error(
        "this is {0}, not a trace file: `brickyard import` makes a trace file from the text that ftrace, perf or trace-cmd print"
    )]
    Text(&'static str),
    /// It is neither Parquet nor text.
    #[error(
        "this is not a trace file: one begins and ends with `PAR1`; `brickyard record` and `brickyard import` write them"
    )]
    Foreign,
    /// Its end is missing.
    #[error(
        "the file is truncated: the table of contents at its end is missing; copy or record it again"
    )]
    Truncated,
    /// It is a Parquet file, but not a trace.
    #[error(
        "this is a Parquet file, but not a trace: it has no `{0}`; docs/book/formats.md describes a trace"
    )]
    NotATrace(String),
    /// It has a version that this program cannot read.
    #[error(
        "the trace is of version `{found}`, and this program reads version {known}: read it with the `brickyard` that wrote it, or with a newer one"
    )]
    Version {
        /// The version of the file.
        found: String,
        /// The version that this program reads.
        known: u32,
    },
    /// The Parquet structure is inconsistent.
    #[error("the file is damaged: {0}; copy or record it again")]
    Damaged(String),
    /// A row or a key has an invalid value.
    #[error("the trace is damaged: {place}: {why}; copy or record it again")]
    Invalid {
        /// Which row or key.
        place: String,
        /// What is wrong.
        why: String,
    },
}

/// Why a trace could not be written.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum WriteError {
    /// The operating system refused.
    #[error("cannot write {path}")]
    Io {
        /// The file to be written.
        path: String,
        /// The reason.
        source: io::Error,
    },
    /// The Parquet layer refused.
    #[error("cannot write {path}: {why}")]
    Parquet {
        /// The file to be written.
        path: String,
        /// The reason.
        why: String,
    },
    /// The rows break a rule of the format, so no reader would accept them.
    #[error("this is not a valid trace: {0}")]
    Invalid(String),
}

impl From<Fault> for ReadError {
    fn from(fault: Fault) -> Self {
        match fault {
            Fault::Foreign(what) => Self::NotATrace(what),
            Fault::Damaged(why) => Self::Damaged(why),
        }
    }
}
