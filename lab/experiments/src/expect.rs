//! Compares the tables of a new run, figure by figure, with the rows of a recorded run.
//!
//! Simulated and replayed cells are compared if both runs have them with the same seed, so that
//! they do the same work: they are equal to the bit as long as the allocators are the same.
//! [`EXACT_PERCENT`] allows for a change that only moves accesses, not for one that does other
//! work: **when an allocator, a lock policy or a workload is changed on purpose, the record is made
//! anew**, in the same commit. A cell with missing rows is reported, and one whose series have too
//! many or too few points. Timed values differ from host to host, and even their ratios from one
//! model of CPU to another. So they are compared only if both runs were timed on one model: the
//! speedup over the table's baseline may differ by [`TIMED_TIMES`], and one that differs by more is
//! a [note](Differences::notes), not a failure: on a shared machine a few samples that follow on
//! one another can all be off together, which their scatter does not show. If the samples of either
//! run scatter so much that the interval of the speedup spans more than [`SCATTER_TIMES`], the
//! figure is skipped.
//!
//! A comparison that compares nothing is a difference too, so that it cannot pass by mistake.

use core::fmt;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::Path;

use brickyard_results::Interval;

use crate::data::{Data, Key};
use crate::document::{Figure, Statistic};
use crate::documents;
use crate::figures;
use crate::judge::{Judge, Judgement};
use crate::raw::{CellRows, Method, Raw};
use crate::store::{ReadError, read_rows};

/// How far a simulated or replayed figure may be off, in percent of the expected one.
pub const EXACT_PERCENT: f64 = 1.0;

/// A timed speedup that is off by more than this factor is noted.
pub const TIMED_TIMES: f64 = 3.0;

/// A timed speedup is compared if, in both runs, the upper end of its interval is at most this many
/// times the lower end.
pub const SCATTER_TIMES: f64 = 1.5;

/// The recorded run.
#[derive(Debug, Clone)]
pub struct Expected {
    data: Data,
}

/// The result of a comparison.
#[derive(Debug, Clone, PartialEq, Default)]
#[non_exhaustive]
pub struct Differences {
    /// Simulated and replayed figures. Those that are not of the same runs are skipped.
    pub exact: Tally,
    /// Speedups of timed figures. Those whose samples scatter too much are skipped, and all if the
    /// runs were timed on other models of CPU.
    pub timed: Tally,
    /// One line for each exact figure that is off and each cell with missing rows, or why nothing
    /// was compared. If there is one, the run is not as expected.
    pub lines: Vec<String>,
    /// One line for each timed figure that is off. It is for people to look at.
    pub notes: Vec<String>,
}

/// How many figures of a kind both runs have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Tally {
    /// Those that were compared.
    pub compared: usize,
    /// Those that could not be compared.
    pub skipped: usize,
}

impl Differences {
    /// Returns how many figures were compared, of all kinds.
    #[must_use]
    pub const fn compared(&self) -> usize {
        self.exact.compared + self.timed.compared
    }

    fn count(&mut self, kind: Method, place: &str, outcome: Outcome) {
        let (tally, lines) = if kind.is_exact() {
            (&mut self.exact, &mut self.lines)
        } else {
            (&mut self.timed, &mut self.notes)
        };
        match outcome {
            Outcome::Skipped => tally.skipped += 1,
            Outcome::AsExpected => tally.compared += 1,
            Outcome::Differs(why) => {
                tally.compared += 1;
                lines.push(format!("{place}: {why}"));
            }
        }
    }
}

impl Expected {
    /// Reads a file that [`write_rows`](crate::store::write_rows) wrote.
    ///
    /// # Errors
    /// [`ReadError`], with the path; also if its rows are not those of one run.
    pub fn read(path: &Path) -> Result<Self, ReadError> {
        let data = Data::new(read_rows(path)?);
        Ok(Self {
            data: data.map_err(|why| ReadError::no_rows(path, why.to_string()))?,
        })
    }

    /// Compares the tables of all documents with those of another run.
    #[must_use]
    pub fn differences(&self, found: &Data) -> Differences {
        let common = Common::of(self.data.cells(), found.cells());
        let same_cpu = timed_on(self.data.cells()) == timed_on(found.cells());
        let mut differences = Differences {
            lines: common.lines(),
            ..Differences::default()
        };
        let (expected, found) = (common.part(&self.data), common.part(found));
        let (old, new) = (Judge::new(&[], &expected), Judge::new(&[], &found));
        for document in &documents::all() {
            for (place, figure) in figures::of(document) {
                let outcome = outcome(figure, (&expected, &old), (&found, &new));
                if let Some((kind, mut outcome)) = outcome {
                    if kind == Method::Timed && !same_cpu {
                        outcome = Outcome::Skipped;
                    }
                    differences.count(kind, &place.join(", "), outcome);
                }
            }
        }
        if differences.compared() == 0 && differences.lines.is_empty() {
            differences.lines.push(
                "no figure could be compared: the run and the record have no cell in common with usable samples, and timed ones need the record's model of CPU; run some cells that the record has, simulated or replayed".to_owned(),
            );
        }
        differences
    }
}

/// Returns the models of CPU that the timed cells were run on.
fn timed_on(cells: &[CellRows]) -> BTreeSet<&str> {
    let timed = cells.iter().filter(|cell| cell.kind == Method::Timed);
    timed.map(|cell| cell.host.cpu.as_str()).collect()
}

/// The exact cells that both runs have, by name.
struct Common<'c> {
    /// Those with the same seed: the expected one and the found one.
    same_seed: HashMap<&'c str, (&'c CellRows, &'c CellRows)>,
    /// How many have another seed, and both seeds of the first of them.
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

    /// Returns the rows of these, and of all timed cells.
    fn part(&self, data: &Data) -> Data {
        data.part(|cell| {
            cell.kind == Method::Timed || self.same_seed.contains_key(cell.cell.as_str())
        })
    }

    /// Returns a line for each fault of the cells themselves.
    fn lines(&self) -> Vec<String> {
        let mut lines: Vec<String> = self
            .same_seed
            .values()
            .flat_map(|(expected, found)| row_differences(expected, found))
            .collect();
        lines.sort_unstable();
        if let (count, Some((expected, found)), true) = (
            self.other_seed.0,
            self.other_seed.1,
            self.same_seed.is_empty(),
        ) {
            lines.push(format!(
                "all {count} simulated and replayed cells that the record also has were run with another seed, {found} instead of {expected}: run again with --seed {expected}"
            ));
        }
        lines
    }
}

/// Returns a line if `found` lacks rows that `expected` has, and one if its series do not have as
/// many points.
fn row_differences(expected: &CellRows, found: &CellRows) -> Vec<String> {
    let there = counts(found);
    let (mut missing, mut uneven) = (Vec::new(), Vec::new());
    for (key, count) in counts(expected) {
        match there.get(&key) {
            None => missing.push(key),
            Some(&points) if is_near(points as f64, count as f64) => {}
            Some(&points) => uneven.push((key, points, count)),
        }
    }
    let cell = &expected.cell;
    let missing_line = missing.first().map(|first| {
        let many = missing.len();
        format!("{cell}: the rows of {many} of its keys are missing, the first: {first}")
    });
    let uneven_line = uneven.first().map(|(first, points, count)| {
        let many = uneven.len();
        format!("{cell}: {many} of its series have too many or too few points, the first has {points} where {count} are expected: {first}")
    });
    missing_line.into_iter().chain(uneven_line).collect()
}

/// Counts the rows of a cell by name: the points of a series, else one.
fn counts(cell: &CellRows) -> BTreeMap<Name<'_>, usize> {
    let mut counts = BTreeMap::new();
    for raw in &cell.rows {
        *counts.entry(Name::of(raw)).or_default() += 1;
    }
    counts
}

/// The name of a row in its cell; all points of a series share one.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Name<'r> {
    words: [&'r str; 4],
    run: u32,
    is_point: bool,
}

impl<'r> Name<'r> {
    fn of(raw: &'r Raw) -> Self {
        Self {
            words: [&raw.machine, &raw.workload, &raw.config, &raw.metric],
            run: raw.run,
            is_point: raw.at.is_some(),
        }
    }
}

impl fmt::Display for Name<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, run {}", self.words.join(", "), self.run)
    }
}

/// Returns what an exact number may be, where `was` is expected, and how far off that is.
fn near(was: f64) -> (Interval, f64) {
    let allowed = was.abs() * EXACT_PERCENT / 100.0;
    let (low, high) = (was - allowed, was + allowed);
    (Interval { low, high }, allowed)
}

fn is_near(is: f64, was: f64) -> bool {
    Interval::point(is).is_within(near(was).0)
}

/// Returns true if the samples of a speedup scatter little enough to be compared.
fn is_settled(judgement: &Judgement) -> bool {
    let interval = judgement.interval.map(|found| found.ends);
    interval.is_some_and(|ends| ends.low > 0.0 && ends.high <= SCATTER_TIMES * ends.low)
}

/// How a figure of the new run compares with that of the record.
enum Outcome {
    Skipped,
    AsExpected,
    Differs(String),
}

/// Compares one figure; none if there is nothing to compare.
fn outcome(
    figure: &Figure,
    (expected, old): (&Data, &Judge<'_>),
    (found, new): (&Data, &Judge<'_>),
) -> Option<(Method, Outcome)> {
    let mut kinds = figure.of.iter().filter_map(|key| expected.samples(key));
    let kind = kinds.next()?.kind;
    let outcome = match kind {
        Method::Timed => timed(old.judge(figure), new.judge(figure)),
        _ if !is_compared(figure.statistic) => None,
        _ if is_same_work(figure, expected, found) => exact(old.judge(figure), new.judge(figure)),
        _ => {
            let both = old.judge(figure).and(new.judge(figure));
            both.map(|_| Outcome::Skipped)
        }
    };
    Some((kind, outcome?))
}

/// Returns true if the statistic is compared in exact runs. Gains and differences follow from these
/// statistics; deviations of a few runs mean little.
const fn is_compared(statistic: Statistic) -> bool {
    matches!(
        statistic,
        Statistic::Mean
            | Statistic::Median
            | Statistic::Min
            | Statistic::Max
            | Statistic::Speedup
            | Statistic::GmeanSpeedup
            | Statistic::WorstSpeedup
    )
}

/// Returns true if the samples of all keys are of the same runs. (If rows are missing they are not,
/// and the cell is reported.)
fn is_same_work(figure: &Figure, expected: &Data, found: &Data) -> bool {
    let runs = |data: &Data, key: &Key| data.samples(key).map(|samples| samples.runs);
    let mut keys = figure.of.iter().chain(&figure.against);
    keys.all(|key| runs(expected, key) == runs(found, key))
}

/// Compares a timed figure; none if there is nothing to compare.
fn timed(old: Option<Judgement>, new: Option<Judgement>) -> Option<Outcome> {
    let (old, new) = (old?, new?);
    let (was, is) = (old.speedup?, new.speedup?);
    if !(is_settled(&old) && is_settled(&new)) {
        return Some(Outcome::Skipped);
    }
    let usual = Interval {
        low: was / TIMED_TIMES,
        high: was * TIMED_TIMES,
    };
    Some(if Interval::point(is).is_within(usual) {
        Outcome::AsExpected
    } else {
        Outcome::Differs(format!(
            "{is:.3} times as good as its baseline, where {was:.3} is expected; up to {TIMED_TIMES} times more or less is usual"
        ))
    })
}

/// Compares an exact figure; none if nothing is expected.
fn exact(old: Option<Judgement>, new: Option<Judgement>) -> Option<Outcome> {
    let old = old?;
    let (was, unit) = (old.value, &old.unit);
    let Some(is) = new.map(|new| new.value) else {
        return Some(Outcome::Differs(format!(
            "no number, where {was:.4} {unit} is expected"
        )));
    };
    Some(if is_near(is, was) {
        Outcome::AsExpected
    } else {
        let (_, allowed) = near(was);
        Outcome::Differs(format!(
            "{is:.4} {unit}, where {was:.4} is expected; {allowed:.4} more or less is allowed"
        ))
    })
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by it")]
mod tests {
    use brickyard_results::Host;

    use super::*;
    use crate::raw::testing;

    /// Rows for every key of the documents, two runs of each; a cell for each experiment and
    /// configuration.
    fn record(kind: Method) -> Vec<CellRows> {
        let mut cells: Vec<CellRows> = Vec::new();
        for (place, key) in documents::keys().into_iter().enumerate() {
            let name = format!("{}.{}", key.experiment, key.config);
            let at = cells.iter().position(|cell| cell.cell == name);
            let at = at.unwrap_or_else(|| {
                cells.push(CellRows {
                    seed: 2007,
                    ..testing::cell(&name, kind, Vec::new())
                });
                cells.len() - 1
            });
            cells[at].rows.extend([1, 2].map(|run| Raw {
                machine: key.machine.clone(),
                workload: key.workload.clone(),
                config: key.config.clone(),
                metric: key.metric.clone(),
                run,
                value: 100.0 + (place % 7) as f64 + f64::from(run),
                ..testing::row()
            }));
        }
        // A series, of which no document has the metric.
        let first = cells[0].rows[0].clone();
        let points = (0..POINTS).map(|point| Raw {
            metric: "points".to_owned(),
            at: Some(f64::from(point)),
            ..first.clone()
        });
        cells[0].rows.splice(0..0, points);
        cells
    }

    /// The number of points of the record's series.
    const POINTS: u32 = 200;

    /// Compares the record with a run that differs from it only by this change.
    fn differences(kind: Method, change: impl FnOnce(&mut Vec<CellRows>)) -> Differences {
        let mut found = record(kind);
        change(&mut found);
        let expected = Expected {
            data: Data::new(record(kind)).unwrap(),
        };
        expected.differences(&Data::new(found).unwrap())
    }

    fn each_value(cells: &mut [CellRows], change: impl Fn(&mut Raw)) {
        let rows = cells.iter_mut().flat_map(|cell| &mut cell.rows);
        rows.for_each(change);
    }

    #[test]
    fn an_equal_run_has_no_differences() {
        for kind in Method::ALL {
            let found = differences(kind, |_| {});
            assert!(found.compared() > 100, "{}", found.compared());
            assert_eq!((found.lines, found.notes), (Vec::new(), Vec::new()));
        }
    }

    #[test]
    fn nothing_to_compare_is_a_difference() {
        for kind in Method::ALL {
            let found = differences(kind, Vec::clear);
            assert_eq!((found.compared(), found.lines.len()), (0, 1));
            assert!(found.lines[0].starts_with("no figure could be compared"));
        }
    }

    #[test]
    fn timed_figures_of_another_cpu_are_skipped() {
        let on_another = |cells: &mut Vec<CellRows>| {
            for cell in &mut *cells {
                cell.host.cpu = "another".to_owned();
            }
            each_value(cells, |raw| {
                if raw.config != "vanilla" {
                    raw.value *= 5.0;
                }
            });
        };
        let found = differences(Method::Timed, on_another);
        assert_eq!((found.compared(), found.lines.len()), (0, 1));
        assert!(found.timed.skipped > 100, "{}", found.timed.skipped);
        let line = &found.lines[0];
        assert!(line.contains("the record's model of CPU"), "{line}");
        // On the record's own model they count, and so do exact ones anywhere.
        let here = differences(Method::Timed, |cells| {
            on_another(cells);
            for cell in cells {
                cell.host = Host::unknown();
            }
        });
        assert!(here.timed.compared > 100 && !here.notes.is_empty());
        assert_eq!(here.lines, [""; 0]);
        let exact = differences(Method::Replayed, on_another);
        assert!(exact.exact.compared > 100 && !exact.lines.is_empty());
    }

    #[test]
    fn another_seed_is_reported_with_the_fix() {
        let other = |cell: &mut CellRows| cell.seed = 1;
        let found = differences(Method::Simulated, |cells| cells.iter_mut().for_each(other));
        assert_eq!((found.compared(), found.lines.len()), (0, 1));
        let line = &found.lines[0];
        assert!(line.ends_with("run again with --seed 2007"), "{line}");
        // If only some cells have another seed, the others are compared.
        let found = differences(Method::Simulated, |cells| other(&mut cells[0]));
        assert!(found.compared() > 100, "{}", found.compared());
        assert_eq!(found.lines, [""; 0]);
    }

    #[test]
    fn a_missing_row_is_reported_but_a_cell_that_was_not_run_is_not() {
        let found = differences(Method::Replayed, |cells| drop(cells.remove(0)));
        assert_eq!(found.lines, [""; 0]);
        let mut name = String::new();
        let found = differences(Method::Replayed, |cells| {
            name.clone_from(&cells[0].cell);
            drop(cells[0].rows.pop());
        });
        assert_eq!(found.lines.len(), 1, "{:?}", found.lines);
        let line = &found.lines[0];
        assert!(
            line.starts_with(&format!("{name}: the rows of 1 of its")),
            "{line}"
        );
    }

    #[test]
    fn a_series_has_as_many_points_as_are_expected() {
        let points = POINTS as usize;
        for (kept, is_told) in [(points - 2, false), (points - 3, true), (1, true)] {
            let found = differences(Method::Replayed, |cells| {
                drop(cells[0].rows.drain(kept..points));
            });
            assert_eq!(
                !found.lines.is_empty(),
                is_told,
                "{kept}: {:?}",
                found.lines
            );
            if let Some(line) = found.lines.first() {
                assert!(
                    line.contains(": 1 of its series have too many or too few"),
                    "{line}"
                );
                assert!(
                    line.contains(&format!("{kept} where {points} are")),
                    "{line}"
                );
            }
        }
        let found = differences(Method::Replayed, |cells| {
            drop(cells[0].rows.drain(..points));
        });
        assert_eq!(found.lines.len(), 1, "{:?}", found.lines);
        assert!(found.lines[0].contains("keys are missing"));
    }

    #[test]
    fn exact_figures_may_be_off_by_one_percent() {
        for (times, is_told) in [(1.009, false), (1.011, true), (0.989, true)] {
            let found = differences(Method::Simulated, |cells| {
                each_value(cells, |raw| raw.value *= times);
            });
            assert_eq!(!found.lines.is_empty(), is_told, "{times}");
        }
    }

    #[test]
    fn scattered_figures_are_counted_as_skipped() {
        let settled = differences(Method::Timed, |_| {}).timed;
        assert!(settled.compared > 100, "{settled:?}");
        assert_eq!(settled.skipped, 0);
        // Some configurations win the first round by far, and lose the second.
        let found = differences(Method::Timed, |cells| {
            each_value(cells, |raw| {
                let wins = (raw.run == 1) == (raw.config.len() % 2 == 1);
                raw.value *= if wins { 0.1 } else { 10.0 };
            });
        });
        let scattered = found.timed;
        assert!(scattered.skipped > 20, "{scattered:?}");
        let all = scattered.compared + scattered.skipped;
        assert_eq!(all, settled.compared);
        assert_eq!(found.exact, Tally::default());
    }

    #[test]
    fn timed_figures_may_all_be_slower_and_one_configuration_alone_is_noted() {
        let found = differences(Method::Timed, |cells| {
            each_value(cells, |raw| raw.value *= 10.0);
        });
        assert_eq!((found.lines, found.notes), (Vec::new(), Vec::new()));
        let found = differences(Method::Timed, |cells| {
            each_value(&mut cells[..1], |raw| raw.value *= 10.0);
        });
        assert!(!found.notes.is_empty());
        assert_eq!(found.lines, [""; 0]);
    }
}
