//! The test of each pair of rows.

use crate::{Row, SampleKind, Welch, holm};

use super::pair::Pair;

/// Exact values that differ by at most this, relative to the larger, are the same: rounding on
/// another machine.
const TOLERANCE: f64 = 1e-9;

/// How a pair was tested.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Test {
    /// The same work on both sides, or no sample varies: any difference counts.
    Exact(Exactly),
    /// Welch's test.
    Welch {
        /// Its p.
        p: f64,
        /// p after Holm's correction.
        p_holm: f64,
    },
    /// None: too few samples.
    None,
}

/// The outcome for an exact pair.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exactly {
    /// All samples are equal on both sides.
    Same,
    /// Some samples differ.
    Changed,
}

impl Test {
    /// Returns true if the sides differ significantly at the level `alpha`.
    pub(super) fn is_significant(self, alpha: f64) -> bool {
        match self {
            Self::Exact(exactly) => exactly == Exactly::Changed,
            Self::Welch { p_holm, .. } => p_holm < alpha,
            Self::None => false,
        }
    }
}

/// Tests each pair.
pub(super) fn tests(pairs: &[Pair]) -> Vec<Test> {
    let exactly: Vec<_> = pairs.iter().map(exactly).collect();
    let p = pairs.iter().zip(&exactly).map(|(pair, exactly)| {
        let is_exact = exactly.is_some() || pair.kind == Some(SampleKind::Exact);
        let p = if is_exact { None } else { p(pair) };
        p.unwrap_or(f64::NAN)
    });
    let p: Vec<f64> = p.collect();
    let corrected = holm(&p);
    let test = |((exactly, p), p_holm): ((Option<Exactly>, f64), f64)| match exactly {
        Some(exactly) => Test::Exact(exactly),
        None if p.is_nan() => Test::None,
        None => Test::Welch { p, p_holm },
    };
    exactly
        .into_iter()
        .zip(p)
        .zip(corrected)
        .map(test)
        .collect()
}

/// Returns the outcome of an exact pair: one that its documents mark exact, or that has no mark and
/// no variation on either side.
fn exactly(pair: &Pair) -> Option<Exactly> {
    let means = pair.means()?;
    let is_same = match pair.kind {
        Some(SampleKind::Timed) => return None,
        Some(SampleKind::Exact) => {
            let mut samples = pair.a.samples().iter().zip(pair.b.samples());
            samples.all(|(a, b)| is_the_same(*a, *b))
        }
        None if is_constant(&pair.a) && is_constant(&pair.b) => is_the_same(means.0, means.1),
        None => return None,
    };
    Some(if is_same {
        Exactly::Same
    } else {
        Exactly::Changed
    })
}

/// Returns p of Welch's test. Where no sample varies the clock is too coarse to show scatter: p is
/// 0 if the means differ, and 1 if they do not.
fn p(pair: &Pair) -> Option<f64> {
    if does_not_vary(pair) {
        let (a, b) = pair.means()?;
        return Some(if is_the_same(a, b) { 1.0 } else { 0.0 });
    }
    Welch::of(pair.b.samples(), pair.a.samples()).map(|test| test.p)
}

/// Returns true if both sides have several samples and each side's are all equal.
pub(super) fn does_not_vary(pair: &Pair) -> bool {
    let mut sides = [&pair.a, &pair.b].into_iter();
    sides.all(|row| row.summary().n() > 1 && is_constant(row))
}

/// Returns true if the row has samples and they are all equal.
fn is_constant(row: &Row) -> bool {
    let summary = row.summary();
    summary.n() > 0 && summary.min() == summary.max()
}

/// Returns true if the values are equal within [`TOLERANCE`].
fn is_the_same(a: f64, b: f64) -> bool {
    (a - b).abs() <= TOLERANCE * a.abs().max(b.abs())
}
