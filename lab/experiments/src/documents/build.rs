//! The few words that all documents' tables, findings and plots are built with.

use brickyard_report::Better;
use brickyard_report::plot::{Axis, Scale};

use crate::data::Key;
use crate::document::{
    Among, Claim, Curve, Figure, Finding, Head, Line, Outcome, Piece, Points, ShownIn, Statistic,
    Table, Word, number,
};

/// A row of the head: each text with the number of columns that it spans.
pub(super) fn heads(cells: &[(&str, usize)]) -> Vec<Head> {
    cells
        .iter()
        .map(|&(text, span)| Head {
            text: text.to_owned(),
            span,
        })
        .collect()
}

/// A row of the head with a column for each text.
pub(super) fn columns(texts: &[&str]) -> Vec<Head> {
    heads(&texts.iter().map(|&text| (text, 1)).collect::<Vec<_>>())
}

/// A line of a table.
pub(super) fn line(head: impl Into<String>, cells: Vec<Option<Figure>>) -> Line {
    Line {
        head: head.into(),
        cells,
    }
}

/// The speedup that two printed means give: above 1 is better. None where one is no number above
/// zero.
pub(super) fn printed_speedup(better: Better, before: &str, now: &str) -> Option<f64> {
    let (before, now) = (number(before)?, number(now)?);
    if before <= 0.0 || now <= 0.0 {
        return None;
    }
    match better {
        Better::Higher => Some(now / before),
        Better::Lower => Some(before / now),
        Better::Neither => None,
    }
}

/// The figure with its direction, where there is one.
pub(super) fn directed(figure: Figure, speedup: Option<f64>, claim: Claim) -> Figure {
    match speedup {
        Some(speedup) => figure.judged(speedup, claim),
        None => figure,
    }
}

/// A line of a table of today's: what it is of, but for the configuration.
pub(super) struct Row {
    /// Its head.
    pub(super) head: String,
    /// The machine.
    pub(super) machine: String,
    /// What was done there.
    pub(super) workload: String,
    /// What was counted.
    pub(super) metric: &'static str,
    /// Digits behind the point.
    pub(super) decimals: usize,
    /// What values are multiplied by.
    pub(super) scale: f64,
}

impl Row {
    /// A line with one digit behind the point, in the unit that was measured.
    pub(super) fn new(
        head: impl Into<String>,
        machine: &str,
        workload: impl Into<String>,
        metric: &'static str,
    ) -> Self {
        Self {
            head: head.into(),
            machine: machine.to_owned(),
            workload: workload.into(),
            metric,
            decimals: 1,
            scale: 1.0,
        }
    }

    /// With so many digits behind the point.
    pub(super) fn decimals(self, decimals: usize) -> Self {
        Self { decimals, ..self }
    }

    /// Multiplied by this when it is shown.
    pub(super) fn scaled(self, scale: f64) -> Self {
        Self { scale, ..self }
    }
}

/// A table of configurations side by side: the baseline, then each with its mean and what it gains.
pub(super) struct Today<'a> {
    /// The experiment.
    pub(super) experiment: &'a str,
    /// The configurations, the baseline first.
    pub(super) configs: &'a [&'a str],
    /// What stands beside a mean: [`Statistic::Gain`], or [`Statistic::Difference`] of what is in
    /// percent already.
    pub(super) beside: Statistic,
}

impl Today<'_> {
    /// The table with these lines.
    pub(super) fn table(&self, id: &str, title: &str, about: &str, rows: Vec<Row>) -> Table {
        let mut names = Vec::new();
        let mut words = Vec::new();
        let word = match self.beside {
            Statistic::Difference => "points",
            _ => "gain",
        };
        for (place, &config) in self.configs.iter().enumerate() {
            let baseline = place == 0;
            names.push((config, if baseline { 1 } else { 2 }));
            words.push(("mean", 1));
            words.extend((!baseline).then_some((word, 1)));
        }
        Table {
            id: id.to_owned(),
            title: title.to_owned(),
            about: about.to_owned(),
            head: vec![heads(&names), heads(&words)],
            lines: rows.into_iter().map(|row| self.line(row)).collect(),
        }
    }

    fn line(&self, row: Row) -> Line {
        let key = |config| {
            Key::new(
                self.experiment,
                &row.machine,
                &row.workload,
                config,
                row.metric,
            )
        };
        let mut cells = Vec::new();
        for (place, &config) in self.configs.iter().enumerate() {
            let mean = Figure::mean(key(config))
                .decimals(row.decimals)
                .scaled(row.scale);
            cells.push(Some(mean));
            if place > 0 {
                let beside =
                    Figure::held(self.beside, key(config), key(self.configs[0])).decimals(1);
                cells.push(Some(beside));
            }
        }
        line(row.head, cells)
    }
}

/// A finding of the first screen: a sentence in which each `{}` is the next of these pieces.
pub(super) fn summary(words: &str, pieces: impl IntoIterator<Item = Piece>) -> Finding {
    told(ShownIn::SummaryToo, words, pieces)
}

/// The same in the document's part.
pub(super) fn finding(words: &str, pieces: impl IntoIterator<Item = Piece>) -> Finding {
    told(ShownIn::Document, words, pieces)
}

fn told(shown: ShownIn, words: &str, between: impl IntoIterator<Item = Piece>) -> Finding {
    let mut between = between.into_iter();
    let mut pieces = Vec::new();
    for (number, text) in words.split("{}").enumerate() {
        if number > 0 {
            pieces.push(between.next().expect("a piece for each `{}`"));
        }
        if !text.is_empty() {
            pieces.push(Piece::Text(text.to_owned()));
        }
    }
    assert!(between.next().is_none(), "a `{{}}` for each piece");
    Finding { pieces, shown }
}

/// These over those: the geometric mean, or of one the speedup, whose interval is known.
fn over(of: Vec<Key>, against: Vec<Key>) -> Figure {
    match (&of[..], &against[..]) {
        ([of], [against]) => Figure::held(Statistic::Speedup, of.clone(), against.clone()),
        _ => Figure::gmean(of, against),
    }
}

/// How many times as fast, or as much, these are as those, in the geometric mean.
pub(super) fn gmean(of: Vec<Key>, against: Vec<Key>, decimals: usize) -> Piece {
    Piece::Figure(over(of, against).decimals(decimals))
}

/// The mean of one key.
pub(super) fn mean(key: Key, decimals: usize) -> Piece {
    Piece::Figure(Figure::mean(key).decimals(decimals))
}

/// How many times as fast, or as much, one is as the other.
pub(super) fn times(of: Key, against: Key, decimals: usize) -> Piece {
    Piece::Figure(Figure::held(Statistic::Speedup, of, against).decimals(decimals))
}

/// Words that the geometric mean of speedups chooses: above 1, below 1, or within half a percent of
/// it or of its own noise.
pub(super) fn word(of: Vec<Key>, against: Vec<Key>, words: [&'static str; 3]) -> Piece {
    word_beyond(0.005, of, against, words)
}

/// The same, with how far from 1 is as good as none.
pub(super) fn word_beyond(
    margin: f64,
    of: Vec<Key>,
    against: Vec<Key>,
    words: [&'static str; 3],
) -> Piece {
    let [above, below, between] = words;
    Piece::Word(Word {
        figure: over(of, against),
        margin,
        above,
        below,
        between,
    })
}

/// How many of the document's directions came out how.
pub(super) fn directions() -> Finding {
    let count = |outcome| Piece::Directions(outcome, Among::All);
    finding(
        "Of its directions that were measured ({}): {} the same, {} opposite, {} within noise or no more than a tenth of what was published. Corrected for their number, {} and {} of the first two remain.",
        [
            count(Outcome::Any),
            count(Outcome::Same),
            count(Outcome::Opposite),
            count(Outcome::WithinNoise),
            count(Outcome::SameCorrected),
            count(Outcome::OppositeCorrected),
        ],
    )
}

/// A curve of means: a place across, and the key whose mean stands there.
pub(super) fn curve(name: &str, points: Vec<(f64, Key)>) -> Curve {
    Curve {
        name: name.to_owned(),
        points: Points::Samples(points),
        scale: 1.0,
    }
}

/// A curve over names: the keys stand at 0, 1, 2, and so on.
pub(super) fn curve_over_names(name: &str, keys: impl IntoIterator<Item = Key>) -> Curve {
    let places = (0_u32..).map(f64::from);
    curve(name, places.zip(keys).collect())
}

/// An axis.
pub(super) fn axis(label: &str, scale: Scale) -> Axis {
    Axis {
        label: label.to_owned(),
        scale,
    }
}

/// An axis of names.
pub(super) fn names(label: &str, names: &[&str]) -> Axis {
    axis(
        label,
        Scale::Names(names.iter().map(|&name| name.to_owned()).collect()),
    )
}
