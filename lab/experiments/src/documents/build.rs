//! Helpers to build the tables, findings and plots of all documents.

use brickyard_pictures::plot::{Axis, Scale};
use brickyard_results::Better;

use crate::data::Key;
use crate::document::{
    Among, Claim, Curve, Figure, Finding, Head, Outcome, Piece, Points, PrintedSpeedup, ShownIn,
    Statistic, Table, TableLine, Verdict, Word,
};

/// Returns a row of the head: each text with the number of columns that it spans.
pub(crate) fn heads(cells: &[(&str, usize)]) -> Vec<Head> {
    cells
        .iter()
        .map(|&(text, span)| Head {
            text: text.to_owned(),
            span,
        })
        .collect()
}

/// Returns a row of the head with a column for each text.
pub(crate) fn columns(texts: &[&str]) -> Vec<Head> {
    heads(&texts.iter().map(|&text| (text, 1)).collect::<Vec<_>>())
}

/// Returns a line of a table.
pub(crate) fn line(head: impl Into<String>, cells: Vec<Option<Figure>>) -> TableLine {
    TableLine {
        head: head.into(),
        cells,
    }
}

/// Returns the speedup that two printed means give: above 1 is better. None if one is not a number
/// above zero.
pub(crate) fn printed_speedup(better: Better, before: &str, now: &str) -> Option<PrintedSpeedup> {
    match better {
        Better::Higher => PrintedSpeedup::over(now, before),
        Better::Lower => PrintedSpeedup::over(before, now),
        Better::Neither => None,
    }
}

/// Returns the figure with its direction, if there is one.
pub(crate) fn directed(figure: Figure, speedup: Option<PrintedSpeedup>, claim: Claim) -> Figure {
    match speedup {
        Some(speedup) => figure.judged(speedup, claim),
        None => figure,
    }
}

/// A line of a table of today's configurations: all but the configuration.
pub(crate) struct Row {
    /// Its head.
    pub(crate) head: String,
    /// The machine.
    pub(crate) machine: String,
    /// What was done there.
    pub(crate) workload: String,
    /// What was counted.
    pub(crate) metric: &'static str,
    /// Digits after the point.
    pub(crate) decimals: usize,
    /// What values are multiplied by.
    pub(crate) scale: f64,
}

impl Row {
    /// Returns a line with one digit after the point, in the unit that was measured.
    pub(crate) fn new(
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

    /// Sets the digits after the point.
    pub(crate) fn decimals(self, decimals: usize) -> Self {
        Self { decimals, ..self }
    }

    /// Sets the factor that values are multiplied by when they are shown.
    pub(crate) fn scaled(self, scale: f64) -> Self {
        Self { scale, ..self }
    }
}

/// A table of configurations side by side: the baseline, then each with its mean and its gain.
pub(crate) struct Today<'a> {
    /// The experiment.
    pub(crate) experiment: &'a str,
    /// The configurations, the baseline first.
    pub(crate) configs: &'a [&'a str],
    /// What is shown beside a mean: [`Statistic::Gain`], or [`Statistic::Difference`] for values
    /// that are in percent already.
    pub(crate) beside: Statistic,
}

impl<'a> Today<'a> {
    /// Gains are shown beside the means.
    pub(crate) const fn gains(experiment: &'a str, configs: &'a [&'a str]) -> Self {
        Self {
            experiment,
            configs,
            beside: Statistic::Gain,
        }
    }

    /// Returns the table with these lines.
    pub(crate) fn table(&self, id: &str, title: &str, about: &str, rows: Vec<Row>) -> Table {
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

    fn line(&self, row: Row) -> TableLine {
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
                    Figure::compared(self.beside, key(config), key(self.configs[0])).decimals(1);
                cells.push(Some(beside));
            }
        }
        line(row.head, cells)
    }
}

/// Returns a finding of the first screen: a sentence in which each `{}` stands for the next piece.
pub(crate) fn summary(words: &str, pieces: impl IntoIterator<Item = Piece>) -> Finding {
    interpolated(ShownIn::SummaryToo, words, pieces)
}

/// Returns a finding of the document's section, built in the same way.
pub(crate) fn finding(words: &str, pieces: impl IntoIterator<Item = Piece>) -> Finding {
    interpolated(ShownIn::Document, words, pieces)
}

fn interpolated(shown: ShownIn, words: &str, between: impl IntoIterator<Item = Piece>) -> Finding {
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

/// Returns the geometric mean of speedups; of a single pair the speedup, whose interval is known.
pub(crate) fn over(of: Vec<Key>, against: Vec<Key>) -> Figure {
    match (&of[..], &against[..]) {
        ([of], [against]) => Figure::compared(Statistic::Speedup, of.clone(), against.clone()),
        _ => Figure::gmean(of, against),
    }
}

/// Returns how many times as fast, or as large, `of` is compared with `against`, in the geometric
/// mean.
pub(crate) fn gmean(of: Vec<Key>, against: Vec<Key>, decimals: usize) -> Piece {
    Piece::Figure(over(of, against).decimals(decimals))
}

/// Returns the mean of one key.
pub(crate) fn mean(key: Key, decimals: usize) -> Piece {
    Piece::Figure(Figure::mean(key).decimals(decimals))
}

/// Returns how many times as fast, or as large, `of` is compared with `against`.
pub(crate) fn times(of: Key, against: Key, decimals: usize) -> Piece {
    Piece::Figure(Figure::compared(Statistic::Speedup, of, against).decimals(decimals))
}

/// Returns words chosen by the geometric mean of speedups: above 1, below 1, or within half a
/// percent of 1 or within its own noise.
pub(crate) fn word(of: Vec<Key>, against: Vec<Key>, words: [&'static str; 3]) -> Piece {
    word_for(over(of, against), Vec::new(), 0.005, words)
}

/// Returns words chosen by a speedup, and by the same under other assumptions.
pub(crate) fn word_for(
    figure: Figure,
    swept: Vec<Figure>,
    margin: f64,
    [above, below, between]: [&'static str; 3],
) -> Piece {
    Piece::Word(Word {
        figure,
        swept,
        margin,
        above,
        below,
        between,
    })
}

/// The figures of some lines for which a speedup was published: what a geometric mean is compared
/// with is computed from what is printed, over the same lines.
pub(crate) struct PrintedMeans(Vec<Figure>);

impl PrintedMeans {
    /// Returns those figures of these tables whose own key is one of `of`, each once.
    pub(crate) fn of(tables: &[Table], of: &[Key]) -> Self {
        let lines = tables.iter().flat_map(|table| &table.lines);
        let figures = lines.flat_map(|line| line.cells.iter().flatten());
        let mut found: Vec<Figure> = Vec::new();
        for figure in figures {
            let speedup = figure.published.and_then(|published| published.speedup);
            let is_wanted = speedup.is_some()
                && !figure.statistic.is_of_pairs()
                && figure.of.iter().all(|key| of.contains(key));
            let is_new = !found.iter().any(|other| other.of == figure.of);
            if is_wanted && is_new {
                found.push(figure.clone());
            }
        }
        assert!(!found.is_empty(), "no figure is published for {of:?}");
        Self(found)
    }

    fn sides(&self) -> (Vec<Key>, Vec<Key>) {
        let of = self.0.iter().flat_map(|figure| figure.of.clone());
        let against = self.0.iter().flat_map(|figure| figure.against.clone());
        (of.collect(), against.collect())
    }

    /// Returns the measured geometric mean, and that of what is printed for those of the lines that
    /// were measured.
    pub(crate) fn means(&self, decimals: usize) -> [Piece; 2] {
        let (of, against) = self.sides();
        let printed = Piece::PrintedMean(self.0.clone(), decimals);
        [gmean(of, against, decimals), printed]
    }

    /// Returns words chosen by the measured mean, as [`word`] does.
    pub(crate) fn word(&self, words: [&'static str; 3]) -> Piece {
        let (of, against) = self.sides();
        word(of, against, words)
    }
}

/// Returns the finding that counts the outcomes of the document's directions.
pub(crate) fn directions() -> Finding {
    let count = |outcome| Piece::Directions(outcome, Among::All);
    finding(
        "Of its directions that were measured ({}), {} are the same, {} have the same direction only, {} are opposite, {} have no effect, and {} are undecided or depend on an assumption. After correction for their number, {} of the same direction and {} opposite ones remain.",
        [
            count(Outcome::Any),
            count(Outcome::Is(Verdict::Same)),
            count(Outcome::Is(Verdict::DirectionOnly)),
            count(Outcome::Is(Verdict::Opposite)),
            count(Outcome::Is(Verdict::NoEffect)),
            count(Outcome::Undecided),
            count(Outcome::SameCorrected),
            count(Outcome::OppositeCorrected),
        ],
    )
}

/// Returns a curve of means: horizontal positions, and the keys whose means are shown there.
pub(crate) fn curve(name: &str, points: Vec<(f64, Key)>) -> Curve {
    Curve {
        name: name.to_owned(),
        points: Points::Samples(points),
        scale: 1.0,
    }
}

/// Returns a curve over names: the keys are at the positions 0, 1, 2, and so on.
pub(crate) fn curve_over_names(name: &str, keys: impl IntoIterator<Item = Key>) -> Curve {
    let places = (0_u32..).map(f64::from);
    curve(name, places.zip(keys).collect())
}

/// Returns an axis.
pub(crate) fn axis(label: &str, scale: Scale) -> Axis {
    Axis {
        label: label.to_owned(),
        scale,
    }
}

/// Returns an axis of names.
pub(crate) fn names(label: &str, names: &[&str]) -> Axis {
    axis(
        label,
        Scale::Names(names.iter().map(|&name| name.to_owned()).collect()),
    )
}
