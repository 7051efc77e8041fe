//! Figures with no part in the verdict: the costly ones of a pair, and the geometric mean of all.

use crate::{
    Better, Gmean, GmeanCell, Host, RankSum, RatioInterval, Results, Row, Runs, SampleKind,
    cliffs_delta, hedges_g, ratio_interval,
};

use super::pair::Pair;
use super::tested::Test;

/// The figures that only [`Depth::Full`](super::Depth::Full) has.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct Full {
    /// The 95 % interval of B / A.
    pub ratio: Option<RatioInterval>,
    /// Hedges' g: positive is better. `None` for exact rows: their scatter is that of the work.
    pub hedges_g: Option<f64>,
    /// Cliff's delta: positive is better.
    pub cliffs_delta: Option<f64>,
    /// p of the rank-sum test, not corrected: a check on Welch's test that is robust to outliers.
    /// Only of rows that are tested.
    pub rank_sum_p: Option<f64>,
}

/// Computes the figures of a pair that take longer.
pub(super) fn of(pair: &Pair, test: Test) -> Full {
    let (a, b) = (pair.a.samples(), pair.b.samples());
    let is_exact = pair.kind == Some(SampleKind::Exact);
    let sign = match pair.better() {
        Better::Higher => Some(1.0),
        Better::Lower => Some(-1.0),
        Better::Neither => None,
    };
    // Adding 0.0 turns -0.0 into 0.0.
    let signed = |effect: f64| sign.map(|sign| sign * effect + 0.0);
    let runs = if is_exact {
        Runs::Paired
    } else {
        Runs::Independent
    };
    Full {
        ratio: ratio_interval(b, a, runs),
        hedges_g: hedges_g(b, a).filter(|_| !is_exact).and_then(signed),
        cliffs_delta: cliffs_delta(b, a).and_then(signed),
        rank_sum_p: match test {
            Test::Welch { .. } => RankSum::of(b, a).map(|test| test.p),
            Test::Exact(_) | Test::None => None,
        },
    }
}

/// Computes the geometric mean of all ratios, by the rules of the tables.
pub(super) fn gmean(pairs: &[Pair]) -> Option<(Better, GmeanCell)> {
    let mut results = Results::new("both", Host::unknown());
    for (number, pair) in pairs.iter().enumerate() {
        for (config, row) in [("a", &pair.a), ("b", &pair.b)] {
            // The number replaces the workload, so that no two pairs have the same key.
            let row = Row::new(
                config,
                number.to_string(),
                row.metric(),
                row.samples().to_vec(),
            );
            results.push(row.ok()?).ok()?;
        }
    }
    let gmean = Gmean::of(&crate::Comparison::new(&results))?;
    let of_b = *gmean.cells.get(1)?;
    Some((gmean.better, of_b?))
}
