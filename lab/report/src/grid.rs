//! A document's rows in lines and columns: a line a metric of a workload, a column a configuration. Both comparisons begin here.

use std::collections::HashMap;

use crate::{Results, Row};

/// The rows by line and column.
pub(crate) struct Grid<'a> {
    /// The columns, in the order of the configurations' first rows.
    pub(crate) configs: Vec<&'a str>,
    /// The lines, in the order of their first rows; a place a column, with nothing where a configuration has no such row.
    pub(crate) lines: Vec<Vec<Option<&'a Row>>>,
}

impl<'a> Grid<'a> {
    /// Lays the rows of `results` side by side. Linear in rows times configurations.
    pub(crate) fn new(results: &'a Results) -> Self {
        let configs = results.configs();
        let column: HashMap<&str, usize> = configs
            .iter()
            .zip(0..)
            .map(|(name, i)| (*name, i))
            .collect();
        let mut place: HashMap<(&str, &str), usize> = HashMap::new();
        let mut lines: Vec<Vec<Option<&Row>>> = Vec::new();
        for row in results.rows() {
            let line = *place
                .entry((row.workload(), row.metric().name))
                .or_insert_with(|| {
                    lines.push(vec![None; configs.len()]);
                    lines.len() - 1
                });
            lines[line][column[row.config()]] = Some(row);
        }
        Self { configs, lines }
    }
}
