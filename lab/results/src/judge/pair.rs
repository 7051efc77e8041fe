//! Two rows that measure the same, and which of their samples are compared.
//!
//! Of exact rows the samples of runs that both have: the same run is the same work. Of timed rows
//! all: no round of one side belongs to a round of the other.

use std::collections::{BTreeSet, HashMap};

use super::Sides;
use crate::statistics::Runs;
use crate::{Better, Metric, Row, RowError, SampleKind};

/// Which rows are compared.
#[derive(Debug, Clone, Copy)]
pub enum Chosen<'a> {
    /// Rows of the same configuration.
    All,
    /// Rows of one configuration with rows of another.
    Configs {
        /// The baseline's.
        a: &'a str,
        /// The other's.
        b: &'a str,
    },
}

/// The rows of two sides, matched.
#[derive(Debug)]
#[non_exhaustive]
pub struct Matched {
    /// The pairs, in the order of the baseline.
    pub pairs: Vec<Pair>,
    /// The names of rows that only one side has.
    pub alone: [Vec<String>; 2],
}

impl Matched {
    /// Matches the rows of both sides whose names pass `is_wanted`.
    ///
    /// # Errors
    /// If a row cannot be made of the samples that are compared.
    pub fn new(
        [a, b]: [&[&Row]; 2],
        chosen: Chosen<'_>,
        is_wanted: impl Fn(&str) -> bool,
    ) -> Result<Self, RowError> {
        let mut matched = Self {
            pairs: Vec::new(),
            alone: [Vec::new(), Vec::new()],
        };
        let mut left: HashMap<Key<'_>, &Row> =
            b.iter().map(|row| (key(row, chosen), *row)).collect();
        for row in a {
            let name = row_name(row, chosen);
            match left.remove(&key(row, chosen)) {
                _ if !is_wanted(&name) => {}
                Some(b) => matched.pairs.push(Pair::new(name, row, b)?),
                None => matched.alone[0].push(name),
            }
        }
        for row in b {
            let name = row_name(row, chosen);
            if left.contains_key(&key(row, chosen)) && is_wanted(&name) {
                matched.alone[1].push(name);
            }
        }
        Ok(matched)
    }
}

/// The key by which rows are matched: configuration (with [`Chosen::All`] only), workload, metric.
type Key<'a> = (Option<&'a str>, &'a str, &'a str);

fn key<'a>(row: &'a Row, chosen: Chosen<'_>) -> Key<'a> {
    let config = matches!(chosen, Chosen::All).then(|| row.config());
    (config, row.workload(), row.metric().name)
}

/// Returns a row's name; without the configuration where two configurations are compared.
#[must_use]
pub fn row_name(row: &Row, chosen: Chosen<'_>) -> String {
    match chosen {
        Chosen::All => row.name(),
        Chosen::Configs { .. } => format!("{} / {}", row.workload(), row.metric().name),
    }
}

/// A row of each side that measure the same.
#[derive(Debug)]
pub struct Pair {
    /// The name of both rows.
    pub name: String,
    /// The baseline's row, with the samples that are compared.
    pub a: Row,
    /// The other side's.
    pub b: Row,
    /// How the samples were obtained. `None` where neither document has it.
    pub kind: Option<SampleKind>,
    /// The number of samples of each side in its document.
    pub of: [usize; 2],
}

impl Pair {
    /// Pairs two rows, and keeps of exact ones only the samples of runs that both have.
    ///
    /// # Errors
    /// If a row cannot be made of the samples that are compared.
    pub fn new(name: String, a: &Row, b: &Row) -> Result<Self, RowError> {
        let kind = match (a.kind(), b.kind()) {
            // Timed if either document marks it timed.
            (Some(SampleKind::Timed), _) | (_, Some(SampleKind::Timed)) => Some(SampleKind::Timed),
            (one, other) => one.or(other),
        };
        let common = (kind == Some(SampleKind::Exact)).then(|| common_runs(runs(a), runs(b)));
        let neither = [a, b].map(|row| row.metric().better == Better::Neither);
        let part = |row: &Row| {
            let mut samples = row.samples().to_vec();
            if let Some(common) = &common {
                let mut is_common = runs(row).into_iter().map(|run| common.contains(&run));
                samples.retain(|_| is_common.next().unwrap_or(false));
            }
            // An older document may have a better direction for a metric that has none today.
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
    pub fn means(&self) -> Option<(f64, f64)> {
        self.a.summary().mean().zip(self.b.summary().mean())
    }

    /// Which direction is better.
    pub fn better(&self) -> Better {
        self.a.metric().better
    }

    /// Returns true if any difference counts: its documents mark it exact, or have no mark and no
    /// sample varies.
    pub fn is_exact(&self) -> bool {
        match self.kind {
            Some(kind) => kind == SampleKind::Exact,
            None => [&self.a, &self.b].into_iter().all(is_constant),
        }
    }

    /// Returns true if both sides have several samples and each side's are all equal.
    pub(super) fn does_not_vary(&self) -> bool {
        let mut sides = [&self.a, &self.b].into_iter();
        sides.all(|row| row.summary().n() > 1 && is_constant(row))
    }

    /// Returns the samples of both sides, B against A.
    pub fn sides(&self) -> Sides<'_> {
        Sides {
            now: self.b.samples(),
            before: self.a.samples(),
            better: self.better(),
            runs: match self.kind {
                Some(SampleKind::Exact) => Runs::Paired,
                _ => Runs::Independent,
            },
            is_exact: self.is_exact(),
        }
    }

    /// Returns true if runs were left out that only one side has.
    pub fn is_part(&self) -> bool {
        self.of != [&self.a, &self.b].map(|row| row.samples().len())
    }
}

/// Returns true if the row has samples and they are all equal.
fn is_constant(row: &Row) -> bool {
    let summary = row.summary();
    summary.n() > 0 && summary.min() == summary.max()
}

/// Returns the runs that both sides have.
pub fn common_runs(
    one: impl IntoIterator<Item = u32>,
    other: impl IntoIterator<Item = u32>,
) -> BTreeSet<u32> {
    let one: BTreeSet<u32> = one.into_iter().collect();
    other.into_iter().filter(|run| one.contains(run)).collect()
}

/// Returns the runs of a row's samples.
fn runs(row: &Row) -> Vec<u32> {
    match row.runs() {
        Some(runs) => runs.to_vec(),
        None => (1..).take(row.samples().len()).collect(),
    }
}
