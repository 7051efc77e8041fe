//! The board between the thread that samples and those that answer requests: the newest sample, and
//! what became of the history.

use core::sync::atomic::{AtomicU64, Ordering};
use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::SystemTime;

use crate::history::blocks::BlockMap;
use crate::history::figures::HostRow;
use crate::sample::Sample;

/// Rows that are not in files yet, at most: an hour's at one a minute, and five minutes' at one a
/// second.
const ROWS: usize = 300;
/// Maps of those.
const MAPS: usize = 16;

/// What the history got last, oldest first.
#[derive(Debug, Clone, Default)]
pub(crate) struct Recent {
    pub(crate) rows: VecDeque<Arc<HostRow>>,
    pub(crate) maps: VecDeque<Arc<BlockMap>>,
}

/// What threads share. Nothing here is ever locked while something is read or computed.
#[derive(Debug)]
pub struct Board {
    /// When the service began.
    pub began: SystemTime,
    /// The folder of the history.
    pub history: Option<PathBuf>,
    newest: RwLock<Option<Arc<Sample>>>,
    recent: RwLock<Recent>,
    /// Bytes of the history's files of this host.
    pub history_bytes: AtomicU64,
    /// How often the lists could not be read.
    pub sample_errors: AtomicU64,
    /// Why they could not, the last time; `None` while they can.
    sample_withheld: Mutex<Option<String>>,
    /// How often the history could not be written.
    pub history_errors: AtomicU64,
    /// Why it could not, the last time; `None` while it can.
    history_withheld: Mutex<Option<String>>,
    /// Requests refused, and connections that gave way or ended before their answer.
    pub refused: AtomicU64,
}

impl Board {
    /// Creates an empty one; `history` is the folder.
    #[must_use]
    pub fn new(history: Option<PathBuf>) -> Self {
        Self {
            began: SystemTime::now(),
            history,
            newest: RwLock::default(),
            recent: RwLock::default(),
            history_bytes: AtomicU64::new(0),
            sample_errors: AtomicU64::new(0),
            sample_withheld: Mutex::default(),
            history_errors: AtomicU64::new(0),
            history_withheld: Mutex::default(),
            refused: AtomicU64::new(0),
        }
    }

    /// Returns the newest sample.
    #[must_use]
    pub fn newest(&self) -> Option<Arc<Sample>> {
        self.newest
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// Publishes a sample.
    pub fn publish(&self, sample: Arc<Sample>) {
        let mut newest = self.newest.write().unwrap_or_else(PoisonError::into_inner);
        *newest = Some(sample);
        *lock(&self.sample_withheld) = None;
    }

    /// Says that no sample could be taken, and why; the newest stays.
    pub(crate) fn fail(&self, why: String) {
        self.sample_errors.fetch_add(1, Ordering::Relaxed);
        *lock(&self.sample_withheld) = Some(why);
    }

    /// Returns why no sample could be taken, the last time; `None` while they can be.
    #[must_use]
    pub fn sample_withheld(&self) -> Option<String> {
        lock(&self.sample_withheld).clone()
    }

    /// Adds what the history gets, which may not be in its files yet.
    pub(crate) fn remember(&self, row: HostRow, map: Option<Arc<BlockMap>>) {
        let mut recent = self.recent.write().unwrap_or_else(PoisonError::into_inner);
        recent.rows.push_back(Arc::new(row));
        recent.maps.extend(map);
        while recent.rows.len() > ROWS {
            recent.rows.pop_front();
        }
        while recent.maps.len() > MAPS {
            recent.maps.pop_front();
        }
    }

    /// Returns what the history got last.
    pub(crate) fn recent(&self) -> Recent {
        self.recent
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// Says that the history was written, and its bytes; or why it could not be.
    pub fn wrote(&self, written: Result<u64, String>) {
        let withheld = match written {
            Ok(bytes) => {
                // Relaxed, here and for the other counts: they publish no other data.
                self.history_bytes.store(bytes, Ordering::Relaxed);
                None
            }
            Err(why) => {
                self.history_errors.fetch_add(1, Ordering::Relaxed);
                Some(why)
            }
        };
        *lock(&self.history_withheld) = withheld;
    }

    /// Returns why the history could not be written, the last time; `None` while it can.
    #[must_use]
    pub fn history_withheld(&self) -> Option<String> {
        lock(&self.history_withheld).clone()
    }

    /// Counts one of [`Board::refused`].
    pub fn refuse(&self) {
        self.refused.fetch_add(1, Ordering::Relaxed);
    }
}

/// A thread that panicked has left nothing half done in these texts.
fn lock(text: &Mutex<Option<String>>) -> MutexGuard<'_, Option<String>> {
    text.lock().unwrap_or_else(PoisonError::into_inner)
}
