//! Asks for huge pages through the kernel's pool of them: `nr_hugepages` up, and back. The kernel
//! compacts and reclaims for each, so this may take seconds, evict page cache, and set other
//! processes back.

use core::time::Duration;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Instant;

use crate::{Outcome, TrialError};

/// The pool of huge pages of one size. Dropping it puts it back as it was.
#[derive(Debug)]
pub struct Pool {
    file: PathBuf,
    before: u64,
    grown: bool,
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
        let before = number(&file)?;
        // Writes what is there, so that a user who may not is told before anything is asked.
        fs::write(&file, before.to_string()).map_err(|source| TrialError::of(&file, source))?;
        Ok(Self {
            file,
            before,
            grown: false,
        })
    }

    /// Asks for so many more than the pool has. A signal ends it with those that came so far.
    ///
    /// # Errors
    /// If the pool cannot be read or written.
    pub fn ask(&mut self, blocks: u64) -> Result<Outcome, TrialError> {
        let wanted = self.before.saturating_add(blocks);
        self.grown = true;
        let began = Instant::now();
        fs::write(&self.file, wanted.to_string())
            .map_err(|source| TrialError::of(&self.file, source))?;
        let took = began.elapsed();
        let came = number(&self.file)?.saturating_sub(self.before);
        Ok(Outcome {
            asked: blocks,
            came,
            took,
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
