//! Events to a trace file, as they come: one thread reads lines, another puts their events in order
//! and writes them.

use core::ops::ControlFlow;
use std::io::Read;
use std::panic::resume_unwind;
use std::sync::mpsc::{Receiver, sync_channel};
use std::thread;

use super::collect::Collector;
use super::order::Order;
use super::{ImportError, Imported, Progress, read};
use crate::Event;
use crate::file::Writer;

/// Parts of the text that wait to be written, at most.
const QUEUED: usize = 16;

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
    progress: impl FnMut(Progress) -> ControlFlow<()>,
) -> Result<(Imported, Writer), ImportError> {
    let (send, parts) = sync_channel(QUEUED);
    let (output, began) = thread::scope(|scope| {
        let writing = scope.spawn(move || write_parts(&parts, output, window));
        let mut told = 0;
        let read = read(input, &mut collector, progress, |names, events| {
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
        read.and(written)
    })?;
    Ok((collector.finish(began)?, output))
}

/// Writes the events; returns the time of the first, from which all others are counted.
fn write_parts(
    parts: &Receiver<Part>,
    mut output: Writer,
    window: usize,
) -> Result<(Writer, u64), ImportError> {
    let (mut names, mut batch) = (Vec::new(), Vec::new());
    let mut began = None;
    let mut order = Order::new(window);
    let mut write = |events: &[Event], names: &[String]| -> Result<(), ImportError> {
        let Some(earliest) = events.first() else {
            return Ok(());
        };
        let began = *began.get_or_insert(earliest.time);
        batch.clear();
        batch.extend(events.iter().map(|event| Event {
            time: event.time - began,
            ..*event
        }));
        Ok(output.events(&batch, names)?)
    };
    for mut part in parts {
        names.append(&mut part.names);
        order.push(&part.events, |events| write(events, &names))?;
    }
    order.finish(|events| write(events, &names))?;
    Ok((output, began.unwrap_or(0)))
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by it")]
mod tests {
    use core::fmt::Write as _;

    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;
    use crate::file::read as read_file;
    use crate::import::{Options, import};
    use crate::{NameIds, Trace, name_in};

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

    fn through_a_file(text: &str, window: usize) -> Result<(Imported, Trace, usize), ImportError> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("trace.parquet");
        let writer = Writer::create(&path).unwrap();
        let collector = Collector::new(&Options::default());
        let goes_on = |_| ControlFlow::Continue(());
        let (imported, writer) = write(text.as_bytes(), collector, writer, window, goes_on)?;
        writer.finish(&imported.trace.header).unwrap();
        let files = std::fs::read_dir(folder.path()).unwrap().count();
        Ok((imported, read_file(&path).unwrap(), files))
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
            times in vec(5..60u64, 1..120), window in prop_oneof![1..30usize, 100..200usize],
        ) {
            let text = text(&times);
            let whole = import(text.as_bytes(), &Options::default(), |_| ControlFlow::Continue(()));
            let whole = whole.unwrap();
            let (imported, trace, files) = match through_a_file(&text, window) {
                Ok(done) => done,
                Err(ImportError::Late { .. }) => return Ok(()),
                Err(other) => panic!("{other}"),
            };
            prop_assert_eq!(imported.kinds, whole.kinds);
            prop_assert_eq!(imported.out_of_order, whole.out_of_order);
            prop_assert_eq!(trace, renamed(whole.trace));
            prop_assert_eq!(files, 1, "nothing else is left");
        }
    }
}
