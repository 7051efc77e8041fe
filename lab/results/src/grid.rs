//! A document's rows in lines and columns: one line per metric of a workload, one column per
//! configuration. Both comparisons are such a grid, each with its own cells.

use std::collections::HashMap;

use crate::{Metric, Results, Row};

/// A document's rows, side by side.
#[derive(Clone, Debug, PartialEq)]
pub struct Grid<'a, C> {
    configs: Vec<&'a str>,
    lines: Vec<Line<'a, C>>,
}

/// One metric of one workload, under every configuration.
#[derive(Clone, Debug, PartialEq)]
pub struct Line<'a, C> {
    /// What the configurations were made to do.
    pub workload: &'a str,
    /// What was counted.
    pub metric: Metric<'a>,
    /// One cell per configuration, in [`Grid::configs`]' order. `None` where a configuration has no
    /// such row.
    pub cells: Vec<Option<C>>,
}

impl<'a, C> Grid<'a, C> {
    /// Lays the rows of `results` side by side; `cells` makes the cells of a line from its rows, at
    /// most one per configuration. Linear in rows times configurations.
    pub(crate) fn of(
        results: &'a Results,
        cells: impl Fn(&[Option<&'a Row>]) -> Vec<Option<C>>,
    ) -> Self {
        let configs = results.configs();
        let column: HashMap<&str, usize> = configs
            .iter()
            .zip(0..)
            .map(|(name, i)| (*name, i))
            .collect();
        let mut line_of: HashMap<(&str, &str), usize> = HashMap::new();
        let mut lines: Vec<(&'a Row, Vec<Option<&'a Row>>)> = Vec::new();
        for row in results.rows() {
            let line = *line_of
                .entry((row.workload(), row.metric().name))
                .or_insert_with(|| {
                    lines.push((row, vec![None; configs.len()]));
                    lines.len() - 1
                });
            lines[line].1[column[row.config()]] = Some(row);
        }
        let lines = lines.iter().map(|(first, rows)| Line {
            workload: first.workload(),
            metric: first.metric(),
            cells: cells(rows),
        });
        Self {
            lines: lines.collect(),
            configs,
        }
    }

    /// The configurations, in the order of their first rows.
    #[must_use]
    pub fn configs(&self) -> &[&'a str] {
        &self.configs
    }

    /// The lines, in the order of their first rows.
    #[must_use]
    pub fn lines(&self) -> &[Line<'a, C>] {
        &self.lines
    }
}
