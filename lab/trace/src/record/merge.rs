//! Merges the records of all CPUs into one sequence of events by time, looks up names, and leaves
//! out events that the page states already account for.
//!
//! Invariant `states-fit-events`: tracing is on before the first page state is read and until after
//! the last. An event from before the read of its frame's state at the start began is left out,
//! since that state includes it; so is one from after the read of its state at the end ended, since
//! that state does not. So for each frame its events lead from its first state to its last. An
//! event from while its frame was read is kept and counted as unsure: only there may the two
//! disagree.

use core::cmp::Reverse;
use std::collections::BinaryHeap;

use super::error::RecordError;
use super::names::{NameTable, TaskNames};
use super::row::{Body, Record};
use super::spool::{LaneReader, Spool};
use crate::{Event, ReadTime, Reading};

/// Events are passed on in batches of this many.
const BATCH: usize = 1 << 16;

/// How many events went into a trace, and how many were left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Merged {
    /// Passed on.
    pub events: u64,
    /// At the start: events of before their frame was read, and of while it was.
    pub start: Reading,
    /// At the end: events of after their frame was read, and of while it was.
    pub end: Reading,
}

/// When the state of each frame was read.
#[derive(Debug)]
pub(super) struct ReadTimes<'a> {
    /// In order of frames.
    reads: &'a [ReadTime],
    began: u64,
    ended: u64,
}

/// When an event was, compared with the read of its frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Moment {
    Before,
    Meanwhile,
    After,
}

impl<'a> ReadTimes<'a> {
    pub(super) fn of(reads: &'a [ReadTime]) -> Self {
        Self {
            began: reads.iter().map(|read| read.began).min().unwrap_or(0),
            ended: reads.iter().map(|read| read.ended).max().unwrap_or(0),
            reads,
        }
    }

    /// Returns when `time` is; `None` if the frame was not read.
    fn moment(&self, time: u64, frame: u64) -> Option<Moment> {
        let next = self.reads.partition_point(|read| read.frame <= frame);
        let read = self.reads.get(next.checked_sub(1)?)?;
        Some(if time < read.began {
            Moment::Before
        } else if time <= read.ended {
            Moment::Meanwhile
        } else {
            Moment::After
        })
    }

    fn reading(&self) -> Reading {
        Reading {
            began: self.began,
            ended: self.ended,
            ..Reading::default()
        }
    }
}

/// When the page states at the start and the end were read.
#[derive(Debug)]
pub(super) struct Between<'a> {
    pub(super) start: ReadTimes<'a>,
    pub(super) end: ReadTimes<'a>,
}

impl Between<'_> {
    /// Returns true if the trace has this event of a frame; counts it where it is left out or
    /// unsure.
    fn has(&self, time: u64, frame: u64, merged: &mut Merged) -> bool {
        if time <= self.start.ended {
            match self.start.moment(time, frame) {
                Some(Moment::Before) => {
                    merged.start.left_out += 1;
                    return false;
                }
                Some(Moment::Meanwhile) => merged.start.unsure += 1,
                Some(Moment::After) | None => {}
            }
        }
        if time >= self.end.began {
            match self.end.moment(time, frame) {
                Some(Moment::After) => {
                    merged.end.left_out += 1;
                    return false;
                }
                Some(Moment::Meanwhile) => merged.end.unsure += 1,
                Some(Moment::Before) | None => {}
            }
        }
        true
    }
}

/// Passes all events of `spool` to `sink`, in order of time. `cpus` are the numbers of the spool's
/// CPUs.
pub(super) fn merge<E: From<RecordError>>(
    spool: &Spool,
    cpus: &[u16],
    tasks: &TaskNames,
    between: &Between<'_>,
    mut sink: impl FnMut(&[Event], &[String]) -> Result<(), E>,
) -> Result<Merged, E> {
    let mut table = NameTable::new(tasks);
    let mut merged = Merged {
        events: 0,
        start: between.start.reading(),
        end: between.end.reading(),
    };
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
        if what.has_frames() && !between.has(record.time, frame, &mut merged) {
            continue;
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
