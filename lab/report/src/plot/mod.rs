//! Plots as SVG: curves over numbers, or dots over names, as one string without a script.
//!
//! Nothing here knows what is plotted. A configuration has the same colour, marker and dashes in
//! every plot, so it is told by shape where colour does not serve. Colours are CSS variables for
//! light and dark, in [`STYLE`], which a page holds once. Each plot has a title and a description
//! for screen readers; what is drawn has no text in it that a table beside the plot should not have
//! too.
//!
//! | file | what it holds |
//! |---|---|
//! | `palette` | the look of a curve, by its name |
//! | `extent` | from values to places along an axis; any finite value has one |
//! | `ticks` | round numbers along an axis, and their short labels |
//! | `layout` | how much room what surrounds the curves needs |
//! | `surround` | axes, grid, labels, legend |
//! | `curves` | lines, bands, markers, whiskers |
//!
//! ```
//! use brickyard_report::plot::{Axis, Curve, Plot, Point, Scale};
//!
//! let axis = |label: &str, scale| Axis { label: label.into(), scale };
//! let plot = Plot {
//!     id: "faults".into(),
//!     title: "Page faults".into(),
//!     about: "More CPUs fault in more pages.".into(),
//!     x: axis("CPUs", Scale::Log),
//!     y: axis("faults/s", Scale::Linear),
//!     curves: vec![Curve {
//!         name: "brickyard".into(),
//!         points: vec![Point::new(1.0, 1e5), Point::new(2.0, 2e5).spread(1.9e5, 2.1e5)],
//!     }],
//! };
//! assert!(plot.svg().starts_with("<svg "));
//! ```

mod curves;
mod extent;
mod layout;
mod palette;
mod surround;
mod ticks;

use core::fmt::Write as _;

use crate::markup::Escaped;
use layout::Layout;

/// The colours and lines of all plots, for the one style element of a page.
///
/// Its colours follow `color-scheme`, which the page sets.
pub const STYLE: &str = include_str!("style.css");

/// A plot.
#[derive(Debug, Clone, PartialEq)]
pub struct Plot {
    /// Its name in the page: letters, digits and dashes, once a page.
    pub id: String,
    /// The title, for screen readers: a page has it as a heading beside the plot.
    pub title: String,
    /// What is to be seen, for screen readers.
    pub about: String,
    /// Across.
    pub x: Axis,
    /// Upward.
    pub y: Axis,
    /// The curves.
    pub curves: Vec<Curve>,
}

/// An axis.
#[derive(Debug, Clone, PartialEq)]
pub struct Axis {
    /// What it is of, with its unit.
    pub label: String,
    /// How it is divided.
    pub scale: Scale,
}

/// How an axis is divided.
#[derive(Debug, Clone, PartialEq)]
pub enum Scale {
    /// Evenly.
    Linear,
    /// By powers. What is zero or less stands at its low end, hollow.
    Log,
    /// By names: a place is the number of one, from 0. Across only; upward it is as `Linear`.
    Names(Vec<String>),
}

/// A curve, or over names a set of dots.
#[derive(Debug, Clone, PartialEq)]
pub struct Curve {
    /// What it is of. The name decides how it looks.
    pub name: String,
    /// Its points, in any order. Those that are no number are left out.
    pub points: Vec<Point>,
}

/// A point.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Point {
    /// Across.
    pub x: f64,
    /// Upward.
    pub y: f64,
    /// From where to where the samples reach, upward.
    pub spread: Option<(f64, f64)>,
}

impl Point {
    /// A point without a spread.
    #[must_use]
    pub const fn new(x: f64, y: f64) -> Self {
        Self { x, y, spread: None }
    }

    /// The point with a spread from `low` to `high`.
    #[must_use]
    pub const fn spread(self, low: f64, high: f64) -> Self {
        Self {
            spread: Some((low, high)),
            ..self
        }
    }

    fn is_finite(&self) -> bool {
        self.x.is_finite() && self.y.is_finite()
    }
}

impl Plot {
    /// The plot as an SVG element. Costs time and text in proportion to the points.
    #[must_use]
    pub fn svg(&self) -> String {
        let plot = self.drawable();
        let layout = Layout::of(&plot);
        let mut out = String::new();
        // Writing to a string cannot fail.
        let _ = write!(
            out,
            "<svg class=\"plot\" role=\"img\" viewBox=\"0 0 {} {}\" aria-labelledby=\"{id}-title {id}-about\"><title id=\"{id}-title\">{}</title><desc id=\"{id}-about\">{}</desc>",
            layout::WIDTH,
            number(layout.height),
            escape(&plot.title),
            escape(&plot.description()),
            id = escape(&plot.id),
        );
        surround::write(&plot, &layout, &mut out);
        curves::write(&plot, &layout, &mut out);
        out.push_str("</svg>");
        out
    }

    /// With finite points only, each curve's from left to right, and without curves that have none.
    fn drawable(&self) -> Self {
        let names = match &self.x.scale {
            Scale::Names(names) => Some(names.len() as f64 - 0.5),
            Scale::Linear | Scale::Log => None,
        };
        let shown = |point: &Point| {
            point.is_finite() && names.is_none_or(|end| point.x >= -0.5 && point.x < end)
        };
        let curves = self.curves.iter().map(|curve| {
            let mut points: Vec<Point> = curve.points.iter().copied().filter(shown).collect();
            points.sort_by(|a, b| a.x.total_cmp(&b.x));
            for point in &mut points {
                point.spread = point
                    .spread
                    .filter(|(low, high)| low.is_finite() && high.is_finite())
                    .map(|(low, high)| (low.min(point.y), high.max(point.y)));
            }
            Curve {
                name: curve.name.clone(),
                points,
            }
        });
        Self {
            curves: curves.filter(|curve| !curve.points.is_empty()).collect(),
            ..self.clone()
        }
    }

    fn description(&self) -> String {
        let scale = |axis: &Axis| match axis.scale {
            Scale::Log => ", by powers",
            Scale::Linear | Scale::Names(_) => "",
        };
        let names: Vec<&str> = self
            .curves
            .iter()
            .map(|curve| curve.name.as_str())
            .collect();
        format!(
            "{} Across: {}{}. Upward: {}{}. Shown: {}.",
            self.about,
            self.x.label,
            scale(&self.x),
            self.y.label,
            scale(&self.y),
            if names.is_empty() {
                "nothing".to_owned()
            } else {
                names.join(", ")
            }
        )
    }
}

/// A text as the content of an element or of an attribute in double quotes.
fn escape(text: &str) -> String {
    // An apostrophe may stay as it is.
    Escaped(text).to_string().replace("&#39;", "'")
}

/// A coordinate, to a hundredth.
fn number(value: f64) -> String {
    let text = format!("{value:.2}");
    let text = text.trim_end_matches('0').trim_end_matches('.');
    if text == "-0" {
        "0".to_owned()
    } else {
        text.to_owned()
    }
}
