//! A recording from its start to its end.
//!
//! Invariant `own-instance`: every setting is written in the recorder's own tracing instance;
//! dropping the recorder closes its buffers, so that the instance can be removed.

use core::sync::atomic::Ordering::Relaxed;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use rustix::time::{ClockId, clock_gettime};

use super::decode::{Decoder, PAGE_EVENTS, TASK_EVENTS, TypeNumbers};
use super::error::RecordError;
use super::format::Format;
use super::instance::{Instance, Known, OptionalFormats};
use super::merge::{Between, Merged, ReadTimes, merge};
use super::names::TaskNames;
use super::optional::Group;
use super::reader::{Counters, Emptied, Lane, Reader, State};
use super::spool::Spool;
use super::tracefs::Tracefs;
use crate::{Event, Flags, Header, Lost, States};

/// The default size of a CPU's buffer: seconds of events of the busiest host.
const BUFFER_KIB: u64 = 32 << 10;
/// By default all buffers together take at most one part in `SHARE` of the memory.
const SHARE: u64 = 16;

/// The options of a recording.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    /// KiB of each CPU's buffer in the kernel; `None` for 32 MiB, or less if all buffers would take
    /// more than a sixteenth of the memory.
    pub buffer_kib: Option<u64>,
    /// The groups of events that are recorded beside those of the page allocator's users.
    pub groups: Vec<Group>,
    /// The file that holds records until the recording ends; it must not exist yet.
    pub spool: PathBuf,
    /// The text of `/proc/pagetypeinfo`, which has the kernel's numbers of migrate types; may be
    /// empty.
    pub pagetypeinfo: String,
}

/// The time of a recording: nanoseconds since it began.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Clock {
    began: u64,
}

impl Clock {
    fn start() -> Self {
        Self { began: monotonic() }
    }

    /// Returns the nanoseconds since the recording began, by the clock that stamps its events.
    #[must_use]
    pub fn now(self) -> u64 {
        monotonic().saturating_sub(self.began)
    }
}

fn monotonic() -> u64 {
    let time = clock_gettime(ClockId::Monotonic);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// The progress of a recording.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Progress {
    /// Events read so far.
    pub events: u64,
    /// Bytes written to the spool.
    pub spooled: u64,
    /// Events known to be lost so far.
    pub lost: u64,
    /// Whether the spool's disk has room to go on.
    pub disk: Disk,
}

/// Whether the spool's disk has room.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Disk {
    /// It has room.
    HasRoom,
    /// It is nearly full: the recording should be stopped while the trace still fits.
    Full,
}

/// A running recording. If it is dropped instead of stopped, all settings are undone and nothing is
/// kept.
#[derive(Debug)]
pub struct Recorder {
    // In the order in which they must be dropped: the thread holds files of the instance open, and
    // the instance is a directory of tracefs.
    reader: Option<Reader>,
    instance: Instance,
    _tracefs: Tracefs,
    counters: Arc<Counters>,
    clock: Clock,
    tasks: TaskNames,
    // Whether the kernel has events that name tasks.
    names_are_recorded: bool,
    lacking: Vec<&'static str>,
    header: Header,
}

impl Recorder {
    /// Starts recording, in a tracing instance of its own. The host's tracing settings are not
    /// changed.
    ///
    /// # Errors
    ///
    /// [`RecordError`] says what is missing and what to do. Nothing is left behind.
    pub fn start(plan: &Plan) -> Result<Self, RecordError> {
        let tracefs = Tracefs::find()?;
        let instance = Instance::create(tracefs.path())?;
        let pages = instance.page_formats()?;
        let tasks = instance.task_formats()?;
        let OptionalFormats {
            events,
            known: more,
            lacking,
        } = instance.optional_formats(&plan.groups)?;
        let cpus = instance.cpus()?;
        let kib = plan.buffer_kib.unwrap_or_else(|| default_kib(cpus.len()));
        instance.set_buffers(kib)?;
        let spool = Spool::create(&plan.spool, cpus.len())?;
        let lanes = cpus.iter().map(|&cpu| {
            let raw = instance.raw(cpu)?;
            Ok(Lane {
                cpu,
                raw,
                missed: 0,
            })
        });
        let lanes = lanes.collect::<Result<Vec<_>, RecordError>>()?;
        enable(&instance, &tasks, events)?;
        let mut header = header(&cpus, pages.iter().chain(&tasks).chain(&more));
        header.flags = Flags::from_format(&pages[0].text);

        let mut names = TaskNames::default();
        names.scan(Path::new("/proc"));
        let clock = Clock::start();
        let decoder = Decoder::new(
            &pages.map(|known| known.format),
            &formats(tasks.iter()),
            TypeNumbers::parse(&plan.pagetypeinfo),
            clock.began,
        )?
        .with_optional(&formats(more.iter()));
        let counters = Arc::new(Counters::default());
        let state = State {
            layout: instance.layout()?,
            decoder,
            emptied: Emptied {
                spool,
                lanes,
                senseless: 0,
                failed: None,
            },
            counters: Arc::clone(&counters),
        };
        let reader = Reader::start(state, kib)
            .map_err(|error| RecordError::tracing("a thread to read with", error))?;
        let mut recorder = Self {
            reader: Some(reader),
            instance,
            _tracefs: tracefs,
            counters,
            clock,
            tasks: names,
            names_are_recorded: !tasks.is_empty(),
            lacking,
            header,
        };
        recorder.instance.write("tracing_on", "1")?;
        // Again, for tasks that were created between the first scan and the start. Later ones are
        // in the records.
        recorder.tasks.scan(Path::new("/proc"));
        Ok(recorder)
    }

    /// Returns the recording's clock.
    #[must_use]
    pub const fn clock(&self) -> Clock {
        self.clock
    }

    /// Returns the events, as `system/name`, that were to be recorded and that this kernel lacks.
    #[must_use]
    pub fn lacking(&self) -> &[&'static str] {
        &self.lacking
    }

    /// Returns how far the recording is.
    #[must_use]
    pub fn progress(&self) -> Progress {
        Progress {
            events: self.counters.events.load(Relaxed),
            spooled: self.counters.spooled.load(Relaxed),
            lost: self.counters.missed.load(Relaxed),
            disk: self.counters.disk(),
        }
    }

    /// Stops recording, reads what is left in the buffers, and removes the instance.
    ///
    /// # Errors
    ///
    /// If a buffer cannot be read, or the instance cannot be stopped. The events read so far are
    /// then lost.
    pub fn stop(mut self) -> Result<Recorded, RecordError> {
        self.instance.write("tracing_on", "0")?;
        let mut header = core::mem::take(&mut self.header);
        header.duration = self.clock.now();
        let mut tasks = core::mem::take(&mut self.tasks);
        if !self.names_are_recorded {
            // The kernel has no events with names; its table of recent names is the next best.
            let path = self._tracefs.path().join("saved_cmdlines");
            tasks.saved(&fs::read_to_string(path).unwrap_or_default());
        }
        let reader = self
            .reader
            .take()
            .expect("it is taken only here and when dropped");
        let emptied = match reader.stop() {
            Ok(emptied) => emptied,
            Err(panic) => std::panic::resume_unwind(panic),
        };
        if let Some((cpu, error)) = emptied.failed {
            let path = format!("per_cpu/cpu{cpu}/trace_pipe_raw");
            return Err(RecordError::tracing(path, error));
        }
        let cpus = emptied.lanes.iter().map(|lane| lane.cpu).collect();
        let lost = emptied.lanes.into_iter().map(|lane| Lost {
            cpu: lane.cpu,
            events: lane.missed.max(self.instance.lost(lane.cpu)),
        });
        header.lost = lost.filter(|lost| lost.events > 0).collect();
        Ok(Recorded {
            header,
            disk: self.counters.disk(),
            senseless: emptied.senseless,
            spool: emptied.spool,
            cpus,
            tasks,
        })
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        if let Some(reader) = self.reader.take() {
            let _ = self.instance.write("tracing_on", "0");
            // Its files are closed by this, so that the instance can be removed.
            drop(reader.stop());
        }
    }
}

/// What was recorded, still in the spool.
#[derive(Debug)]
#[non_exhaustive]
pub struct Recorded {
    /// The part of the trace's header that the recorder fills in: source, kernel, machine, start,
    /// duration, CPUs, frame size, flags, formats, losses.
    pub header: Header,
    /// Whether the spool's disk had room after the last records were read.
    pub disk: Disk,
    /// Records that were inconsistent, and were left out.
    pub senseless: u64,
    spool: Spool,
    cpus: Vec<u16>,
    tasks: TaskNames,
}

impl Recorded {
    /// Passes all events to `sink` in order of time, 65536 at a time, with all names so far. Events
    /// that the page states already account for are left out: those of a frame before its state at
    /// the `start` was read, or after its state at the `end` was. Steps of compaction and reclaim,
    /// and failures, are never left out.
    ///
    /// # Errors
    ///
    /// If the spool cannot be read; any error of `sink`.
    pub fn merge<E: From<RecordError>>(
        &self,
        start: &States,
        end: &States,
        sink: impl FnMut(&[Event], &[String]) -> Result<(), E>,
    ) -> Result<Merged, E> {
        let between = Between {
            start: ReadTimes::of(&start.reads),
            end: ReadTimes::of(&end.reads),
        };
        merge(&self.spool, &self.cpus, &self.tasks, &between, sink)
    }
}

fn enable(
    instance: &Instance,
    tasks: &[Known],
    more: Vec<&'static str>,
) -> Result<(), RecordError> {
    let tasks = if tasks.is_empty() {
        &[][..]
    } else {
        &TASK_EVENTS[..]
    };
    for event in PAGE_EVENTS.iter().chain(tasks).copied().chain(more) {
        instance.write(&format!("events/{event}/enable"), "1")?;
    }
    Ok(())
}

fn formats<'a>(known: impl Iterator<Item = &'a Known>) -> Vec<Format> {
    known.map(|known| known.format.clone()).collect()
}

fn header<'a>(cpus: &[u16], known: impl Iterator<Item = &'a Known>) -> Header {
    let system = rustix::system::uname();
    let began = SystemTime::now().duration_since(UNIX_EPOCH);
    Header {
        source: "tracefs".to_owned(),
        kernel: system.release().to_string_lossy().into_owned(),
        machine: system.machine().to_string_lossy().into_owned(),
        began: began.map_or(0, |began| began.as_secs()),
        cpus: cpus.last().map_or(0, |cpu| cpu.saturating_add(1)),
        frame_bytes: rustix::param::page_size() as u32,
        formats: known
            .map(|known| (known.name.clone(), known.text.clone()))
            .collect(),
        ..Header::default()
    }
}

fn default_kib(cpus: usize) -> u64 {
    let info = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let total = info.lines().find_map(|line| line.strip_prefix("MemTotal:"));
    let total = total.and_then(|total| total.trim().strip_suffix("kB")?.trim().parse::<u64>().ok());
    let share = total.map_or(BUFFER_KIB, |kib| kib / SHARE / cpus.max(1) as u64);
    BUFFER_KIB.min(share).max(256)
}
