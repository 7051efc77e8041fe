//! Puts events in order of time, whatever order they come in, with bounded memory.
//!
//! Text is nearly in order: the tools merge the buffers of the CPUs, and a few events are late. So
//! the last events wait in a window, which is sorted, and of which the earlier half goes on when it
//! is full. An event that is later still (text of one recording after another) begins a new *run*:
//! each run is in order, and all runs but the first are kept in a temporary file until they are
//! merged.
//!
//! Invariant `stable`: events of equal times keep the order in which they came. Within a window the
//! sort is stable, and all of a run came before the next run, which the merge keeps.
//!
//! Invariant `bounded-window`: the window has at most [`WINDOW`] events, and of each run at most a
//! chunk is in memory.

use core::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

use crate::record::row::{Body, Codec, Record};
use crate::{Event, NameId};

/// Events that wait for earlier ones: 24 MiB.
pub(super) const WINDOW: usize = 1 << 19;

/// An event that is late by fewer events gets its place at once.
const NEAR: usize = 64;

/// Bytes of a run that are written at a time.
const CHUNK: usize = 1 << 16;

/// Events, put in order.
pub(super) struct Order {
    window: Vec<Event>,
    most: usize,
    is_sorted: bool,
    /// The last time that went on, in this run.
    reached: u64,
    later: Option<Runs>,
}

impl Order {
    /// Creates an empty window of `most` events.
    pub(super) const fn new(most: usize) -> Self {
        Self {
            window: Vec::new(),
            most,
            is_sorted: true,
            reached: 0,
            later: None,
        }
    }

    /// Takes the next events. Those that may go on go to `first` as long as there is one run, and
    /// to a temporary file in `folder` after that.
    pub(super) fn push<E: From<io::Error>>(
        &mut self,
        events: &[Event],
        folder: &Path,
        mut first: impl FnMut(&[Event]) -> Result<(), E>,
    ) -> Result<(), E> {
        for &event in events {
            while self.window.len() == self.most {
                self.pass_on(self.most.div_ceil(2), folder, &mut first)?;
            }
            self.insert(event);
        }
        Ok(())
    }

    /// Adds an event to the window. One that is late by a few events gets its place at once, so
    /// that a window of which all late ones are so needs no sorting.
    fn insert(&mut self, event: Event) {
        let is_later = |other: &Event| other.time > event.time;
        if !self.window.last().is_some_and(is_later) {
            self.window.push(event);
            return;
        }
        let first = self.window.len().saturating_sub(NEAR);
        let (before, near) = self.window.split_at(first);
        if !self.is_sorted || before.last().is_some_and(is_later) {
            self.is_sorted = false;
            self.window.push(event);
            return;
        }
        // `stable`: behind those of the same time.
        let place = first + near.partition_point(|other| !is_later(other));
        self.window.insert(place, event);
    }

    /// Passes the rest on. Returns the runs after the first.
    pub(super) fn finish<E: From<io::Error>>(
        mut self,
        folder: &Path,
        mut first: impl FnMut(&[Event]) -> Result<(), E>,
    ) -> Result<Option<Runs>, E> {
        while !self.window.is_empty() {
            self.pass_on(self.window.len(), folder, &mut first)?;
        }
        if let Some(later) = &mut self.later {
            later.close()?;
        }
        Ok(self.later)
    }

    /// Passes the earliest `count` events of the window on. If some are too late for this run, they
    /// stay in the window and begin the next one; all others are passed on, as the end of this one.
    fn pass_on<E: From<io::Error>>(
        &mut self,
        count: usize,
        folder: &Path,
        first: &mut impl FnMut(&[Event]) -> Result<(), E>,
    ) -> Result<(), E> {
        if !self.is_sorted {
            self.window.sort_by_key(|event| event.time); // stable: keeps the order at equal times
            self.is_sorted = true;
        }
        let late = self
            .window
            .partition_point(|event| event.time < self.reached);
        let range = if late > 0 {
            late..self.window.len()
        } else {
            0..count
        };
        let events = &self.window[range.clone()];
        match &mut self.later {
            Some(later) => later.push(events)?,
            None => first(events)?,
        }
        self.reached = events.last().map_or(self.reached, |last| last.time);
        self.window.drain(range);
        if late > 0 {
            match &mut self.later {
                Some(later) => later.begin()?,
                none => *none = Some(Runs::create(folder)?),
            }
            self.reached = 0;
        }
        Ok(())
    }
}

/// Runs of events in order, in a temporary file.
pub(super) struct Runs {
    file: File,
    written: u64,
    /// The chunks of each run: where each is, and its bytes.
    runs: Vec<Vec<(u64, usize)>>,
    open: Vec<u8>,
    codec: Codec,
    earliest: u64,
}

impl Runs {
    fn create(folder: &Path) -> io::Result<Self> {
        Ok(Self {
            file: tempfile::tempfile_in(folder)?,
            written: 0,
            runs: vec![Vec::new()],
            open: Vec::new(),
            codec: Codec::default(),
            earliest: u64::MAX,
        })
    }

    /// Returns the time of the first event.
    pub(super) const fn earliest(&self) -> u64 {
        self.earliest
    }

    fn begin(&mut self) -> io::Result<()> {
        self.close()?;
        self.runs.push(Vec::new());
        Ok(())
    }

    fn push(&mut self, events: &[Event]) -> io::Result<()> {
        for event in events {
            self.earliest = self.earliest.min(event.time);
            let body = Body::Page {
                frame: event.frame,
                order: event.order,
                what: event.what,
            };
            let record = Record {
                time: event.time,
                pid: event.pid,
                body,
            };
            self.codec.put(&record, &mut self.open);
            self.open.extend_from_slice(&event.name.0.to_le_bytes());
            self.open.extend_from_slice(&event.cpu.to_le_bytes());
            if self.open.len() >= CHUNK {
                self.close()?;
            }
        }
        Ok(())
    }

    /// Ends the open chunk.
    fn close(&mut self) -> io::Result<()> {
        self.codec = Codec::default();
        self.file.write_all_at(&self.open, self.written)?;
        if let Some(run) = self.runs.last_mut()
            && !self.open.is_empty()
        {
            run.push((self.written, self.open.len()));
        }
        self.written += self.open.len() as u64;
        self.open.clear();
        Ok(())
    }
}

/// Merges runs.
pub(super) struct Merge<'a> {
    runs: &'a Runs,
    readers: Vec<Reader>,
    /// The next event of each run, by its time.
    next: BinaryHeap<Reverse<(u64, usize)>>,
}

/// Reads a run.
#[derive(Default)]
struct Reader {
    next_chunk: usize,
    bytes: Vec<u8>,
    at: usize,
    codec: Codec,
    head: Option<Event>,
}

impl<'a> Merge<'a> {
    pub(super) fn new(runs: &'a Runs) -> io::Result<Self> {
        let mut merge = Self {
            runs,
            readers: runs.runs.iter().map(|_| Reader::default()).collect(),
            next: BinaryHeap::new(),
        };
        for run in 0..runs.runs.len() {
            merge.advance(run)?;
        }
        Ok(merge)
    }

    /// Returns the next event of all runs, if it is before `time`.
    pub(super) fn next_before(&mut self, time: u64) -> io::Result<Option<Event>> {
        match self.next.peek() {
            Some(&Reverse((next, _))) if next < time => self.next(),
            _ => Ok(None),
        }
    }

    /// Returns the next event of all runs.
    pub(super) fn next(&mut self) -> io::Result<Option<Event>> {
        let Some(Reverse((_, run))) = self.next.pop() else {
            return Ok(None);
        };
        let event = self.readers[run].head.take();
        self.advance(run)?;
        Ok(event)
    }

    fn advance(&mut self, run: usize) -> io::Result<()> {
        let reader = &mut self.readers[run];
        reader.head = reader.read(&self.runs.file, &self.runs.runs[run])?;
        if let Some(event) = reader.head {
            self.next.push(Reverse((event.time, run)));
        }
        Ok(())
    }
}

impl Reader {
    fn read(&mut self, file: &File, chunks: &[(u64, usize)]) -> io::Result<Option<Event>> {
        if self.at == self.bytes.len() {
            let Some(&(at, length)) = chunks.get(self.next_chunk) else {
                return Ok(None);
            };
            self.next_chunk += 1;
            self.bytes.resize(length, 0);
            file.read_exact_at(&mut self.bytes, at)?;
            self.at = 0;
            self.codec = Codec::default();
        }
        let mut rest = &self.bytes[self.at..];
        let event = decode(&mut self.codec, &mut rest);
        self.at = self.bytes.len() - rest.len();
        let changed = || io::Error::other("a temporary file was changed by another program");
        event.map(Some).ok_or_else(changed)
    }
}

/// Takes the next event from the front of `bytes`.
fn decode(codec: &mut Codec, bytes: &mut &[u8]) -> Option<Event> {
    let record = codec.get(bytes)?;
    let (name, rest) = bytes.split_first_chunk()?;
    let (cpu, rest) = rest.split_first_chunk()?;
    *bytes = rest;
    let Body::Page { frame, order, what } = record.body else {
        return None;
    };
    Some(Event {
        time: record.time,
        frame,
        what,
        pid: record.pid,
        name: NameId(u32::from_le_bytes(*name)),
        cpu: u16::from_le_bytes(*cpu),
        order,
    })
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by it")]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;
    use crate::What;

    fn event(time: u64, frame: u64) -> Event {
        Event {
            time,
            frame,
            what: What::Free,
            pid: frame as i32 % 3,
            name: NameId(frame as u32 % 5),
            cpu: frame as u16 % 2,
            order: brickyard::Order::new(frame as u8 % 4),
        }
    }

    /// Puts events in order through windows of `most`; returns the runs too.
    fn ordered(events: &[Event], most: usize) -> (Vec<Event>, usize) {
        let folder = std::env::temp_dir();
        let mut first = Vec::new();
        let mut order = Order::new(most);
        let later = {
            let mut take = |events: &[Event]| -> io::Result<()> {
                first.extend_from_slice(events);
                Ok(())
            };
            for part in events.chunks(7) {
                order.push(part, &folder, &mut take).unwrap();
                assert!(order.window.len() <= most, "bounded-window");
            }
            order.finish(&folder, &mut take).unwrap()
        };
        assert!(first.is_sorted_by_key(|event| event.time));
        let Some(later) = later else {
            return (first, 1);
        };
        let mut merge = Merge::new(&later).unwrap();
        let mut all = Vec::new();
        for event in first {
            while let Some(earlier) = merge.next_before(event.time).unwrap() {
                all.push(earlier);
            }
            all.push(event);
        }
        while let Some(last) = merge.next().unwrap() {
            all.push(last);
        }
        (all, 1 + later.runs.len())
    }

    proptest! {
        #[test]
        fn the_order_is_that_of_a_stable_sort(
            times in vec(0..50u64, 0..200), most in prop_oneof![1..20usize, 100..150usize],
        ) {
            let events: Vec<Event> = times.iter().zip(0..).map(|(&time, frame)| event(time, frame)).collect();
            let mut sorted = events.clone();
            sorted.sort_by_key(|event| event.time);
            prop_assert_eq!(ordered(&events, most).0, sorted);
        }
    }

    #[test]
    fn only_what_is_late_by_many_events_is_sorted_later() {
        let push = |times: &[u64]| {
            let mut order = Order::new(1000);
            for (place, &time) in times.iter().enumerate() {
                order.insert(event(time, place as u64));
            }
            let times: Vec<u64> = order.window.iter().map(|event| event.time).collect();
            (times.is_sorted(), order.is_sorted)
        };
        let rising: Vec<u64> = (0..200).collect();
        assert_eq!(push(&rising), (true, true));
        // Late by `NEAR` events, and by one more.
        assert_eq!(push(&[&rising[..], &[135]].concat()), (true, true));
        assert_eq!(push(&[&rising[..], &[134]].concat()), (false, false));
        // From then on nothing is, although it may look near.
        assert_eq!(push(&[&rising[..], &[134, 133]].concat()), (false, false));
    }

    #[test]
    fn what_is_late_by_less_than_half_a_window_makes_no_run() {
        let events: Vec<Event> = (0..10_000).map(|place| event(place ^ 7, place)).collect();
        assert_eq!(ordered(&events, 16).1, 1);
        assert!(ordered(&events, 4).1 > 1);
    }

    #[test]
    fn one_recording_after_another_is_one_run_each() {
        let once: Vec<Event> = (0..1000).map(|place| event(place, place)).collect();
        let (all, runs) = ordered(&[&once[..], &once[..], &once[..]].concat(), 64);
        assert_eq!((all.len(), runs), (3000, 3));
        // Those that came first are first.
        assert_eq!(
            all[..6],
            [once[0], once[0], once[0], once[1], once[1], once[1]]
        );
    }
}
