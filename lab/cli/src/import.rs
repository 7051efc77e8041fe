//! `brickyard import`: converts the text of ftrace, perf or trace-cmd to a trace file.

use std::fs::{self, File};
use std::io::{self, IsTerminal, Read};
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use brickyard_results::noun;
use brickyard_run::{bar, interrupt};
use brickyard_trace::Flags;
use brickyard_trace::file::Writer;
use brickyard_trace::import::{ImportError, Imported, Options, Progress, import_to};
use clap::Args;
use indicatif::{HumanBytes, HumanCount, ProgressBar};

use brickyard_measure::command::misuse::Misuse;

/// The options of `brickyard import`.
#[derive(Debug, Args)]
#[command(after_help = "\
The text is from ftrace's trace or trace_pipe, `perf script` or `trace-cmd report`, plain or compressed by zstd. The events are \
mm_page_alloc, mm_page_free and mm_page_alloc_extfrag; all other lines are ignored.

Examples:
  perf record -a -c 1 -e kmem:mm_page_alloc,kmem:mm_page_free,kmem:mm_page_alloc_extfrag -- make -j8
  perf script --ns --header | brickyard import -o build.parquet
  brickyard import trace_pipe.txt.zst -o host.parquet --kernel 5.15.0")]
pub(crate) struct Import {
    /// The text file; `-` or none for standard input.
    text: Option<PathBuf>,
    /// The trace file to write.
    #[arg(long, short, value_name = "FILE")]
    output: PathBuf,
    /// The release of the traced kernel. Before 4.4, migrate types have other numbers.
    #[arg(long, value_name = "RELEASE")]
    kernel: Option<String>,
    /// The traced kernel's events/kmem/mm_page_alloc/format, for the kernel's own numbers of
    /// request flags (without it, those of Linux 6.12).
    #[arg(long, value_name = "FILE")]
    alloc_format: Option<PathBuf>,
}

impl Import {
    pub(crate) fn run(&self) -> anyhow::Result<()> {
        let options = self.options()?;
        let (input, bytes) = self.input()?;
        let writer = Writer::create(&self.output)?;
        interrupt::watch()?;
        let bar = bar(bytes);
        let imported = import_to(input, &options, writer, |progress| {
            show(&bar, progress);
            interrupt::flow()
        });
        bar.finish_and_clear();
        let (mut imported, writer) = match imported {
            Err(ImportError::Stopped) => bail!("interrupted; nothing was written"),
            imported => imported.with_context(|| format!("cannot import {}", self.name()))?,
        };
        if let Some((_, text)) = self.format()? {
            imported
                .trace
                .header
                .formats
                .push(("mm_page_alloc".to_owned(), text));
        }
        writer.finish(&imported.trace.header)?;
        report(&imported, &self.output);
        Ok(())
    }

    fn name(&self) -> String {
        match self.path() {
            Some(path) => path.display().to_string(),
            None => "standard input".to_owned(),
        }
    }

    fn path(&self) -> Option<&Path> {
        self.text.as_deref().filter(|path| *path != Path::new("-"))
    }

    /// Opens the text; returns its size too, where it is known.
    fn input(&self) -> anyhow::Result<(Box<dyn Read>, Option<u64>)> {
        let Some(path) = self.path() else {
            if io::stdin().is_terminal() {
                return Err(Misuse::new("nothing to import: name a file, or pipe the text in (perf script | brickyard import -o FILE)").into());
            }
            return Ok((Box::new(io::stdin().lock()), None));
        };
        let cannot = || format!("cannot read {}", path.display());
        let about = fs::metadata(path).with_context(cannot)?;
        if about.is_dir() {
            bail!("cannot read {}: it is a directory", path.display());
        }
        let size = about.is_file().then_some(about.len());
        Ok((Box::new(File::open(path).with_context(cannot)?), size))
    }

    fn format(&self) -> anyhow::Result<Option<(Flags, String)>> {
        let Some(path) = &self.alloc_format else {
            return Ok(None);
        };
        let text =
            fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
        let flags = Flags::from_format(&text);
        if flags.0.is_empty() {
            let path = path.display();
            bail!(
                "{path} has no request flags: give events/kmem/mm_page_alloc/format of the traced kernel"
            );
        }
        Ok(Some((flags, text)))
    }

    fn options(&self) -> anyhow::Result<Options> {
        let kernel = self.kernel.clone().unwrap_or_default();
        let flags = self
            .format()?
            .map_or_else(Flags::default, |(flags, _)| flags);
        Ok(Options { kernel, flags })
    }
}

fn bar(bytes: Option<u64>) -> ProgressBar {
    let template = match bytes {
        Some(_) => "importing {wide_bar} {bytes}/{total_bytes}, {msg}, {eta} left",
        None => "importing {spinner} {bytes}, {msg}",
    };
    bar::bar(bytes.unwrap_or(0), template)
}

fn show(bar: &ProgressBar, progress: Progress) {
    bar.set_position(progress.bytes);
    bar.set_message(many(progress.events, "event", "events"));
}

/// Returns a number of things, with separators.
pub(crate) fn many(count: u64, one: &str, many: &str) -> String {
    format!("{} {}", HumanCount(count), noun(count, one, many))
}

/// Prints a summary to standard error.
fn report(imported: &Imported, path: &Path) {
    let (trace, kinds) = (&imported.trace, &imported.kinds);
    let size = fs::metadata(path).map_or(0, |about| about.len());
    eprintln!(
        "{}: {} in {:.3} s ({}, {}, {}, {}), {}",
        path.display(),
        many(kinds.all(), "event", "events"),
        trace.header.duration as f64 / 1e9,
        many(kinds.allocs, "allocation", "allocations"),
        many(kinds.frees, "free", "frees"),
        many(kinds.failures, "failure", "failures"),
        many(kinds.fallbacks, "fallback", "fallbacks"),
        HumanBytes(size),
    );
    let lost: u64 = trace.header.lost.iter().map(|lost| lost.events).sum();
    if lost > 0 {
        eprintln!(
            "warning: the tracer lost {}; larger buffers lose fewer",
            many(lost, "event", "events")
        );
    }
    if imported.out_of_order > 0 {
        eprintln!(
            "note: {} out of order; the trace is sorted",
            many(imported.out_of_order, "event was", "events were")
        );
    }
    if !imported.unknown_flags.is_empty() {
        eprintln!(
            "warning: unknown request flags: {}",
            imported.unknown_flags.join(", ")
        );
    }
    if imported.bad_lines > 0 {
        eprintln!(
            "warning: {} but cannot be parsed:",
            many(
                imported.bad_lines,
                "line looks like an event",
                "lines look like events"
            )
        );
        for bad in &imported.first_bad {
            eprintln!("  line {}: {}: {}", bad.line, bad.why, bad.text);
        }
    }
}
