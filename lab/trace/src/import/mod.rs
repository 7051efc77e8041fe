//! Traces from text: the events `mm_page_alloc`, `mm_page_free` and `mm_page_alloc_extfrag` as
//! ftrace's `trace` and `trace_pipe`, `perf script` and `trace-cmd report` print them; plain or
//! compressed with zstd.
//!
//! | file | contents |
//! |---|---|
//! | `source` | the bytes: plain or zstd, and how many were read |
//! | `lines` | lines of bounded length |
//! | `line` | the parser of one line |
//! | `collect` | lines to events, and to all of a trace but them |
//! | `order` | events in order of time, whatever order they come in |
//! | `output` | events to a trace file, as they come |
//!
//! Text has less than a recording: no page states, and often only microseconds. Request flags are
//! names in text; they get the numbers of [`Flags::canonical`](crate::Flags::canonical), or those
//! of the kernel's format text if it is given.

mod collect;
mod line;
mod lines;
mod order;
mod output;
mod source;

use core::ops::ControlFlow;
use std::io::{self, Read};

use thiserror::Error;

use crate::file::{WriteError, Writer};
use crate::summary::Kinds;
use crate::{Event, Flags, Trace};
use collect::Collector;
pub(crate) use line::{Fields, Parsed, TextEvent, parse};
use lines::{Lines, TextLine};
use source::Source;

/// What the text does not contain.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// The kernel's release, such as `6.12.3`. Before 4.4 the migrate types had other numbers. If
    /// empty, the release in the text is used (`perf script --header` prints it); without one, 4.4
    /// or later is assumed.
    pub kernel: String,
    /// The meaning of request flags on that kernel ([`Flags::from_format`]). If empty,
    /// [`Flags::canonical`].
    pub flags: Flags,
}

/// The progress of an import.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Progress {
    /// Bytes of the input read, before decompression.
    pub bytes: u64,
    /// Events found.
    pub events: u64,
}

/// A line that has the name of an event but cannot be parsed.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct BadLine {
    /// Its number, from 1.
    pub line: u64,
    /// What is wrong with it.
    pub why: String,
    /// Its first characters.
    pub text: String,
}

/// The result of an import.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Imported {
    /// The trace. If it went to a file, without its events.
    pub trace: Trace,
    /// Events by kind.
    pub kinds: Kinds,
    /// Lines in all.
    pub lines: u64,
    /// Lines that are not events of the page allocator: headers, call chains, other events.
    pub other_lines: u64,
    /// Events that repeat another event (`mm_page_free_batched`).
    pub repeated: u64,
    /// Events that were in the text after one with a later time, and were put in order.
    pub out_of_order: u64,
    /// Unknown names of request flags; they contribute no bits.
    pub unknown_flags: Vec<String>,
    /// How many lines were bad.
    pub bad_lines: u64,
    /// The first [`BAD_SHOWN`] of them.
    pub first_bad: Vec<BadLine>,
}

/// How many bad lines are kept to be shown.
pub const BAD_SHOWN: usize = 5;

/// Why nothing was imported.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ImportError {
    /// The input could not be read, or is damaged zstd.
    #[error("cannot read it: {0}")]
    Io(#[from] io::Error),
    /// It is a trace file already, or another Parquet file.
    #[error(
        "this is a Parquet file, not text: if it is a trace, there is nothing to import; `brickyard info` shows it"
    )]
    Parquet,
    /// It is a binary file of another tool.
    #[error("this is a binary file of {tool}: give the text that `{print}` prints")]
    Binary {
        /// The tool.
        tool: &'static str,
        /// The command that prints it as text.
        print: &'static str,
    },
    /// There is no event in it.
    #[error(
        "no event of the page allocator in this text (lines read: {lines}): expected lines such as\n  bash-1234 [001] ..... 12.345678: mm_page_alloc: page=0x12 pfn=0x12 order=0 migratetype=1 gfp_flags=GFP_KERNEL\nwhich ftrace (the events kmem/mm_page_alloc and kmem/mm_page_free), `perf script` and `trace-cmd report` print{bad}"
    )]
    NoEvents {
        /// Lines that were read.
        lines: u64,
        /// The first bad line and what is wrong with it, or nothing.
        bad: String,
    },
    /// The trace could not be written.
    #[error(transparent)]
    Write(#[from] WriteError),
    /// An event is out of order by more than what waits for earlier ones.
    #[error(
        "an event at {:.6} s comes after one at {:.6} s and a quarter of a million others: the text is of several recordings, or not in order; import each by itself, or sort it by time", *time as f64 / 1e9, *reached as f64 / 1e9
    )]
    Late {
        /// Its time, in ns.
        time: u64,
        /// The time that was written before it.
        reached: u64,
    },
    /// The caller's `progress` ended it.
    #[error("stopped")]
    Stopped,
}

/// Lines between two calls of `progress`.
const STEP: u64 = 1 << 14;

/// Imports all of `input`. Takes 48 bytes of memory an event. `progress` is called every 16384
/// lines and can end it.
///
/// ```
/// use core::ops::ControlFlow;
/// use brickyard_trace::import::{Options, import};
///
/// let text = "  bash-12 [001] ..... 5.000001: mm_page_free: page=0x99 pfn=0x99 order=0\n";
/// let imported = import(text.as_bytes(), &Options::default(), |_| ControlFlow::Continue(()))?;
/// assert_eq!(imported.trace.events[0].frame, 0x99);
/// # Ok::<(), brickyard_trace::import::ImportError>(())
/// ```
///
/// # Errors
///
/// If the input cannot be read, has no event of the page allocator at all, or `progress` ended it.
/// Bad lines are not an error: they are counted.
pub fn import(
    input: impl Read,
    options: &Options,
    progress: impl FnMut(Progress) -> ControlFlow<()>,
) -> Result<Imported, ImportError> {
    let mut events: Vec<Event> = Vec::new();
    let mut collector = Collector::new(options);
    read(input, &mut collector, progress, |_, new| {
        events.append(new);
        ControlFlow::Continue(())
    })?;
    events.sort_by_key(|event| event.time); // stable: keeps the order at equal times
    let began = events.first().map_or(0, |event| event.time);
    for event in &mut events {
        event.time -= began;
    }
    let mut imported = collector.finish(began)?;
    imported.trace.events = events;
    Ok(imported)
}

/// Imports all of `input` to a trace file, event by event: memory does not grow with their number.
/// Returns the trace without its events, and the writer that has them. The trace is complete when
/// the caller finishes it with the header.
///
/// Events may be out of order by a quarter of a million events.
///
/// # Errors
///
/// Those of [`import`]; if the file cannot be written, and if an event is later than that.
pub fn import_to(
    input: impl Read,
    options: &Options,
    output: Writer,
    progress: impl FnMut(Progress) -> ControlFlow<()>,
) -> Result<(Imported, Writer), ImportError> {
    output::write(
        input,
        Collector::new(options),
        output,
        order::WINDOW,
        progress,
    )
}

/// Reads all lines of `input`, and passes their events to `take` for as long as it goes on.
fn read(
    input: impl Read,
    collector: &mut Collector,
    mut progress: impl FnMut(Progress) -> ControlFlow<()>,
    mut take: impl FnMut(&[String], &mut Vec<Event>) -> ControlFlow<()>,
) -> Result<(), ImportError> {
    let source = Source::open(input)?;
    let done = source.done();
    let mut lines = Lines::new(source);
    let mut events = Vec::with_capacity(STEP as usize);
    loop {
        let is_over = match lines.next_line()? {
            TextLine::End => true,
            TextLine::TooLong => {
                collector.too_long();
                false
            }
            TextLine::Text(text) => {
                events.extend(collector.line(&text));
                false
            }
        };
        if is_over || collector.lines().is_multiple_of(STEP) {
            if take(collector.names(), &mut events).is_break() || is_over {
                return Ok(());
            }
            let (bytes, events) = (done.get(), collector.events());
            if progress(Progress { bytes, events }).is_break() {
                return Err(ImportError::Stopped);
            }
        }
    }
}
