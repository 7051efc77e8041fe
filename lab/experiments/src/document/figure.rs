//! A figure: which rows it is computed from, what was published for it, and whether and under which
//! assumptions it is judged.

use super::statistic::Statistic;
use crate::data::Key;

/// A number: what it is computed from, and what was published for it.
#[derive(Debug, Clone, PartialEq)]
pub struct Figure {
    /// How it is computed.
    pub statistic: Statistic,
    /// The samples; one key, except for a statistic [of pairs](Statistic::is_of_pairs). Empty if nothing is measured:
    /// then only the published number is shown, and the table's `about` says why.
    pub of: Vec<Key>,
    /// What it is compared with, where the statistic or the direction needs a baseline.
    pub against: Vec<Key>,
    /// What is published for it.
    pub published: Option<Published>,
    /// Whether its direction is judged. If so, `of` and `against` have one key each (several for
    /// [`Statistic::WorstSpeedup`]), and
    /// `published` has a direction; or `of` has one, and `published` a claim about its mean.
    pub judged: Judged,
    /// The same comparison under other assumptions, where it hangs on what the document does not
    /// say. A judged direction then counts only if all of them have it.
    pub swept: Vec<Swept>,
    /// Digits after the point.
    pub decimals: usize,
    /// What the value is multiplied by when it is shown, such as 1000 for seconds in milliseconds.
    pub scale: f64,
}

/// Returns the key under an assumption.
fn under(key: &Key, assumption: &str) -> Key {
    Key {
        workload: format!("{} {assumption}", key.workload),
        ..key.clone()
    }
}

impl Figure {
    /// Returns a figure of one key, with nothing published, not judged, and two digits after the
    /// point.
    #[must_use]
    pub fn new(statistic: Statistic, of: Key) -> Self {
        Self {
            of: vec![of],
            ..Self::not_modelled_as(statistic)
        }
    }

    /// Returns the mean of one key, otherwise like [`new`](Self::new).
    #[must_use]
    pub fn mean(of: Key) -> Self {
        Self::new(Statistic::Mean, of)
    }

    /// Returns a figure that compares one key with another, otherwise like [`new`](Self::new).
    #[must_use]
    pub fn compared(statistic: Statistic, of: Key, against: Key) -> Self {
        Self::new(statistic, of).against(against)
    }

    /// Returns a published figure for which nothing is modelled.
    #[must_use]
    pub fn not_modelled(text: &'static str) -> Self {
        Self::not_modelled_as(Statistic::Mean).printed(text)
    }

    /// Returns the geometric mean of speedups, of each key over the key at the same index in
    /// `against`.
    #[must_use]
    pub fn gmean(of: Vec<Key>, against: Vec<Key>) -> Self {
        Self {
            of,
            against,
            ..Self::not_modelled_as(Statistic::GmeanSpeedup)
        }
    }

    const fn not_modelled_as(statistic: Statistic) -> Self {
        Self {
            statistic,
            of: Vec::new(),
            against: Vec::new(),
            published: None,
            judged: Judged::No,
            swept: Vec::new(),
            decimals: 2,
            scale: 1.0,
        }
    }

    /// Sets the baseline it is compared with.
    #[must_use]
    pub fn against(self, key: Key) -> Self {
        Self {
            against: vec![key],
            ..self
        }
    }

    /// Sets what the document printed for it, without a direction.
    #[must_use]
    pub fn printed(self, text: &'static str) -> Self {
        Self {
            published: Some(Published {
                text,
                speedup: None,
                rounding: None,
                claim: Claim::Untested,
            }),
            ..self
        }
    }

    /// Sets the direction of what the document printed, which is judged. Does nothing without a
    /// published text.
    #[must_use]
    pub fn judged(self, speedup: impl Into<PrintedSpeedup>, claim: Claim) -> Self {
        let PrintedSpeedup { value, rounding } = speedup.into();
        Self {
            published: self.published.map(|published| Published {
                speedup: Some(value),
                rounding,
                claim,
                ..published
            }),
            judged: match self.published {
                Some(_) => Judged::Yes,
                None => self.judged,
            },
            ..self
        }
    }

    /// Sets the published text, and the claim that the mean is at least so large, in the unit of
    /// the samples. `own` is the figure that the document itself printed there. The claim is judged
    /// only if that figure fulfils it: otherwise the document contradicts itself, and no
    /// measurement can agree with both.
    #[must_use]
    pub fn at_least(self, least: u32, own: f64, text: &'static str) -> Self {
        Self {
            published: Some(Published {
                text,
                speedup: None,
                rounding: None,
                claim: Claim::AtLeast(least),
            }),
            judged: if own >= f64::from(least) {
                Judged::Yes
            } else {
                Judged::Contradicted
            },
            ..self
        }
    }

    /// Returns what its value is claimed to be at least; none if it has no such claim.
    #[must_use]
    pub fn least(&self) -> Option<u32> {
        match self.published?.claim {
            Claim::AtLeast(least) => Some(least),
            _ => None,
        }
    }

    /// Adds a sweep: one member for each of these, which are what the workload of both sides ends
    /// with, after a space, under another assumption: `plain under load` becomes `plain under load
    /// sweep-memory-1.5`. A document adds it to its judged figures, such as
    /// `figure.swept(&["sweep-memory-0.75", "sweep-memory-1.5"])`; its cells have the rows. Rows
    /// that are missing, as in a quick run, are no error: then the figure counts as not swept.
    #[must_use]
    pub fn swept(self, assumptions: &[&str]) -> Self {
        self.swept_with(assumptions, under)
    }

    /// Adds the same, but of the own side alone: the other stays what it is.
    #[must_use]
    pub(crate) fn swept_alone(self, assumptions: &[&str]) -> Self {
        self.swept_with(assumptions, |key, _| key.clone())
    }

    fn swept_with(mut self, assumptions: &[&str], other: impl Fn(&Key, &str) -> Key) -> Self {
        for assumption in assumptions {
            self.swept.extend(self.of.first().map(|key| Swept {
                label: (*assumption).to_owned(),
                of: under(key, assumption),
                against: self.against.first().map(|key| other(key, assumption)),
            }));
        }
        self
    }

    /// Returns the same figure of what was run under an assumption, on both sides.
    pub(crate) fn under(&self, assumption: &str) -> Self {
        let all = |keys: &[Key]| keys.iter().map(|key| under(key, assumption)).collect();
        Self {
            of: all(&self.of),
            against: all(&self.against),
            ..self.clone()
        }
    }

    /// Returns the same figure with the own side under an assumption alone.
    pub(crate) fn under_alone(&self, assumption: &str) -> Self {
        Self {
            against: self.against.clone(),
            ..self.under(assumption)
        }
    }

    /// Returns all keys that it is computed from, those of its sweep included.
    pub fn keys(&self) -> impl Iterator<Item = &Key> {
        let swept = self.swept.iter();
        let swept = swept.flat_map(|swept| core::iter::once(&swept.of).chain(&swept.against));
        self.of.iter().chain(&self.against).chain(swept)
    }

    /// Says why a direction that would be judged cannot be tested here. Does nothing to a figure
    /// without a direction.
    #[must_use]
    pub fn not_testable(self, why: &'static str) -> Self {
        Self {
            judged: match self.judged {
                Judged::No => Judged::No,
                _ => Judged::NotTestable(why),
            },
            ..self
        }
    }

    /// Returns why its direction cannot be tested; none if it can, or if it has none.
    #[must_use]
    pub const fn why_not_testable(&self) -> Option<&'static str> {
        match self.judged {
            Judged::NotTestable(why) => Some(why),
            Judged::No | Judged::Yes | Judged::Contradicted => None,
        }
    }

    /// Returns true if the other has the same published direction of the same samples.
    pub(super) fn has_direction_of(&self, other: &Self) -> bool {
        let speedup = |figure: &Self| figure.published.and_then(|published| published.speedup);
        self.of == other.of && self.against == other.against && speedup(self) == speedup(other)
    }

    /// Sets the digits after the point.
    #[must_use]
    pub fn decimals(self, decimals: usize) -> Self {
        Self { decimals, ..self }
    }

    /// Sets the factor that the value is multiplied by when it is shown.
    #[must_use]
    pub fn scaled(self, scale: f64) -> Self {
        Self { scale, ..self }
    }
}

/// A member of a sweep: a figure under another assumption.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Swept {
    /// The assumption, in a word or two.
    pub label: String,
    /// The samples.
    pub of: Key,
    /// What they are compared with, if the figure has such a side.
    pub against: Option<Key>,
}

/// Whether the direction of a figure is judged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Judged {
    /// The figure is only shown.
    No,
    /// Its direction is judged.
    Yes,
    /// It has a direction, which cannot be tested here for this reason: what would cause it is not
    /// modelled. The measured figure is shown, and does not count as agreement or disagreement.
    NotTestable(&'static str),
    /// It has a claim that the document's own figure does not fulfil. The measured figure is shown,
    /// and does not count either.
    Contradicted,
}

/// What a document printed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Published {
    /// The figure as it is printed, such as `.05` or `1.015*`.
    pub text: &'static str,
    /// The published speedup of `of` over `against`: above 1 is better. Set for figures whose
    /// direction is judged.
    pub speedup: Option<f64>,
    /// The least and the most that this speedup may have been before the printed figures were
    /// rounded; none if it is not computed from printed figures.
    pub rounding: Option<(f64, f64)>,
    /// Whether the document itself calls the difference real.
    pub claim: Claim,
}

impl Published {
    /// Returns the number in its text, without asterisk, parentheses and percent sign; none if it
    /// is not a number, such as a dash for a missing value.
    #[must_use]
    pub fn number(&self) -> Option<f64> {
        number(self.text)
    }
}

/// Returns the number in a printed text.
#[must_use]
pub fn number(text: &str) -> Option<f64> {
    let bare = bare(text);
    bare.parse().ok().filter(|value: &f64| value.is_finite())
}

/// Returns what the number in a printed text may have been before it was rounded: half a unit of
/// its last digit below and above. A text such as `1` stands for 0.5 to 1.5, and `1.0` for 0.95 to
/// 1.05. None if there is no number in it.
#[must_use]
pub fn unrounded(text: &str) -> Option<(f64, f64)> {
    let value = number(text)?;
    let digits = bare(text)
        .split_once('.')
        .map_or(0, |(_, after)| after.len());
    let half = 0.5 / 10_f64.powi(i32::try_from(digits).ok()?);
    Some((value - half, value + half))
}

fn bare(text: &str) -> &str {
    text.trim_matches([' ', '(', ')', '*', '%', '+'])
}

/// A published speedup: above 1 is better.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PrintedSpeedup {
    /// The speedup, as the printed figures give it.
    pub value: f64,
    /// The least and the most that it may have been before they were rounded; none if it is not
    /// computed from printed figures.
    pub rounding: Option<(f64, f64)>,
}

impl PrintedSpeedup {
    /// Returns the speedup that is itself printed; none if the text is not a number above zero.
    #[must_use]
    pub fn itself(text: &str) -> Option<Self> {
        let value = number(text).filter(|&value| value > 0.0)?;
        Some(Self {
            value,
            rounding: unrounded(text),
        })
    }

    /// Returns that of one printed figure over another; none if one is not a number above zero.
    #[must_use]
    pub fn over(top: &str, bottom: &str) -> Option<Self> {
        let (top, bottom) = (Self::itself(top)?, Self::itself(bottom)?);
        let rounding = top.rounding.zip(bottom.rounding);
        Some(Self {
            value: top.value / bottom.value,
            rounding: rounding.map(|(top, bottom)| (top.0 / bottom.1, top.1 / bottom.0)),
        })
    }
}

impl From<f64> for PrintedSpeedup {
    fn from(value: f64) -> Self {
        Self {
            value,
            rounding: None,
        }
    }
}

/// What a document says about one of its differences.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Claim {
    /// Significant by its own test.
    Significant,
    /// Within its own intervals, or called noise by the document.
    Noise,
    /// It was not tested.
    Untested,
    /// No difference: a mean is at least this, in the unit of its samples.
    AtLeast(u32),
    /// That nothing becomes worse.
    NoHarm,
}
