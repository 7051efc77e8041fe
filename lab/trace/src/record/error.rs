//! Errors of a recording, each with what to do about it.

use std::io;
use std::path::PathBuf;

use super::format::FormatError;

/// Why a recording failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RecordError {
    /// Access to the kernel's tracing files is denied.
    #[error(
        "no permission to use {path}: {why}. Recording needs root: run it with `sudo`. (If it fails as root too, this is a container without the host's tracing, or the kernel is in lockdown.)"
    )]
    NotPermitted {
        /// The file.
        path: PathBuf,
        /// The system's error.
        why: io::Error,
    },
    /// No tracefs was found.
    #[error(
        "no tracefs at /sys/kernel/tracing or /sys/kernel/debug/tracing. Mount it as root (`mount -t tracefs tracefs /sys/kernel/tracing`); if that fails, the kernel was built without CONFIG_TRACING, or this is a container: run it on the host"
    )]
    NoTracefs,
    /// The kernel lacks an event.
    #[error(
        "the kernel has no event {event}. Recording needs a kernel built with CONFIG_EVENT_TRACING, 4.1 or newer"
    )]
    NoEvent {
        /// The event, as `system:name`.
        event: String,
    },
    /// An event lacks a field that a trace needs.
    #[error(
        "the kernel's event {event} has no field `{field}`: the kernel is too old. Recording needs 4.1 or newer, which record frame numbers"
    )]
    TooOld {
        /// The event, as `system:name`.
        event: String,
        /// The missing field.
        field: &'static str,
    },
    /// A format file cannot be parsed.
    #[error("cannot parse {path}: {why}")]
    Format {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        why: FormatError,
    },
    /// The kernel cannot allocate the buffers.
    #[error(
        "the kernel has no memory for buffers of {kib} KiB a CPU ({why}). Ask for less: --buffer"
    )]
    NoMemory {
        /// The size of each buffer.
        kib: u64,
        /// The system's error.
        why: io::Error,
    },
    /// A tracing file cannot be read or written.
    #[error("cannot use {path}: {why}")]
    Tracing {
        /// The file.
        path: PathBuf,
        /// The system's error.
        why: io::Error,
    },
    /// The spool cannot be created or read back.
    #[error("cannot use the spool {path}: {why}. Put it elsewhere: --spool")]
    Spool {
        /// Its path.
        path: PathBuf,
        /// The system's error.
        why: io::Error,
    },
    /// The spool does not hold what was written to it.
    #[error(
        "the data read back from the spool {path} is not what was written: its disk is faulty, or brickyard has a bug"
    )]
    SpoolChanged {
        /// Its path.
        path: PathBuf,
    },
}

impl RecordError {
    /// Returns the error for `why` on a file of tracefs: `NotPermitted` or `Tracing`.
    pub(super) fn tracing(path: impl Into<PathBuf>, why: io::Error) -> Self {
        let path = path.into();
        if why.kind() == io::ErrorKind::PermissionDenied {
            Self::NotPermitted { path, why }
        } else {
            Self::Tracing { path, why }
        }
    }
}
