//! The notes below the figures, one sentence each.

use brickyard_results::judge::{Judged, Judgements, Verdict};
use brickyard_results::{Host, printable as plain};

use super::NAMED_MAX;
use super::sides::Sides;

/// Returns the notes on a comparison.
pub(super) fn of(sides: &Sides<'_>, comparison: &Judgements<'_>) -> Vec<String> {
    let mut notes = Vec::new();
    let [experiment_a, experiment_b] = sides.experiments();
    if experiment_a != experiment_b {
        let (a, b) = (plain(experiment_a), plain(experiment_b));
        notes.push(format!("The experiments differ: {a} in A, {b} in B."));
    }
    notes.extend(hosts(sides.hosts()));
    for (alone, side) in sides.matched.alone.iter().zip(["A", "B"]) {
        if !alone.is_empty() {
            let names: Vec<String> = alone.iter().map(|name| plain(name)).collect();
            let (count, names) = (alone.len(), some_of(&names, NAMED_MAX));
            notes.push(format!("Only in {side} ({count}): {names}."));
        }
    }
    notes.extend(in_part(comparison));
    notes.extend(changed(comparison));
    notes.extend(single(comparison));
    notes.extend(unclear(comparison));
    notes
}

/// Returns a warning if the samples come from two machines.
fn hosts([a, b]: [&Host; 2]) -> Option<String> {
    (a != b).then(|| {
        let (a, b) = (plain(&a.to_string()), plain(&b.to_string()));
        if a == b {
            format!("The hosts differ in memory ({a}, rounded).")
        } else {
            format!("The hosts differ: {a} in A; {b} in B. Times of two machines say more about the machines than about the code.")
        }
    })
}

/// Returns a warning if exact rows are compared in part.
fn in_part(comparison: &Judgements<'_>) -> Option<String> {
    let count = comparison.rows.iter().filter(|row| row.pair.is_part());
    let (count, rows) = (count.count(), comparison.rows.len());
    (count > 0).then(|| {
        format!("In {count} of {rows} rows one side has runs that the other lacks: only the runs that both have are compared.")
    })
}

/// Returns a note on the rows that differ but have no percentage.
fn changed(comparison: &Judgements<'_>) -> Option<String> {
    let all = comparison.rows.iter();
    let rows = all.filter(|row| row.verdict == Verdict::Changed);
    let named = rows.filter_map(|row| {
        let (a, b) = row.pair.means()?;
        Some(format!("{} ({a} to {b})", plain(&row.pair.name)))
    });
    let named: Vec<String> = named.collect();
    (!named.is_empty()).then(|| {
        let (count, rows) = (named.len(), comparison.rows.len());
        let named = some_of(&named, NAMED_MAX);
        format!("{count} of {rows} rows changed from 0, or in a metric of which neither direction is better, so they have no gain: {named}. With --fail-on-changed that is a failure.")
    })
}

/// Returns a warning if a difference rests on a single sample of a side.
fn single(comparison: &Judgements<'_>) -> Option<String> {
    let is_single = |row: &&Judged<'_>| {
        let both = [&row.pair.a, &row.pair.b];
        row.pair.kind.is_none()
            && row.significant
            && both.iter().any(|side| side.samples().len() == 1)
    };
    let count = comparison.rows.iter().filter(is_single).count();
    (count > 0).then(|| {
        let rows = comparison.rows.len();
        format!("{count} of {rows} rows differ, and one side has a single sample, which is taken as exact, like those of a replay; a single timing looks the same. If they are timings, take more samples.")
    })
}

/// Returns a warning if rows cannot be judged, those with the largest possible loss first.
fn unclear(comparison: &Judgements<'_>) -> Option<String> {
    let all = comparison.rows.iter();
    let mut rows: Vec<_> = all.filter(|row| row.verdict == Verdict::Unclear).collect();
    if rows.is_empty() {
        return None;
    }
    let worst = |row: &Judged<'_>| row.gain_interval.map_or(f64::NEG_INFINITY, |gain| gain.low);
    rows.sort_by(|a, b| worst(a).total_cmp(&worst(b)));
    let named = rows.iter().map(|row| {
        let why = match row.gain_interval {
            Some(gain) => format!("{:.1} % to {:+.1} %", gain.low, gain.high),
            None if row.pair.is_part() => "no run in common".into(),
            None => format!("{} and {} samples", row.pair.of[0], row.pair.of[1]),
        };
        format!("{} ({why})", plain(&row.pair.name))
    });
    Some(format!(
        "In {} of {} rows a loss above the threshold is neither proven nor ruled out (95 % interval of the gain): {}. Run again on a quiet machine, or take more samples.",
        rows.len(),
        comparison.rows.len(),
        some_of(&named.collect::<Vec<_>>(), NAMED_MAX)
    ))
}

/// Joins the first `most` names, and says how many more there are.
pub(super) fn some_of(names: &[String], most: usize) -> String {
    match names.len() {
        0 => "none".into(),
        count if count > most => {
            format!("{}, and {} more", names[..most].join(", "), count - most)
        }
        _ => names.join(", "),
    }
}
