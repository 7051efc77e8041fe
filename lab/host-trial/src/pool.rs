//! Asks for huge pages through the kernel's pool of them: `nr_hugepages` up, and back. The kernel
//! compacts and reclaims for each, so this may take seconds, evict page cache, and set other
//! processes back. Of several nodes, the sum is put back, and not how it was spread.

use core::time::Duration;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::time::Instant;

use rustix::fs::{FlockOperation, flock};

use crate::{Outcome, TrialError};

/// Blocks that are asked for at a time: between two it can be stopped.
const SLICE: u64 = 256;

/// The pool of huge pages of one size. Dropping it puts it back as it was.
#[derive(Debug)]
pub struct Pool {
    file: PathBuf,
    before: u64,
    grown: bool,
    /// Locked, so that two processes do not put back what the other one asked for.
    _lock: File,
}

impl Pool {
    /// Opens the pool of huge pages of so many bytes.
    ///
    /// # Errors
    /// If the kernel has none of this size, or this user may not write it.
    pub fn of(bytes: u64) -> Result<Self, TrialError> {
        Self::in_folder(Path::new("/sys/kernel/mm/hugepages"), bytes)
    }

    /// As [`Pool::of`], in another folder than the kernel's.
    ///
    /// # Errors
    /// As [`Pool::of`].
    pub fn in_folder(folder: &Path, bytes: u64) -> Result<Self, TrialError> {
        let kib = bytes / 1024;
        let file = folder.join(format!("hugepages-{kib}kB/nr_hugepages"));
        if !file.exists() {
            return Err(TrialError::NoPool { kib, path: file });
        }
        let lock = File::open(&file).map_err(|source| TrialError::of(&file, source))?;
        flock(&lock, FlockOperation::LockExclusive)
            .map_err(|error| TrialError::of(&file, error.into()))?;
        let before = number(&file)?;
        // Writes what is there, so that a user who may not is told before anything is asked.
        fs::write(&file, before.to_string()).map_err(|source| TrialError::of(&file, source))?;
        Ok(Self {
            file,
            before,
            grown: false,
            _lock: lock,
        })
    }

    /// Asks for so many more than the pool has, until `stop` is true or the kernel gives no more.
    ///
    /// # Errors
    /// If the pool cannot be read or written.
    pub fn ask(&mut self, blocks: u64, stop: impl Fn() -> bool) -> Result<Outcome, TrialError> {
        let began = Instant::now();
        let mut came = 0;
        while came < blocks && !stop() {
            let wanted = came.saturating_add(SLICE).min(blocks);
            self.grown = true;
            fs::write(&self.file, self.before.saturating_add(wanted).to_string())
                .map_err(|source| TrialError::of(&self.file, source))?;
            came = number(&self.file)?.saturating_sub(self.before);
            if came < wanted {
                break;
            }
        }
        Ok(Outcome {
            asked: blocks,
            came,
            took: began.elapsed(),
        })
    }

    /// Puts the pool back as it was.
    ///
    /// # Errors
    /// [`TrialError::NotPutBack`], with the command that does it.
    pub fn put_back(mut self) -> Result<(), TrialError> {
        self.shrink()
    }

    fn shrink(&mut self) -> Result<(), TrialError> {
        if !self.grown {
            return Ok(());
        }
        // A signal may have come in between, which ends a write early.
        for _ in 0..10 {
            let _ = fs::write(&self.file, self.before.to_string());
            if number(&self.file)? <= self.before {
                self.grown = false;
                return Ok(());
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        // It is told once, and not again when this is dropped.
        self.grown = false;
        let (path, before) = (self.file.clone(), self.before);
        Err(TrialError::NotPutBack {
            now: number(&path)?,
            path,
            before,
        })
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        if let Err(error) = self.shrink() {
            eprintln!("{error}");
        }
    }
}

fn number(path: &Path) -> Result<u64, TrialError> {
    let text = fs::read_to_string(path).map_err(|source| TrialError::of(path, source))?;
    let parsed = text.trim().parse();
    parsed.map_err(|_| TrialError::NoNumber {
        path: path.into(),
        text,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Makes a folder as the kernel's, whose pool has so many; returns it and the pool's file.
    fn folder(name: &str, text: &str) -> (PathBuf, PathBuf) {
        let folder =
            std::env::temp_dir().join(format!("brickyard-pool-{}-{name}", std::process::id()));
        let file = folder.join("hugepages-2048kB/nr_hugepages");
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(&file, text).unwrap();
        (folder, file)
    }

    fn text(file: &Path) -> String {
        fs::read_to_string(file).unwrap()
    }

    #[test]
    fn what_is_asked_for_is_put_back() {
        let (folder, file) = folder("back", "7\n");
        let mut pool = Pool::in_folder(&folder, 2 << 20).unwrap();
        let outcome = pool.ask(600, || false).unwrap();
        assert_eq!(
            (outcome.asked, outcome.came, text(&file).as_str()),
            (600, 600, "607")
        );
        pool.put_back().unwrap();
        assert_eq!(text(&file), "7");
        // Dropped, it is put back as well.
        let mut pool = Pool::in_folder(&folder, 2 << 20).unwrap();
        pool.ask(3, || false).unwrap();
        drop(pool);
        assert_eq!(text(&file), "7");
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn asking_is_stopped_between_slices() {
        let (folder, file) = folder("stop", "0");
        let mut pool = Pool::in_folder(&folder, 2 << 20).unwrap();
        let stop = || number(&file).unwrap() > 0;
        assert_eq!(pool.ask(10 * SLICE, stop).unwrap().came, SLICE);
        assert_eq!(pool.ask(10, || true).unwrap().came, 0);
        drop(pool);
        assert_eq!(text(&file), "0");
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn what_is_no_pool_is_refused() {
        let (folder, _) = folder("none", "many");
        let refused = |bytes| Pool::in_folder(&folder, bytes).unwrap_err();
        assert!(matches!(refused(2 << 20), TrialError::NoNumber { .. }));
        assert!(
            refused(64 << 10)
                .to_string()
                .contains("no pool of huge pages of 64 KiB")
        );
        fs::remove_dir_all(&folder).unwrap();
    }
}
