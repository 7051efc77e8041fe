//! A row: the samples of one metric of one workload under one configuration.
//!
//! All statistics of a row are computed from its samples, here. A row cannot be made with a mean
//! from elsewhere, and a row that is read back must agree with its samples.

use brickyard_run::named;
use serde::ser::SerializeStruct;
use serde::{Deserialize, Serialize, Serializer};

use crate::{Better, Metric, NotFinite, Summary};

/// The largest relative difference between a statistic read back and the one computed from the
/// samples: rounding in another program's arithmetic.
const TOLERANCE: f64 = 1e-9;

named! {
    /// How the samples of a row were obtained: whether another run would give the same again. It
    /// decides how two documents are compared. Any difference of exact rows is one of the code;
    /// differences of timed rows are in part the host's.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
    #[serde(rename_all = "lowercase")]
    pub enum SampleKind {
        /// Simulated, replayed, or counted: the same work gives the same samples on every host. A
        /// sample's run identifies the work.
        Exact => "exact",
        /// Measured with a host's clock or counters: the samples scatter, and more from run to run
        /// than within a run.
        Timed => "timed",
    }
}

/// The samples of one metric of one workload under one configuration, with their statistics.
///
/// ```
/// use brickyard_results::{Better, Metric, Row};
/// const FREE: Metric = Metric { name: "free", unit: "cycles", better: Better::Lower };
/// let row = Row::new("vanilla", "order-0 batch-64", FREE, vec![178.0, 179.0])?;
/// assert_eq!(row.summary().mean(), Some(178.5));
/// # Ok::<(), brickyard_results::RowError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(try_from = "Written")]
pub struct Row {
    config: String,
    workload: String,
    metric: String,
    unit: String,
    better: Better,
    samples: Vec<f64>,
    summary: Summary,
    kind: Option<SampleKind>,
    runs: Option<Vec<u32>>,
}

/// Why a row cannot be made, or cannot be read back.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum RowError {
    /// A sample is infinite or not a number.
    #[error("{row}: {sample}")]
    NotFinite {
        /// The row's configuration, workload and metric.
        row: String,
        /// Which sample.
        sample: NotFinite,
    },
    /// A document states a statistic that does not follow from the samples.
    #[error("{row}: `{field}` is {stated}, but the {n} samples give {derived}")]
    Disagrees {
        /// The row's configuration, workload and metric.
        row: String,
        /// The field of the document.
        field: &'static str,
        /// Its value in the document.
        stated: f64,
        /// Its value computed from the samples: a number, or "none".
        derived: String,
        /// How many samples there are.
        n: usize,
    },
    /// The runs do not match the samples.
    #[error(
        "{row}: `runs` must name a run for each of the {n} samples, in rising order, but is {runs:?}"
    )]
    Runs {
        /// The row's configuration, workload and metric.
        row: String,
        /// The runs.
        runs: Vec<u32>,
        /// How many samples there are.
        n: usize,
    },
}

impl Row {
    /// Makes a row of `samples`, in the order in which they were taken and in the metric's unit.
    /// There may be none (an experiment that never got that far), and one is enough for a mean.
    ///
    /// # Errors
    /// [`RowError::NotFinite`] for a sample that is infinite or not a number.
    pub fn new(
        config: impl Into<String>,
        workload: impl Into<String>,
        metric: Metric<'_>,
        samples: Vec<f64>,
    ) -> Result<Self, RowError> {
        let (config, workload) = (config.into(), workload.into());
        let summary = Summary::of(&samples).map_err(|sample| RowError::NotFinite {
            row: row_name(&config, &workload, metric.name),
            sample,
        })?;
        Ok(Self {
            config,
            workload,
            metric: metric.name.into(),
            unit: metric.unit.into(),
            better: metric.better,
            samples,
            summary,
            kind: None,
            runs: None,
        })
    }

    /// The same row, with the kind of its samples set.
    #[must_use]
    pub fn of_kind(self, kind: SampleKind) -> Self {
        let kind = Some(kind);
        Self { kind, ..self }
    }

    /// The same row, with its samples marked [`SampleKind::Exact`].
    #[must_use]
    pub fn exact(self) -> Self {
        self.of_kind(SampleKind::Exact)
    }

    /// The same row, with its samples marked [`SampleKind::Timed`].
    #[must_use]
    pub fn timed(self) -> Self {
        self.of_kind(SampleKind::Timed)
    }

    /// The same row, with the run of each sample set: samples of two rows with the same run are a
    /// pair, of the same seed or the same round.
    ///
    /// # Errors
    /// [`RowError::Runs`] unless there is one run per sample, in rising order.
    pub fn of_runs(self, runs: Vec<u32>) -> Result<Self, RowError> {
        let n = self.samples.len();
        if runs.len() != n || !runs.is_sorted_by(|a, b| a < b) {
            let row = self.name();
            return Err(RowError::Runs { row, runs, n });
        }
        let runs = Some(runs);
        Ok(Self { runs, ..self })
    }

    /// The configuration that was measured: an allocator's design, a lock policy, a kernel.
    pub fn config(&self) -> &str {
        &self.config
    }

    /// The workload under which it was measured.
    pub fn workload(&self) -> &str {
        &self.workload
    }

    /// What was counted, in which unit, and which direction is better.
    pub fn metric(&self) -> Metric<'_> {
        Metric::new(&self.metric, &self.unit, self.better)
    }

    /// The samples in the order in which they were taken.
    pub fn samples(&self) -> &[f64] {
        &self.samples
    }

    /// How the samples were obtained. `None` if unknown: older documents do not have it.
    pub fn kind(&self) -> Option<SampleKind> {
        self.kind
    }

    /// The runs of the samples, in the same order. `None` if not given: then they are 1, 2, 3 and
    /// so on.
    pub fn runs(&self) -> Option<&[u32]> {
        self.runs.as_deref()
    }

    /// The statistics of the samples.
    pub fn summary(&self) -> &Summary {
        &self.summary
    }

    /// Configuration, workload and metric, the row's name in error messages and warnings.
    pub fn name(&self) -> String {
        row_name(&self.config, &self.workload, &self.metric)
    }

    /// Checks that `stated`, if the document has it, agrees with the value from the samples.
    fn agree(
        &self,
        field: &'static str,
        stated: Option<f64>,
        derived: Option<f64>,
    ) -> Result<(), RowError> {
        let Some(stated) = stated else { return Ok(()) };
        if derived.is_some_and(|derived| (stated - derived).abs() <= TOLERANCE * derived.abs()) {
            return Ok(());
        }
        Err(RowError::Disagrees {
            row: self.name(),
            field,
            stated,
            derived: derived.map_or_else(|| "none".into(), |derived| derived.to_string()),
            n: self.summary.n(),
        })
    }
}

/// Returns a row's name for messages.
fn row_name(config: &str, workload: &str, metric: &str) -> String {
    format!("{config} / {workload} / {metric}")
}

/// A row as a document holds it: the required fields, and statistics that it may state.
#[derive(Deserialize)]
struct Written {
    config: String,
    workload: String,
    metric: String,
    unit: String,
    better: Better,
    samples: Vec<f64>,
    kind: Option<SampleKind>,
    runs: Option<Vec<u32>>,
    n: Option<usize>,
    mean: Option<f64>,
    stddev: Option<f64>,
    ci95: Option<f64>,
}

impl TryFrom<Written> for Row {
    type Error = RowError;

    fn try_from(written: Written) -> Result<Self, RowError> {
        let metric = Metric::new(&written.metric, &written.unit, written.better);
        let mut row = Self::new(written.config, written.workload, metric, written.samples)?;
        row.kind = written.kind;
        if let Some(runs) = written.runs {
            row = row.of_runs(runs)?;
        }
        row.agree(
            "n",
            written.n.map(|n| n as f64),
            Some(row.summary.n() as f64),
        )?;
        row.agree("mean", written.mean, row.summary.mean())?;
        row.agree("stddev", written.stddev, row.summary.stddev())?;
        row.agree("ci95", written.ci95, row.summary.ci95())?;
        Ok(row)
    }
}

impl Serialize for Row {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let optional = usize::from(self.kind.is_some()) + usize::from(self.runs.is_some());
        let length = 10 + optional;
        let mut fields = serializer.serialize_struct("Row", length)?;
        fields.serialize_field("config", &self.config)?;
        fields.serialize_field("workload", &self.workload)?;
        fields.serialize_field("metric", &self.metric)?;
        fields.serialize_field("unit", &self.unit)?;
        fields.serialize_field("better", &self.better)?;
        if let Some(kind) = &self.kind {
            fields.serialize_field("kind", kind)?;
        }
        fields.serialize_field("n", &self.summary.n())?;
        fields.serialize_field("mean", &self.summary.mean())?;
        fields.serialize_field("stddev", &self.summary.stddev())?;
        fields.serialize_field("ci95", &self.summary.ci95())?;
        if let Some(runs) = &self.runs {
            fields.serialize_field("runs", runs)?;
        }
        fields.serialize_field("samples", &self.samples)?;
        fields.end()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALLOC: Metric<'static> = Metric::lower("alloc", "cycles");

    #[test]
    fn a_sample_that_is_not_finite_is_refused_by_name() {
        let refused = Row::new("vanilla", "batch-1", ALLOC, vec![1.0, f64::NAN]).unwrap_err();
        assert_eq!(
            refused.to_string(),
            "vanilla / batch-1 / alloc: samples[1] is NaN, not a finite number"
        );
    }

    #[test]
    fn a_document_may_omit_statistics_but_not_contradict_the_samples() {
        let text = r#"{"config":"a","workload":"w","metric":"m","unit":"s","better":"higher","samples":[1,3]}"#;
        let row: Row = serde_json::from_str(text).unwrap();
        assert_eq!(row.summary().mean(), Some(2.0));

        for (stated, message) in [
            (
                r#""mean":2.5"#,
                "a / w / m: `mean` is 2.5, but the 2 samples give 2",
            ),
            (r#""n":3"#, "a / w / m: `n` is 3, but the 2 samples give 2"),
        ] {
            let wrong = text.replace(r#""samples""#, &format!("{stated},\"samples\""));
            let refused = serde_json::from_str::<Row>(&wrong).unwrap_err().to_string();
            assert!(refused.contains(message), "{refused}");
        }
    }

    #[test]
    fn kind_and_runs_are_read_back_and_may_be_missing() {
        let row = Row::new("a", "w", ALLOC, vec![5.0, 6.0]).unwrap();
        let plain = serde_json::to_string(&row).unwrap();
        assert!(
            !plain.contains("kind") && !plain.contains("runs"),
            "{plain}"
        );
        let row = row.exact().of_runs(vec![1, 3]).unwrap();
        let text = serde_json::to_string(&row).unwrap();
        assert!(text.contains(r#""kind":"exact""#), "{text}");
        assert!(text.contains(r#""runs":[1,3]"#), "{text}");
        assert_eq!(serde_json::from_str::<Row>(&text).unwrap(), row);
        assert_eq!(
            (row.kind(), row.runs()),
            (Some(SampleKind::Exact), Some([1, 3].as_slice()))
        );

        for wrong in ["[1]", "[3,1]", "[1,1]"] {
            let wrong = text.replace("[1,3]", wrong);
            let refused = serde_json::from_str::<Row>(&wrong).unwrap_err().to_string();
            assert!(
                refused.contains("a / w / alloc: `runs` must name"),
                "{refused}"
            );
        }
    }

    #[test]
    fn one_sample_has_no_deviation_to_state() {
        let row = Row::new("a", "w", ALLOC, vec![5.0]).unwrap();
        let text = serde_json::to_string(&row).unwrap();
        assert!(
            text.contains(r#""n":1,"mean":5.0,"stddev":null,"ci95":null,"samples":[5.0]"#),
            "{text}"
        );
        assert_eq!(serde_json::from_str::<Row>(&text).unwrap(), row);
    }
}
