//! The document that every experiment produces: rows, and the machine they were taken on.
//!
//! Invariant `one-cell`: no two rows share configuration, workload and metric. Invariant
//! `one-yardstick`: rows of the same workload and metric have the same unit and the same better
//! direction, whatever their configuration. Rows are added by `push` only, which keeps both
//! invariants, so a comparison never has to choose between rows or to convert units.

use serde::{Deserialize, Serialize};

use crate::{Better, Host, Row};

/// The outcome of one experiment.
///
/// Rows keep the order in which they were added; the first row's configuration is the baseline of
/// every comparison.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "Written")]
pub struct Results {
    experiment: String,
    host: Host,
    // What people read above the figures and below them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    about: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    notes: Vec<String>,
    #[serde(skip_serializing_if = "is_false")]
    interrupted: bool,
    rows: Vec<Row>,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde passes it so")]
const fn is_false(value: &bool) -> bool {
    !*value
}

/// Why a row cannot be added to a document.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ResultsError {
    /// Invariant `one-cell`.
    #[error("{row}: this row exists already; put all its samples into one row")]
    Twice {
        /// The row's configuration, workload and metric.
        row: String,
    },
    /// Invariant `one-yardstick`.
    #[error(
        "{row}: its unit is {unit} and {better} is better, but {other} has the unit {other_unit} and {other_better} is better"
    )]
    Yardstick {
        /// The row's configuration, workload and metric.
        row: String,
        /// Its unit.
        unit: String,
        /// Its direction.
        better: Better,
        /// The row that it contradicts.
        other: String,
        /// That row's unit.
        other_unit: String,
        /// That row's direction.
        other_better: Better,
    },
}

impl Results {
    /// An experiment's document without rows.
    pub fn new(experiment: impl Into<String>, host: Host) -> Self {
        Self {
            experiment: experiment.into(),
            host,
            about: Vec::new(),
            notes: Vec::new(),
            interrupted: false,
            rows: Vec::new(),
        }
    }

    /// Adds a line about what was run: where the input is from, on what it ran.
    pub fn about_line(&mut self, line: impl Into<String>) {
        self.about.push(line.into());
    }

    /// Adds a line on how far the figures can be trusted: what was lost, left out or assumed.
    pub fn note(&mut self, line: impl Into<String>) {
        self.notes.push(line.into());
    }

    /// Says that the run was interrupted: the rows are of what was done until then.
    pub fn mark_interrupted(&mut self) {
        self.interrupted = true;
    }

    /// The lines about what was run.
    pub fn about(&self) -> &[String] {
        &self.about
    }

    /// The lines on how far the figures can be trusted.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// Whether the run was interrupted.
    pub const fn is_interrupted(&self) -> bool {
        self.interrupted
    }

    /// Adds a row. Linear in the rows of the document.
    ///
    /// # Errors
    /// [`ResultsError`] for a row that exists already, and for one that measures the same in
    /// another unit or direction; the document is then unchanged.
    pub fn push(&mut self, row: Row) -> Result<(), ResultsError> {
        let same_metric = |other: &&Row| {
            other.workload() == row.workload() && other.metric().name == row.metric().name
        };
        for other in self.rows.iter().filter(same_metric) {
            if other.metric() != row.metric() {
                return Err(yardstick(&row, other));
            }
            if other.config() == row.config() {
                return Err(ResultsError::Twice { row: row.name() });
            }
        }
        self.rows.push(row);
        Ok(())
    }

    /// The experiment's name.
    pub fn experiment(&self) -> &str {
        &self.experiment
    }

    /// The machine that the samples were taken on.
    pub fn host(&self) -> &Host {
        &self.host
    }

    /// The rows in the order in which they were added.
    pub fn rows(&self) -> &[Row] {
        &self.rows
    }

    /// The configurations in the order of their first rows; the first is the baseline.
    pub fn configs(&self) -> Vec<&str> {
        let mut configs = Vec::new();
        for row in &self.rows {
            if !configs.contains(&row.config()) {
                configs.push(row.config());
            }
        }
        configs
    }
}

/// Makes the error for two rows that measure the same in different units or directions.
fn yardstick(row: &Row, other: &Row) -> ResultsError {
    ResultsError::Yardstick {
        row: row.name(),
        unit: row.metric().unit.into(),
        better: row.metric().better,
        other: other.name(),
        other_unit: other.metric().unit.into(),
        other_better: other.metric().better,
    }
}

/// The document as it is read, before its rows are checked against one another.
#[derive(Deserialize)]
struct Written {
    experiment: String,
    host: Host,
    #[serde(default)]
    about: Vec<String>,
    #[serde(default)]
    notes: Vec<String>,
    #[serde(default)]
    interrupted: bool,
    rows: Vec<Row>,
}

impl TryFrom<Written> for Results {
    type Error = ResultsError;

    fn try_from(written: Written) -> Result<Self, ResultsError> {
        let mut results = Self::new(written.experiment, written.host);
        results.about = written.about;
        results.notes = written.notes;
        results.interrupted = written.interrupted;
        for row in written.rows {
            results.push(row)?;
        }
        Ok(results)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Metric;

    const TIME: Metric<'static> = Metric::lower("time", "s");

    fn row(config: &str, metric: Metric<'_>) -> Row {
        Row::new(config, "build", metric, vec![1.0]).unwrap()
    }

    #[test]
    fn a_row_is_added_once() {
        let mut results = Results::new("kernbench", Host::unknown());
        results.push(row("a", TIME)).unwrap();
        results.push(row("b", TIME)).unwrap();
        let refused = results.push(row("a", TIME)).unwrap_err();
        assert_eq!(
            refused.to_string(),
            "a / build / time: this row exists already; put all its samples into one row"
        );
        assert_eq!(results.configs(), ["a", "b"]);
        assert_eq!(results.rows().len(), 2);
    }

    #[test]
    fn a_metric_has_one_unit_and_one_direction() {
        let mut results = Results::new("kernbench", Host::unknown());
        results.push(row("a", TIME)).unwrap();
        let in_milliseconds = Metric { unit: "ms", ..TIME };
        assert_eq!(
            results
                .push(row("b", in_milliseconds))
                .unwrap_err()
                .to_string(),
            "b / build / time: its unit is ms and lower is better, \
             but a / build / time has the unit s and lower is better"
        );
        let other_way = Metric::higher(TIME.name, TIME.unit);
        assert!(results.push(row("b", other_way)).is_err());
    }
}
