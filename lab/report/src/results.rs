//! The document that every experiment ends in: rows, and the machine they were taken on.
//!
//! Invariant `one-cell`: no two rows share configuration, workload and metric. Invariant
//! `one-yardstick`: rows of the same workload and metric have the same unit and the same better
//! direction, whatever their configuration. `push` is the only way in, keeps both, and so a
//! comparison never has to choose or to convert.

use serde::{Deserialize, Serialize};

use crate::{Better, Host, Row};

/// The outcome of one experiment.
///
/// Rows keep the order in which they came; the first row's configuration is the baseline of every
/// comparison.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "Written")]
pub struct Results {
    experiment: String,
    host: Host,
    rows: Vec<Row>,
}

/// Why a row does not fit into a document.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ResultsError {
    /// Invariant `one-cell`.
    #[error("{row}: there is such a row already; give all its samples in one")]
    Twice {
        /// The row's configuration, workload and metric.
        row: String,
    },
    /// Invariant `one-yardstick`.
    #[error(
        "{row}: in {unit}, {better} is better, but {other} is in {other_unit}, {other_better} is better"
    )]
    Yardstick {
        /// The row's configuration, workload and metric.
        row: String,
        /// Its unit.
        unit: String,
        /// Its direction.
        better: Better,
        /// The row that came before.
        other: String,
        /// That one's unit.
        other_unit: String,
        /// That one's direction.
        other_better: Better,
    },
}

impl Results {
    /// The document of an experiment, still without rows.
    pub fn new(experiment: impl Into<String>, host: Host) -> Self {
        Self {
            experiment: experiment.into(),
            host,
            rows: Vec::new(),
        }
    }

    /// Adds a row. Looks at every row there is.
    ///
    /// # Errors
    /// [`ResultsError`] for a row that is there already, and for one that measures the same in
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

    /// The rows in the order in which they came.
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

/// The error for two rows that measure the same with different yardsticks.
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

/// The document as it is read, before its rows have been looked at together.
#[derive(Deserialize)]
struct Written {
    experiment: String,
    host: Host,
    rows: Vec<Row>,
}

impl TryFrom<Written> for Results {
    type Error = ResultsError;

    fn try_from(written: Written) -> Result<Self, ResultsError> {
        let mut results = Self::new(written.experiment, written.host);
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
    fn a_row_comes_once() {
        let mut results = Results::new("kernbench", Host::unknown());
        results.push(row("a", TIME)).unwrap();
        results.push(row("b", TIME)).unwrap();
        let refused = results.push(row("a", TIME)).unwrap_err();
        assert_eq!(
            refused.to_string(),
            "a / build / time: there is such a row already; give all its samples in one"
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
            "b / build / time: in ms, lower is better, but a / build / time is in s, lower is better"
        );
        let other_way = Metric::higher(TIME.name, TIME.unit);
        assert!(results.push(row("b", other_way)).is_err());
    }
}
