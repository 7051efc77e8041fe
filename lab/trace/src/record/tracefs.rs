//! Finds the kernel's tracing files; mounts tracefs for the recording if it is not mounted.
//!
//! The mount is attached to no directory: only this process sees it, and it goes with the process,
//! however that ends. Where that is refused (by kernels before 5.2, and some containers), tracefs
//! is mounted at its own mount point.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use rustix::fd::{AsRawFd, OwnedFd};
use rustix::io::Errno;
use rustix::mount::{
    FsMountFlags, FsOpenFlags, MountAttrFlags, MountFlags, UnmountFlags, fsconfig_create, fsmount,
    fsopen, mount, unmount,
};

use super::error::RecordError;

/// Its own mount point, and that of older kernels, which is mounted automatically on access.
const PLACES: [&str; 2] = ["/sys/kernel/tracing", "/sys/kernel/debug/tracing"];

/// The kernel's tracing files.
#[derive(Debug)]
pub struct Tracefs {
    path: PathBuf,
    mounted_by: MountedBy,
}

#[derive(Debug)]
enum MountedBy {
    Others,
    /// Attached to no directory; it lasts as long as this is open.
    Us(#[allow(dead_code, reason = "kept open")] OwnedFd),
    /// At its own mount point.
    UsInPlace,
}

impl Tracefs {
    /// Finds tracefs. If it is not mounted, it is mounted until this is dropped.
    ///
    /// # Errors
    ///
    /// If there is no tracefs, or this user may not use it.
    pub fn find() -> Result<Self, RecordError> {
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
        let mounted = detached().map(|mounted| Self {
            path: format!("/proc/self/fd/{}", mounted.as_raw_fd()).into(),
            mounted_by: MountedBy::Us(mounted),
        });
        let mounted = match mounted {
            Err(_) if place.is_dir() => {
                let none = None::<&core::ffi::CStr>;
                let flags = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC;
                mount("tracefs", place, "tracefs", flags, none).map(|()| Self {
                    path: place.to_owned(),
                    mounted_by: MountedBy::UsInPlace,
                })
            }
            mounted => mounted,
        };
        mounted.map_err(|error| match error {
            Errno::PERM | Errno::ACCESS => {
                let denied = io::Error::from(io::ErrorKind::PermissionDenied);
                RecordError::tracing(place, denied)
            }
            _ => RecordError::NoTracefs,
        })
    }

    /// Returns the directory, for this process: others may not see it.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Tracefs {
    fn drop(&mut self) {
        if matches!(self.mounted_by, MountedBy::UsInPlace) {
            // If another process uses it by now, it stays mounted.
            let _ = unmount(&self.path, UnmountFlags::empty());
        }
    }
}

/// Mounts tracefs without attaching it to a directory.
fn detached() -> rustix::io::Result<OwnedFd> {
    let opened = fsopen("tracefs", FsOpenFlags::FSOPEN_CLOEXEC)?;
    fsconfig_create(&opened)?;
    let safe = MountAttrFlags::MOUNT_ATTR_NOSUID
        | MountAttrFlags::MOUNT_ATTR_NODEV
        | MountAttrFlags::MOUNT_ATTR_NOEXEC;
    fsmount(&opened, FsMountFlags::FSMOUNT_CLOEXEC, safe)
}
