//! Two rows that measure the same, and which of their samples are held against each other.
//!
//! Of exact rows those of the runs that both have: the same run is the same work. Of timed ones
//! all, for no round of the one belongs to a round of the other.

use std::collections::{BTreeSet, HashMap};

use crate::{Better, Metric, Row, RowError, SampleKind};

/// Which rows are held against each other.
#[derive(Debug, Clone, Copy)]
pub enum Chosen<'a> {
    /// Those of the same configuration.
    All,
    /// Those of one configuration and those of another.
    Configs {
        /// The baseline's.
        a: &'a str,
        /// The other's.
        b: &'a str,
    },
}

/// The rows of two sides, matched.
#[derive(Debug)]
pub struct Matched {
    /// In the order of the baseline.
    pub pairs: Vec<Pair>,
    /// The names of rows that only one side has.
    pub alone: [Vec<String>; 2],
}

impl Matched {
    /// Matches those rows of both sides whose name is wanted.
    ///
    /// # Errors
    /// Where a row cannot be made of the samples that are compared.
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

/// What rows are matched by: configuration if that matters, workload, metric.
type Key<'a> = (Option<&'a str>, &'a str, &'a str);

fn key<'a>(row: &'a Row, chosen: Chosen<'_>) -> Key<'a> {
    let config = matches!(chosen, Chosen::All).then(|| row.config());
    (config, row.workload(), row.metric().name)
}

/// How a row is called.
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
    /// What both are called.
    pub name: String,
    /// The baseline's, with the samples that are compared.
    pub a: Row,
    /// The other's.
    pub b: Row,
    /// How the samples came about. `None` where neither document says.
    pub kind: Option<SampleKind>,
    /// How many samples each side has in its document.
    pub of: [usize; 2],
}

impl Pair {
    /// Pairs them.
    ///
    /// # Errors
    /// Where a row cannot be made of the samples that are compared.
    pub fn new(name: String, a: &Row, b: &Row) -> Result<Self, RowError> {
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
            // A document of an older version may say of a metric that one way is better where today
            // neither is.
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

    /// Which way is better.
    pub fn better(&self) -> Better {
        self.a.metric().better
    }

    /// Does one side have runs that the other lacks, so that they are left out?
    pub fn is_part(&self) -> bool {
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
