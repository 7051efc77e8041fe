//! Plots as SVG: curves over numbers, or dots over names, as one string without a script.
//!
//! A configuration has the same colour, marker and dashes in every plot, so shapes identify it
//! where colours do not. Colours are CSS variables for light and dark schemes, in [`STYLE`], which
//! a page includes once. Each plot has a title and a description for screen readers; the page
//! should have a table of the plotted values beside it.
//!
//! | file | what it holds |
//! |---|---|
//! | `palette` | colour, marker and dashes of a curve, by its name |
//! | `extent` | the mapping from values to positions along an axis |
//! | `ticks` | round numbers along an axis, and their short labels |
//! | `layout` | the space for axes, labels and legend |
//! | `surround` | axes, grid, labels, legend |
//! | `curves` | lines, bands, markers, whiskers |
//!
//! ```
//! use brickyard_pictures::plot::{Axis, Curve, Plot, Point, Scale};
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
    /// Its id in the page: letters, digits and dashes, unique in the page.
    pub id: String,
    /// The title, for screen readers: a page shows it as a heading beside the plot.
    pub title: String,
    /// What the plot shows, for screen readers.
    pub about: String,
    /// The horizontal axis.
    pub x: Axis,
    /// The vertical axis.
    pub y: Axis,
    /// The curves.
    pub curves: Vec<Curve>,
}

/// An axis.
#[derive(Debug, Clone, PartialEq)]
pub struct Axis {
    /// The plotted quantity, with its unit.
    pub label: String,
    /// The scale.
    pub scale: Scale,
}

/// The scale of an axis.
#[derive(Debug, Clone, PartialEq)]
pub enum Scale {
    /// Linear.
    Linear,
    /// Logarithmic. Values of zero or less are drawn at the low end, with hollow markers.
    Log,
    /// Names: a point's value is the index of one, from 0. For the horizontal axis only; a vertical
    /// one is drawn as `Linear`.
    Names(Vec<String>),
}

/// A curve, or over names a set of dots.
#[derive(Debug, Clone, PartialEq)]
pub struct Curve {
    /// Its name, which determines its colour, marker and dashes.
    pub name: String,
    /// Its points, in any order. Points that are not finite are left out.
    pub points: Vec<Point>,
}

/// A point.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Point {
    /// The horizontal value.
    pub x: f64,
    /// The vertical value.
    pub y: f64,
    /// The vertical range of the samples.
    pub spread: Option<(f64, f64)>,
}

impl Point {
    /// Makes a point without a spread.
    #[must_use]
    pub const fn new(x: f64, y: f64) -> Self {
        Self { x, y, spread: None }
    }

    /// Returns the point with a spread from `low` to `high`.
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
    /// Returns the plot as an SVG element. Costs time and text in proportion to the points.
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

    /// Returns the plot with only finite points, sorted from left to right, and without curves that
    /// have none.
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
            Scale::Log => ", logarithmic",
            Scale::Linear | Scale::Names(_) => "",
        };
        let names: Vec<&str> = self
            .curves
            .iter()
            .map(|curve| curve.name.as_str())
            .collect();
        format!(
            "{} Horizontal axis: {}{}. Vertical axis: {}{}. Shown: {}.",
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

/// Escapes a text for the content of an element or of an attribute in double quotes.
fn escape(text: &str) -> String {
    // An apostrophe need not be escaped there.
    Escaped(text).to_string().replace("&#39;", "'")
}

/// Formats a coordinate, to a hundredth.
fn number(value: f64) -> String {
    let text = format!("{value:.2}");
    let text = text.trim_end_matches('0').trim_end_matches('.');
    if text == "-0" {
        "0".to_owned()
    } else {
        text.to_owned()
    }
}
