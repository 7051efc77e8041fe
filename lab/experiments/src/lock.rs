//! Two locks between processes. Invariant `one-run-a-folder`: a folder has one whole run at a time.
//! Invariant `one-timed-cell-a-host`: a host times one cell at a time.
//!
//! Both are file locks of the system (`flock`), which are released when the process ends, however
//! it ends. The files are not deleted: if one were deleted while another process waits for it,
//! there would be two locks. On a file system without locks the run goes on without one, with a
//! warning.

use core::sync::atomic::{AtomicBool, Ordering};
use core::time::Duration;
use std::fs::{File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Instant;

use brickyard_run::interrupt;
use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;

use crate::refusal::Refusal;

/// A lock, held until it is dropped.
#[derive(Debug)]
pub struct Lock {
    _file: Option<File>,
}

/// Takes the lock of a whole run on its folder; warnings go to `say`. Single cells need none: each
/// has a file of its own, which appears when it is complete.
///
/// # Errors
/// If another whole run holds it.
pub fn folder(folder: &Path, say: impl Fn(&str)) -> Result<Lock, Refusal> {
    let path = folder.join(".lock");
    match try_lock(&path) {
        Ok(Some(file)) => Ok(Lock { _file: Some(file) }),
        Ok(None) => Err(Refusal::Busy(folder.to_owned())),
        Err(error) => {
            say(&format!(
                "cannot lock {}: {error}; make sure that nothing else runs in this folder",
                path.display()
            ));
            Ok(Lock { _file: None })
        }
    }
}

/// How the notice that it is waited for begins.
pub(crate) const WAITING: &str = "waiting:";

/// How the notice that there is none begins.
pub(crate) const CANNOT: &str = "cannot lock";

/// The lock held while something is timed on this host.
#[derive(Debug)]
pub(crate) struct HostLock {
    path: PathBuf,
    has_notified: AtomicBool,
}

/// Time between two tries to take a lock that another process holds.
const RETRY_EVERY: Duration = Duration::from_millis(50);

/// A wait shorter than this is not reported.
const QUIET: Duration = Duration::from_secs(1);

impl HostLock {
    pub(crate) fn new() -> Self {
        Self {
            path: std::env::temp_dir().join("brickyard-timed.lock"),
            has_notified: AtomicBool::new(false),
        }
    }

    /// Waits for the lock; one notice at most goes to `say`. None if the user interrupts.
    pub(crate) fn wait(&self, say: impl Fn(&str)) -> Option<Lock> {
        let begun = Instant::now();
        loop {
            let path = self.path.display();
            match try_lock(&self.path) {
                Ok(Some(file)) => return Some(Lock { _file: Some(file) }),
                Ok(None) => {
                    if begun.elapsed() >= QUIET && self.is_first() {
                        say(&format!(
                            "{WAITING} another brickyard is timing something on this host ({path} is locked)"
                        ));
                    }
                }
                Err(error) => {
                    if self.is_first() {
                        say(&format!(
                            "{CANNOT} {path}: {error}; make sure that nothing else is timed on this host"
                        ));
                    }
                    return Some(Lock { _file: None });
                }
            }
            if interrupt::asked() {
                return None;
            }
            thread::sleep(RETRY_EVERY);
        }
    }

    /// Returns true on the first call only.
    fn is_first(&self) -> bool {
        // Relaxed: the flag guards no other data.
        !self.has_notified.swap(true, Ordering::Relaxed)
    }
}

/// Returns the locked file; none if another process holds the lock.
fn try_lock(path: &Path) -> io::Result<Option<File>> {
    let file = opened(path)?;
    match flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(Some(file)),
        Err(Errno::WOULDBLOCK) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Opens the file, or creates it.
fn opened(path: &Path) -> io::Result<File> {
    // A lock over NFS needs a file opened for writing; a file of another user can only be read.
    let existing = OpenOptions::new().read(true).write(true).open(path);
    let existing = existing.or_else(|_| File::open(path));
    match existing {
        Err(error) if error.kind() == io::ErrorKind::NotFound => OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(path),
        other => other,
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by it")]
mod tests {
    use core::cell::RefCell;

    use super::*;

    #[test]
    fn a_folder_has_one_run_at_a_time() {
        let place = tempfile::tempdir().unwrap();
        let first = folder(place.path(), |line| panic!("{line}")).unwrap();
        let message = folder(place.path(), |line| panic!("{line}"))
            .unwrap_err()
            .to_string();
        assert!(message.contains("is running in"), "{message}");
        drop(first);
        folder(place.path(), |line| panic!("{line}")).unwrap();
    }

    #[test]
    fn a_host_times_one_cell_at_a_time() {
        let place = tempfile::tempdir().unwrap();
        let host = || HostLock {
            path: place.path().join("lock"),
            has_notified: AtomicBool::new(false),
        };
        let first = host().wait(|line| panic!("{line}")).unwrap();
        let second = host();
        let message = RefCell::new(Vec::new());
        thread::scope(|scope| {
            scope.spawn(|| {
                thread::sleep(QUIET + 4 * RETRY_EVERY);
                drop(first);
            });
            let tell = |line: &str| message.borrow_mut().push(line.to_owned());
            assert!(second.wait(tell).is_some());
        });
        let message = message.into_inner();
        assert_eq!(message.len(), 1, "{message:?}");
        assert!(message[0].starts_with("waiting: another brickyard is timing"));
    }

    #[test]
    fn without_a_file_there_is_one_warning_and_no_lock() {
        let host = HostLock {
            path: PathBuf::from("/proc/none/lock"),
            has_notified: AtomicBool::new(false),
        };
        let message = RefCell::new(Vec::new());
        let tell = |line: &str| message.borrow_mut().push(line.to_owned());
        for _ in 0..2 {
            assert!(host.wait(tell).is_some());
        }
        assert_eq!(message.into_inner().len(), 1);
    }
}
