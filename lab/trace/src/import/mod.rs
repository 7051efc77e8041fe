//! Traces from text: the events `mm_page_alloc`, `mm_page_free` and `mm_page_alloc_extfrag` as
//! ftrace's `trace` and `trace_pipe`, `perf script` and `trace-cmd report` print them; plain or
//! compressed with zstd.
//!
//! | file | contents |
//! |---|---|
//! | `source` | the bytes: plain or zstd, and how many were read |
//! | `lines` | lines of bounded length |
//! | `line` | the parser of one line |
//! | `collect` | lines to a trace |
//!
//! Text has less than a recording: no page states, and often only microseconds. Request flags are
//! names in text; they get the numbers of [`Flags::canonical`](crate::Flags::canonical), or those
//! of the kernel's format text if it is given.

mod collect;
mod line;
mod lines;
mod source;

use core::ops::ControlFlow;
use std::io::{self, Read};

use thiserror::Error;

use crate::{Flags, Trace};
use collect::Collector;
use lines::{Line, Lines};
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
    /// The trace.
    pub trace: Trace,
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
    mut progress: impl FnMut(Progress) -> ControlFlow<()>,
) -> Result<Imported, ImportError> {
    let source = Source::open(input)?;
    let done = source.done();
    let mut lines = Lines::new(source);
    let mut collector = Collector::new(options);
    loop {
        match lines.next_line()? {
            Line::End => break,
            Line::TooLong => collector.too_long(),
            Line::Text(text) => collector.line(&text),
        }
        if collector.lines().is_multiple_of(STEP) {
            let bytes = done.get();
            let events = collector.events();
            if progress(Progress { bytes, events }).is_break() {
                return Err(ImportError::Stopped);
            }
        }
    }
    collector.finish()
}
