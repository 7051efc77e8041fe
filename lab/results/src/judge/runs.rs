//! Several runs of one build, as one side of a comparison.
//!
//! Timed rows scatter more from run to run than within a run, so each of several runs gives one
//! sample: its mean. Exact rows are the same in all runs, and are taken from the first.

use std::collections::HashMap;

use super::JudgeError;
use crate::{Metric, Results, Row, SampleKind};

/// Returns the rows of the first run. Rows that are not exact have one sample for each run that has
/// the row: its mean there.
///
/// # Errors
/// If a row cannot be made of the means, or is in the first run twice.
pub fn as_samples(first: &Results, more: &[Results]) -> Result<Results, JudgeError> {
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

/// The key by which rows of two runs are matched.
type Key<'a> = (&'a str, &'a str, Metric<'a>);

fn key(row: &Row) -> Key<'_> {
    (row.config(), row.workload(), row.metric())
}
