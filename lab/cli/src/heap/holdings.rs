//! What a process' heap holds, as a table, CSV or JSON.

use std::io::{self, Write};

use brickyard_heap::{Format, Statistics};
use brickyard_report::{Column, Columns, counted};

use super::process::Process;
use crate::amount::rounded;

/// What the heap of a process holds at one time.
#[derive(Debug)]
pub(super) struct Holdings<'p> {
    pub(super) process: &'p Process,
    /// The time since the first look.
    pub(super) seconds: f64,
    pub(super) statistics: Statistics,
}

impl Holdings<'_> {
    /// Returns the bytes of slabs that neither lie in queues nor are in use: of free objects, and
    /// what no object can use.
    fn free_in_slabs(&self) -> usize {
        let of = &self.statistics;
        of.slabs.saturating_sub(of.objects() + of.queued())
    }

    pub(super) fn table(&self, out: &mut impl Write) -> io::Result<()> {
        let of = &self.statistics;
        let (pid, name) = (self.process.pid, &self.process.name);
        let (held, used) = (rounded(of.held() as u64), rounded(of.in_use() as u64));
        let spare = 100.0 - self.percent(of.in_use());
        writeln!(
            out,
            "process {pid} ({name}) holds {held} and uses {used}; {spare:.1} % are free\n"
        )?;
        let large = counted(of.large_blocks, "larger block", "larger blocks");
        let most = rounded(of.large_most as u64);
        let line = |name: &str, bytes: usize, what: String| {
            let percent = format!("{:.1} %", self.percent(bytes));
            vec![name.to_owned(), rounded(bytes as u64), percent, what]
        };
        let lines = [
            [
                "held".to_owned(),
                "bytes".to_owned(),
                "share".to_owned(),
                String::new(),
            ]
            .into(),
            line(
                "objects",
                of.objects(),
                "in use, up to 128 KiB each".to_owned(),
            ),
            line(
                "runs",
                of.runs(),
                "in use, pages, up to 2 MiB each".to_owned(),
            ),
            line(
                "large",
                of.large,
                format!("in use, {large}, {most} at most so far"),
            ),
            line(
                "caches",
                of.queued(),
                "free objects at hand for CPUs".to_owned(),
            ),
            line(
                "slabs",
                self.free_in_slabs(),
                "free in the slabs of objects".to_owned(),
            ),
            line("idle", of.idle, "free pages, not yet given back".to_owned()),
        ];
        let right = Column::right().after(2);
        let columns = Columns::new([Column::left(), right, right, Column::left().after(2)]);
        for line in columns.lines(&lines) {
            writeln!(out, "{}", line.trim_end())?;
        }
        self.sizes(out)
    }

    /// Writes what there is of each size.
    fn sizes(&self, out: &mut impl Write) -> io::Result<()> {
        let heads = ["size", "in use", "cached", "objects", "slabs", "full"];
        let heads: Vec<String> = heads.map(str::to_owned).into();
        let used = self.statistics.sizes.iter().filter(|of| of.slabs > 0);
        let lines = used.map(|of| {
            let full = 100.0 * of.in_use as f64 / of.objects.max(1) as f64;
            let counts = [of.size, of.in_use, of.queued, of.objects].map(|count| count.to_string());
            let rest = [rounded(of.slabs as u64), format!("{full:.0} %")];
            counts.into_iter().chain(rest).collect()
        });
        let lines: Vec<Vec<String>> = core::iter::once(heads).chain(lines).collect();
        if lines.len() == 1 {
            return Ok(());
        }
        writeln!(out)?;
        let columns = Columns::new([Column::right(), Column::right().after(2)]);
        for line in columns.lines(&lines) {
            writeln!(out, "{line}")?;
        }
        Ok(())
    }

    fn percent(&self, bytes: usize) -> f64 {
        100.0 * bytes as f64 / self.statistics.held().max(1) as f64
    }

    /// Writes a line per figure, below a line of titles if this is wanted.
    pub(super) fn csv(&self, titles: bool, out: &mut impl Write) -> io::Result<()> {
        let of = &self.statistics;
        if titles {
            writeln!(out, "seconds,figure,size,value")?;
        }
        let seconds = self.seconds;
        let sums = [
            ("held_bytes", of.held()),
            ("in_use_bytes", of.in_use()),
            ("objects_bytes", of.objects()),
            ("runs_bytes", of.runs()),
            ("large_bytes", of.large),
            ("large_blocks", of.large_blocks),
            ("queued_bytes", of.queued()),
            ("free_in_slabs_bytes", self.free_in_slabs()),
            ("slabs_bytes", of.slabs),
            ("idle_bytes", of.idle),
            ("usable_bytes", of.usable),
            ("span_bytes", of.span),
        ];
        for (figure, value) in sums {
            writeln!(out, "{seconds:.3},{figure},,{value}")?;
        }
        for of in of.sizes.iter().filter(|of| of.slabs > 0) {
            let counts = [
                ("in_use", of.in_use),
                ("queued", of.queued),
                ("objects", of.objects),
                ("slab_bytes", of.slabs),
            ];
            for (figure, value) in counts {
                writeln!(out, "{seconds:.3},{figure},{},{value}", of.size)?;
            }
        }
        Ok(())
    }

    pub(super) fn json(&self, out: &mut impl Write) -> io::Result<()> {
        write!(out, "{}", self.statistics.text(Format::Json))
    }
}
