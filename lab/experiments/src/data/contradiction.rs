//! Rows that contradict each other. Invariant `one-thing`: all rows of a key have one method, unit
//! and direction, and a run has one sample.

use core::ptr;
use std::collections::HashMap;

use brickyard_results::Better;
use thiserror::Error;

use super::{Data, Key};
use crate::raw::{CellRows, Method, Raw};

/// Why some cells are not those of one run.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum Contradiction {
    /// Two rows give the value of one key in one run, or two cells give it for one time of a
    /// series.
    #[error("{row} is measured twice, by {first} and by {second}; {FIX}")]
    Twice {
        /// Key, run and time.
        row: String,
        /// The cell of the first row.
        first: String,
        /// The cell of the second one, which may be the same.
        second: String,
    },
    /// Two rows of one key differ in method, in unit, or in which way is better.
    #[error(
        "{key} is {first_meaning} in the rows of {first}, but {second_meaning} in those of {second}; {FIX}"
    )]
    NotOneThing {
        /// The key.
        key: String,
        /// The cell of the first row.
        first: String,
        /// Method, unit, and which way is better there.
        first_meaning: String,
        /// The cell of the other one.
        second: String,
        /// The same there.
        second_meaning: String,
    },
}

/// The advice. The rows do not show which of the two is wrong, so both cells are run again.
const FIX: &str = "delete the files of these cells, and run with --resume: then this build of the program runs those of them again that it has";

/// What all rows of a key must agree on.
type Meaning<'d> = (Method, &'d str, Better);

/// Checks every row once.
pub(super) fn check(data: &Data) -> Result<(), Contradiction> {
    for (key, places) in &data.index {
        let mut rows = places.iter().filter_map(|&place| data.row(place));
        let Some(first) = rows.next() else { continue };
        let mut known = HashMap::from([(moment(first.1), first.0)]);
        for (cell, raw) in rows {
            check_meaning(key, first, (cell, raw))?;
            let other = known.insert(moment(raw), cell);
            // A series may have a step: the values before and after it, in the order of its cell.
            let is_step = |other: &&CellRows| raw.at.is_some() && ptr::eq(*other, cell);
            if let Some(other) = other.filter(|other| !is_step(other)) {
                let at = raw.at.map(|at| format!(", at {at} s")).unwrap_or_default();
                return Err(Contradiction::Twice {
                    row: format!("{key}, run {}{at}", raw.run),
                    first: other.cell.clone(),
                    second: cell.cell.clone(),
                });
            }
        }
    }
    Ok(())
}

/// Returns when a row was measured: its run and its time. (0 and -0 are the same time.)
fn moment(raw: &Raw) -> (u32, Option<u64>) {
    (raw.run, raw.at.map(|at| (at + 0.0).to_bits()))
}

fn check_meaning(
    key: &Key,
    first: (&CellRows, &Raw),
    second: (&CellRows, &Raw),
) -> Result<(), Contradiction> {
    let (one, two) = (meaning(first), meaning(second));
    if one == two {
        return Ok(());
    }
    Err(Contradiction::NotOneThing {
        key: key.to_string(),
        first: first.0.cell.clone(),
        first_meaning: words(one),
        second: second.0.cell.clone(),
        second_meaning: words(two),
    })
}

fn meaning<'d>((cell, raw): (&CellRows, &'d Raw)) -> Meaning<'d> {
    (cell.kind, &raw.unit, raw.better)
}

fn words((kind, unit, better): Meaning<'_>) -> String {
    format!("{kind} in `{unit}` ({} is better)", better.name())
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by it")]
mod tests {
    use super::*;
    use crate::raw::testing;

    fn row(run: u32, at: Option<f64>) -> Raw {
        Raw {
            run,
            at,
            ..testing::row()
        }
    }

    fn cell(name: &str, rows: Vec<Raw>) -> CellRows {
        testing::cell(name, Method::Timed, rows)
    }

    fn error_of(cells: Vec<CellRows>) -> String {
        Data::new(cells).unwrap_err().to_string()
    }

    #[test]
    fn rows_of_different_runs_times_and_metrics_do_not_contradict() {
        let points = |run| vec![row(run, None), row(run, Some(0.0)), row(run, Some(1.0))];
        let other = Raw {
            metric: "other".to_owned(),
            unit: "ms".to_owned(),
            ..row(1, None)
        };
        let cells = vec![
            cell("e.a", points(1)),
            cell("e.b", points(2)),
            cell("e.c", vec![other]),
            // Another experiment's rows have other keys.
            cell("f.a", points(1)),
        ];
        assert_eq!(Data::new(cells).unwrap().len(), 10);
    }

    #[test]
    fn a_series_may_have_a_step() {
        let mut steps = vec![row(1, Some(2.0)), row(1, Some(1.0)), row(1, Some(2.0))];
        for (value, row) in [3.0, 1.0, 2.0].into_iter().zip(&mut steps) {
            row.value = value;
        }
        let data = Data::new(vec![cell("e.a", steps)]).unwrap();
        let series = data.series(&Key::new("e", "host", "w", "c", "m")).unwrap();
        assert_eq!(series.points, [(1.0, 1.0), (2.0, 3.0), (2.0, 2.0)]);
    }

    #[test]
    fn a_duplicate_row_is_reported_with_both_cells_and_the_fix() {
        let message = error_of(vec![
            cell("e.b", vec![row(1, None)]),
            cell("e.a", vec![row(2, None), row(1, None)]),
        ]);
        let begin = "e, host, w, c, m, run 1 is measured twice, by e.a and by e.b; delete the files of these cells, and run with --resume";
        assert!(message.starts_with(begin), "{message}");
        let message = error_of(vec![cell("e.a", vec![row(1, None), row(1, None)])]);
        assert!(message.contains("twice, by e.a and by e.a"), "{message}");
        for (one, other) in [(0.5, 0.5), (0.0, -0.0)] {
            let point = |name, at| cell(name, vec![row(1, Some(at))]);
            let message = error_of(vec![point("e.a", one), point("e.b", other)]);
            assert!(
                message.contains(" s is measured twice, by e.a and by"),
                "{message}"
            );
        }
    }

    #[test]
    fn all_rows_of_a_key_have_one_method_unit_and_direction() {
        let changes: [fn(&mut CellRows); 3] = [
            |cell| cell.kind = Method::Simulated,
            |cell| cell.rows[0].unit = "ms".to_owned(),
            |cell| cell.rows[0].better = Better::Higher,
        ];
        let meanings = [
            "simulated in `s` (lower is better)",
            "timed in `ms` (lower is better)",
            "timed in `s` (higher is better)",
        ];
        for (change, meaning) in changes.into_iter().zip(meanings) {
            let mut other = cell("e.b", vec![row(2, None)]);
            change(&mut other);
            let message = error_of(vec![cell("e.a", vec![row(1, None)]), other]);
            let begin = format!(
                "e, host, w, c, m is timed in `s` (lower is better) in the rows of e.a, but {meaning} in those of e.b; delete"
            );
            assert!(message.starts_with(&begin), "{message}");
        }
    }
}
