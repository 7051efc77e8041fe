//! A trace file, opened: its header and its page states are in memory, and its events are read row
//! group by row group, as often as they are asked for.
//!
//! Some row groups are decoded ahead, each by a thread, which hands its rows on in batches. A
//! thread that is far ahead waits. So memory does not grow with the number of events, nor with the
//! size of a row group.
//!
//! Invariant `bounded-ahead`: at most [`AHEAD`] row groups are being decoded, and of each at most
//! [`QUEUED`] batches are waiting.

use core::num::NonZero;
use core::ops::{ControlFlow, Range};
use core::sync::atomic::AtomicUsize;
use core::sync::atomic::Ordering::Relaxed;
use std::collections::VecDeque;
use std::fs::{self, File};
use std::path::Path;
use std::sync::mpsc::{Receiver, sync_channel};
use std::thread::{self, Scope, ScopedJoinHandle};

use bytes::Bytes;
use parquet::file::reader::{FileReader, Length as _, SerializedFileReader};

use super::rows::{Assembly, Batch, GroupRows, check_end, read_all};
use super::schema::ROWS_PER_BYTE;
use super::{ReadError, metadata};
use crate::table::{self, Fault, Input, RowGroup};
use crate::{Event, Events, StateRun, Trace};

/// Rows that any file may declare, however small it is.
const FEW_ROWS: usize = 1 << 16;

/// Row groups that are decoded at a time, at most.
const AHEAD: usize = 4;

/// Batches of a row group that wait to be taken, at most: all of one that this crate wrote.
const QUEUED: usize = 8;

/// Rows of a batch, about.
const BATCH: usize = 1 << 16;

/// A trace file that is open.
///
/// ```
/// use core::ops::ControlFlow;
/// use brickyard_trace::{Events, Header, file::{Source, Writer}};
///
/// let path = std::env::temp_dir().join("brickyard-doc-source.parquet");
/// Writer::create(&path)?.finish(&Header::default())?;
/// let source = Source::open(&path)?;
/// let mut events = 0;
/// source.pass(|batch, _names| {
///     events += batch.len();
///     ControlFlow::Continue(())
/// })?;
/// assert_eq!(events as u64, source.count());
/// # std::fs::remove_file(&path)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Source {
    outline: Trace,
    file: SerializedFileReader<Input>,
    input: Input,
    /// The row groups, by their place in the file.
    groups: Vec<Group>,
    /// Those that have all events.
    with_events: Range<usize>,
    events: u64,
    last: u64,
    /// Rows of a batch, about.
    batch: usize,
    waiting: Gauge,
}

/// A count, and the most it ever was.
#[derive(Debug, Default)]
struct Gauge {
    now: AtomicUsize,
    most: AtomicUsize,
}

impl Gauge {
    // The counts order nothing: they are only looked at.
    fn up(&self) {
        let now = self.now.fetch_add(1, Relaxed) + 1;
        self.most.fetch_max(now, Relaxed);
    }

    fn down(&self) {
        self.now.fetch_sub(1, Relaxed);
    }
}

/// A row group: how many rows it declares, and how many rows precede it.
#[derive(Debug, Clone, Copy)]
struct Group {
    index: usize,
    rows: usize,
    first: usize,
}

impl core::fmt::Debug for Source {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let mut out = f.debug_struct("Source");
        out.field("events", &self.events);
        out.field("waiting", &self.waiting);
        out.finish_non_exhaustive()
    }
}

impl Source {
    /// Opens the trace in the file `path`, and reads all but its events.
    ///
    /// # Errors
    ///
    /// If the file cannot be read, is not a trace, is truncated or damaged, or has an unknown
    /// version. The message says which, and what to do. Damage in events is found by
    /// [`pass`](Events::pass).
    pub fn open(path: &Path) -> Result<Self, ReadError> {
        // Not after opening: opening a pipe would wait for its other end.
        if !fs::metadata(path)?.is_file() {
            return Err(ReadError::NoFile);
        }
        Self::of(Input::of_file(File::open(path)?)?)
    }

    /// Takes the contents of a trace file.
    ///
    /// # Errors
    ///
    /// Those of [`open`](Self::open).
    pub fn of_bytes(bytes: Bytes) -> Result<Self, ReadError> {
        Self::of(Input::Bytes(bytes))
    }

    fn of(input: Input) -> Result<Self, ReadError> {
        check_magic(&input)?;
        table::guarded(|| Self::parse(input))
    }

    fn parse(input: Input) -> Result<Self, ReadError> {
        let file = table::open(&input)?;
        let about = file.metadata().file_metadata();
        let pairs = about.key_value_metadata().map_or(&[][..], Vec::as_slice);
        let header = metadata::from_pairs(pairs)?;
        let groups = groups(&file, input.len())?;
        let mut source = Self {
            outline: Trace {
                header,
                ..Trace::default()
            },
            with_events: 0..0,
            events: 0,
            last: 0,
            batch: BATCH,
            waiting: Gauge::default(),
            groups,
            file,
            input,
        };
        source.read_states()?;
        Ok(source)
    }

    /// Reads the page states: row groups from the first on until there is an event, and from the
    /// last back.
    fn read_states(&mut self) -> Result<(), ReadError> {
        let mut outline = core::mem::take(&mut self.outline);
        let mut front = Assembly::default();
        let mut first = 0;
        while let Some(&group) = self.groups.get(first) {
            front.begin();
            let mut joined = Ok(());
            self.decode(group, |mut batch| {
                joined = front.join(&mut batch);
                outline.start.append(&mut batch.start);
                if joined.is_err() || front.has_events() {
                    return ControlFlow::Break(());
                }
                outline.end.append(&mut batch.end);
                ControlFlow::Continue(())
            })?;
            joined?;
            if front.has_events() {
                break;
            }
            first += 1;
        }
        self.with_events = first..first;
        // The runs of each row group, from the last back.
        let mut ends: Vec<Vec<StateRun>> = Vec::new();
        let mut last = 0;
        for &group in self.groups[first..].iter().rev() {
            let mut runs = Vec::new();
            let mut joined = Ok(());
            let mut back = Assembly::new(group.index > first);
            self.decode(group, |mut batch| {
                joined = back.join(&mut batch);
                last = batch.events.last().map_or(last, |event| event.time);
                runs.append(&mut batch.end);
                match joined {
                    Ok(()) => ControlFlow::Continue(()),
                    Err(_) => ControlFlow::Break(()),
                }
            })?;
            joined?;
            ends.push(runs);
            if back.has_events() {
                self.with_events.end = group.index + 1;
                break;
            }
        }
        outline.end.extend(ends.into_iter().rev().flatten());
        let rows = self.groups.last().map_or(0, |last| last.first + last.rows);
        let events = rows.saturating_sub(outline.start.len() + outline.end.len());
        check_end(&outline.end, rows - outline.end.len().min(rows))?;
        self.events = events as u64;
        self.last = last;
        self.outline = outline;
        Ok(())
    }

    /// Decodes a row group, and hands its rows to `take` for as long as it goes on.
    fn decode(
        &self,
        group: Group,
        mut take: impl FnMut(Batch) -> ControlFlow<()>,
    ) -> Result<(), ReadError> {
        let about = self.file.metadata().row_group(group.index);
        table::check_claims_of(about, &self.input)?;
        let reader = self.file.get_row_group(group.index).map_err(Fault::from)?;
        let columns = RowGroup {
            reader: reader.as_ref(),
            schema: self.file.metadata().file_metadata().schema_descr(),
        };
        let mut rows = GroupRows::new(group.first, group.rows, self.batch);
        let read = read_all(&columns, &mut rows, &mut take)?;
        match read {
            ControlFlow::Continue(read) if read != group.rows => {
                let why = format!("a row group declares {} rows but has {read}", group.rows);
                Err(ReadError::Damaged(why))
            }
            _ => Ok(()),
        }
    }

    /// Begins to decode a row group in a thread of its own.
    fn begin<'scope>(
        &'scope self,
        group: Group,
        scope: &'scope Scope<'scope, '_>,
    ) -> Ahead<'scope> {
        let (send, batches) = sync_channel(QUEUED);
        let thread = scope.spawn(move || {
            self.decode(group, |batch| {
                self.waiting.up();
                match send.send(batch) {
                    Ok(()) => ControlFlow::Continue(()),
                    // Nobody wants the rest.
                    Err(_) => ControlFlow::Break(()),
                }
            })
        });
        Ahead { batches, thread }
    }
}

/// A row group that is being decoded.
struct Ahead<'scope> {
    batches: Receiver<Batch>,
    thread: ScopedJoinHandle<'scope, Result<(), ReadError>>,
}

impl Events for Source {
    fn outline(&self) -> &Trace {
        &self.outline
    }

    fn count(&self) -> u64 {
        self.events
    }

    fn last_time(&self) -> u64 {
        self.last
    }

    fn pass(
        &self,
        mut take: impl FnMut(&[Event], &[String]) -> ControlFlow<()>,
    ) -> Result<(), ReadError> {
        let ahead = thread::available_parallelism().map_or(1, NonZero::get);
        let mut assembly = Assembly::default();
        thread::scope(|scope| {
            let mut groups = self.groups[self.with_events.clone()].iter();
            let begin = |group: &Group| self.begin(*group, scope);
            let mut decoding: VecDeque<Ahead<'_>> =
                groups.by_ref().take(ahead.min(AHEAD)).map(begin).collect();
            while let Some(next) = decoding.pop_front() {
                assembly.begin();
                for mut batch in &next.batches {
                    self.waiting.down();
                    assembly.join(&mut batch)?;
                    if take(&batch.events, &assembly.names).is_break() {
                        return Ok(());
                    }
                }
                // A panic is that of the Parquet crate at a damaged page.
                let ended = next.thread.join();
                ended.unwrap_or_else(|_| Err(Fault::contradicts().into()))?;
                decoding.extend(groups.next().map(begin));
            }
            Ok(())
        })
    }
}

/// Returns the row groups of a file of `bytes` bytes.
fn groups(file: &SerializedFileReader<Input>, bytes: u64) -> Result<Vec<Group>, ReadError> {
    let limit = usize::try_from(bytes).unwrap_or(usize::MAX);
    let limit = limit.saturating_mul(ROWS_PER_BYTE).saturating_add(FEW_ROWS);
    let mut first = 0_usize;
    let groups = file.metadata().row_groups().iter().enumerate();
    let groups = groups.map(|(index, about)| {
        let rows = usize::try_from(about.num_rows()).unwrap_or(usize::MAX);
        let group = Group { index, rows, first };
        first = first.saturating_add(rows);
        group
    });
    let groups = groups.collect();
    if first > limit {
        return Err(ReadError::Damaged(
            "it declares more rows than a file of its size can have".to_owned(),
        ));
    }
    Ok(groups)
}

/// Refuses what is not a Parquet file, by its first and last bytes.
fn check_magic(input: &Input) -> Result<(), ReadError> {
    const MAGIC: &[u8] = b"PAR1";
    const ZSTD: &[u8] = &[0x28, 0xb5, 0x2f, 0xfd];
    let head = input.window(0, 512)?;
    if !head.starts_with(MAGIC) {
        let is_text =
            |byte: &u8| matches!(byte, b'\t' | b'\n' | b'\r' | b' '..=b'~') || *byte >= 0x80;
        return Err(match &head[..] {
            [] => ReadError::Empty,
            head if head.starts_with(ZSTD) => {
                ReadError::Text("a zstd file, perhaps compressed text")
            }
            head if head.iter().all(is_text) => ReadError::Text("text"),
            _ => ReadError::Foreign,
        });
    }
    let tail = input.window(input.len().saturating_sub(4), 4)?;
    if tail != MAGIC || input.len() < 12 {
        return Err(ReadError::Truncated);
    }
    Ok(())
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by it")]
mod tests {
    use core::time::Duration;

    use super::*;
    use crate::file::{Writer, read};
    use crate::{Header, NameId, PageState, PageUse, What};

    /// A trace of so many row groups of `rows` events each, with page states around them.
    fn written(path: &Path, groups: u64, rows: usize) {
        let runs: Vec<StateRun> = (0..50)
            .map(|place| StateRun {
                time: 0,
                frame: place * 2,
                frames: 1,
                order: 0,
                state: PageState::of(PageUse::ALL[place as usize % 9]),
            })
            .collect();
        let mut writer = Writer::create(path).unwrap().with_group_rows(rows);
        writer.start(&runs).unwrap();
        let names: Vec<String> = (0..groups).map(|group| format!("task {group}")).collect();
        for group in 0..groups {
            let event = |place: u64| Event {
                time: group * 1000 + place,
                frame: place,
                what: What::Free,
                pid: 1,
                name: NameId(((group + place) % groups) as u32),
                cpu: 0,
                order: brickyard::Order::ZERO,
            };
            let events: Vec<Event> = (0..rows as u64).map(event).collect();
            writer.events(&events, &names[..=group as usize]).unwrap();
        }
        writer.end(&runs[..30]).unwrap();
        writer.finish(&Header::default()).unwrap();
    }

    #[test]
    fn few_batches_wait_however_many_events_there_are() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("trace.parquet");
        let (groups, rows, batch) = (30, 400, 8);
        written(&path, groups, rows);
        let mut source = Source::open(&path).unwrap();
        source.batch = batch;
        assert_eq!(source.count(), groups * rows as u64);
        assert_eq!(source.last_time(), 29_399);
        let (outline, whole) = (source.outline(), read(&path).unwrap());
        assert_eq!((outline.start.len(), outline.end.len()), (50, 30));
        assert_eq!((&outline.start, &outline.end), (&whole.start, &whole.end));
        let (mut all, mut names) = (Vec::new(), Vec::new());
        let passed = source.pass(|events, so_far| {
            if all.is_empty() {
                // The others run as far ahead as they can.
                thread::sleep(Duration::from_millis(50));
            }
            all.extend_from_slice(events);
            names = so_far.to_vec();
            ControlFlow::Continue(())
        });
        passed.unwrap();
        assert!(all == whole.events);
        assert_eq!(names, whole.names);
        // Of each row group those that are queued and one to be queued: 1500 batches in all.
        let most = source.waiting.most.load(Relaxed);
        assert!(
            most <= AHEAD * (QUEUED + 1),
            "bounded-ahead: {most} batches"
        );
    }

    #[test]
    fn a_pass_can_be_ended_and_begun_again() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("trace.parquet");
        written(&path, 9, 100);
        let mut source = Source::open(&path).unwrap();
        source.batch = 10;
        for most in [1, 55, 900, 2000] {
            let mut done = 0;
            let passed = source.pass(|events, _| {
                done += events.len();
                match done < most {
                    true => ControlFlow::Continue(()),
                    false => ControlFlow::Break(()),
                }
            });
            passed.unwrap();
            assert!(
                (most.min(900)..most.min(900) + 10).contains(&done),
                "{done}"
            );
        }
    }
}
