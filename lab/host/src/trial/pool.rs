//! Asks for huge pages through the kernel's pool of them: `nr_hugepages` up, and back. The kernel
//! compacts and reclaims for each, so this may take seconds, evict page cache, and set other
//! processes back. Of several nodes, the sum is put back, and not how it was spread.
//!
//! The kernel counts two kinds of pages in `nr_hugepages`: those that were asked for, and surplus
//! ones, which it made on demand and frees with their last user. A number that is written counts
//! the first kind alone, and turns surplus pages into such first. So here that kind is counted:
//! `nr_hugepages` less `surplus_hugepages`.

use core::time::Duration;
use std::fs::{self, File, OpenOptions};
use std::io::{ErrorKind, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Instant;

use rustix::fs::{FlockOperation, OFlags, flock};

use crate::trial::{Outcome, TrialError};

/// Blocks that are asked for at a time: between two it can be stopped.
const SLICE: u64 = 256;

/// Who puts the pool back if this process is killed: it waits for a word, and for the end of its
/// input without one writes the number.
const KEEPER: &str =
    "trap '' TERM INT HUP; read -r word; [ \"$word\" = done ] || echo \"$1\" >\"$0\"";

/// The pool of huge pages of one size. Dropping it puts it back as it was.
#[derive(Debug)]
pub struct Pool {
    file: PathBuf,
    surplus: PathBuf,
    /// Pages that were asked for before this began, and surplus ones.
    before: u64,
    surplus_before: u64,
    /// Pages that were asked for when this last looked; `None` before it asked.
    last: Option<u64>,
    /// Held by the keeper too, until the pool is as it was.
    lock: File,
    keeper: Option<Child>,
}

/// What putting a pool back met.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PutBack {
    /// Pages that others took meanwhile. They are surplus now, and freed with their last user.
    pub in_use: u64,
    /// Somebody else changed the pool meanwhile, by so many pages; that was left as it is.
    pub changed: i64,
}

impl Pool {
    /// Opens the pool of huge pages of so many bytes. Changes nothing.
    ///
    /// # Errors
    /// If the kernel has none of this size, this user may not write it, or another process of this
    /// kind uses it.
    pub fn of(bytes: u64) -> Result<Self, TrialError> {
        let lock = Path::new("/run/brickyard-nr_hugepages.lock");
        Self::in_folder(Path::new("/sys/kernel/mm/hugepages"), bytes, lock)
    }

    /// Opens a pool in another folder than the kernel's, and with another file as lock.
    ///
    /// # Errors
    /// Those of [`Pool::of`].
    pub fn in_folder(folder: &Path, bytes: u64, lock: &Path) -> Result<Self, TrialError> {
        let kib = bytes / 1024;
        let folder = folder.join(format!("hugepages-{kib}kB"));
        let (file, surplus) = (
            folder.join("nr_hugepages"),
            folder.join("surplus_hugepages"),
        );
        if !file.exists() {
            return Err(TrialError::NoPool { kib, path: file });
        }
        // Opened to write, so that a user who may not is told before anything is asked.
        let writable = OpenOptions::new().write(true).open(&file);
        drop(writable.map_err(|source| TrialError::of(&file, source))?);
        let lock = locked(lock, &file)?;
        let mut pool = Self {
            file,
            surplus,
            before: 0,
            surplus_before: 0,
            last: None,
            lock,
            keeper: None,
        };
        pool.surplus_before = pool.surplus_pages();
        pool.before = pool.asked_for()?;
        Ok(pool)
    }

    /// Returns the pages that were asked for, without surplus ones.
    fn asked_for(&self) -> Result<u64, TrialError> {
        Ok(number(&self.file)?.saturating_sub(self.surplus_pages()))
    }

    /// Returns the surplus pages; 0 if the kernel does not tell.
    fn surplus_pages(&self) -> u64 {
        number(&self.surplus).unwrap_or(0)
    }

    /// Asks for so many more than the pool has, until `stop` is true, the kernel gives no more, or
    /// somebody else changes the pool.
    ///
    /// # Errors
    /// If the pool cannot be read or written.
    pub fn ask(&mut self, blocks: u64, stop: impl Fn() -> bool) -> Result<Outcome, TrialError> {
        let began = Instant::now();
        self.keep()?;
        let (all, surplus) = (number(&self.file)?, self.surplus_pages());
        let mut came = 0;
        let base = *self.last.get_or_insert(self.before);
        let mut stopped = false;
        while came < blocks {
            stopped = stop();
            let others = self.last != Some(self.asked_for()?);
            if stopped || others {
                break;
            }
            let wanted = came.saturating_add(SLICE).min(blocks);
            // The first ones only turn surplus pages into such as were asked for.
            let number_wanted = base.saturating_add(surplus).saturating_add(wanted);
            let written = fs::write(&self.file, number_wanted.to_string());
            // Also of a write that failed, part of it may have been done.
            self.last = Some(self.asked_for()?);
            written.map_err(|source| TrialError::of(&self.file, source))?;
            came = number(&self.file)?.saturating_sub(all);
            if came < wanted {
                // The kernel gives up when a signal comes, too.
                stopped = stop();
                break;
            }
        }
        Ok(Outcome {
            asked: blocks,
            came,
            took: began.elapsed(),
            stopped,
        })
    }

    /// Starts who puts the pool back if this process is killed.
    fn keep(&mut self) -> Result<(), TrialError> {
        if self.keeper.is_some() {
            return Ok(());
        }
        let lock = self.lock.try_clone();
        let lock = lock.map_err(TrialError::failed("keep the lock of nr_hugepages"))?;
        let keeper = Command::new("/bin/sh")
            .args(["-c", KEEPER])
            .arg(&self.file)
            .arg(self.before.to_string())
            .env_clear()
            .current_dir("/")
            // Not in the terminal's group, whose Ctrl-C would end it.
            .process_group(0)
            .stdin(Stdio::piped())
            // It writes nothing there: so the lock lasts as long as it does.
            .stdout(Stdio::from(lock))
            .stderr(Stdio::null())
            .spawn();
        let failed =
            TrialError::failed("start /bin/sh, which puts nr_hugepages back if this is killed");
        self.keeper = Some(keeper.map_err(failed)?);
        Ok(())
    }

    /// Puts the pool back as it was, but for what others did to it meanwhile.
    ///
    /// # Errors
    /// [`TrialError::NotPutBack`], with the command that does it.
    pub fn put_back(mut self) -> Result<PutBack, TrialError> {
        self.shrink()
    }

    fn shrink(&mut self) -> Result<PutBack, TrialError> {
        // It is tried once, and not again when this is dropped.
        let Some(last) = self.last.take() else {
            return Ok(PutBack::default());
        };
        let now = self.asked_for()?;
        let changed = now.cast_signed().wrapping_sub(last.cast_signed());
        // What this process added goes, and what others did stays: also what they have lowered it
        // to.
        let added = last.saturating_sub(self.before);
        let wanted = now.saturating_sub(added).max(now.min(self.before));
        // A signal may have come in between, which ends a write early.
        for _ in 0..10 {
            let _ = fs::write(&self.file, wanted.to_string());
            if self.asked_for()? <= wanted {
                self.dismiss(Word::Done);
                let in_use = self.surplus_pages().saturating_sub(self.surplus_before);
                return Ok(PutBack { in_use, changed });
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        self.dismiss(Word::None);
        Err(TrialError::NotPutBack {
            now: self.asked_for()?,
            path: self.file.clone(),
            before: wanted,
        })
    }

    /// Ends the keeper, who without a word puts the pool back.
    fn dismiss(&mut self, word: Word) {
        if let Some(mut keeper) = self.keeper.take() {
            if let (Word::Done, Some(input)) = (word, &mut keeper.stdin) {
                let _ = input.write_all(b"done\n");
            }
            drop(keeper.stdin.take());
            let _ = keeper.wait();
        }
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        let word = match self.shrink() {
            Ok(_) => Word::Done,
            Err(error) => {
                // Nobody may read standard error any more.
                let _ = writeln!(std::io::stderr(), "{error}");
                Word::None
            }
        };
        self.dismiss(word);
        // Also for a child of another thread that has not begun its program yet, and so has the
        // file.
        let _ = flock(&self.lock, FlockOperation::Unlock);
    }
}

/// What a keeper is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Word {
    Done,
    None,
}

/// Opens and locks a file that only its owner may open: of two processes, one would put back what
/// the other asked for. Where there can be no such file, the pool's own is locked, as anybody may.
fn locked(path: &Path, pool: &Path) -> Result<File, TrialError> {
    let own = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .custom_flags(OFlags::NOFOLLOW.bits().cast_signed())
        .open(path);
    let elsewhere = [
        ErrorKind::NotFound,
        ErrorKind::PermissionDenied,
        ErrorKind::ReadOnlyFilesystem,
    ];
    let (path, file) = match own {
        Err(error) if elsewhere.contains(&error.kind()) => (pool, File::open(pool)),
        own => (path, own),
    };
    let file = file.map_err(|source| TrialError::of(path, source))?;
    match flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(file),
        Err(error) if std::io::Error::from(error).kind() == ErrorKind::WouldBlock => {
            Err(TrialError::Busy { path: path.into() })
        }
        Err(error) => Err(TrialError::of(path, error.into())),
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

    /// A folder as the kernel's.
    struct Made {
        folder: tempfile::TempDir,
        file: PathBuf,
    }

    impl Made {
        fn new(text: &str) -> Self {
            let folder = tempfile::tempdir().unwrap();
            let file = folder.path().join("hugepages-2048kB/nr_hugepages");
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(&file, text).unwrap();
            Self { folder, file }
        }

        fn pool(&self) -> Result<Pool, TrialError> {
            self.pool_of(2 << 20)
        }

        fn pool_of(&self, bytes: u64) -> Result<Pool, TrialError> {
            let lock = self.folder.path().join("lock");
            Pool::in_folder(self.folder.path(), bytes, &lock)
        }

        fn text(&self) -> String {
            fs::read_to_string(&self.file).unwrap()
        }

        fn write(&self, name: &str, text: &str) {
            fs::write(self.file.with_file_name(name), text).unwrap();
        }
    }

    #[test]
    fn what_is_asked_for_is_put_back() {
        let made = Made::new("7\n");
        let mut pool = made.pool().unwrap();
        let outcome = pool.ask(600, || false).unwrap();
        assert_eq!(
            (outcome.asked, outcome.came, made.text().as_str()),
            (600, 600, "607")
        );
        assert_eq!(pool.put_back().unwrap(), PutBack::default());
        assert_eq!(made.text(), "7");
        // Dropped, it is put back as well; and asked twice.
        let mut pool = made.pool().unwrap();
        pool.ask(3, || false).unwrap();
        assert_eq!(pool.ask(4, || false).unwrap().came, 4);
        assert_eq!(made.text(), "14");
        drop(pool);
        assert_eq!(made.text(), "7");
    }

    #[test]
    fn opening_writes_nothing_and_surplus_pages_are_not_asked_for() {
        let made = Made::new("500\n");
        made.write("surplus_hugepages", "400\n");
        let mut pool = made.pool().unwrap();
        assert_eq!(made.text(), "500\n");
        assert_eq!(pool.before, 100);
        // This file knows no surplus: it takes the number as it is.
        made.write("surplus_hugepages", "400");
        let outcome = pool.ask(5, || false).unwrap();
        assert_eq!((made.text().as_str(), outcome.came), ("505", 5));
        drop(pool);
        let text = made.text();
        // Of 105 that count, five more than before; the kernel adds the surplus itself.
        assert_eq!(text, "100");
    }

    #[test]
    fn what_others_did_meanwhile_stays() {
        let made = Made::new("10");
        let mut pool = made.pool().unwrap();
        pool.ask(20, || false).unwrap();
        // Somebody adds a hundred.
        made.write("nr_hugepages", "130");
        let back = pool.put_back().unwrap();
        assert_eq!((back.changed, made.text().as_str()), (100, "110"));
        // While it asks, it ends with the slice.
        let mut pool = made.pool().unwrap();
        let slices = core::cell::Cell::new(0);
        let stop = || {
            slices.set(slices.get() + 1);
            if slices.get() == 2 {
                made.write("nr_hugepages", "3");
            }
            false
        };
        let outcome = pool.ask(10 * SLICE, stop).unwrap();
        assert!(!outcome.stopped && outcome.came < 3 * SLICE, "{outcome:?}");
        drop(pool);
        // Less than it was before: it stays.
        assert_eq!(made.text(), "3");
    }

    #[test]
    fn a_killed_process_leaves_the_pool_as_it_was() {
        let made = Made::new("7");
        let mut pool = made.pool().unwrap();
        pool.ask(5, || false).unwrap();
        assert_eq!(made.text(), "12");
        // As if it were killed: the kernel closes its end of the pipe. The lock is the keeper's
        // too.
        let mut keeper = pool.keeper.take().unwrap();
        drop(keeper.stdin.take());
        keeper.wait().unwrap();
        pool.last = None;
        drop(pool);
        assert_eq!(made.text(), "7\n");
    }

    #[test]
    fn without_a_place_for_a_lock_the_pool_itself_is_locked() {
        let made = Made::new("7");
        let nowhere = made.folder.path().join("no/such/folder");
        let of = || Pool::in_folder(made.folder.path(), 2 << 20, &nowhere);
        let first = of().unwrap();
        assert!(matches!(of().unwrap_err(), TrialError::Busy { .. }));
        drop(first);
        drop(of().unwrap());
    }

    #[test]
    fn two_at_once_are_refused_and_not_kept_waiting() {
        let made = Made::new("0");
        let first = made.pool().unwrap();
        assert!(matches!(made.pool().unwrap_err(), TrialError::Busy { .. }));
        drop(first);
        drop(made.pool().unwrap());
    }

    #[test]
    fn asking_is_stopped_between_slices() {
        let made = Made::new("0");
        let mut pool = made.pool().unwrap();
        let stop = || number(&made.file).unwrap() > 0;
        assert_eq!(pool.ask(10 * SLICE, stop).unwrap().came, SLICE);
        drop(pool);
        let mut pool = made.pool().unwrap();
        assert_eq!(pool.ask(10, || true).unwrap().came, 0);
        drop(pool);
        assert_eq!(made.text(), "0");
    }

    #[test]
    fn what_is_no_pool_is_refused() {
        let made = Made::new("many");
        let refused = |bytes| made.pool_of(bytes).unwrap_err();
        assert!(matches!(refused(2 << 20), TrialError::NoNumber { .. }));
        let none = refused(64 << 10).to_string();
        assert!(none.contains("no pool of huge pages of 64 KiB"), "{none}");
    }
}
