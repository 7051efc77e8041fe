//! `/proc/kpageflags`: all of it at once, with several threads; or in parts, for who has time but
//! little of a CPU.

use core::num::NonZero;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::mpsc::sync_channel;
use std::thread;

use brickyard_trace::{MOST_READERS, StateRun};

use crate::fold::{Fold, without_activity};

/// Frames that are read together, with one time: a millisecond's.
pub(crate) const CHUNK_FRAMES: usize = 1 << 13;
/// How many chunks a thread may read ahead.
const CHUNKS_AHEAD: usize = 16;
/// Bytes of a word of kpageflags.
const WORD: usize = size_of::<u64>();

/// A pass over all frames in parts: see [`Host::pass`](crate::Host::pass).
///
/// Frames of different parts are from different times. No run has a time, and whether a page was
/// used recently is left out, so that there are fewer runs.
#[derive(Debug)]
pub struct Pass {
    file: File,
    fold: Fold,
    next: usize,
}

/// Whether a pass has reached the last frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PassStep {
    /// There may be more frames.
    Read,
    /// There are no more.
    Ended,
}

impl Pass {
    pub(crate) fn new(file: File, fold: Fold) -> Self {
        let next = 0;
        Self { file, fold, next }
    }

    /// Reads the next 8192 frames: about a millisecond of one CPU.
    ///
    /// # Errors
    /// Those of the file.
    pub fn step(&mut self) -> io::Result<PassStep> {
        let mut chunk = read_chunk(&self.file, self.next, || 0)?;
        for flags in &mut chunk.flags {
            *flags = without_activity(*flags);
        }
        self.fold.push(0, self.frames(), &chunk.flags);
        self.next += 1;
        let is_last = chunk.flags.len() < CHUNK_FRAMES;
        Ok(if is_last {
            PassStep::Ended
        } else {
            PassStep::Read
        })
    }

    /// Returns how many frames were read; at the end, rounded up to the next 8192.
    #[must_use]
    pub fn frames(&self) -> u64 {
        (self.next * CHUNK_FRAMES) as u64
    }

    /// Returns the frames that were read, in order.
    #[must_use]
    pub fn finish(self) -> Vec<StateRun> {
        self.fold.finish()
    }
}

/// The flags of some frames.
#[derive(Debug)]
pub(crate) struct Chunk {
    pub(crate) began: u64,
    pub(crate) ended: u64,
    pub(crate) flags: Vec<u64>,
}

/// Reads a file of flags with several threads, and passes the chunks to `sink` in order. Only the
/// last may be shorter than [`CHUNK_FRAMES`]; none is empty.
pub(crate) fn in_chunks(
    file: &File,
    now: &(impl Fn() -> u64 + Sync),
    mut sink: impl FnMut(&Chunk),
) -> io::Result<()> {
    let threads = thread::available_parallelism().map_or(1, NonZero::get);
    let threads = threads.min(MOST_READERS);
    thread::scope(|scope| {
        // Thread t reads the chunks t, t + threads and so on, and is at most a few ahead. It ends
        // when nobody receives any more.
        let mut readers = Vec::new();
        for first in 0..threads {
            let (sender, receiver) = sync_channel(CHUNKS_AHEAD);
            let read = move || {
                for index in (first..).step_by(threads) {
                    let chunk = read_chunk(file, index, now);
                    let is_last = !matches!(&chunk, Ok(chunk) if chunk.flags.len() == CHUNK_FRAMES);
                    if sender.send(chunk).is_err() || is_last {
                        break;
                    }
                }
            };
            thread::Builder::new().spawn_scoped(scope, read)?;
            readers.push(receiver);
        }
        for receiver in readers.iter().cycle() {
            let chunk = receiver.recv().map_err(io::Error::other)??;
            if !chunk.flags.is_empty() {
                sink(&chunk);
            }
            if chunk.flags.len() < CHUNK_FRAMES {
                break;
            }
        }
        Ok(())
    })
}

/// Reads a chunk by its index; it has fewer frames where the file ends. A rest shorter than a word
/// is not a frame.
fn read_chunk(file: &File, index: usize, now: impl Fn() -> u64) -> io::Result<Chunk> {
    let mut bytes = vec![0; CHUNK_FRAMES * WORD];
    let place = index as u64 * bytes.len() as u64;
    let mut length = 0;
    let began = now();
    // A single read may return less.
    while length < bytes.len() {
        match file.read_at(&mut bytes[length..], place + length as u64) {
            Ok(0) => break,
            Ok(read) => length += read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    let ended = now();
    let (words, _) = bytes[..length].as_chunks::<WORD>();
    let flags = words.iter().map(|&word| u64::from_ne_bytes(word)).collect();
    Ok(Chunk {
        began,
        ended,
        flags,
    })
}
