//! The recorded full run, which stands behind a quick one.
//!
//! A quick run has too few cells to decide: no other assumptions, few runs. But a cell that is not
//! timed gives the same rows everywhere ([`same-name-same-work`](crate::cell)), so if all cells of an
//! experiment's quick run are the recorded ones to the last bit, the other cells of the record stand
//! for what this build would measure. If one differs, or is missing, this build may compute something
//! else, and the record says nothing about it. Timed cells are never taken from the record.

use core::fmt;
use std::collections::{HashMap, HashSet};

use brickyard_results::counted;

use crate::raw::{CellRows, Raw, experiment_of};
use crate::store::read_rows_bytes;

/// The rows of the recorded run.
static ROWS: &[u8] = include_bytes!("../../../docs/results/reproduce.parquet");

/// The day of the recorded run.
pub const DATE: &str = "2026-12-01";

/// What the record adds to a run.
#[derive(Debug, Default)]
pub struct Behind {
    /// The cells that it adds, of the experiments whose rows are the recorded ones.
    pub cells: Vec<CellRows>,
    names: HashSet<String>,
    /// The number of cells of the run that are the same in the record, and of their rows.
    same: (usize, usize),
    /// The experiments that it says nothing about, each with the reason.
    others: Vec<(String, String)>,
}

impl Behind {
    /// Returns what the record adds to the cells of a run, for the experiments of these cells, all of
    /// which the run must have.
    ///
    /// # Errors
    /// If this build's record cannot be read.
    pub fn of(run: &[CellRows], planned: &[String]) -> Result<Self, String> {
        Ok(Self::within(&read_rows_bytes(ROWS)?, run, planned))
    }

    fn within(record: &[CellRows], run: &[CellRows], planned: &[String]) -> Self {
        let by_name: HashMap<&str, &CellRows> =
            record.iter().map(|cell| (&*cell.cell, cell)).collect();
        let mut experiments: Vec<&str> = planned.iter().map(|cell| experiment_of(cell)).collect();
        experiments.dedup();
        let begun = |name: &&str| run.iter().any(|cell| cell.experiment() == *name);
        experiments.retain(begun);
        let mut behind = Self::default();
        for name in experiments {
            let exact = |cell: &&CellRows| cell.experiment() == name && cell.kind.is_exact();
            let own: Vec<&CellRows> = run.iter().filter(exact).collect();
            let differs = own.iter().find_map(|cell| {
                let recorded = by_name.get(&*cell.cell).copied();
                Some(format!("{} {}", cell.cell, difference(cell, recorded)?))
            });
            // One that failed, or was not run, may be the one that differs.
            let lacks = planned.iter().find(|cell| {
                experiment_of(cell) == name && !own.iter().any(|one| one.cell == **cell)
            });
            let lacks = lacks.map(|cell| format!("{cell} is missing"));
            if let Some(why) = differs.or(lacks) {
                behind.others.push((name.to_owned(), why));
                continue;
            }
            behind.same.0 += own.len();
            behind.same.1 += own.iter().map(|cell| cell.rows.len()).sum::<usize>();
            let names: HashSet<&str> = own.iter().map(|cell| &*cell.cell).collect();
            let rest = record.iter().filter(exact);
            let rest = rest.filter(|cell| !names.contains(&*cell.cell));
            behind.cells.extend(rest.cloned());
        }
        let names = behind.cells.iter().map(|cell| cell.cell.clone());
        behind.names = names.collect();
        behind
    }

    /// Returns true if a cell is one that the record adds.
    pub fn has(&self, cell: &str) -> bool {
        self.names.contains(cell)
    }
}

/// Says which rows decide what.
impl fmt::Display for Behind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.cells.is_empty() {
            write!(
                f,
                "Of this run are all timed figures, and {} of {} that are the same as in the recorded run of {DATE}, to the last bit: so that run's other {}, with more runs and other assumptions, stand behind these answers.",
                counted(self.same.1, "row", "rows"),
                counted(
                    self.same.0,
                    "simulated or replayed cell",
                    "simulated or replayed cells"
                ),
                counted(self.cells.len(), "cell", "cells")
            )?;
        }
        for (place, (experiment, why)) in self.others.iter().enumerate() {
            let space = if place > 0 || !self.cells.is_empty() {
                " "
            } else {
                ""
            };
            write!(
                f,
                "{space}Nothing of the recorded run stands behind {experiment}, since {why}: `reproduce --full` runs it all."
            )?;
        }
        Ok(())
    }
}

/// Returns how a cell differs from the recorded one; none if it does not.
fn difference(cell: &CellRows, recorded: Option<&CellRows>) -> Option<String> {
    let Some(recorded) = recorded else {
        return Some("is not in it".to_owned());
    };
    if cell.seed != recorded.seed {
        let (own, there) = (cell.seed, recorded.seed);
        return Some(format!("has seed {own} here and {there} there"));
    }
    let same = |a: &Raw, b: &Raw| {
        a.value.to_bits() == b.value.to_bits()
            && Raw {
                value: b.value,
                ..a.clone()
            } == *b
    };
    let pairs = || cell.rows.iter().zip(&recorded.rows);
    let one = pairs().find(|(own, there)| !same(own, there));
    if let Some((own, there)) = one {
        let (metric, value) = (&own.metric, own.value);
        return Some(format!(
            "has a {metric} of {value} here and {} there",
            there.value
        ));
    }
    let (own, there) = (cell.rows.len(), recorded.rows.len());
    (own != there).then(|| format!("has {own} rows here and {there} there"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::raw::{Method, testing};

    fn cell(name: &str, kind: Method, value: f64) -> CellRows {
        let row = Raw {
            value,
            ..testing::row()
        };
        testing::cell(name, kind, vec![row])
    }

    fn record() -> Vec<CellRows> {
        let of = |name, kind| cell(name, kind, 1.5);
        vec![
            of("a.1", Method::Simulated),
            of("a.2", Method::Simulated),
            of("a.host.1", Method::Timed),
            of("a.host.2", Method::Timed),
            of("b.1", Method::Replayed),
            of("b.2", Method::Replayed),
            of("c.1", Method::Timed),
            of("c.2", Method::Simulated),
        ]
    }

    fn planned(cells: &[&str]) -> Vec<String> {
        cells.iter().map(|&cell| cell.to_owned()).collect()
    }

    fn names(behind: &Behind) -> Vec<&str> {
        behind.cells.iter().map(|cell| &*cell.cell).collect()
    }

    #[test]
    fn the_record_adds_the_other_exact_cells_of_what_is_the_same() {
        let run = [
            cell("a.1", Method::Simulated, 1.5),
            // A timed cell is compared with nothing.
            cell("a.host.1", Method::Timed, 9.0),
            cell("b.2", Method::Replayed, 1.5),
            // Not asked for.
            cell("c.1", Method::Timed, 1.5),
        ];
        let behind = Behind::within(&record(), &run, &planned(&["a.1", "b.2"]));
        assert_eq!(names(&behind), ["a.2", "b.1"]);
        assert!(behind.has("a.2") && !behind.has("a.1"));
        let said = behind.to_string();
        assert!(
            said.contains("2 rows of 2 simulated or replayed cells"),
            "{said}"
        );
        assert!(said.contains("other 2 cells"), "{said}");
        let one = Behind::within(&record(), &run, &planned(&["b.2"]));
        assert_eq!(names(&one), ["b.1"]);
        // Nothing is known about a build of which a cell failed, or none was run.
        let lacking = Behind::within(&record(), &run, &planned(&["a.1", "a.2", "b.2", "d.1"]));
        assert_eq!(names(&lacking), ["b.1"]);
        assert!(lacking.to_string().contains("a, since a.2 is missing"));
    }

    #[test]
    fn one_bit_one_seed_or_one_row_ends_it_for_that_experiment_alone() {
        let good = cell("b.1", Method::Replayed, 1.5);
        let other = |change: fn(&mut CellRows)| {
            let mut cell = cell("a.1", Method::Simulated, 1.5);
            change(&mut cell);
            cell
        };
        for (wrong, why) in [
            (
                other(|cell| cell.rows[0].value = 1.5 + f64::EPSILON),
                "a.1 has a m of 1.5000000000000002 here and 1.5 there",
            ),
            (
                other(|cell| cell.seed = 2),
                "a.1 has seed 2 here and 1 there",
            ),
            (
                other(|cell| cell.rows.push(testing::row())),
                "a.1 has 2 rows here and 1 there",
            ),
            (
                other(|cell| cell.cell = "a.9".to_owned()),
                "a.9 is not in it",
            ),
            (other(|cell| cell.rows[0].run = 2), "a.1 has a m of 1.5"),
        ] {
            let run = [wrong, good.clone()];
            let behind = Behind::within(&record(), &run, &planned(&["a.1", "b.1"]));
            assert_eq!(names(&behind), ["b.2"], "{why}");
            let said = behind.to_string();
            assert!(said.contains(why), "{said}");
        }
    }

    #[test]
    fn the_record_of_this_build_can_be_read_and_the_book_has_its_day() {
        let record = read_rows_bytes(ROWS).unwrap();
        assert!(record.len() > 1000);
        let results = include_str!("../../../docs/book/results.md");
        assert!(results.contains(&format!("run by one build on {DATE}")));
    }
}
