//! Is a run as an earlier one was? The tables of a new run, figure by figure, against the rows of a recorded one.
//!
//! Of simulated and replayed figures the recorded runs are cut down to those that the new one has too, so that both are the same work: they are equal to the bit as long as the
//! allocators are the same. [`EXACT_PERCENT`] allows for a change that moves accesses about. What is timed differs from host to host: there the speedup over the table's baseline
//! is compared, and may differ by [`TIMED_TIMES`]; where either run's samples scatter so much that the interval of the speedup spans more than [`SCATTER_TIMES`], they say nothing.

use std::path::Path;

use crate::data::{Data, Key};
use crate::document::{Document, Figure, Statistic};
use crate::documents;
use crate::judge::{Judge, Judgement};
use crate::raw::{CellRows, Kind};
use crate::store::{ReadError, read_rows};

/// How far a simulated or replayed figure may be off, in percent of what is expected (of a percentage: in points).
pub const EXACT_PERCENT: f64 = 5.0;

/// How many times a timed speedup may be off.
pub const TIMED_TIMES: f64 = 3.0;

/// A timed speedup is compared if the upper end of its interval is not more than so many times the lower, in both runs.
pub const SCATTER_TIMES: f64 = 1.5;

/// What is expected.
#[derive(Debug, Clone)]
pub struct Expected {
    cells: Vec<CellRows>,
}

/// What differs.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Differences {
    /// How many figures were compared.
    pub compared: usize,
    /// A line each.
    pub lines: Vec<String>,
}

impl Expected {
    /// The rows of a file that [`write_rows`](crate::store::write_rows) wrote.
    ///
    /// # Errors
    /// [`ReadError`], with the path.
    pub fn read(path: &Path) -> Result<Self, ReadError> {
        Ok(Self {
            cells: read_rows(path)?,
        })
    }

    /// Holds the tables of all documents against each other.
    #[must_use]
    pub fn differences(&self, found: &Data) -> Differences {
        let mut cells = self.cells.clone();
        cells.retain(|cell| {
            cell.kind == Kind::Timed || found.cells().iter().any(|other| other.cell == cell.cell)
        });
        let expected = Data::new(cells);
        let documents = documents::all();
        let (old, new) = (Judge::new(&[], &expected), Judge::new(&[], found));
        let mut differences = Differences::default();
        for document in &documents {
            for (place, figure) in figures(document) {
                let Some((kind, old, new)) = both(figure, (&expected, &old), (found, &new)) else {
                    continue;
                };
                let Some(complaint) = complaint(figure, kind, &old, &new) else {
                    continue;
                };
                differences.compared += 1;
                if let Complaint::Differs(why) = complaint {
                    differences.lines.push(format!("{place}: {why}"));
                }
            }
        }
        differences
    }
}

/// The figures of a document's tables, with what they are called.
fn figures(document: &Document) -> impl Iterator<Item = (String, &Figure)> {
    let tables = document.tables.iter().chain(&document.today);
    let lines = tables.flat_map(|table| table.lines.iter().map(move |line| (table, line)));
    lines.flat_map(|(table, line)| {
        let cells = line.cells.iter().enumerate();
        cells.filter_map(move |(column, figure)| {
            let name = crate::figures::column_name(table, column);
            Some((
                format!("{}, {}, {name}", table.id, line.head),
                figure.as_ref()?,
            ))
        })
    })
}

/// What both runs say of a figure, where both have it and of the same samples, unless it is timed.
fn both(
    figure: &Figure,
    (expected, old): (&Data, &Judge<'_>),
    (found, new): (&Data, &Judge<'_>),
) -> Option<(Kind, Judgement, Judgement)> {
    let key: &Key = figure.of.first()?;
    let (was, is) = (expected.samples(key)?, found.samples(key)?);
    let same_work = was.kind == Kind::Timed || was.runs == is.runs;
    same_work.then_some(())?;
    Some((was.kind, old.judge(figure)?, new.judge(figure)?))
}

/// Do the samples of a speedup agree well enough to say something?
fn is_settled(judgement: &Judgement) -> bool {
    let interval = judgement.interval;
    interval.is_some_and(|(low, high)| low > 0.0 && high <= SCATTER_TIMES * low)
}

/// Whether a figure that could be compared is as expected.
enum Complaint {
    AsExpected,
    Differs(String),
}

/// None where there is nothing to compare.
fn complaint(figure: &Figure, kind: Kind, old: &Judgement, new: &Judgement) -> Option<Complaint> {
    if kind == Kind::Timed {
        let (was, is) = (old.speedup?, new.speedup?);
        if !(is_settled(old) && is_settled(new)) {
            return None;
        }
        let times = (is / was).max(was / is);
        return Some(if times <= TIMED_TIMES {
            Complaint::AsExpected
        } else {
            Complaint::Differs(format!(
                "{is:.3} times as good as its baseline, where {was:.3} is expected; {TIMED_TIMES} times more or less is allowed"
            ))
        });
    }
    // Deviations of a few runs say little of either.
    if matches!(
        figure.statistic,
        Statistic::StdDev | Statistic::Interval95 | Statistic::Range
    ) {
        return None;
    }
    let (was, is) = (old.value, new.value);
    let allowed = if new.unit.contains('%') {
        EXACT_PERCENT
    } else {
        was.abs() * EXACT_PERCENT / 100.0
    };
    Some(if (is - was).abs() <= allowed {
        Complaint::AsExpected
    } else {
        Complaint::Differs(format!(
            "{is:.4} {}, where {was:.4} is expected; {allowed:.4} more or less is allowed",
            new.unit
        ))
    })
}
