//! Is a run as an earlier one was? The tables of a new run, figure by figure, against the rows of a recorded one.
//!
//! Of simulated and replayed cells those are held against each other that both runs have, with the same seed, so that both are the same work: they are equal to the bit as long as the
//! allocators are the same. [`EXACT_PERCENT`] allows for a change that moves accesses about, not for one that does other work: **when an allocator, a lock policy or a workload is
//! changed on purpose, the record is made anew**, in the same commit. A cell whose rows are not all there is told of. What is timed differs from host to host: there the speedup over
//! the table's baseline is compared, and may differ by [`TIMED_TIMES`]; where either run's samples scatter so much that the interval of the speedup spans more than
//! [`SCATTER_TIMES`], they say nothing.
//!
//! A comparison that compares nothing is a difference too: whoever asks for one must not be told that all is well.

use std::collections::{HashMap, HashSet};
use std::path::Path;

use crate::data::{Data, Key};
use crate::document::{Document, Figure, Statistic};
use crate::documents;
use crate::judge::{Judge, Judgement};
use crate::raw::{CellRows, Kind, Raw};
use crate::store::{ReadError, read_rows};

/// How far a simulated or replayed figure may be off, in percent of what is expected.
pub const EXACT_PERCENT: f64 = 1.0;

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
    /// A line each: a figure that is off, a cell that lacks rows, or why nothing was compared.
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
        let common = Common::of(&self.cells, found.cells());
        let mut differences = Differences {
            compared: 0,
            lines: common.lines(),
        };
        let (expected, found) = (common.data(&self.cells), common.data(found.cells()));
        let (old, new) = (Judge::new(&[], &expected), Judge::new(&[], &found));
        for document in &documents::all() {
            for (place, figure) in figures(document) {
                match outcome(figure, (&expected, &old), (&found, &new)) {
                    Outcome::NothingToCompare => {}
                    Outcome::AsExpected => differences.compared += 1,
                    Outcome::Differs(why) => {
                        differences.compared += 1;
                        differences.lines.push(format!("{place}: {why}"));
                    }
                }
            }
        }
        if differences.compared == 0 && differences.lines.is_empty() {
            differences.lines.push(
                "no figure could be compared: the run and the record have no cell in common whose samples say something; run some that the record has".to_owned(),
            );
        }
        differences
    }
}

/// The exact cells that both runs have, by name.
struct Common<'c> {
    /// Those of the same seed: the expected one, and the one that was found.
    same_seed: HashMap<&'c str, (&'c CellRows, &'c CellRows)>,
    /// How many there are of another seed, and the first of them.
    other_seed: (usize, Option<(u64, u64)>),
}

impl<'c> Common<'c> {
    fn of(expected: &'c [CellRows], found: &'c [CellRows]) -> Self {
        let exact = found.iter().filter(|cell| cell.kind.is_exact());
        let found: HashMap<&str, &CellRows> =
            exact.map(|cell| (cell.cell.as_str(), cell)).collect();
        let mut common = Self {
            same_seed: HashMap::new(),
            other_seed: (0, None),
        };
        for cell in expected.iter().filter(|cell| cell.kind.is_exact()) {
            match found.get(cell.cell.as_str()) {
                Some(&other) if other.seed == cell.seed => {
                    common.same_seed.insert(&cell.cell, (cell, other));
                }
                Some(&other) => {
                    common.other_seed.0 += 1;
                    common.other_seed.1.get_or_insert((cell.seed, other.seed));
                }
                None => {}
            }
        }
        common
    }

    /// The rows of these, and of all that is timed.
    fn data(&self, cells: &[CellRows]) -> Data {
        let common = |cell: &&CellRows| {
            cell.kind == Kind::Timed || self.same_seed.contains_key(cell.cell.as_str())
        };
        Data::new(cells.iter().filter(common).cloned().collect())
    }

    /// What is wrong with the cells themselves.
    fn lines(&self) -> Vec<String> {
        let mut lines: Vec<String> = self
            .same_seed
            .values()
            .filter_map(|(expected, found)| lacking(expected, found))
            .collect();
        lines.sort_unstable();
        if let (count, Some((expected, found)), true) = (
            self.other_seed.0,
            self.other_seed.1,
            self.same_seed.is_empty(),
        ) {
            lines.push(format!(
                "all {count} simulated and replayed cells that the record has too were run with another seed, {found} instead of {expected}: run again with --seed {expected}"
            ));
        }
        lines
    }
}

/// A line if `found` has not all that `expected` has.
fn lacking(expected: &CellRows, found: &CellRows) -> Option<String> {
    let there: HashSet<_> = found.rows.iter().map(key_of).collect();
    let mut told = HashSet::new();
    let mut lacking = expected.rows.iter().map(key_of);
    let first = lacking.find(|key| !there.contains(key))?;
    told.insert(first);
    told.extend(lacking.filter(|key| !there.contains(key)));
    let (machine, workload, config, metric, run) = first;
    Some(format!(
        "{}: {} of its rows' keys are lacking, the first: {machine}, {workload}, {config}, {metric}, run {run}",
        expected.cell,
        told.len()
    ))
}

/// What a row of a cell is called by.
fn key_of(raw: &Raw) -> (&str, &str, &str, &str, u32) {
    (
        &raw.machine,
        &raw.workload,
        &raw.config,
        &raw.metric,
        raw.run,
    )
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

/// Do the samples of a speedup agree well enough to say something?
fn is_settled(judgement: &Judgement) -> bool {
    let interval = judgement.interval;
    interval.is_some_and(|(low, high)| low > 0.0 && high <= SCATTER_TIMES * low)
}

/// How a figure of the new run is against that of the record.
enum Outcome {
    NothingToCompare,
    AsExpected,
    Differs(String),
}

fn outcome(
    figure: &Figure,
    (expected, old): (&Data, &Judge<'_>),
    (found, new): (&Data, &Judge<'_>),
) -> Outcome {
    let kinds = figure.of.iter().filter_map(|key| expected.samples(key));
    let compared = match kinds.map(|samples| samples.kind).next() {
        Some(Kind::Timed) => timed(old.judge(figure), new.judge(figure)),
        Some(_) if is_compared(figure.statistic) && is_same_work(figure, expected, found) => {
            exact(old.judge(figure), new.judge(figure))
        }
        _ => None,
    };
    compared.unwrap_or(Outcome::NothingToCompare)
}

/// Is the statistic compared where runs are exact? Gains and differences follow from these; deviations of a few runs say little.
const fn is_compared(statistic: Statistic) -> bool {
    matches!(
        statistic,
        Statistic::Mean
            | Statistic::Median
            | Statistic::Min
            | Statistic::Max
            | Statistic::Speedup
            | Statistic::GmeanSpeedup
    )
}

/// Are the samples of all keys of the same runs? (Where rows are lacking they are not, and the cell is told of.)
fn is_same_work(figure: &Figure, expected: &Data, found: &Data) -> bool {
    let runs = |data: &Data, key: &Key| data.samples(key).map(|samples| samples.runs);
    let mut keys = figure.of.iter().chain(&figure.against);
    keys.all(|key| runs(expected, key) == runs(found, key))
}

/// None where there is nothing to compare.
fn timed(old: Option<Judgement>, new: Option<Judgement>) -> Option<Outcome> {
    let (old, new) = (old?, new?);
    let (was, is) = (old.speedup?, new.speedup?);
    if !(is_settled(&old) && is_settled(&new)) {
        return None;
    }
    let times = (is / was).max(was / is);
    Some(if times <= TIMED_TIMES {
        Outcome::AsExpected
    } else {
        Outcome::Differs(format!(
            "{is:.3} times as good as its baseline, where {was:.3} is expected; {TIMED_TIMES} times more or less is allowed"
        ))
    })
}

/// None where nothing is expected.
fn exact(old: Option<Judgement>, new: Option<Judgement>) -> Option<Outcome> {
    let old = old?;
    let (was, unit) = (old.value, &old.unit);
    let Some(is) = new.map(|new| new.value) else {
        return Some(Outcome::Differs(format!(
            "no number, where {was:.4} {unit} is expected"
        )));
    };
    let allowed = was.abs() * EXACT_PERCENT / 100.0;
    Some(if (is - was).abs() <= allowed {
        Outcome::AsExpected
    } else {
        Outcome::Differs(format!(
            "{is:.4} {unit}, where {was:.4} is expected; {allowed:.4} more or less is allowed"
        ))
    })
}

#[cfg(test)]
mod tests {
    use brickyard_report::{Better, Host};

    use super::*;

    /// Rows for every key of the documents, two runs of each; a cell for each experiment and configuration.
    fn record(kind: Kind) -> Vec<CellRows> {
        let mut cells: Vec<CellRows> = Vec::new();
        for (place, key) in documents::keys().into_iter().enumerate() {
            let name = format!("{}.{}", key.experiment, key.config);
            let at = cells.iter().position(|cell| cell.cell == name);
            let at = at.unwrap_or_else(|| {
                cells.push(CellRows {
                    cell: name,
                    kind,
                    seed: 2007,
                    host: Host::unknown(),
                    rows: Vec::new(),
                });
                cells.len() - 1
            });
            cells[at].rows.extend([1, 2].map(|run| Raw {
                machine: key.machine.clone(),
                workload: key.workload.clone(),
                config: key.config.clone(),
                metric: key.metric.clone(),
                unit: "s".to_owned(),
                better: Better::Lower,
                run,
                at: None,
                value: 100.0 + (place % 7) as f64 + f64::from(run),
            }));
        }
        cells
    }

    /// A run like the record, but for this change, against it.
    fn differences(kind: Kind, change: impl FnOnce(&mut Vec<CellRows>)) -> Differences {
        let mut found = record(kind);
        change(&mut found);
        let expected = Expected {
            cells: record(kind),
        };
        expected.differences(&Data::new(found))
    }

    fn each_value(cells: &mut [CellRows], change: impl Fn(&mut Raw)) {
        let rows = cells.iter_mut().flat_map(|cell| &mut cell.rows);
        rows.for_each(change);
    }

    #[test]
    fn the_same_is_as_expected() {
        for kind in Kind::ALL {
            let found = differences(kind, |_| {});
            assert!(found.compared > 100, "{}", found.compared);
            assert_eq!(found.lines, [""; 0]);
        }
    }

    #[test]
    fn nothing_to_compare_is_a_difference() {
        for kind in Kind::ALL {
            let found = differences(kind, Vec::clear);
            assert_eq!((found.compared, found.lines.len()), (0, 1));
            assert!(found.lines[0].starts_with("no figure could be compared"));
        }
    }

    #[test]
    fn another_seed_is_told_with_the_way_out() {
        let other = |cell: &mut CellRows| cell.seed = 1;
        let found = differences(Kind::Simulated, |cells| cells.iter_mut().for_each(other));
        assert_eq!((found.compared, found.lines.len()), (0, 1));
        let line = &found.lines[0];
        assert!(line.ends_with("run again with --seed 2007"), "{line}");
        // Of some of them, the others are compared.
        let found = differences(Kind::Simulated, |cells| other(&mut cells[0]));
        assert!(found.compared > 100, "{}", found.compared);
        assert_eq!(found.lines, [""; 0]);
    }

    #[test]
    fn a_cell_that_was_not_run_is_not_asked_for_but_a_lacking_row_is() {
        let found = differences(Kind::Replayed, |cells| drop(cells.remove(0)));
        assert_eq!(found.lines, [""; 0]);
        let mut name = String::new();
        let found = differences(Kind::Replayed, |cells| {
            name.clone_from(&cells[0].cell);
            drop(cells[0].rows.pop());
        });
        assert_eq!(found.lines.len(), 1, "{:?}", found.lines);
        let line = &found.lines[0];
        assert!(line.starts_with(&format!("{name}: 1 of its")), "{line}");
    }

    #[test]
    fn exact_figures_may_be_off_by_one_percent() {
        for (times, is_told) in [(1.009, false), (1.011, true), (0.989, true)] {
            let found = differences(Kind::Simulated, |cells| {
                each_value(cells, |raw| raw.value *= times);
            });
            assert_eq!(!found.lines.is_empty(), is_told, "{times}");
        }
    }

    #[test]
    fn timed_figures_may_be_faster_or_slower_but_together() {
        let found = differences(Kind::Timed, |cells| {
            each_value(cells, |raw| raw.value *= 10.0);
        });
        assert_eq!(found.lines, [""; 0]);
        let found = differences(Kind::Timed, |cells| {
            each_value(&mut cells[..1], |raw| raw.value *= 10.0);
        });
        assert!(!found.lines.is_empty());
    }
}
