//! How each pair of rows is tested.

use crate::{Row, SampleKind, Welch, holm};

use super::pair::Pair;

/// Exact values that differ by less than this, relative to the larger, are the same: the last
/// digits of another machine's arithmetic.
const EXACTLY: f64 = 1e-9;

/// How a pair was tested.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Test {
    /// The same work on both sides, or nothing varies: the difference is what it is.
    Exact(Exactly),
    /// By Welch's test.
    Welch {
        /// Its p.
        p: f64,
        /// The same after Holm's correction.
        p_holm: f64,
    },
    /// Not at all: too few samples.
    None,
}

/// What is seen where there is nothing to test.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exactly {
    /// Every sample is that of the other side.
    Same,
    /// Some are not.
    Changed,
}

impl Test {
    /// Do the sides differ, and surely?
    pub(super) fn is_significant(self, alpha: f64) -> bool {
        match self {
            Self::Exact(exactly) => exactly == Exactly::Changed,
            Self::Welch { p_holm, .. } => p_holm < alpha,
            Self::None => false,
        }
    }
}

/// How each pair is tested, and with which outcome.
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

/// What is seen of a pair that is exact: because its documents say so, or for want of their word
/// because neither side varies.
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

/// p of Welch's test. Where no sample varies the clock is too coarse for their scatter: they surely
/// differ, or do not.
fn p(pair: &Pair) -> Option<f64> {
    if does_not_vary(pair) {
        let (a, b) = pair.means()?;
        return Some(if is_the_same(a, b) { 1.0 } else { 0.0 });
    }
    Welch::of(pair.b.samples(), pair.a.samples()).map(|test| test.p)
}

/// Are both sides of several samples, all alike?
pub(super) fn does_not_vary(pair: &Pair) -> bool {
    let mut sides = [&pair.a, &pair.b].into_iter();
    sides.all(|row| row.summary().n() > 1 && is_constant(row))
}

/// Has the row samples, and are they all the same?
fn is_constant(row: &Row) -> bool {
    let summary = row.summary();
    summary.n() > 0 && summary.min() == summary.max()
}

/// Are these the same but for the last digits?
fn is_the_same(a: f64, b: f64) -> bool {
    (a - b).abs() <= EXACTLY * a.abs().max(b.abs())
}
