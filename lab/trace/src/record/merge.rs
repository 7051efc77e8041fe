//! Merges the records of all CPUs into one sequence of events by time, looks up names, and leaves
//! out events that the page states already account for.
//!
//! Invariant `states-fit-events`: tracing is on before the first page state is read and until after
//! the last; an event from before its frame's state at the start was read, or from after its state
//! at the end was, is left out and counted.

use core::cmp::Reverse;
use std::collections::BinaryHeap;

use super::error::RecordError;
use super::names::{NameTable, TaskNames};
use super::row::{Body, Record};
use super::spool::{LaneReader, Spool};
use crate::{Event, StateRun};

/// Events are passed on in batches of this many.
const BATCH: usize = 1 << 16;

/// How many events went into a trace, and how many were left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Merged {
    /// Passed on.
    pub events: u64,
    /// Left out, since their frame's state at the start was read after them.
    pub before_start: u64,
    /// Left out, since their frame's state at the end was read before them.
    pub after_end: u64,
}

/// When the state of each frame was read.
#[derive(Debug)]
pub(super) struct ReadTimes {
    /// First frame and time of each chunk, in order of frames.
    chunks: Vec<(u64, u64)>,
    first: u64,
    last: u64,
}

impl ReadTimes {
    pub(super) fn of(runs: &[StateRun]) -> Self {
        let mut chunks: Vec<(u64, u64)> = runs.iter().map(|run| (run.frame, run.time)).collect();
        chunks.sort_unstable();
        chunks.dedup_by_key(|&mut (_, time)| time);
        Self {
            first: chunks.iter().map(|&(_, time)| time).min().unwrap_or(0),
            last: chunks.iter().map(|&(_, time)| time).max().unwrap_or(0),
            chunks,
        }
    }

    fn at(&self, frame: u64) -> Option<u64> {
        let next = self.chunks.partition_point(|&(first, _)| first <= frame);
        Some(self.chunks.get(next.checked_sub(1)?)?.1)
    }

    /// Returns true if the frame's state was read after `time`.
    fn after(&self, time: u64, frame: u64) -> bool {
        time < self.last && self.at(frame).is_some_and(|read| time < read)
    }

    /// Returns true if the frame's state was read before `time`.
    fn before(&self, time: u64, frame: u64) -> bool {
        time > self.first && self.at(frame).is_some_and(|read| time > read)
    }
}

/// When the page states at the start and the end were read.
#[derive(Debug)]
pub(super) struct Between {
    pub(super) start: ReadTimes,
    pub(super) end: ReadTimes,
}

/// Passes all events of `spool` to `sink`, in order of time. `cpus` are the numbers of the spool's
/// CPUs.
pub(super) fn merge<E: From<RecordError>>(
    spool: &Spool,
    cpus: &[u16],
    tasks: &TaskNames,
    between: &Between,
    mut sink: impl FnMut(&[Event], &[String]) -> Result<(), E>,
) -> Result<Merged, E> {
    let mut table = NameTable::new(tasks);
    let mut merged = Merged::default();
    let mut batch = Vec::with_capacity(BATCH);
    let mut queue = Queue::new(spool)?;
    while let Some((lane, record)) = queue.next()? {
        let (frame, order, what) = match record.body {
            Body::Named { pid, comm } => {
                table.rename(pid, &comm);
                continue;
            }
            Body::Page { frame, order, what } => (frame, order, what),
        };
        if what.has_frames() {
            if between.start.after(record.time, frame) {
                merged.before_start += 1;
                continue;
            }
            if between.end.before(record.time, frame) {
                merged.after_end += 1;
                continue;
            }
        }
        merged.events += 1;
        batch.push(Event {
            time: record.time,
            frame,
            what,
            pid: record.pid,
            name: table.of(record.pid),
            cpu: cpus.get(lane).copied().unwrap_or(u16::MAX),
            order,
        });
        if batch.len() == BATCH {
            sink(&batch, table.names())?;
            batch.clear();
        }
    }
    sink(&batch, table.names())?;
    Ok(merged)
}

/// The next record of each CPU, ordered by time; at equal times the lower CPU is first.
struct Queue<'a> {
    readers: Vec<LaneReader<'a>>,
    heads: Vec<Option<Record>>,
    order: BinaryHeap<Reverse<(u64, usize)>>,
}

impl<'a> Queue<'a> {
    fn new(spool: &'a Spool) -> Result<Self, RecordError> {
        let mut queue = Self {
            readers: (0..spool.lanes()).map(|lane| spool.read(lane)).collect(),
            heads: vec![None; spool.lanes()],
            order: BinaryHeap::new(),
        };
        for lane in 0..spool.lanes() {
            queue.advance(lane)?;
        }
        Ok(queue)
    }

    fn advance(&mut self, lane: usize) -> Result<(), RecordError> {
        self.heads[lane] = self.readers[lane].next()?;
        if let Some(record) = self.heads[lane] {
            self.order.push(Reverse((record.time, lane)));
        }
        Ok(())
    }

    fn next(&mut self) -> Result<Option<(usize, Record)>, RecordError> {
        let Some(Reverse((_, lane))) = self.order.pop() else {
            return Ok(None);
        };
        let Some(record) = self.heads[lane].take() else {
            return Ok(None);
        };
        self.advance(lane)?;
        Ok(Some((lane, record)))
    }
}
