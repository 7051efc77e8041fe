//! The two sides of a comparison: the runs that both have, and their difference.

use std::collections::BTreeSet;

use brickyard_results::judge::{self, Difference, common_runs};
use brickyard_results::{Better, Runs, SIGNIFICANT_P};

use crate::data::{Data, Key, Samples};
use crate::raw::{Method, SITTING};

/// The metric that the documents print as whole numbers, in pages or in percent of memory.
const WHOLE: &str = "huge-pages";

/// What a smaller measured number of this metric counts as where a ratio is taken, since a 0 has
/// none: half a unit of print.
const HALF_UNIT: f64 = 0.5;

/// The samples of a figure, and those that it is compared with.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Sides<'d> {
    pub(super) of: Samples<'d>,
    pub(super) against: Samples<'d>,
    pub(super) runs: Runs,
    // What a smaller value counts as where a ratio is taken.
    least: f64,
}

impl<'d> Sides<'d> {
    /// Returns both sides reduced to the runs that both have; all runs, if they have none in
    /// common. None if one has no rows.
    pub(super) fn of_keys(data: &'d Data, of: &Key, against: &Key) -> Option<Self> {
        let least = match of.metric == WHOLE {
            true => HALF_UNIT,
            false => 0.0,
        };
        Some(Self::new(data.samples(of)?, data.samples(against)?, least))
    }

    fn new(of: Samples<'d>, against: Samples<'d>, least: f64) -> Self {
        let common = common_runs(of.runs.iter().copied(), against.runs.iter().copied());
        if common.is_empty() {
            return Self {
                of,
                against,
                runs: Runs::Independent,
                least,
            };
        }
        Self {
            of: only(of, &common),
            against: only(against, &common),
            runs: Runs::Paired,
            least,
        }
    }

    /// Returns those of each sitting, of what was timed in two.
    pub(super) fn sittings(&self) -> Vec<Self> {
        let runs = || self.of.runs.iter().copied();
        let of = |late: bool| runs().filter(move |&run| (run > SITTING) == late);
        let sittings = [false, true].map(|late| of(late).collect::<BTreeSet<u32>>());
        if self.runs != Runs::Paired || sittings.iter().any(BTreeSet::is_empty) {
            return Vec::new();
        }
        let of = |runs: &BTreeSet<u32>| Self {
            of: only(self.of.clone(), runs),
            against: only(self.against.clone(), runs),
            ..self.clone()
        };
        sittings.iter().map(of).collect()
    }

    /// Returns true if a side was timed.
    pub(super) fn is_timed(&self) -> bool {
        self.of.kind == Method::Timed || self.against.kind == Method::Timed
    }

    /// Returns the values of both sides as they count where a ratio is taken.
    pub(super) fn counted(&self) -> [Vec<f64>; 2] {
        [&self.of, &self.against].map(|side| {
            let values = side.values.iter();
            match self.least > 0.0 {
                true => values.map(|value| value.max(self.least)).collect(),
                false => values.copied().collect(),
            }
        })
    }

    /// Returns true if these are the same samples, so that a test of one is a test of the other.
    pub(super) fn is_same_test(&self, other: &Self) -> bool {
        let same = |a: &Samples<'_>, b: &Samples<'_>| {
            let rows = a.rows == b.rows;
            let values = a.kind.is_exact() && b.kind.is_exact() && a.values == b.values;
            (rows || values) && a.runs == b.runs && a.better == b.better
        };
        same(&self.of, &other.of) && same(&self.against, &other.against)
    }

    /// Returns the difference: above 1 is better. None if neither way is.
    pub(super) fn difference(&self) -> Option<Difference> {
        let [now, before] = self.counted();
        let counted = judge::Sides {
            now: &now,
            before: &before,
            ..self.samples()
        };
        (self.of.better != Better::Neither).then(|| counted.difference())
    }

    /// Returns the p of the test that fits the samples; none if they do not vary.
    pub(super) fn p(&self) -> Option<f64> {
        Some(self.samples().test(SIGNIFICANT_P)?.p)
    }

    fn samples(&self) -> judge::Sides<'_> {
        judge::Sides {
            now: &self.of.values,
            before: &self.against.values,
            better: self.of.better,
            runs: self.runs,
            is_exact: self.is_constant(),
        }
    }

    /// Returns true if neither side varies.
    pub(super) fn is_constant(&self) -> bool {
        self.of.is_constant() && self.against.is_constant()
    }

    /// Returns true if a side was replayed on a machine whose parameters are assumed.
    pub(super) fn is_assumed(&self) -> bool {
        self.of.kind == Method::Replayed || self.against.kind == Method::Replayed
    }
}

/// Returns the samples of these runs.
fn only<'d>(side: Samples<'d>, runs: &BTreeSet<u32>) -> Samples<'d> {
    let wanted: Vec<usize> = (0..side.runs.len())
        .filter(|&place| runs.contains(&side.runs[place]))
        .collect();
    Samples {
        runs: wanted.iter().map(|&place| side.runs[place]).collect(),
        values: wanted.iter().map(|&place| side.values[place]).collect(),
        rows: wanted.iter().map(|&place| side.rows[place]).collect(),
        ..side
    }
}
