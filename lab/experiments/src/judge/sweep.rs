//! The same comparison under other assumptions.

use brickyard_results::judge::{Difference, mean};
use brickyard_results::{Interval, Summary};

use super::sides::Sides;
use super::verdict::Number;
use crate::data::{Data, Samples};
use crate::document::{Figure, Swept};
use crate::raw::Method;

/// How far a figure moves if what its document does not say is assumed otherwise. Speedups; of a
/// claim about a value, values.
#[derive(Debug, Clone, PartialEq)]
pub struct Sweep {
    /// The number of assumptions, that of the figure itself included.
    pub members: usize,
    /// The member with the lowest number.
    pub lowest: Member,
    /// The one with the highest.
    pub highest: Member,
}

/// A figure under one of the assumptions.
#[derive(Debug, Clone, PartialEq)]
pub struct Member {
    /// The assumption.
    pub label: String,
    /// The number, as [`Sweep`] says.
    pub value: f64,
    /// The number of samples of the figure's own side.
    pub n: usize,
    /// The rows of both sides, as indices for [`Data::row`]; its own first.
    pub rows: Vec<usize>,
    /// What the number is known to be between; none if the samples are too few.
    pub(super) range: Option<Interval>,
}

impl Member {
    /// Returns its number, for a verdict.
    pub(super) const fn number(&self) -> Number {
        Number {
            value: self.value,
            range: self.range,
        }
    }
}

/// The label of the figure itself.
const ITSELF: &str = "as in the table";

impl Sweep {
    /// Returns the sweep of a figure that is itself `own`; none if it has no other members, or if
    /// this run lacks the rows of one.
    pub(super) fn of(own: &Member, figure: &Figure, data: &Data) -> Option<(Self, Vec<Member>)> {
        let others = figure
            .swept
            .iter()
            .map(|swept| Member::of(swept, figure, data));
        let others: Vec<Member> = others.collect::<Option<_>>()?;
        let by_value = |a: &&Member, b: &&Member| a.value.total_cmp(&b.value);
        if others.is_empty() {
            return None;
        }
        let all = || others.iter().chain([own]);
        let sweep = Self {
            members: others.len() + 1,
            lowest: all().min_by(by_value)?.clone(),
            highest: all().max_by(by_value)?.clone(),
        };
        Some((sweep, others))
    }
}

impl Member {
    /// Returns a figure under one of its other assumptions; none if its rows are missing, or below
    /// zero.
    fn of(swept: &Swept, figure: &Figure, data: &Data) -> Option<Self> {
        let label = swept.label.clone();
        let (member, is_assumed) = if figure.least().is_some() {
            let of = data.samples(&swept.of)?;
            let is_assumed = of.kind == Method::Replayed;
            (Self::of_value(label, &of)?, is_assumed)
        } else {
            let sides = Sides::of_keys(data, &swept.of, swept.against.as_ref()?)?;
            let member = Self::of_sides(label, &sides, &sides.difference()?)?;
            (member, sides.is_assumed())
        };
        // Its few replays show where the mean moves to, and the figure itself how much they vary.
        let mean = is_assumed.then(|| Interval::point(member.value));
        Some(Self {
            range: mean.or(member.range),
            ..member
        })
    }

    /// Returns the figure itself, as a member.
    pub(super) fn itself(sides: &Sides<'_>, difference: &Difference) -> Option<Self> {
        Self::of_sides(ITSELF.to_owned(), sides, difference)
    }

    /// Returns the same of a claim about a value.
    pub(super) fn itself_alone(of: &Samples<'_>) -> Option<Self> {
        Self::of_value(ITSELF.to_owned(), of)
    }

    fn of_sides(label: String, sides: &Sides<'_>, difference: &Difference) -> Option<Self> {
        let rows = sides.of.rows.iter().chain(&sides.against.rows);
        Some(Self {
            label,
            value: difference.ratio?,
            n: sides.of.values.len(),
            rows: rows.copied().collect(),
            range: difference.range(),
        })
    }

    fn of_value(label: String, of: &Samples<'_>) -> Option<Self> {
        let value = mean(&of.values)?;
        let range = if of.is_constant() {
            Some(Interval::point(value))
        } else {
            let reach = Summary::of(&of.values).ok()?.ci95();
            reach.map(|reach| Interval {
                low: value - reach,
                high: value + reach,
            })
        };
        Some(Self {
            label,
            value,
            n: of.values.len(),
            rows: of.rows.clone(),
            range,
        })
    }
}
