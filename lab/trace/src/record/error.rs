//! What can keep a recording from being made, and what to do about it.

use std::io;
use std::path::PathBuf;

use super::format::FormatError;

/// Why there is no recording.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RecordError {
    /// The kernel's tracing files may not be used.
    #[error(
        "may not use {path}: {why}. Recording needs root: run it by `sudo`. (As root too? Then a container without the host's tracing, or a kernel in lockdown, forbids it.)"
    )]
    NotPermitted {
        /// Which file.
        path: PathBuf,
        /// What the system says.
        why: io::Error,
    },
    /// There is no tracefs.
    #[error(
        "no tracefs at /sys/kernel/tracing or /sys/kernel/debug/tracing. Mount it as root (`mount -t tracefs tracefs /sys/kernel/tracing`); if that fails, the kernel was built without CONFIG_TRACING, or this is a container: run it on the host"
    )]
    NoTracefs,
    /// The kernel lacks an event.
    #[error(
        "the kernel has no event {event}. It needs a kernel built with CONFIG_EVENT_TRACING, 4.1 or newer"
    )]
    NoEvent {
        /// Which one, as `system:name`.
        event: String,
    },
    /// An event is there, but does not say what a trace needs.
    #[error(
        "the kernel's event {event} has no field `{field}`: the kernel is too old. It needs 4.1 or newer, which tell frames by number"
    )]
    TooOld {
        /// Which event, as `system:name`.
        event: String,
        /// What it lacks.
        field: &'static str,
    },
    /// A format file cannot be understood.
    #[error("cannot understand {path}: {why}")]
    Format {
        /// The file.
        path: PathBuf,
        /// Why.
        why: FormatError,
    },
    /// There is no memory for the buffers.
    #[error(
        "the kernel has no memory for buffers of {kib} KiB a CPU ({why}). Ask for less: --buffer"
    )]
    NoMemory {
        /// How large each would have been.
        kib: u64,
        /// What the system says.
        why: io::Error,
    },
    /// A tracing file cannot be read or written.
    #[error("cannot use {path}: {why}")]
    Tracing {
        /// Which.
        path: PathBuf,
        /// What the system says.
        why: io::Error,
    },
    /// The spool cannot be made or read back.
    #[error("cannot use the spool {path}: {why}. Put it elsewhere: --spool")]
    Spool {
        /// Where it is.
        path: PathBuf,
        /// What the system says.
        why: io::Error,
    },
    /// The spool does not hold what was put there.
    #[error(
        "what was read back from the spool {path} is not what was written: its disk is faulty, or there is a mistake in brickyard"
    )]
    SpoolChanged {
        /// Where it is.
        path: PathBuf,
    },
}

impl RecordError {
    /// `why` on a file of tracefs, told apart by whether root is missing.
    pub(super) fn tracing(path: impl Into<PathBuf>, why: io::Error) -> Self {
        let path = path.into();
        if why.kind() == io::ErrorKind::PermissionDenied {
            Self::NotPermitted { path, why }
        } else {
            Self::Tracing { path, why }
        }
    }
}
