//! How a measured direction compares with the published one.

use brickyard_results::Interval;

use crate::document::{Claim, Published, Verdict};

/// A measured difference below this fraction of the published one (of its logarithm) is negligible.
pub const NEGLIGIBLE: f64 = 0.1;

/// A difference has the published size if the logarithm of its ratio is at most this many times the
/// published one, and at least the published one divided by it.
pub const SIZE: f64 = 2.0;

/// A published relative difference below this counts as none, unless the document calls it
/// significant; so does a measured one that is compared with it.
pub const NONE: f64 = 0.01;

/// The rule for directions, as it is printed in the report.
pub const SIGN_RULE: &str = "A direction is the same, or opposite, if the whole 95 % interval of the measured ratio is on that side of 1 (of samples that do not vary, the value), unless the difference, as a logarithm, is less than a tenth of the published one. Otherwise there is \"no effect\" if the interval excludes half of the published difference, and it is \"undecided\" if it does not.";

/// The rule for the size of a difference, as it is printed in the report.
pub const SIZE_RULE: &str = "A difference has the published size if the logarithm of its ratio is between half and twice the published one. It is \"the same\" if its own value has that size, and those of more than half of all assumptions; otherwise it is \"direction only\". The published one is any that the printed figures allow, as they are rounded: a printed 1 is 0.5 to 1.5, so a rise from 1 to 2 is one by 1 to 5 times.";

/// The rule for what is no direction, as it is printed in the report.
pub const NONE_RULE: &str = "If a document published a difference below 1 % that it does not call significant, or calls one noise itself, the question is whether there is none here either: the whole interval must be within 1 %, or within what the document calls noise. These are no directions, nor are those whose cause is not modelled (\"not testable\"), and an answer does not depend on them. \"A difference here alone\" also needs one that is outside of what the rounding of the printed figures allows. A claim that a value is at least so large, or that nothing becomes slower (by more than 1 %), is a direction: the same if the whole interval is, opposite if none of it is. It is judged only where the document's own figure fulfils it; elsewhere it is \"contradicted by its own table\", and not counted.";

/// The rule for measured zeros, as it is printed in the report.
pub const ZERO_RULE: &str = "A 0 has no ratio. Huge pages are printed as whole numbers, so where a ratio of them is taken, a measured number below 0.5 counts as 0.5. Elsewhere a 0 on one side has a direction, and always another size than the published one, and a mean ratio with a 0 in it is not shown.";

/// The rule for assumptions, as it is printed in the report.
pub const SWEEP_RULE: &str = "Where a result hangs on what the document does not say, such as a machine's memory, the assumption is varied (a sweep). A direction then counts only if every member has it; otherwise it depends on the assumption, and what it is without another one is shown beside. A replay is a run of an assumed machine: it decides nothing without a sweep. It is repeated in five phases, which move the moments of the builds that coincide: its interval is over these, and of each other assumption the mean of two counts. What was timed counts only if two sittings of a full run, before all else and after it, agree.";

/// A measured number: a speedup; of a claim about a value, the value.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Number {
    pub(super) value: f64,
    /// What it is known to be between; none if the samples are too few.
    pub(super) range: Option<Interval>,
}

/// The sweep of a figure.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Swept {
    /// None is needed: the figure hangs on no assumption.
    NotNeeded,
    /// One is needed, and this run does not have all of its members.
    Lacking,
    /// The number of each other member.
    Over(Vec<Number>),
    /// It was timed: the number of each sitting, or none if there is only one.
    Sittings(Vec<Number>),
}

/// Returns the verdict on a published figure, and the one on its own number if the first depends on
/// an assumption.
/// None if nothing that can be judged was published.
pub(super) fn of(
    published: Published,
    own: Number,
    swept: &Swept,
) -> Option<(Verdict, Option<Verdict>)> {
    let question = Question::of(published)?;
    let itself = question.answer(own);
    let verdict = match swept {
        Swept::NotNeeded => itself,
        Swept::Lacking => question.not_decided(Verdict::NotSwept),
        Swept::Over(members) => question.verdict(itself, members),
        Swept::Sittings(sittings) => {
            let agree = |sitting: &Number| {
                let found = question.answer(*sitting);
                found != Verdict::Undecided && Question::has_way_of(itself, found)
            };
            match !sittings.is_empty() && sittings.iter().all(agree) {
                true => itself,
                false => question.not_decided(Verdict::Undecided),
            }
        }
    };
    Some((verdict, (verdict == Verdict::Depends).then_some(itself)))
}

/// What is asked of a measured number. Speedups are logarithms here, so 0 is no difference.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Question {
    /// Whether it has the direction and the size of the published speedup, which may be any of
    /// `printed`, as the printed figures are rounded.
    Direction { published: f64, printed: Interval },
    /// Whether there is no difference either: how far it may be from none, and what the rounding
    /// allows.
    NoDifference { none: Interval, printed: Interval },
    /// Whether it is at least so large.
    Value(Interval),
}

impl Question {
    fn of(published: Published) -> Option<Self> {
        if let Claim::AtLeast(least) = published.claim {
            return Some(Self::Value(Interval {
                low: f64::from(least),
                high: f64::INFINITY,
            }));
        }
        if published.claim == Claim::NoHarm {
            return Some(Self::Value(Interval {
                low: 1.0 - NONE,
                high: f64::INFINITY,
            }));
        }
        let logarithm = published.speedup?.ln();
        let printed = published.rounding.map_or_else(
            || Interval::point(logarithm),
            |(low, high)| Interval { low, high }.map(f64::ln),
        );
        let none = match published.claim {
            Claim::Noise => logarithm.abs().max(NONE.ln_1p()),
            Claim::Untested if logarithm.abs() < NONE.ln_1p() => NONE.ln_1p(),
            _ => {
                return Some(Self::Direction {
                    published: logarithm,
                    printed,
                });
            }
        };
        Some(Self::NoDifference {
            none: Interval {
                low: -none,
                high: none,
            },
            printed,
        })
    }

    /// Returns the verdict if nothing could be decided about a direction; without one it is
    /// unclear.
    const fn not_decided(self, otherwise: Verdict) -> Verdict {
        match self {
            Self::NoDifference { .. } => Verdict::Unclear,
            Self::Direction { .. } | Self::Value(_) => otherwise,
        }
    }

    /// Returns true if a verdict on another number goes the same way, whatever the size.
    fn has_way_of(itself: Verdict, other: Verdict) -> bool {
        use Verdict::{DirectionOnly, NoEffect, Same, Undecided};
        match itself {
            Same | DirectionOnly => matches!(other, Same | DirectionOnly),
            NoEffect | Undecided => matches!(other, NoEffect | Undecided),
            itself => other == itself,
        }
    }

    /// Returns the verdict on a number that by itself is `itself`, and on it under all other
    /// assumptions: it stands if they all have it, whatever their size.
    fn verdict(self, itself: Verdict, others: &[Number]) -> Verdict {
        use Verdict::{DirectionOnly, NoEffect, Same, Undecided};
        let others: Vec<Verdict> = others.iter().map(|&other| self.answer(other)).collect();
        if !others.iter().all(|&other| Self::has_way_of(itself, other)) {
            return self.not_decided(Verdict::Depends);
        }
        let all = || others.iter().chain([&itself]);
        let of_size = all().filter(|&&one| one == Same).count();
        match itself {
            Same if 2 * of_size <= 1 + others.len() => DirectionOnly,
            NoEffect if all().any(|&one| one == Undecided) => Undecided,
            itself => itself,
        }
    }

    /// Returns the verdict on a single number.
    fn answer(self, number: Number) -> Verdict {
        let Some(range) = number.range else {
            return self.not_decided(Verdict::Undecided);
        };
        let logarithm = range.map(f64::ln);
        match self {
            Self::Value(claimed) if range.is_within(claimed) => Verdict::Same,
            Self::Value(claimed) if range.is_outside(claimed) => Verdict::Opposite,
            Self::Value(_) => Verdict::Undecided,
            Self::NoDifference { none, .. } if logarithm.is_within(none) => Verdict::NoDifference,
            Self::NoDifference { none, printed } => {
                let either = Interval {
                    low: printed.low.min(none.low),
                    high: printed.high.max(none.high),
                };
                match logarithm.is_outside(either) {
                    true => Verdict::OnlyHere,
                    false => Verdict::Unclear,
                }
            }
            Self::Direction { published, printed } => {
                let value = number.value.ln();
                let sizes = sizes(printed);
                let is_negligible = value.abs() < NEGLIGIBLE * published.abs();
                if is_negligible || !logarithm.is_outside(Interval::point(0.0)) {
                    // How far it may reach in the published direction.
                    let reach = match published > 0.0 {
                        true => logarithm.high,
                        false => -logarithm.low,
                    };
                    match reach < sizes.low {
                        true => Verdict::NoEffect,
                        false => Verdict::Undecided,
                    }
                } else if (value > 0.0) != (logarithm.low > 0.0) {
                    // The ratio of the means is on the other side than the pairs are.
                    Verdict::Undecided
                } else if (value > 0.0) != (published > 0.0) {
                    Verdict::Opposite
                } else if Interval::point(value.abs()).is_outside(sizes) {
                    Verdict::DirectionOnly
                } else {
                    Verdict::Same
                }
            }
        }
    }
}

/// Returns which logarithms, whatever their sign, have the size of some published one.
fn sizes(published: Interval) -> Interval {
    // Rounding never turns a direction round; figures that differ may have been equal.
    let published = published.map(f64::abs);
    Interval {
        low: published.low / SIZE,
        high: published.high * SIZE,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::PrintedSpeedup;

    type Range = (f64, f64);

    fn of(published: Published, range: Option<Range>, swept: &Swept) -> Option<Verdict> {
        Some(super::of(published, number(range), swept)?.0)
    }

    /// A number in the middle of its range.
    fn number(range: Option<Range>) -> Number {
        Number {
            value: range.map_or(f64::NAN, |(low, high)| match low == high {
                true => low,
                false => (low * high).sqrt(),
            }),
            range: range.map(|(low, high)| Interval { low, high }),
        }
    }

    fn verdict(speedup: f64, claim: Claim, ranges: &[Option<Range>]) -> Option<Verdict> {
        let published = Published {
            text: "",
            speedup: Some(speedup),
            rounding: None,
            claim,
        };
        let swept = match ranges.len() {
            1 => Swept::NotNeeded,
            _ => Swept::Over(ranges[1..].iter().map(|&it| number(it)).collect()),
        };
        of(published, ranges[0], &swept)
    }

    fn exactly(speedup: f64) -> Option<Range> {
        Some((speedup, speedup))
    }

    #[test]
    fn a_verdict_compares_directions() {
        use Claim::{Noise, Significant, Untested};
        use Verdict::{
            DirectionOnly, NoDifference, NoEffect, OnlyHere, Opposite, Same, Unclear, Undecided,
        };
        let clear = Some((1.02, 1.05));
        for (published, claim, range, expected) in [
            (1.02, Untested, clear, Same),
            (0.98, Untested, clear, Opposite),
            (1.02, Untested, Some((0.99, 1.07)), Undecided),
            // Not half of what was published is left.
            (1.50, Untested, Some((0.9, 1.2)), NoEffect),
            (1.50, Untested, Some((0.9, 1.23)), Undecided),
            (0.50, Untested, Some((0.75, 3.0)), NoEffect),
            (0.50, Untested, Some((0.7, 3.0)), Undecided),
            // Less than a tenth of the published difference does not count.
            (1.50, Untested, clear, NoEffect),
            (1.02, Untested, exactly(1.0), NoEffect),
            // Whichever way it points; but measured as a ratio, so that a large loss counts.
            (0.50, Untested, clear, NoEffect),
            (1.015, Significant, exactly(0.99993), NoEffect),
            (0.90, Untested, clear, Opposite),
            (14.5, Untested, exactly(0.25), Opposite),
            (24.0, Untested, exactly(1.667), DirectionOnly),
            (24.0, Untested, exactly(1.2), NoEffect),
            // One run on each side: constant, or not judged.
            (1.02, Untested, exactly(1.03), Same),
            (0.98, Untested, exactly(1.0021), Opposite),
            (0.98, Untested, exactly(1.0019), NoEffect),
            (1.02, Untested, None, Undecided),
            (1.0, Untested, None, Unclear),
            // None published: the whole interval must be within 1 %.
            (1.0, Untested, Some((0.995, 1.005)), NoDifference),
            (1.009, Noise, Some((1.0005, 1.002)), NoDifference),
            (0.991, Untested, Some((0.9, 1.2)), Unclear),
            (1.0, Untested, Some((1.005, 1.02)), Unclear),
            (1.0, Untested, clear, OnlyHere),
            (1.005, Untested, clear, OnlyHere),
            (1.0, Untested, Some((0.96, 0.98)), OnlyHere),
            (1.0, Untested, exactly(1.009), NoDifference),
            (1.0, Untested, exactly(1.02), OnlyHere),
            // What the document calls noise counts as no difference, however large.
            (1.04, Noise, exactly(1.03), NoDifference),
            (0.96, Noise, exactly(1.03), NoDifference),
            (0.96, Noise, exactly(1.05), OnlyHere),
            (1.04, Noise, Some((0.9, 1.2)), Unclear),
            // Small, but called significant: a direction like any other.
            (1.005, Significant, Some((1.006, 1.009)), Same),
            (1.005, Significant, clear, DirectionOnly),
            (0.995, Significant, clear, Opposite),
        ] {
            let case = format!("{published} {claim:?} {range:?}");
            assert_eq!(
                verdict(published, claim, &[range]),
                Some(expected),
                "{case}"
            );
        }
    }

    /// Between half and twice the published logarithm, ends included, whichever way it points.
    #[test]
    fn the_size_is_that_of_the_logarithm() {
        use Verdict::{DirectionOnly, NoEffect, Same};
        let published: f64 = 1.21;
        for (power, expected) in [
            (0.099, NoEffect),
            (0.11, DirectionOnly),
            (0.499, DirectionOnly),
            (0.501, Same),
            (1.0, Same),
            (1.999, Same),
            (2.001, DirectionOnly),
            (9.0, DirectionOnly),
        ] {
            for base in [published, 1.0 / published] {
                let found = verdict(base, Claim::Untested, &[exactly(base.powf(power))]);
                assert_eq!(found, Some(expected), "{base} to the power of {power}");
            }
        }
        // An interval earns nothing: the number in its middle must have the size.
        for (low, high, expected) in [
            (0.2, 0.501, DirectionOnly),
            (0.5, 0.6, Same),
            (1.999, 5.0, DirectionOnly),
            (0.3, 1.0, Same),
        ] {
            for base in [published, 1.0 / published] {
                let ends = (base.powf(low), base.powf(high));
                let range = Some((ends.0.min(ends.1), ends.0.max(ends.1)));
                let found = verdict(base, Claim::Untested, &[range]);
                assert_eq!(found, Some(expected), "{base}: {low} to {high}");
            }
        }
    }

    #[test]
    fn a_direction_counts_if_every_member_of_the_sweep_has_it() {
        use Verdict::{
            Depends, DirectionOnly, NoDifference, NoEffect, OnlyHere, Opposite, Same, Unclear,
            Undecided,
        };
        let of = |speedups: &[f64]| speedups.iter().map(|&it| exactly(it)).collect::<Vec<_>>();
        for (published, speedups, expected) in [
            (1.5, &[1.4, 1.6, 1.3][..], Same),
            (1.5, &[0.8, 0.7], Opposite),
            (1.5, &[1.4, 0.7], Depends),
            // Hardly a difference under one assumption.
            (1.5, &[1.4, 1.01], Depends),
            (1.5, &[1.01, 1.4], Depends),
            (1.5, &[1.01, 0.99], NoEffect),
            // All sizes are other ones.
            (1.5, &[3.0, 4.0], DirectionOnly),
            (1.5, &[1.1, 1.15], DirectionOnly),
            // That some assumption between the two would give the published size is not enough, nor
            // that another member has it, nor that only half of them do.
            (1.5, &[1.1, 4.0], DirectionOnly),
            (1.5, &[1.1, 1.5, 1.5], DirectionOnly),
            (1.5, &[1.5, 1.1], DirectionOnly),
            (1.5, &[1.5, 1.1, 1.5], Same),
            // No difference published.
            (1.0, &[1.005, 0.995], NoDifference),
            (1.0, &[1.5, 2.0], OnlyHere),
            (1.0, &[1.005, 1.5], Unclear),
        ] {
            let found = verdict(published, Claim::Untested, &of(speedups));
            assert_eq!(found, Some(expected), "{published}: {speedups:?}");
        }
        // One assumption cannot exclude what the others do.
        let found = verdict(1.5, Claim::Untested, &[exactly(1.0), Some((0.8, 1.3))]);
        assert_eq!(found, Some(Undecided));
        // Too few samples under one assumption.
        let found = verdict(1.5, Claim::Untested, &[exactly(1.4), None]);
        assert_eq!(found, Some(Depends));
        for (published, expected) in [(1.5, Verdict::NotSwept), (1.0, Unclear)] {
            let published = Published {
                text: "",
                speedup: Some(published),
                rounding: None,
                claim: Claim::Untested,
            };
            assert_eq!(of_lacking(published), Some(expected));
        }
    }

    /// A printed 1 may have been anything from 0.5 to 1.5.
    #[test]
    fn the_size_is_any_that_rounding_allows() {
        use Verdict::{
            DirectionOnly, NoDifference, NoEffect, OnlyHere, Opposite, Same, Unclear, Undecided,
        };
        let verdict = |before: &str, now: &str, measured| {
            let printed = PrintedSpeedup::over(now, before).unwrap();
            let published = Published {
                text: "",
                speedup: Some(printed.value),
                rounding: printed.rounding,
                claim: Claim::Untested,
            };
            of(published, exactly(measured), &Swept::NotNeeded)
        };
        for (before, now, measured, expected) in [
            // 1 to 5 times: up to the square of 5.
            ("1", "2", 1.08, Same),
            ("1", "2", 24.0, Same),
            ("1", "2", 26.0, DirectionOnly),
            ("2", "1", 1.0 / 24.0, Same),
            ("2", "1", 1.0 / 26.0, DirectionOnly),
            // 1.95 / 1.05 to 2.05 / 0.95: from the root of 1.857 to the square of 2.158.
            ("1.0", "2.0", 1.35, DirectionOnly),
            ("1.0", "2.0", 1.37, Same),
            ("1.0", "2.0", 4.65, Same),
            ("1.0", "2.0", 4.67, DirectionOnly),
            // Directions, and what is negligible, hang on the printed figures themselves.
            ("1", "2", 0.9, Opposite),
            ("1", "2", 1.05, Undecided),
            ("1.0", "2.0", 1.05, NoEffect),
            // Equal figures: up to three times.
            ("1", "1", 1.005, NoDifference),
            ("1", "1", 2.9, Unclear),
            ("1", "1", 0.34, Unclear),
            ("1", "1", 3.1, OnlyHere),
            ("100", "100", 1.012, OnlyHere),
        ] {
            let case = format!("{before} to {now}, {measured}");
            assert_eq!(verdict(before, now, measured), Some(expected), "{case}");
        }
    }

    #[test]
    fn the_verdict_without_other_assumptions_is_kept() {
        let published = Published {
            text: "",
            speedup: Some(1.5),
            rounding: None,
            claim: Claim::Untested,
        };
        for (own, other, expected) in [
            (0.7, 1.4, (Verdict::Depends, Some(Verdict::Opposite))),
            (1.4, 1.5, (Verdict::Same, None)),
            (1.4, 1.1, (Verdict::DirectionOnly, None)),
        ] {
            let swept = Swept::Over(vec![number(exactly(other))]);
            let found = super::of(published, number(exactly(own)), &swept);
            assert_eq!(found, Some(expected), "{own} {other}");
        }
    }

    fn of_lacking(published: Published) -> Option<Verdict> {
        of(published, exactly(1.4), &Swept::Lacking)
    }

    #[test]
    fn a_claim_about_a_value_is_judged_by_the_value() {
        use Verdict::{Depends, NotSwept, Opposite, Same, Undecided};
        let claim = Published {
            text: "at least 40",
            speedup: None,
            rounding: None,
            claim: Claim::AtLeast(40),
        };
        for (range, expected) in [
            (exactly(40.0), Same),
            (exactly(39.9), Opposite),
            (exactly(0.0), Opposite),
            (Some((38.0, 43.0)), Undecided),
            (Some((41.0, 43.0)), Same),
            (None, Undecided),
        ] {
            assert_eq!(
                of(claim, range, &Swept::NotNeeded),
                Some(expected),
                "{range:?}"
            );
        }
        let over =
            |others: &[f64]| Swept::Over(others.iter().map(|&it| number(exactly(it))).collect());
        assert_eq!(of(claim, exactly(41.0), &over(&[50.0, 40.0])), Some(Same));
        assert_eq!(
            of(claim, exactly(41.0), &over(&[50.0, 39.0])),
            Some(Depends)
        );
        assert_eq!(of(claim, exactly(1.0), &over(&[0.0, 39.0])), Some(Opposite));
        assert_eq!(of(claim, exactly(41.0), &Swept::Lacking), Some(NotSwept));
    }
}
