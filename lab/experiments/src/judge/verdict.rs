//! How a measured direction compares with the published one.

use serde::Serialize;

use super::Judgement;
use crate::document::{Claim, Published};

/// A measured difference below this fraction of the published one (of its logarithm) is negligible.
pub const NEGLIGIBLE: f64 = 0.1;

/// A published relative difference below this counts as none, unless the document calls it
/// significant; so does a measured one that is compared with it.
pub const NONE: f64 = 0.01;

/// How a measured direction compares with the published one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// The same direction.
    Same,
    /// The opposite direction.
    Opposite,
    /// The samples cannot decide, or the difference is negligible.
    WithinNoise,
    /// No difference was published, and there is none.
    NoDifference,
    /// No difference was published, and there is one.
    OnlyHere,
    /// No difference was published, and the samples cannot decide whether there is one.
    Unclear,
    /// What would cause the published difference is not modelled.
    NotTestable,
}

impl Verdict {
    /// All of them. Three are for figures without a published direction.
    pub const ALL: [Self; 7] = [
        Self::Same,
        Self::Opposite,
        Self::WithinNoise,
        Self::NoDifference,
        Self::OnlyHere,
        Self::Unclear,
        Self::NotTestable,
    ];

    /// Returns its name in pages and files.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Same => "same",
            Self::Opposite => "opposite",
            Self::WithinNoise => "within noise",
            Self::NoDifference => "no difference in either",
            Self::OnlyHere => "a difference here alone",
            Self::Unclear => "none published, unclear here",
            Self::NotTestable => "not testable",
        }
    }
}

/// Returns the verdict on a published figure; none if it has no direction, if none was measured, or
/// if there is only one run and another one may differ.
pub(super) fn of(published: Published, found: &Judgement) -> Option<Verdict> {
    let speedup = found.speedup?;
    // One run of something that varies decides nothing.
    if !found.exact && found.n < 2 {
        return None;
    }
    let range = if found.exact {
        Some((speedup, speedup))
    } else {
        found.interval
    };
    verdict(published, range)
}

/// Returns the verdict if the measured speedup is within `range`: its interval, or twice the same
/// value if it is exact; none if the samples are too few.
fn verdict(figure: Published, range: Option<(f64, f64)>) -> Option<Verdict> {
    let published = figure.speedup?.ln();
    let (is_none, none) = match figure.claim {
        Claim::Significant => (false, 0.0),
        Claim::Noise => (true, published.abs().max(NONE.ln_1p())),
        Claim::Untested => (published.abs() < NONE.ln_1p(), NONE.ln_1p()),
    };
    let Some((low, high)) = range.map(|(low, high)| (low.ln(), high.ln())) else {
        return Some(if is_none {
            Verdict::Unclear
        } else {
            Verdict::WithinNoise
        });
    };
    if is_none {
        return Some(if -none <= low && high <= none {
            Verdict::NoDifference
        } else if high < -none || low > none {
            Verdict::OnlyHere
        } else {
            Verdict::Unclear
        });
    }
    let is_negligible = f64::midpoint(low, high).abs() < NEGLIGIBLE * published.abs();
    Some(if is_negligible || low <= 0.0 && 0.0 <= high {
        Verdict::WithinNoise
    } else if (low > 0.0) == (published > 0.0) {
        Verdict::Same
    } else {
        Verdict::Opposite
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_verdict_compares_directions() {
        use Claim::{Noise, Significant, Untested};
        use Verdict::{NoDifference, OnlyHere, Opposite, Same, Unclear, WithinNoise};
        let clear = Some((1.02, 1.05));
        let exactly = |speedup| Some((speedup, speedup));
        for (published, claim, range, expected) in [
            (1.02, Untested, clear, Same),
            (0.98, Untested, clear, Opposite),
            (1.02, Untested, Some((0.99, 1.07)), WithinNoise),
            // Less than a tenth of the published difference does not count.
            (1.50, Untested, clear, WithinNoise),
            (1.02, Untested, exactly(1.0), WithinNoise),
            // Whichever way it points; but measured as a ratio, so that a large loss counts.
            (0.50, Untested, clear, WithinNoise),
            (1.015, Significant, exactly(0.99993), WithinNoise),
            (0.90, Untested, clear, Opposite),
            (14.5, Untested, exactly(0.25), Opposite),
            (24.0, Untested, exactly(1.667), Same),
            (24.0, Untested, exactly(1.2), WithinNoise),
            // One run on each side: exact, or not judged.
            (1.02, Untested, exactly(1.03), Same),
            (0.98, Untested, exactly(1.0021), Opposite),
            (0.98, Untested, exactly(1.0019), WithinNoise),
            (1.02, Untested, None, WithinNoise),
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
            (1.005, Significant, clear, Same),
            (0.995, Significant, clear, Opposite),
        ] {
            let figure = Published {
                text: "",
                speedup: Some(published),
                claim,
            };
            let case = format!("{published} {claim:?} {range:?}");
            assert_eq!(verdict(figure, range), Some(expected), "{case}");
        }
    }
}
