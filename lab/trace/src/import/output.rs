//! Events to a trace file, as they come.
//!
//! One thread reads lines, another puts their events in order and writes them. The file is that of
//! the first run (see `order`) and, as a rule, has all events. If there are more runs, all of them
//! are merged into another file.

use core::ops::ControlFlow;
use std::env;
use std::io::{self, Read};
use std::panic::resume_unwind;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, sync_channel};
use std::thread;

use super::collect::Collector;
use super::order::{Merge, Order, Runs};
use super::{ImportError, Imported, Progress, read};
use crate::file::{Source, WriteError, Writer};
use crate::{Event, Events as _, NameIds, name_in};

/// Parts of the text that wait to be written, at most.
const QUEUED: usize = 16;

/// Events that are merged at a time.
const BATCH: usize = 1 << 14;

/// Events of a part of the text, and the names that are new in it.
struct Part {
    events: Vec<Event>,
    names: Vec<String>,
}

/// See [`super::import_to`]. `window` events wait for earlier ones.
pub(super) fn write(
    input: impl Read,
    mut collector: Collector,
    output: Writer,
    window: usize,
    mut progress: impl FnMut(Progress) -> ControlFlow<()>,
) -> Result<(Imported, Writer), ImportError> {
    let mut bytes = 0;
    let mut told = |progress_now: Progress| {
        bytes = progress_now.bytes;
        progress(progress_now)
    };
    let folder = match output.path().parent() {
        Some(folder) if !output.is_direct() && folder != Path::new("") => folder.to_owned(),
        _ if output.is_direct() => env::temp_dir(),
        _ => PathBuf::from("."),
    };
    let kept = |why: Failure| match why {
        Failure::Kept(why) => ImportError::Kept {
            folder: folder.display().to_string(),
            why,
        },
        Failure::Write(why) => why.into(),
        Failure::Read(why) => why,
    };
    let written = write_runs(input, &mut collector, output, &folder, window, &mut told);
    let written = written.map_err(kept)?;
    let later = written.later.as_ref();
    let began = written.began.min(later.map_or(u64::MAX, Runs::earliest));
    let events = collector.events();
    let imported = collector.finish(began)?;
    let (first, output) = match written.first {
        Some(first) => (first, written.output),
        None if later.is_none() => return Ok((imported, written.output)),
        None => {
            let again = Writer::create(written.output.path())?;
            (written.output, again)
        }
    };
    let mut merging = Merging {
        output,
        ahead: written.began - began,
        began,
        names: Vec::new(),
        ids: NameIds::default(),
        batch: Vec::new(),
    };
    let goes_on = || progress(Progress { bytes, events });
    merging
        .all(&first.into_source()?, later, &imported.trace.names, goes_on)
        .map_err(kept)?;
    Ok((imported, merging.output))
}

/// What went wrong.
enum Failure {
    /// With the events that are out of order.
    Kept(io::Error),
    Write(WriteError),
    Read(ImportError),
}

impl From<io::Error> for Failure {
    fn from(why: io::Error) -> Self {
        Self::Kept(why)
    }
}

impl From<WriteError> for Failure {
    fn from(why: WriteError) -> Self {
        Self::Write(why)
    }
}

/// All events, in runs.
struct Written {
    /// The file asked for. It has the first run, unless it cannot be read back.
    output: Writer,
    /// The first run, if the file asked for does not have it.
    first: Option<Writer>,
    /// When the first run began: its events have times since then.
    began: u64,
    /// The other runs.
    later: Option<Runs>,
}

/// Reads all lines of `input`, and writes their events in runs.
fn write_runs(
    input: impl Read,
    collector: &mut Collector,
    output: Writer,
    folder: &Path,
    window: usize,
    progress: impl FnMut(Progress) -> ControlFlow<()>,
) -> Result<Written, Failure> {
    let (send, parts) = sync_channel(QUEUED);
    thread::scope(|scope| {
        let writing = scope.spawn(move || write_parts(&parts, output, folder, window));
        let mut told = 0;
        let read = read(input, collector, progress, |names, events| {
            let room = Vec::with_capacity(events.capacity());
            let part = Part {
                names: names[told..].to_vec(),
                events: core::mem::replace(events, room),
            };
            told = names.len();
            match send.send(part) {
                Ok(()) => ControlFlow::Continue(()),
                // It cannot be written: the other thread says why.
                Err(_) => ControlFlow::Break(()),
            }
        });
        drop(send);
        let written = writing.join();
        let written = written.unwrap_or_else(|panic| resume_unwind(panic));
        read.map_err(Failure::Read).and(written)
    })
}

fn write_parts(
    parts: &Receiver<Part>,
    mut output: Writer,
    folder: &Path,
    window: usize,
) -> Result<Written, Failure> {
    let mut first = match output.is_direct() {
        true => Some(Writer::unnamed(folder)?),
        false => None,
    };
    let (mut names, mut batch) = (Vec::new(), Vec::new());
    let mut began = None;
    let mut order = Order::new(window);
    let mut write = |events: &[Event], names: &[String]| -> Result<(), Failure> {
        let Some(earliest) = events.first() else {
            return Ok(());
        };
        let began = *began.get_or_insert(earliest.time);
        batch.clear();
        batch.extend(events.iter().map(|event| Event {
            time: event.time - began,
            ..*event
        }));
        Ok(first
            .as_mut()
            .unwrap_or(&mut output)
            .events(&batch, names)?)
    };
    for mut part in parts {
        names.append(&mut part.names);
        order.push(&part.events, folder, |events| write(events, &names))?;
    }
    let later = order.finish(folder, |events| write(events, &names))?;
    Ok(Written {
        output,
        first,
        began: began.unwrap_or(0),
        later,
    })
}

/// A file into which runs are merged.
struct Merging {
    output: Writer,
    /// When the trace began.
    began: u64,
    /// The time from then until the first run began.
    ahead: u64,
    names: Vec<String>,
    ids: NameIds,
    batch: Vec<Event>,
}

impl Merging {
    /// Merges all runs. `names` are the names in the later ones.
    fn all(
        &mut self,
        first: &Source,
        later: Option<&Runs>,
        names: &[String],
        mut goes_on: impl FnMut() -> ControlFlow<()>,
    ) -> Result<(), Failure> {
        let mut later = later.map(Merge::new).transpose()?;
        let mut done = Ok(ControlFlow::Continue(()));
        let read = first.pass(|events, own| {
            done = self
                .some(events, own, later.as_mut(), names)
                .map(|()| goes_on());
            match done {
                Ok(goes_on) => goes_on,
                Err(_) => ControlFlow::Break(()),
            }
        });
        read.map_err(|why| io::Error::other(why.to_string()))?;
        if done?.is_break() {
            return Err(Failure::Read(ImportError::Stopped));
        }
        if let Some(later) = &mut later {
            while let Some(event) = later.next()? {
                self.push(event.time - self.began, event, names)?;
            }
        }
        self.flush()
    }

    /// Adds events of the first run, and what comes before them in the others.
    fn some(
        &mut self,
        events: &[Event],
        own: &[String],
        mut later: Option<&mut Merge<'_>>,
        names: &[String],
    ) -> Result<(), Failure> {
        for &event in events {
            let time = event.time + self.ahead;
            if let Some(later) = &mut later {
                while let Some(earlier) = later.next_before(self.began + time)? {
                    self.push(earlier.time - self.began, earlier, names)?;
                }
            }
            self.push(time, event, own)?;
        }
        Ok(())
    }

    fn push(&mut self, time: u64, event: Event, names: &[String]) -> Result<(), Failure> {
        let name = name_in(names, event.name);
        let name = self.ids.id(&mut self.names, name);
        self.batch.push(Event {
            time,
            name,
            ..event
        });
        match self.batch.len() {
            BATCH => self.flush(),
            _ => Ok(()),
        }
    }

    fn flush(&mut self) -> Result<(), Failure> {
        self.output.events(&self.batch, &self.names)?;
        self.batch.clear();
        Ok(())
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by it")]
mod tests {
    use core::fmt::Write as _;

    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;
    use crate::Trace;
    use crate::file::read as read_file;
    use crate::import::{Options, import};

    /// Text of events at these times, by several tasks.
    fn text(times: &[u64]) -> String {
        let mut text = String::new();
        for (place, time) in times.iter().enumerate() {
            let task = place * 7 % 5;
            let head = format!("t{task}-{task} [00{}] {time}: ", place % 3);
            writeln!(text, "{head}mm_page_free: page=1 pfn={place:#x} order=0").unwrap();
        }
        text
    }

    fn through_a_file(text: &str, window: usize) -> (Imported, Trace, usize) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("trace.parquet");
        let writer = Writer::create(&path).unwrap();
        let collector = Collector::new(&Options::default());
        let goes_on = |_| ControlFlow::Continue(());
        let written = write(text.as_bytes(), collector, writer, window, goes_on);
        let (imported, writer) = written.unwrap();
        writer.finish(&imported.trace.header).unwrap();
        let files = std::fs::read_dir(folder.path()).unwrap().count();
        (imported, read_file(&path).unwrap(), files)
    }

    /// Names are numbered as a reader does, in the order of the events.
    fn renamed(mut trace: Trace) -> Trace {
        let names = core::mem::take(&mut trace.names);
        let mut ids = NameIds::default();
        for event in &mut trace.events {
            event.name = ids.id(&mut trace.names, name_in(&names, event.name));
        }
        trace
    }

    proptest! {
        #[test]
        fn a_trace_by_way_of_a_file_is_the_same(
            times in vec(5..60u64, 1..120), window in 1..30usize,
        ) {
            let text = text(&times);
            let whole = import(text.as_bytes(), &Options::default(), |_| ControlFlow::Continue(()));
            let whole = whole.unwrap();
            let (imported, trace, files) = through_a_file(&text, window);
            prop_assert_eq!(imported.kinds, whole.kinds);
            prop_assert_eq!(imported.out_of_order, whole.out_of_order);
            prop_assert_eq!(trace, renamed(whole.trace));
            prop_assert_eq!(files, 1, "nothing else is left");
        }
    }

    #[test]
    fn what_cannot_be_read_back_is_written_by_way_of_a_file() {
        let writer = Writer::create(Path::new("/dev/null")).unwrap();
        let collector = Collector::new(&Options::default());
        let text = text(&[9, 8, 7, 9, 1, 2]);
        let mut calls = 0;
        let written = write(text.as_bytes(), collector, writer, 2, |_| {
            calls += 1;
            ControlFlow::Continue(())
        });
        let (imported, writer) = written.unwrap();
        writer.finish(&imported.trace.header).unwrap();
        assert_eq!(
            (imported.kinds.frees, imported.trace.header.duration),
            (6, 8)
        );
        assert!(calls > 0, "merging goes on only as long as it is wanted");
    }
}
