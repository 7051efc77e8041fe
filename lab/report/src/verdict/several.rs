//! Several runs of one build, as one side of a comparison.
//!
//! What is timed scatters more from run to run than within a run, so of several runs each is one
//! sample: its mean. What is exact is the same in all of them, and stays as the first has it.

use std::collections::HashMap;

use super::VerdictError;
use crate::{Metric, Results, Row, SampleKind};

/// The rows of the first run, where what is not exact has a sample for each run that has the row.
///
/// # Errors
/// Where the runs cannot be put together.
pub fn as_samples(first: &Results, more: &[Results]) -> Result<Results, VerdictError> {
    let more: Vec<HashMap<Key<'_>, &Row>> = more
        .iter()
        .map(|run| run.rows().iter().map(|row| (key(row), row)).collect())
        .collect();
    let mut all = Results::new(first.experiment(), first.host().clone());
    for row in first.rows() {
        if row.kind() == Some(SampleKind::Exact) {
            all.push(row.clone())?;
            continue;
        }
        let same = more.iter().filter_map(|run| run.get(&key(row)).copied());
        let rows = core::iter::once(row).chain(same);
        let means = rows.filter_map(|row| row.summary().mean()).collect();
        let of_means = Row::new(row.config(), row.workload(), row.metric(), means)?;
        all.push(match row.kind() {
            Some(kind) => of_means.of_kind(kind),
            None => of_means,
        })?;
    }
    Ok(all)
}

/// What rows of two runs are matched by.
type Key<'a> = (&'a str, &'a str, Metric<'a>);

fn key(row: &Row) -> Key<'_> {
    (row.config(), row.workload(), row.metric())
}
