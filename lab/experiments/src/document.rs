//! A source document as the report shows it: its question, its tables with the printed figures,
//! what is measured for each, and plots.
//!
//! Nothing here is a measured number: each [`Figure`] names the rows it is computed from and the
//! [`Statistic`], and `judge` computes it.
//!
//! | file | what it holds |
//! |---|---|
//! | `figure` | a number, what was published for it, and its sweep |
//! | `outcome` | what can come out for its direction |
//! | `statistic` | how a number is computed |

mod figure;
mod outcome;
mod statistic;

use brickyard_pictures::plot::Axis;

use crate::data::Key;

pub use figure::{Claim, Figure, Judged, PrintedSpeedup, Published, Swept, number, unrounded};
pub use outcome::{Among, Outcome, Verdict};
pub use statistic::Statistic;

/// One experiment of one of the five source documents.
#[derive(Debug, Clone, PartialEq)]
pub struct Document {
    /// The experiment, as `--only` names it.
    pub experiment: &'static str,
    /// The heading.
    pub title: &'static str,
    /// Author, title, date.
    pub source: &'static str,
    /// Author and year, such as `Porter 2007`.
    pub by: &'static str,
    /// The document's question and its answer, for a reader who has never seen it.
    pub asked: &'static str,
    /// What it claimed, as one sentence.
    pub claimed: &'static str,
    /// What decides here whether it came out, as one sentence.
    pub decides: &'static str,
    /// The results measured here, as sentences with figures in them.
    pub findings: Vec<Finding>,
    /// Where the document is wrong, contradicts itself, or does not support its conclusion.
    pub mistakes: Vec<Mistake>,
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
            Piece::Text(_) | Piece::PrintedMean(..) | Piece::Directions(..) | Piece::Range(_) => {
                None
            }
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

/// Where a document is wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mistake {
    /// What is wrong, and what is right.
    pub text: &'static str,
    /// Whether it matters.
    pub weight: Weight,
}

/// Whether a mistake matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Weight {
    /// It changes a conclusion, or leaves one without support.
    Conclusion,
    /// A slip, of print or of the pen, that changes no conclusion.
    Print,
}

impl Mistake {
    /// Returns those of a file: one a line, `conclusion` or `print` before its text.
    ///
    /// # Panics
    /// If a line begins with another word: the files are part of the program.
    #[must_use]
    pub fn all(file: &'static str) -> Vec<Self> {
        let of = |line: &'static str| {
            let (weight, text) = match line.split_once(' ') {
                Some(("conclusion", text)) => (Weight::Conclusion, text),
                Some(("print", text)) => (Weight::Print, text),
                _ => panic!("neither `conclusion` nor `print` comes first: {line}"),
            };
            Self { text, weight }
        };
        file.lines().map(of).collect()
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
    /// The geometric mean of the published speedups of those of these figures that were measured,
    /// with so many digits after the point: what a measured mean over them is compared with.
    PrintedMean(Vec<Figure>, usize),
    /// A word that a computed number chooses, so that the sentence is true whatever the number is.
    Word(Word),
    /// The lowest and the highest of the same number under all assumptions, itself included: the
    /// first. That they were not varied, if this run lacks one.
    Range(Vec<Figure>),
    /// How many of [`Document::directions`] have this outcome, as a plain number. Those without
    /// rows do not count.
    Directions(Outcome, Among),
}

/// A word that a computed speedup chooses.
#[derive(Debug, Clone, PartialEq)]
pub struct Word {
    /// The number, a speedup.
    pub figure: Figure,
    /// The same under other assumptions. If one of them chooses another word, the words say that it
    /// depends on an assumption.
    pub swept: Vec<Figure>,
    /// A number no further from 1 than this counts as no difference.
    pub margin: f64,
    /// The word for a number above that.
    pub above: &'static str,
    /// The word for a number below that.
    pub below: &'static str,
    /// The word for a number in between, and for one that may not be a difference.
    pub between: &'static str,
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
    pub lines: Vec<TableLine>,
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
pub struct TableLine {
    /// The head of the line.
    pub head: String,
    /// One cell for each column; none where the document's table has nothing.
    pub cells: Vec<Option<Figure>>,
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
