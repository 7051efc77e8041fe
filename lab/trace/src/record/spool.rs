//! Holds records until the recording ends: one file, to which each CPU's records are written in
//! chunks of some 64 KiB.
//!
//! The positions of the chunks are kept in memory. Each chunk can be decoded on its own. When the
//! disk is full, chunks stay in memory; the recording must then be stopped soon.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use super::error::RecordError;
use super::row::{Codec, Record};

/// A chunk is written when it has this many bytes.
const CHUNK_BYTES: usize = 64 << 10;

/// A chunk of records.
#[derive(Debug)]
enum Chunk {
    /// In the file.
    Written { at: u64, bytes: usize },
    /// Still in memory, since the disk is full.
    Kept(Vec<u8>),
}

/// The records of one CPU.
#[derive(Debug, Default)]
struct Lane {
    chunks: Vec<Chunk>,
    open: Vec<u8>,
    codec: Codec,
    last: u64,
}

/// All records of a recording. The file is unlinked as soon as it is created, so that nothing is
/// left of it whatever happens.
#[derive(Debug)]
pub struct Spool {
    path: PathBuf,
    file: File,
    lanes: Vec<Lane>,
    written: u64,
    full: Option<io::Error>,
}

impl Spool {
    /// Creates a spool for this many CPUs at `path`, which must not exist yet.
    ///
    /// # Errors
    ///
    /// If the file cannot be created.
    pub fn create(path: &Path, cpus: usize) -> Result<Self, RecordError> {
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(path)
            .map_err(|why| RecordError::Spool {
                path: path.to_owned(),
                why,
            })?;
        // The file exists for as long as it is open. If it cannot be unlinked, that is only untidy.
        let _ = std::fs::remove_file(path);
        Ok(Self {
            path: path.to_owned(),
            file,
            lanes: (0..cpus).map(|_| Lane::default()).collect(),
            written: 0,
            full: None,
        })
    }

    /// Adds a record of the CPU with index `lane` in the spool. A time before that of the previous
    /// record is raised to it.
    pub fn push(&mut self, lane: usize, mut record: Record) {
        let lane = &mut self.lanes[lane];
        record.time = record.time.max(lane.last);
        lane.last = record.time;
        lane.codec.put(&record, &mut lane.open);
        if lane.open.len() >= CHUNK_BYTES {
            let chunk = close(lane, &self.file, &mut self.written, &mut self.full);
            lane.chunks.push(chunk);
        }
    }

    /// Returns the bytes written to disk.
    #[must_use]
    pub const fn written(&self) -> u64 {
        self.written
    }

    /// Returns the error of the write that failed, if one did; nothing is written after it.
    #[must_use]
    pub const fn full(&self) -> Option<&io::Error> {
        self.full.as_ref()
    }

    /// Returns the bytes that are free on the file system for users other than root.
    ///
    /// # Errors
    ///
    /// The system's error.
    pub fn room(&self) -> io::Result<u64> {
        let stat = rustix::fs::fstatvfs(&self.file)?;
        Ok(stat.f_bavail.saturating_mul(stat.f_frsize))
    }

    /// Returns a reader of the records of a CPU.
    pub(super) fn read(&self, lane: usize) -> LaneReader<'_> {
        LaneReader {
            spool: self,
            lane,
            next: 0,
            bytes: Vec::new(),
            at: 0,
            codec: Codec::default(),
        }
    }

    /// Returns the number of CPUs.
    #[must_use]
    pub fn lanes(&self) -> usize {
        self.lanes.len()
    }

    fn changed(&self) -> RecordError {
        RecordError::SpoolChanged {
            path: self.path.clone(),
        }
    }
}

/// Ends the open chunk of a lane: writes it to disk, or keeps it in memory if the disk is full.
fn close(lane: &mut Lane, file: &File, written: &mut u64, full: &mut Option<io::Error>) -> Chunk {
    let bytes = core::mem::take(&mut lane.open);
    lane.codec = Codec::default();
    if full.is_none() {
        match file.write_all_at(&bytes, *written) {
            Ok(()) => {
                let at = *written;
                *written += bytes.len() as u64;
                let length = bytes.len();
                // The buffer is reused for the next chunk.
                lane.open = bytes;
                lane.open.clear();
                return Chunk::Written { at, bytes: length };
            }
            Err(error) => *full = Some(error),
        }
    }
    Chunk::Kept(bytes)
}

/// Reads back the records of one CPU.
#[derive(Debug)]
pub(super) struct LaneReader<'a> {
    spool: &'a Spool,
    lane: usize,
    next: usize,
    bytes: Vec<u8>,
    at: usize,
    codec: Codec,
}

impl LaneReader<'_> {
    /// Returns the next record, if there is one.
    pub(super) fn next(&mut self) -> Result<Option<Record>, RecordError> {
        while self.at == self.bytes.len() {
            if !self.load()? {
                return Ok(None);
            }
        }
        let mut rest = &self.bytes[self.at..];
        let record = self.codec.get(&mut rest);
        self.at = self.bytes.len() - rest.len();
        record.map(Some).ok_or_else(|| self.spool.changed())
    }

    /// Loads the next chunk; returns false if there is none.
    fn load(&mut self) -> Result<bool, RecordError> {
        let lane = &self.spool.lanes[self.lane];
        self.bytes.clear();
        match lane.chunks.get(self.next) {
            Some(Chunk::Kept(bytes)) => self.bytes.extend_from_slice(bytes),
            Some(&Chunk::Written { at, bytes }) => {
                self.bytes.resize(bytes, 0);
                let read = self.spool.file.read_exact_at(&mut self.bytes, at);
                read.map_err(|why| RecordError::Spool {
                    path: self.spool.path.clone(),
                    why,
                })?;
            }
            // The open chunk is last.
            None if self.next == lane.chunks.len() => self.bytes.extend_from_slice(&lane.open),
            None => return Ok(false),
        }
        self.next += 1;
        self.at = 0;
        self.codec = Codec::default();
        Ok(true)
    }
}
