//! Traces out of text: what ftrace's `trace` and `trace_pipe`, `perf script` and `trace-cmd report`
//! print of `mm_page_alloc`, `mm_page_free` and `mm_page_alloc_extfrag`; plain or zstd.
//!
//! | file | what it tells |
//! |---|---|
//! | `source` | the bytes: plain or zstd, and how many are done |
//! | `lines` | lines, none of them too long |
//! | `line` | what one line says |
//! | `collect` | lines to a trace |
//!
//! Text knows less than a recording: no page states, times often in microseconds only. Request
//! flags are names in text; they get the numbers of [`Flags::canonical`](crate::Flags::canonical),
//! or those of the kernel's format text where it is given.

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

/// What the text does not say.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// The kernel's release, such as `6.12.3`. Before 4.4 the types of memory had other numbers.
    /// Empty: what the text says (`perf script --header` does), or a later one.
    pub kernel: String,
    /// The meaning of request flags on that kernel ([`Flags::from_format`]). Empty:
    /// [`Flags::canonical`].
    pub flags: Flags,
}

/// How far an import is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    /// Bytes of the (perhaps compressed) input that were read.
    pub bytes: u64,
    /// Events found.
    pub events: u64,
}

/// A line that should have been an event, and is not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BadLine {
    /// Its number, from 1.
    pub line: u64,
    /// What is wrong with it.
    pub why: String,
    /// Its first characters.
    pub text: String,
}

/// What came of an import.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Imported {
    /// The trace.
    pub trace: Trace,
    /// Lines in all.
    pub lines: u64,
    /// Lines that are no event of the page allocator: headers, call chains, other events.
    pub other_lines: u64,
    /// Events that repeat what another event says (`mm_page_free_batched`).
    pub repeated: u64,
    /// Events that came later in the text than a later one, and were put in order.
    pub out_of_order: u64,
    /// Names of request flags that are not known; they count for nothing.
    pub unknown_flags: Vec<String>,
    /// How many lines were bad.
    pub bad_lines: u64,
    /// The first [`BAD_SHOWN`] of them.
    pub first_bad: Vec<BadLine>,
}

/// Bad lines that are kept to be shown.
pub const BAD_SHOWN: usize = 5;

/// Why nothing was imported.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ImportError {
    /// The input could not be read, or is zstd and broken.
    #[error("cannot read it: {0}")]
    Io(#[from] io::Error),
    /// It is a trace file already, or another Parquet file.
    #[error(
        "this is a Parquet file, not text: if it is a trace, there is nothing to import; `brickyard info` shows it"
    )]
    Parquet,
    /// It is a raw recording of another tool.
    #[error("this is the binary file of {tool}: give the text that `{print}` prints")]
    Binary {
        /// Whose file.
        tool: &'static str,
        /// What makes text of it.
        print: &'static str,
    },
    /// There is no event in it.
    #[error(
        "no event of the page allocator in {lines} lines: expected lines such as\n  bash-1234 [001] ..... 12.345678: mm_page_alloc: page=0x12 pfn=0x12 order=0 migratetype=1 gfp_flags=GFP_KERNEL\nwhich ftrace (the events kmem/mm_page_alloc and kmem/mm_page_free), `perf script` and `trace-cmd report` print{bad}"
    )]
    NoEvents {
        /// Lines that were read.
        lines: u64,
        /// The first line that was nearly an event, or nothing.
        bad: String,
    },
    /// The caller wanted it to end.
    #[error("stopped")]
    Stopped,
}

/// Lines between two calls of `progress`.
const STEP: u64 = 1 << 14;

/// Reads all of `input`: 40 bytes of memory an event. `progress` is called now and then, and may
/// end it.
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
/// If it cannot be read, has no event of the page allocator at all, or `progress` ended it. Bad
/// lines are no error: they are counted.
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
