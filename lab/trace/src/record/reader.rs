//! The thread that empties the buffers of all CPUs into the spool while the recording runs.
//!
//! It sleeps most of the time: the buffers hold seconds of events of the busiest host, and each
//! round reads all that there are.

use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use core::sync::atomic::{AtomicBool, AtomicU64};
use core::time::Duration;
use std::fs::File;
use std::io::{self, Read};
use std::sync::Arc;
use std::thread::{self, JoinHandle};

use super::decode::Decoder;
use super::page::{Layout, Missed};
use super::recorder::Disk;
use super::row::Body;
use super::spool::Spool;

/// Sub-buffers of one CPU that are read before the next CPU has its turn.
const TURN: usize = 256;
/// Space on disk that the recording leaves free.
const SPARE_BYTES: u64 = 32 << 20;

/// Counters that can be read while the recording runs. They are for display only, so the order of
/// accesses does not matter.
#[derive(Debug, Default)]
pub(super) struct Counters {
    pub(super) events: AtomicU64,
    pub(super) spooled: AtomicU64,
    pub(super) missed: AtomicU64,
    pub(super) full: AtomicBool,
}

impl Counters {
    /// Returns whether the spool's disk had room when it was last looked at.
    pub(super) fn disk(&self) -> Disk {
        match self.full.load(Relaxed) {
            true => Disk::Full,
            false => Disk::HasRoom,
        }
    }
}

/// One CPU's buffer.
#[derive(Debug)]
pub(super) struct Lane {
    pub(super) cpu: u16,
    pub(super) raw: File,
    /// Lost records by the marks in the sub-buffers. The kernel's own count is used if it is
    /// larger.
    pub(super) missed: u64,
}

/// What the thread returns when it ends.
#[derive(Debug)]
pub(super) struct Emptied {
    pub(super) spool: Spool,
    pub(super) lanes: Vec<Lane>,
    /// Records and sub-buffers that were inconsistent.
    pub(super) senseless: u64,
    /// The CPU and the error at which reading failed, if it did.
    pub(super) failed: Option<(u16, io::Error)>,
}

#[derive(Debug)]
pub(super) struct Reader {
    thread: JoinHandle<Emptied>,
    stop: Arc<AtomicBool>,
}

impl Reader {
    /// Starts the thread. `buffer_kib` is the size of each CPU's buffer, which determines how often
    /// it is read.
    pub(super) fn start(state: State, buffer_kib: u64) -> io::Result<Self> {
        let stop = Arc::new(AtomicBool::new(false));
        let pause = Duration::from_millis((buffer_kib / 256).clamp(2, 100));
        let stopped = Arc::clone(&stop);
        let thread = thread::Builder::new().name("reader".to_owned());
        let thread = thread.spawn(move || {
            let mut state = state;
            // Acquire pairs with the release in `stop`: tracing was switched off before it, so the
            // last round reads everything.
            while !stopped.load(Acquire) && state.round() {
                thread::park_timeout(pause);
            }
            state.finish()
        })?;
        Ok(Self { thread, stop })
    }

    /// Ends the thread after it has read everything. The instance must have stopped recording.
    pub(super) fn stop(self) -> thread::Result<Emptied> {
        self.stop.store(true, Release);
        self.thread.thread().unpark();
        self.thread.join()
    }
}

/// What the thread works with.
#[derive(Debug)]
pub(super) struct State {
    pub(super) layout: Layout,
    pub(super) decoder: Decoder,
    pub(super) emptied: Emptied,
    pub(super) counters: Arc<Counters>,
}

impl State {
    /// Reads everything in the buffers. Returns false if reading failed for good.
    fn round(&mut self) -> bool {
        let mut page = vec![0; self.layout.bytes()];
        let mut more = true;
        while more {
            more = false;
            for lane in 0..self.emptied.lanes.len() {
                match self.turn(lane, &mut page) {
                    Ok(left) => more |= left,
                    Err(error) => {
                        self.emptied.failed = Some((self.emptied.lanes[lane].cpu, error));
                        return false;
                    }
                }
            }
        }
        self.check_disk();
        true
    }

    /// Reads some sub-buffers of one CPU. Returns true if there may be more.
    fn turn(&mut self, lane: usize, page: &mut [u8]) -> io::Result<bool> {
        for _ in 0..TURN {
            match self.emptied.lanes[lane].raw.read(page) {
                Ok(0) => return Ok(false),
                Ok(bytes) => self.page(lane, &page[..bytes]),
                Err(error) => match error.kind() {
                    io::ErrorKind::Interrupted => {}
                    io::ErrorKind::WouldBlock => return Ok(false),
                    _ => {
                        // An offline CPU has no buffer to read.
                        let code = error.raw_os_error();
                        let offline = [rustix::io::Errno::NODEV, rustix::io::Errno::NXIO];
                        if offline
                            .iter()
                            .any(|errno| code == Some(errno.raw_os_error()))
                        {
                            return Ok(false);
                        }
                        return Err(error);
                    }
                },
            }
        }
        Ok(true)
    }

    fn page(&mut self, lane: usize, bytes: &[u8]) {
        let Ok(page) = self.layout.open(bytes) else {
            self.emptied.senseless += 1;
            return;
        };
        let missed = match page.missed {
            Missed::Nothing => 0,
            // At least one; the kernel's own count has the number.
            Missed::Some => 1,
            Missed::Count(count) => count,
        };
        self.emptied.lanes[lane].missed = self.emptied.lanes[lane].missed.saturating_add(missed);
        let mut events = 0;
        for record in page.records() {
            let record = record
                .ok()
                .and_then(|r| self.decoder.decode(r.time, r.data));
            let Some(record) = record else {
                self.emptied.senseless += 1;
                continue;
            };
            events += u64::from(matches!(record.body, Body::Page { .. }));
            self.emptied.spool.push(lane, record);
        }
        self.counters.events.fetch_add(events, Relaxed);
        self.counters.missed.fetch_add(missed, Relaxed);
    }

    /// Updates the counters of the disk. It counts as full while there is still room for the trace,
    /// which needs less than the spool.
    fn check_disk(&mut self) {
        let spool = &self.emptied.spool;
        self.counters.spooled.store(spool.written(), Relaxed);
        let room = spool.room().unwrap_or(u64::MAX);
        if spool.full().is_some() || room < spool.written().saturating_add(SPARE_BYTES) {
            self.counters.full.store(true, Relaxed);
        }
    }

    /// Reads the last round, after the instance has stopped recording.
    fn finish(mut self) -> Emptied {
        if self.emptied.failed.is_none() {
            self.round();
        }
        self.emptied
    }
}
