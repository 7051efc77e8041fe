//! The thread that keeps samples. A disk that stands still stops this thread, and no sample: those
//! that find too many before them are left out, and that is told.

use core::time::Duration;
use std::io;
use std::sync::Arc;
use std::sync::mpsc::{self, SyncSender, TrySendError};
use std::thread::{self, JoinHandle};
use std::time::Instant;

use crate::board::Board;
use crate::history::Store;
use crate::sample::Sample;

/// So many samples wait for the disk, at most.
const QUEUE: usize = 4;

/// Who keeps samples.
pub(crate) trait Keep: Send + 'static {
    /// Keeps a sample. Returns how many bytes are kept in all, or why it could not be; `None` if it
    /// is to be tried later what failed before.
    fn keep(&mut self, sample: &Sample, board: &Board) -> Result<Option<u64>, String>;

    /// Writes what is not written yet. Returns how many bytes are kept, or why it could not be.
    fn end(&mut self) -> Result<u64, String>;
}

impl Keep for Store {
    fn keep(&mut self, sample: &Sample, board: &Board) -> Result<Option<u64>, String> {
        let added = self.add(sample, |row, map| board.remember(row, map));
        let bytes = added.map(|()| (!self.is_behind()).then(|| self.bytes()));
        bytes.map_err(|why| why.to_string())
    }

    fn end(&mut self) -> Result<u64, String> {
        let flushed = self.flush();
        flushed
            .map(|()| self.bytes())
            .map_err(|why| why.to_string())
    }
}

/// The running thread.
#[derive(Debug)]
pub(crate) struct Recording {
    board: Arc<Board>,
    interval: Duration,
    next: Instant,
    samples: SyncSender<Arc<Sample>>,
    thread: JoinHandle<()>,
}

/// The thread has ended, as it never does by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Ended;

impl Recording {
    /// Starts the thread, which keeps a sample in each `interval`.
    pub(crate) fn start(
        mut keeper: impl Keep,
        interval: Duration,
        board: &Arc<Board>,
    ) -> io::Result<Self> {
        let (samples, taken) = mpsc::sync_channel::<Arc<Sample>>(QUEUE);
        let told = Arc::clone(board);
        let thread = thread::Builder::new().name("recording".into());
        let thread = thread.spawn(move || {
            for sample in taken {
                if let Some(kept) = keeper.keep(&sample, &told).transpose() {
                    told.wrote(kept);
                }
            }
            told.wrote(keeper.end());
        })?;
        Ok(Self {
            board: Arc::clone(board),
            interval,
            next: Instant::now(),
            samples,
            thread,
        })
    }

    /// Gives it a sample, if it is time for one. Never waits.
    ///
    /// # Errors
    /// [`Ended`]
    pub(crate) fn offer(&mut self, sample: &Arc<Sample>) -> Result<(), Ended> {
        if self.next > Instant::now() {
            return Ok(());
        }
        self.next = Instant::now() + self.interval;
        match self.samples.try_send(Arc::clone(sample)) {
            Ok(()) => Ok(()),
            Err(TrySendError::Full(_)) => {
                let why = format!("the disk takes too long: {QUEUE} samples wait for it");
                self.board.wrote(Err(why));
                Ok(())
            }
            Err(TrySendError::Disconnected(_)) => Err(Ended),
        }
    }

    /// Waits until all that it was given is written.
    pub(crate) fn end(self) {
        drop(self.samples);
        // A thread that panicked has said so.
        let _ = self.thread.join();
    }
}

#[cfg(test)]
mod tests {
    use core::sync::atomic::Ordering;
    use std::sync::mpsc::Receiver;

    use crate::synthetic::{Block, SyntheticHost};

    use super::*;
    use crate::sampler::{Fallen, Sampler};

    /// A disk that takes one sample for each word that it is sent.
    struct Slow {
        may: Receiver<()>,
        kept: u64,
    }

    impl Keep for Slow {
        fn keep(&mut self, _: &Sample, _: &Board) -> Result<Option<u64>, String> {
            self.may.recv().map_err(|_| "gone".to_owned())?;
            self.kept += 1;
            Ok(Some(self.kept))
        }

        fn end(&mut self) -> Result<u64, String> {
            Ok(100 + self.kept)
        }
    }

    fn sample() -> Arc<Sample> {
        let root = tempfile::tempdir().unwrap();
        let host = SyntheticHost::new("made", vec![Block::Free; 4]).write(root.path());
        let host = host.unwrap();
        let untraced = Fallen::Untraced(String::new());
        Arc::new(Sampler::new(host, 0.1, untraced).sample().unwrap())
    }

    #[test]
    fn a_disk_that_stands_still_keeps_nobody_waiting() {
        let board = Arc::new(Board::new(None));
        let (go, may) = mpsc::channel();
        let mut recording =
            Recording::start(Slow { may, kept: 0 }, Duration::ZERO, &board).unwrap();
        let sample = sample();
        // One may be in the thread's hands already.
        for _ in 0..QUEUE + 3 {
            recording.offer(&sample).unwrap();
        }
        let lost = board.history_errors.load(Ordering::Relaxed);
        assert!((2..=3).contains(&lost), "{lost}");
        let why = board.history_withheld().unwrap();
        assert!(why.contains("the disk takes too long"), "{why}");
        let kept = QUEUE as u64 + 3 - lost;
        for _ in 0..kept {
            go.send(()).unwrap();
        }
        recording.end();
        assert_eq!(board.history_withheld(), None);
        assert_eq!(board.history_bytes.load(Ordering::Relaxed), 100 + kept);
    }

    #[test]
    fn an_interval_has_one_sample_and_an_end_is_told() {
        let board = Arc::new(Board::new(None));
        let (go, may) = mpsc::channel();
        go.send(()).unwrap();
        let hour = Duration::from_secs(3600);
        let mut recording = Recording::start(Slow { may, kept: 0 }, hour, &board).unwrap();
        let sample = sample();
        recording.offer(&sample).unwrap();
        recording.offer(&sample).unwrap();
        recording.end();
        assert_eq!(board.history_bytes.load(Ordering::Relaxed), 101);

        struct Broken;
        impl Keep for Broken {
            fn keep(&mut self, _: &Sample, _: &Board) -> Result<Option<u64>, String> {
                panic!("planted")
            }
            fn end(&mut self) -> Result<u64, String> {
                Ok(0)
            }
        }
        let mut recording = Recording::start(Broken, Duration::ZERO, &board).unwrap();
        let ended = (0..).find_map(|_| recording.offer(&sample).err());
        assert_eq!(ended, Some(Ended));
    }
}
