//! Two locks between processes. Invariant `one-run-a-folder`: a folder has one whole run at a time.
//! Invariant `one-timed-cell-a-host`: a host times one cell at a time.
//!
//! Both are locks of the system on a file (`flock`), which end with the process, however it ends.
//! The files stay: one that is deleted while another process waits for it is two locks. Where a
//! file system has no locks there is none, which is told.

use core::sync::atomic::{AtomicBool, Ordering};
use core::time::Duration;
use std::fs::{File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Instant;

use brickyard_bench::stop;
use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;

use crate::refusal::Refusal;

/// Held until it is dropped.
#[derive(Debug)]
pub struct Lock {
    _file: Option<File>,
}

/// The lock of a whole run on its folder; `say` is given what to tell. Single cells need none: each
/// has a file of its own, which appears when it is whole.
///
/// # Errors
/// If another whole run has it.
pub fn folder(folder: &Path, say: impl Fn(&str)) -> Result<Lock, Refusal> {
    let path = folder.join(".lock");
    match try_lock(&path) {
        Ok(Some(file)) => Ok(Lock { _file: Some(file) }),
        Ok(None) => Err(Refusal::Busy(folder.to_owned())),
        Err(error) => {
            say(&format!(
                "cannot lock {}: {error}; see that nothing else runs in this folder",
                path.display()
            ));
            Ok(Lock { _file: None })
        }
    }
}

/// The lock that whoever times something on this host has.
#[derive(Debug)]
pub(crate) struct Host {
    path: PathBuf,
    is_told: AtomicBool,
}

/// Between two looks at a lock that another process has.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// So long nobody is told of it.
const QUIET: Duration = Duration::from_secs(1);

impl Host {
    pub(crate) fn new() -> Self {
        Self {
            path: std::env::temp_dir().join("brickyard-timed.lock"),
            is_told: AtomicBool::new(false),
        }
    }

    /// Waits for it; `say` is given what to tell, once. None: the user wants an end.
    pub(crate) fn wait(&self, say: impl Fn(&str)) -> Option<Lock> {
        let begun = Instant::now();
        loop {
            let path = self.path.display();
            match try_lock(&self.path) {
                Ok(Some(file)) => return Some(Lock { _file: Some(file) }),
                Ok(None) => {
                    if begun.elapsed() >= QUIET && self.is_first() {
                        say(&format!(
                            "waiting: another brickyard times something on this host ({path} is locked)"
                        ));
                    }
                }
                Err(error) => {
                    if self.is_first() {
                        say(&format!(
                            "cannot lock {path}: {error}; see that nothing else is timed on this host"
                        ));
                    }
                    return Some(Lock { _file: None });
                }
            }
            if stop::asked() {
                return None;
            }
            thread::sleep(LOOK_EVERY);
        }
    }

    /// True once.
    fn is_first(&self) -> bool {
        // Relaxed: a flag alone.
        !self.is_told.swap(true, Ordering::Relaxed)
    }
}

/// The file with its lock; none if another process has it.
fn try_lock(path: &Path) -> io::Result<Option<File>> {
    let file = opened(path)?;
    match flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(Some(file)),
        Err(Errno::WOULDBLOCK) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Opens it, or makes it.
fn opened(path: &Path) -> io::Result<File> {
    // A lock over NFS needs a file that can be written; one that another user made is only read.
    let there = OpenOptions::new().read(true).write(true).open(path);
    let there = there.or_else(|_| File::open(path));
    match there {
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
        let said = folder(place.path(), |line| panic!("{line}"))
            .unwrap_err()
            .to_string();
        assert!(said.contains("is at work in"), "{said}");
        drop(first);
        folder(place.path(), |line| panic!("{line}")).unwrap();
    }

    #[test]
    fn a_host_times_one_cell_at_a_time() {
        let place = tempfile::tempdir().unwrap();
        let host = || Host {
            path: place.path().join("lock"),
            is_told: AtomicBool::new(false),
        };
        let first = host().wait(|line| panic!("{line}")).unwrap();
        let second = host();
        let said = RefCell::new(Vec::new());
        thread::scope(|scope| {
            scope.spawn(|| {
                thread::sleep(QUIET + 4 * LOOK_EVERY);
                drop(first);
            });
            let tell = |line: &str| said.borrow_mut().push(line.to_owned());
            assert!(second.wait(tell).is_some());
        });
        let said = said.into_inner();
        assert_eq!(said.len(), 1, "{said:?}");
        assert!(said[0].starts_with("waiting: another brickyard"));
    }

    #[test]
    fn where_no_file_can_be_made_there_is_no_lock() {
        let host = Host {
            path: PathBuf::from("/proc/none/lock"),
            is_told: AtomicBool::new(false),
        };
        let said = RefCell::new(Vec::new());
        let tell = |line: &str| said.borrow_mut().push(line.to_owned());
        for _ in 0..2 {
            assert!(host.wait(tell).is_some());
        }
        assert_eq!(said.into_inner().len(), 1);
    }
}
