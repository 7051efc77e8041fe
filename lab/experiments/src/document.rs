//! A source document as the report shows it: what it asked, its tables with the figures it printed,
//! what was measured for each, and plots.
//!
//! Nothing here is a measured number: each [`Figure`] says of which rows it is made and by which
//! [`Statistic`], and `judge` computes it.

use brickyard_report::plot::Axis;

use crate::data::Key;
use crate::judge::{Judgement, NONE};

/// One of the five, or rather one of its experiments.
#[derive(Debug, Clone, PartialEq)]
pub struct Document {
    /// The experiment, as `--only` names it.
    pub experiment: &'static str,
    /// The heading.
    pub title: &'static str,
    /// Author, title, date.
    pub source: &'static str,
    /// What was asked, and what the document answered, for somebody who has never seen it.
    pub asked: &'static str,
    /// What came out here, in words with figures in them.
    pub findings: Vec<Finding>,
    /// Where the document is wrong, contradicts itself, or cannot carry what it says.
    pub mistakes: &'static [&'static str],
    /// Its tables, as it printed them.
    pub tables: Vec<Table>,
    /// The same with today's configurations.
    pub today: Vec<Table>,
    /// Where a reader would rather look.
    pub plots: Vec<Plot>,
}

impl Document {
    /// All its figures: of findings, tables, and today's tables.
    pub fn figures(&self) -> impl Iterator<Item = &Figure> {
        let pieces = self.findings.iter().flat_map(|finding| &finding.pieces);
        let told = pieces.filter_map(|piece| match piece {
            Piece::Figure(figure) | Piece::Word(Word { figure, .. }) => Some(figure),
            Piece::Text(_) | Piece::Directions(..) => None,
        });
        let tables = self.tables.iter().chain(&self.today);
        let lines = tables.flat_map(|table| &table.lines);
        told.chain(lines.flat_map(|line| line.cells.iter().flatten()))
    }

    /// The figures of its own tables whose direction is judged, those of `among`. A direction that
    /// stands in several tables is given once.
    pub fn directions(&self, among: Among) -> impl Iterator<Item = &Figure> {
        let lines = self.tables.iter().flat_map(|table| &table.lines);
        let figures = lines.flat_map(|line| line.cells.iter().flatten());
        let mut known: Vec<&Figure> = Vec::new();
        figures.filter(move |figure| {
            let claim = figure.published.map(|published| published.claim);
            let wanted = figure.judged == Judged::Yes
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
    /// Its pieces, in order. One of whose figures cannot be computed is left out as a whole.
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
    /// How many of [`Document::directions`] came out so, as a plain number. Those without rows do
    /// not count.
    Directions(Outcome, Among),
}

/// A speedup that is known from one run alone, and might vary, must be further from 1 than this to
/// be told in words.
const UNKNOWN: f64 = 0.1;

/// A word that a computed speedup chooses.
#[derive(Debug, Clone, PartialEq)]
pub struct Word {
    /// The number, a speedup.
    pub figure: Figure,
    /// How far from 1 it is as good as none.
    pub margin: f64,
    /// The word for a number above that.
    pub above: &'static str,
    /// The word for a number below that.
    pub below: &'static str,
    /// The word for a number in between, and for one that may be no difference.
    pub between: &'static str,
}

impl Word {
    /// The word for what its figure came to. A speedup whose interval holds 1 tells no difference;
    /// nor does one whose samples do not say how they vary, unless it is large. Where there may be
    /// one all the same, the words say so.
    #[must_use]
    pub fn chosen(&self, found: &Judgement) -> String {
        let (margin, is_sure) = match found.interval {
            Some((low, high)) if low <= 1.0 && 1.0 <= high => {
                (f64::INFINITY, 1.0 - NONE <= low && high <= 1.0 + NONE)
            }
            None if !found.exact => (self.margin.max(UNKNOWN), false),
            _ => (self.margin, true),
        };
        if found.value > 1.0 + margin {
            self.above.to_owned()
        } else if found.value < 1.0 - margin {
            self.below.to_owned()
        } else if is_sure {
            self.between.to_owned()
        } else {
            format!("{} (as far as this run tells)", self.between)
        }
    }
}

/// How a direction came out, for counting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// In whatever way: all that were measured.
    Any,
    /// As the document has it.
    Same,
    /// The other way.
    Opposite,
    /// The samples do not tell, or the difference is negligible.
    WithinNoise,
    /// As the document has it, and the correction for many comparisons leaves it.
    SameCorrected,
    /// The other way, and the correction leaves it.
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
    /// Its place in the page and in files: letters, digits and dashes.
    pub id: String,
    /// The heading, with the document's own words for it where it has some.
    pub title: String,
    /// What was modelled, what was measured, and what cannot be compared.
    pub about: String,
    /// The head above the columns: rows of cells that may span several columns. The column of line
    /// heads is not in it.
    pub head: Vec<Vec<Head>>,
    /// The lines.
    pub lines: Vec<Line>,
}

/// A cell of the head.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Head {
    /// What it says.
    pub text: String,
    /// Over how many columns, at least 1.
    pub span: usize,
}

/// A line.
#[derive(Debug, Clone, PartialEq)]
pub struct Line {
    /// What it is of.
    pub head: String,
    /// One cell a column; none where the document's table has nothing.
    pub cells: Vec<Option<Figure>>,
}

/// How samples become a number.
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
    /// The largest less the smallest.
    Range,
    /// The standard deviation, over n - 1.
    StdDev,
    /// 1.96 deviations over the root of n: half of the 95 % interval as 2007 has it.
    Interval95,
    /// How many times better the mean is than that of `against`: above 1 is better.
    Speedup,
    /// The mean's gain over that of `against` in percent: positive is better.
    Gain,
    /// The gain of the smallest.
    GainMin,
    /// The gain of the largest.
    GainMax,
    /// The gain of the deviation: less is better, whichever way the metric goes.
    GainStdDev,
    /// The gain of the range: less is better, whichever way the metric goes.
    GainRange,
    /// The mean less that of `against`.
    Difference,
    /// The mean less that of `against`, in percent of that, whichever way is better.
    DifferencePercent,
    /// The mean in percent of that of `against`.
    Share,
    /// The geometric mean of the speedups of each key over the one at its place in `against`.
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

    /// The name that files and pages have: small letters, digits and dashes.
    #[must_use]
    pub const fn name(self) -> &'static str {
        self.told().0
    }

    /// What it is, in words for a reader.
    #[must_use]
    pub const fn words(self) -> &'static str {
        self.told().1
    }

    /// Name and words, side by side so that one cannot be taken for the other's.
    const fn told(self) -> (&'static str, &'static str) {
        match self {
            Self::Mean => ("mean", "mean"),
            Self::Median => ("median", "median"),
            Self::Min => ("min", "smallest sample"),
            Self::Max => ("max", "largest sample"),
            Self::Range => ("range", "largest sample less the smallest"),
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
            Self::Difference => ("difference", "mean less that of the baseline"),
            Self::DifferencePercent => (
                "difference-percent",
                "mean less that of the baseline, in percent of that",
            ),
            Self::Share => ("share", "mean in percent of that of the whole"),
            Self::GmeanSpeedup => ("gmean-speedup", "geometric mean of speedups, pair by pair"),
        }
    }

    /// Which of its numbers are better, in words; none where that is for the metric to say. Of a
    /// deviation and a range, less is better.
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

    /// Is it in percent, whatever the samples are in?
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

    /// Is it of what one side's samples scatter by? Such a number says nothing of a direction.
    #[must_use]
    pub const fn is_of_scatter(self) -> bool {
        matches!(
            self,
            Self::GainMin | Self::GainMax | Self::GainStdDev | Self::GainRange
        )
    }
}

/// A number: what it is made of, and what was published for it.
#[derive(Debug, Clone, PartialEq)]
pub struct Figure {
    /// How.
    pub statistic: Statistic,
    /// Of which samples; one key, but for [`Statistic::GmeanSpeedup`]. None: not measured; what was
    /// published stands alone, and the table's `about` says why.
    pub of: Vec<Key>,
    /// What it is held against, where the statistic or the direction needs one.
    pub against: Vec<Key>,
    /// What is published for it.
    pub published: Option<Published>,
    /// Is its direction to be judged? Then `of` and `against` have a key each, and `published` a
    /// direction.
    pub judged: Judged,
    /// Digits behind the point.
    pub decimals: usize,
    /// What the value is multiplied by when it is shown, such as 1000 for seconds in milliseconds.
    pub scale: f64,
}

impl Figure {
    /// Of one key, with nothing published, not judged, and two digits behind the point.
    #[must_use]
    pub fn new(statistic: Statistic, of: Key) -> Self {
        Self {
            of: vec![of],
            ..Self::not_modelled_as(statistic)
        }
    }

    /// The mean of one key, in the same way.
    #[must_use]
    pub fn mean(of: Key) -> Self {
        Self::new(Statistic::Mean, of)
    }

    /// Of one key held against another, in the same way.
    #[must_use]
    pub fn held(statistic: Statistic, of: Key, against: Key) -> Self {
        Self::new(statistic, of).against(against)
    }

    /// What was published for something that is not modelled.
    #[must_use]
    pub fn not_modelled(text: &'static str) -> Self {
        Self::not_modelled_as(Statistic::Mean).printed(text)
    }

    /// The geometric mean of speedups, of each key over the one at its place in `against`.
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

    /// Held against this.
    #[must_use]
    pub fn against(self, key: Key) -> Self {
        Self {
            against: vec![key],
            ..self
        }
    }

    /// What the document printed for it. No direction.
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

    /// What the document printed has this direction, which is judged. Without a published text it
    /// stays as it is.
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

    /// Is it the same published direction of the same samples?
    fn has_direction_of(&self, other: &Self) -> bool {
        let speedup = |figure: &Self| figure.published.and_then(|published| published.speedup);
        self.of == other.of && self.against == other.against && speedup(self) == speedup(other)
    }

    /// With so many digits behind the point.
    #[must_use]
    pub fn decimals(self, decimals: usize) -> Self {
        Self { decimals, ..self }
    }

    /// Multiplied by this when it is shown.
    #[must_use]
    pub fn scaled(self, scale: f64) -> Self {
        Self { scale, ..self }
    }
}

/// Is a figure's direction judged?
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Judged {
    /// No: it is shown only.
    No,
    /// Yes.
    Yes,
}

/// What a document printed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Published {
    /// The figure as it is printed, such as `.05` or `1.015*`.
    pub text: &'static str,
    /// The published speedup of `of` over `against`: above 1 is better. Of figures whose direction
    /// is judged.
    pub speedup: Option<f64>,
    /// Does the document itself call the difference real?
    pub claim: Claim,
}

impl Published {
    /// The number in its text, without star, brackets and sign of percent. None of what is no
    /// number, such as a dash for a missing one.
    #[must_use]
    pub fn number(&self) -> Option<f64> {
        number(self.text)
    }
}

/// The number in a printed text.
#[must_use]
pub fn number(text: &str) -> Option<f64> {
    let bare = text.trim_matches([' ', '(', ')', '*', '%', '+']);
    bare.parse().ok().filter(|value: &f64| value.is_finite())
}

/// What a document says of a difference of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Claim {
    /// Significant by its own test.
    Significant,
    /// Within its own intervals, or it says that it is noise.
    Noise,
    /// It was not tested.
    Untested,
}

/// A plot.
#[derive(Debug, Clone, PartialEq)]
pub struct Plot {
    /// Its place in the page: letters, digits and dashes.
    pub id: String,
    /// The heading.
    pub title: String,
    /// What is to be seen in it.
    pub about: String,
    /// Across.
    pub x: Axis,
    /// Upward.
    pub y: Axis,
    /// The curves; those without rows are left out.
    pub curves: Vec<Curve>,
}

/// A curve.
#[derive(Debug, Clone, PartialEq)]
pub struct Curve {
    /// The configuration, as the legend has it; one configuration has the same colour in all plots.
    pub name: String,
    /// Its points.
    pub points: Points,
    /// What the values are multiplied by.
    pub scale: f64,
}

/// The points of a curve.
#[derive(Debug, Clone, PartialEq)]
pub enum Points {
    /// A place across, and the samples whose mean stands there, with their spread.
    Samples(Vec<(f64, Key)>),
    /// A series: places are seconds.
    Series(Key),
}
