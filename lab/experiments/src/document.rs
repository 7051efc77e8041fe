//! A source document as the report shows it: its question, its tables with the printed figures,
//! what is measured for each, and plots.
//!
//! Nothing here is a measured number: each [`Figure`] names the rows it is computed from and the
//! [`Statistic`], and `judge` computes it.

use brickyard_report::plot::Axis;

use crate::data::Key;
use crate::judge::{Judgement, NONE};

/// One experiment of one of the five source documents.
#[derive(Debug, Clone, PartialEq)]
pub struct Document {
    /// The experiment, as `--only` names it.
    pub experiment: &'static str,
    /// The heading.
    pub title: &'static str,
    /// Author, title, date.
    pub source: &'static str,
    /// The document's question and its answer, for a reader who has never seen it.
    pub asked: &'static str,
    /// The results measured here, as sentences with figures in them.
    pub findings: Vec<Finding>,
    /// Where the document is wrong, contradicts itself, or does not support its conclusion.
    pub mistakes: &'static [&'static str],
    /// Its tables, as it printed them.
    pub tables: Vec<Table>,
    /// The same with today's configurations.
    pub today: Vec<Table>,
    /// What is easier to see in a plot than in a table.
    pub plots: Vec<Plot>,
}

impl Document {
    /// Returns all its figures: of findings, tables, and today's tables.
    pub fn figures(&self) -> impl Iterator<Item = &Figure> {
        let pieces = self.findings.iter().flat_map(|finding| &finding.pieces);
        let in_findings = pieces.filter_map(|piece| match piece {
            Piece::Figure(figure) | Piece::Word(Word { figure, .. }) => Some(figure),
            Piece::Text(_) | Piece::Directions(..) => None,
        });
        let tables = self.tables.iter().chain(&self.today);
        let lines = tables.flat_map(|table| &table.lines);
        in_findings.chain(lines.flat_map(|line| line.cells.iter().flatten()))
    }

    /// Returns the figures of its own tables whose direction is judged, or cannot be tested, and
    /// which belong to `among`. A direction that several tables have is returned once.
    pub fn directions(&self, among: Among) -> impl Iterator<Item = &Figure> {
        let lines = self.tables.iter().flat_map(|table| &table.lines);
        let figures = lines.flat_map(|line| line.cells.iter().flatten());
        let mut known: Vec<&Figure> = Vec::new();
        figures.filter(move |figure| {
            let claim = figure.published.map(|published| published.claim);
            let wanted = figure.judged != Judged::No
                && (among == Among::All || claim == Some(Claim::Significant));
            let new = wanted && !known.iter().any(|other| figure.has_direction_of(other));
            if new {
                known.push(figure);
            }
            new
        })
    }
}

/// A sentence of the summary.
#[derive(Debug, Clone, PartialEq)]
pub struct Finding {
    /// Its pieces, in order. If any of its figures cannot be computed, the whole finding is left
    /// out.
    pub pieces: Vec<Piece>,
    /// Where it is shown.
    pub shown: ShownIn,
}

/// Where a finding is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ShownIn {
    /// In the summary on the first screen, and in its document's section.
    SummaryToo,
    /// In its document's section only.
    Document,
}

/// A piece of a finding.
#[derive(Debug, Clone, PartialEq)]
pub enum Piece {
    /// Words.
    Text(String),
    /// A computed number.
    Figure(Figure),
    /// A word that a computed number chooses, so that the sentence is true whatever the number is.
    Word(Word),
    /// How many of [`Document::directions`] have this outcome, as a plain number. Those without
    /// rows do not count.
    Directions(Outcome, Among),
}

/// How far from 1 a speedup must be for words to call it a difference, if its samples do not show
/// how much it varies (one run of a method that varies).
const UNKNOWN_SPREAD: f64 = 0.1;

/// A word that a computed speedup chooses.
#[derive(Debug, Clone, PartialEq)]
pub struct Word {
    /// The number, a speedup.
    pub figure: Figure,
    /// A number no further from 1 than this counts as no difference.
    pub margin: f64,
    /// The word for a number above that.
    pub above: &'static str,
    /// The word for a number below that.
    pub below: &'static str,
    /// The word for a number in between, and for one that may not be a difference.
    pub between: &'static str,
}

impl Word {
    /// Returns the word for the judgement of its figure. A speedup whose interval contains 1 shows
    /// no difference; nor does one whose samples do not show how much it varies, unless it is
    /// large. If there may be a difference all the same, the words say so.
    #[must_use]
    pub fn chosen(&self, found: &Judgement) -> String {
        let (margin, is_sure) = match found.interval {
            Some((low, high)) if low <= 1.0 && 1.0 <= high => {
                (f64::INFINITY, 1.0 - NONE <= low && high <= 1.0 + NONE)
            }
            None if !found.exact => (self.margin.max(UNKNOWN_SPREAD), false),
            _ => (self.margin, true),
        };
        if found.value > 1.0 + margin {
            self.above.to_owned()
        } else if found.value < 1.0 - margin {
            self.below.to_owned()
        } else if is_sure {
            self.between.to_owned()
        } else {
            format!("{} (as far as this run can tell)", self.between)
        }
    }
}

/// The outcome of a direction, for counting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// Any outcome: all that were measured.
    Any,
    /// The direction of the document.
    Same,
    /// The opposite direction.
    Opposite,
    /// The samples cannot decide, or the difference is negligible.
    WithinNoise,
    /// The direction of the document, significant after the correction for many comparisons.
    SameCorrected,
    /// The opposite direction, significant after that correction.
    OppositeCorrected,
}

/// Which directions are counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Among {
    /// All that are judged.
    All,
    /// Those that the document calls significant by its own test.
    Significant,
}

/// A table.
#[derive(Debug, Clone, PartialEq)]
pub struct Table {
    /// Its identifier in the page and in files: letters, digits and dashes.
    pub id: String,
    /// The heading, in the document's own words where it has some.
    pub title: String,
    /// What was modelled, what was measured, and what cannot be compared.
    pub about: String,
    /// The head above the columns: rows of cells that may span several columns. It does not include
    /// the column of line heads.
    pub head: Vec<Vec<Head>>,
    /// The lines.
    pub lines: Vec<Line>,
}

/// A cell of the head.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Head {
    /// Its text.
    pub text: String,
    /// How many columns it spans, at least 1.
    pub span: usize,
}

/// A line.
#[derive(Debug, Clone, PartialEq)]
pub struct Line {
    /// The head of the line.
    pub head: String,
    /// One cell for each column; none where the document's table has nothing.
    pub cells: Vec<Option<Figure>>,
}

/// How a number is computed from samples.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Statistic {
    /// The mean.
    Mean,
    /// The median.
    Median,
    /// The smallest.
    Min,
    /// The largest.
    Max,
    /// The largest minus the smallest.
    Range,
    /// The standard deviation, over n - 1.
    StdDev,
    /// 1.96 deviations over the root of n: half of the 95 % interval as the document of 2007 has
    /// it.
    Interval95,
    /// How many times better the mean is than that of `against`: above 1 is better.
    Speedup,
    /// The gain of the mean over that of `against` in percent: positive is better.
    Gain,
    /// The gain of the smallest.
    GainMin,
    /// The gain of the largest.
    GainMax,
    /// The gain of the deviation: less is better, whichever way the metric goes.
    GainStdDev,
    /// The gain of the range: less is better, whichever way the metric goes.
    GainRange,
    /// The mean minus that of `against`.
    Difference,
    /// The mean minus that of `against`, in percent of the latter, whichever way is better.
    DifferencePercent,
    /// The mean in percent of that of `against`.
    Share,
    /// The geometric mean of the speedups of each key over the key at the same index in `against`.
    GmeanSpeedup,
}

impl Statistic {
    /// All of them.
    pub const ALL: [Self; 17] = [
        Self::Mean,
        Self::Median,
        Self::Min,
        Self::Max,
        Self::Range,
        Self::StdDev,
        Self::Interval95,
        Self::Speedup,
        Self::Gain,
        Self::GainMin,
        Self::GainMax,
        Self::GainStdDev,
        Self::GainRange,
        Self::Difference,
        Self::DifferencePercent,
        Self::Share,
        Self::GmeanSpeedup,
    ];

    /// Returns its name in files and pages: lower-case letters, digits and dashes.
    #[must_use]
    pub const fn name(self) -> &'static str {
        self.name_and_words().0
    }

    /// Returns what it is, in words for a reader.
    #[must_use]
    pub const fn words(self) -> &'static str {
        self.name_and_words().1
    }

    /// Returns name and words, in one place so that they cannot get out of step.
    const fn name_and_words(self) -> (&'static str, &'static str) {
        match self {
            Self::Mean => ("mean", "mean"),
            Self::Median => ("median", "median"),
            Self::Min => ("min", "smallest sample"),
            Self::Max => ("max", "largest sample"),
            Self::Range => ("range", "largest sample minus the smallest"),
            Self::StdDev => ("stddev", "standard deviation (over n - 1)"),
            Self::Interval95 => (
                "interval95",
                "half of the 95 % interval, 1.96 deviations over the root of n",
            ),
            Self::Speedup => ("speedup", "speedup of the mean over that of the baseline"),
            Self::Gain => ("gain", "gain of the mean over that of the baseline"),
            Self::GainMin => (
                "gain-min",
                "gain of the smallest sample over that of the baseline",
            ),
            Self::GainMax => (
                "gain-max",
                "gain of the largest sample over that of the baseline",
            ),
            Self::GainStdDev => (
                "gain-stddev",
                "gain of the standard deviation over that of the baseline",
            ),
            Self::GainRange => ("gain-range", "gain of the range over that of the baseline"),
            Self::Difference => ("difference", "mean minus that of the baseline"),
            Self::DifferencePercent => (
                "difference-percent",
                "mean minus that of the baseline, in percent of the baseline",
            ),
            Self::Share => ("share", "mean in percent of that of the whole"),
            Self::GmeanSpeedup => ("gmean-speedup", "geometric mean of speedups, pair by pair"),
        }
    }

    /// Returns which of its numbers are better, in words; none if that depends on the metric.
    #[must_use]
    pub const fn better(self) -> Option<&'static str> {
        match self {
            Self::Speedup | Self::GmeanSpeedup => Some("above 1"),
            Self::Gain | Self::GainMin | Self::GainMax | Self::GainStdDev | Self::GainRange => {
                Some("positive")
            }
            _ => None,
        }
    }

    /// Returns true if it is in percent whatever the unit of the samples is.
    #[must_use]
    pub const fn is_percent(self) -> bool {
        matches!(
            self,
            Self::Gain
                | Self::GainMin
                | Self::GainMax
                | Self::GainStdDev
                | Self::GainRange
                | Self::DifferencePercent
                | Self::Share
        )
    }

    /// Returns true if it describes the spread of the samples. Such a number shows no direction.
    #[must_use]
    pub const fn is_of_scatter(self) -> bool {
        matches!(
            self,
            Self::GainMin | Self::GainMax | Self::GainStdDev | Self::GainRange
        )
    }
}

/// A number: what it is computed from, and what was published for it.
#[derive(Debug, Clone, PartialEq)]
pub struct Figure {
    /// How it is computed.
    pub statistic: Statistic,
    /// The samples; one key, except for [`Statistic::GmeanSpeedup`]. Empty if nothing is measured:
    /// then only the published number is shown, and the table's `about` says why.
    pub of: Vec<Key>,
    /// What it is compared with, where the statistic or the direction needs a baseline.
    pub against: Vec<Key>,
    /// What is published for it.
    pub published: Option<Published>,
    /// Whether its direction is judged. If so, `of` and `against` have one key each, and
    /// `published` has a direction.
    pub judged: Judged,
    /// Digits after the point.
    pub decimals: usize,
    /// What the value is multiplied by when it is shown, such as 1000 for seconds in milliseconds.
    pub scale: f64,
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
                claim: Claim::Untested,
            }),
            ..self
        }
    }

    /// Sets the direction of what the document printed, which is judged. Does nothing without a
    /// published text.
    #[must_use]
    pub fn judged(self, speedup: f64, claim: Claim) -> Self {
        Self {
            published: self.published.map(|published| Published {
                speedup: Some(speedup),
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
            Judged::No | Judged::Yes => None,
        }
    }

    /// Returns true if the other has the same published direction of the same samples.
    fn has_direction_of(&self, other: &Self) -> bool {
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
}

/// What a document printed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Published {
    /// The figure as it is printed, such as `.05` or `1.015*`.
    pub text: &'static str,
    /// The published speedup of `of` over `against`: above 1 is better. Set for figures whose
    /// direction is judged.
    pub speedup: Option<f64>,
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
    let bare = text.trim_matches([' ', '(', ')', '*', '%', '+']);
    bare.parse().ok().filter(|value: &f64| value.is_finite())
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
}

/// A plot.
#[derive(Debug, Clone, PartialEq)]
pub struct Plot {
    /// Its identifier in the page: letters, digits and dashes.
    pub id: String,
    /// The heading.
    pub title: String,
    /// What it shows.
    pub about: String,
    /// The horizontal axis.
    pub x: Axis,
    /// The vertical axis.
    pub y: Axis,
    /// The curves; those without rows are left out.
    pub curves: Vec<Curve>,
}

/// A curve.
#[derive(Debug, Clone, PartialEq)]
pub struct Curve {
    /// The configuration, as in the legend; a configuration has the same colour in all plots.
    pub name: String,
    /// Its points.
    pub points: Points,
    /// What the values are multiplied by.
    pub scale: f64,
}

/// The points of a curve.
#[derive(Debug, Clone, PartialEq)]
pub enum Points {
    /// Horizontal positions, and the samples whose mean is shown there, with their spread.
    Samples(Vec<(f64, Key)>),
    /// A series: the horizontal positions are seconds.
    Series(Key),
}
