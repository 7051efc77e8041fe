//! What can go wrong with a trace file, each with what to do about it.

use std::io;

use thiserror::Error;

use crate::table::Fault;

/// Why a trace could not be read.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ReadError {
    /// The system could not read it.
    #[error("cannot read it")]
    Io(#[from] io::Error),
    /// It has no end that could be looked at.
    #[error("this is no file but a device, a pipe or a folder: give a trace file")]
    NoFile,
    /// There is nothing in it.
    #[error("the file is empty")]
    Empty,
    /// It is text, or compressed text.
    #[error(
        "this is {0}, not a trace file: `brickyard import` makes a trace file of the text that ftrace, perf or trace-cmd print"
    )]
    Text(&'static str),
    /// It is something else altogether.
    #[error(
        "this is no trace file: one begins and ends with `PAR1`, as `brickyard record` and `brickyard import` write it"
    )]
    Foreign,
    /// Its end is missing.
    #[error(
        "the file is cut off: its end, where the table of contents is, is missing; copy or record it again"
    )]
    Truncated,
    /// It is a Parquet file of somebody else.
    #[error(
        "this is a Parquet file, but no trace: it has no `{0}`; see docs/book/trace-format.md for what a trace has"
    )]
    NotATrace(String),
    /// It was written in a form that this program does not know.
    #[error(
        "the trace is of version `{found}`, and this program reads version {known}: read it with the `brickyard` that wrote it, or with a newer one"
    )]
    Version {
        /// What the file says.
        found: String,
        /// What can be read.
        known: u32,
    },
    /// The Parquet layer does not make sense.
    #[error("the file is damaged: {0}; copy or record it again")]
    Damaged(String),
    /// A row or a key has a value that no trace has.
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
    /// The system refused.
    #[error("cannot write {path}: {source}")]
    Io {
        /// What was to be written.
        path: String,
        /// Why not.
        source: io::Error,
    },
    /// The Parquet layer refused.
    #[error("cannot write {path}: {why}")]
    Parquet {
        /// What was to be written.
        path: String,
        /// Why not.
        why: String,
    },
    /// What was to be written is no trace: nobody could read it.
    #[error("this is no trace: {0}")]
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
