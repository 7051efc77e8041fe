//! Two rows that measure the same, and which of their samples are held against each other.
//!
//! Of exact rows those of the runs that both have: the same run is the same work. Of timed ones all, for no round of the one belongs to a round of the other.

use std::collections::BTreeSet;

use brickyard_report::{Better, Metric, Row, RowError, SampleKind};

/// A row of each side that measure the same.
#[derive(Debug)]
pub(super) struct Pair {
    /// What both are called.
    pub(super) name: String,
    /// The baseline's, with the samples that are compared.
    pub(super) a: Row,
    /// The other's.
    pub(super) b: Row,
    /// How the samples came about. `None` where neither document says.
    pub(super) kind: Option<SampleKind>,
    /// How many samples each side has in its document.
    pub(super) of: [usize; 2],
}

impl Pair {
    pub(super) fn new(name: String, a: &Row, b: &Row) -> Result<Self, RowError> {
        let kind = match (a.kind(), b.kind()) {
            // What one of them calls timed is not taken for exact.
            (Some(SampleKind::Timed), _) | (_, Some(SampleKind::Timed)) => Some(SampleKind::Timed),
            (one, other) => one.or(other),
        };
        let common = (kind == Some(SampleKind::Exact)).then(|| &runs(a) & &runs(b));
        let neither = [a, b].map(|row| row.metric().better == Better::Neither);
        let part = |row: &Row| {
            let mut samples = row.samples().to_vec();
            if let Some(common) = &common {
                let mut is_common = runs(row).into_iter().map(|run| common.contains(&run));
                samples.retain(|_| is_common.next().unwrap_or(false));
            }
            // A document of an older version may say of a metric that one way is better where today neither is.
            let better = if neither.contains(&true) {
                Better::Neither
            } else {
                row.metric().better
            };
            let metric = Metric {
                better,
                ..row.metric()
            };
            Row::new(row.config(), row.workload(), metric, samples)
        };
        Ok(Self {
            name,
            a: part(a)?,
            b: part(b)?,
            kind,
            of: [a, b].map(|row| row.samples().len()),
        })
    }

    /// Both means. `None` unless both sides have samples.
    pub(super) fn means(&self) -> Option<(f64, f64)> {
        self.a.summary().mean().zip(self.b.summary().mean())
    }

    pub(super) fn better(&self) -> Better {
        self.a.metric().better
    }

    /// Does one side have runs that the other lacks, so that they are left out?
    pub(super) fn is_part(&self) -> bool {
        self.of != [&self.a, &self.b].map(|row| row.samples().len())
    }
}

/// The runs of a row's samples, which rise.
fn runs(row: &Row) -> BTreeSet<u32> {
    match row.runs() {
        Some(runs) => runs.iter().copied().collect(),
        None => (1..).take(row.samples().len()).collect(),
    }
}
