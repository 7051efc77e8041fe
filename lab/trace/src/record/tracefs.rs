//! Finds the kernel's tracing files; mounts tracefs for the recording if it is not mounted.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use rustix::mount::{MountFlags, UnmountFlags, mount, unmount};

use super::error::RecordError;

/// Its own mount point, and that of older kernels, which is mounted automatically on access.
const PLACES: [&str; 2] = ["/sys/kernel/tracing", "/sys/kernel/debug/tracing"];

/// The kernel's tracing files.
#[derive(Debug)]
pub(super) struct Tracefs {
    path: PathBuf,
    mounted_by: MountedBy,
}

#[derive(Debug, PartialEq, Eq)]
enum MountedBy {
    Others,
    Us,
}

impl Tracefs {
    /// Finds tracefs. If it is not mounted, it is mounted at its own mount point, and unmounted
    /// when this is dropped.
    ///
    /// # Errors
    ///
    /// If there is no tracefs, or this user may not use it.
    pub(super) fn find() -> Result<Self, RecordError> {
        for place in PLACES.map(Path::new) {
            match fs::metadata(place.join("events")) {
                Ok(_) => {
                    return Ok(Self {
                        path: place.to_owned(),
                        mounted_by: MountedBy::Others,
                    });
                }
                Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                    return Err(RecordError::tracing(place, error));
                }
                Err(_) => {}
            }
        }
        Self::mount(Path::new(PLACES[0]))
    }

    fn mount(place: &Path) -> Result<Self, RecordError> {
        if !place.is_dir() {
            return Err(RecordError::NoTracefs);
        }
        let none = None::<&core::ffi::CStr>;
        let flags = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC;
        match mount("tracefs", place, "tracefs", flags, none) {
            Ok(()) => Ok(Self {
                path: place.to_owned(),
                mounted_by: MountedBy::Us,
            }),
            Err(rustix::io::Errno::PERM | rustix::io::Errno::ACCESS) => {
                let denied = io::Error::from(io::ErrorKind::PermissionDenied);
                Err(RecordError::tracing(place, denied))
            }
            Err(_) => Err(RecordError::NoTracefs),
        }
    }

    /// Returns the directory.
    #[must_use]
    pub(super) fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Tracefs {
    fn drop(&mut self) {
        if self.mounted_by == MountedBy::Us {
            // If another process uses it by now, it stays mounted.
            let _ = unmount(&self.path, UnmountFlags::empty());
        }
    }
}
