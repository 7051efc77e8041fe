//! The space that labels need, and what is left for the curves. All in units of the view box.

use super::extent::{Ends, Extent};
use super::ticks::{Tick, ticks, ticks_across};
use super::{Plot, Scale};

/// The width of every plot.
pub(super) const WIDTH: f64 = 560.0;

/// The height of the area between the axes.
const INNER: f64 = 264.0;

/// The height above that area, for the label of the vertical axis.
const TOP: f64 = 34.0;

/// The size of all text, as in `style.css`.
pub(super) const TEXT: f64 = 13.0;

/// The height of a line of text.
pub(super) const LINE: f64 = 18.0;

/// More than the average width of a letter, in wide fonts too: a name that is cut says nothing.
const LETTER: f64 = 7.6;

/// The widest name that is written beside its curve.
const BESIDE_MAX: f64 = 158.0;

/// Sine and cosine of 36 degrees, the angle of slanted names.
const SINE: f64 = 0.588;
const COSINE: f64 = 0.809;

/// The position of a curve's marker beside its name, or of a sample of its line in the legend: its
/// left end (in the legend) and its vertical middle.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Anchor {
    /// From the left side of the plot.
    pub(super) x: f64,
    /// From the top of the plot.
    pub(super) y: f64,
}

/// The positions of the curves' names.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Names {
    /// Beside the curves' ends.
    Beside(Vec<Anchor>),
    /// In a legend below the plot.
    Below(Vec<Anchor>),
}

/// How names along the horizontal axis are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Slant {
    /// Horizontally.
    Level,
    /// Slanted, where some are too long for that.
    Slanted,
}

/// The positions of all parts of a plot.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Layout {
    /// The left, right, upper and lower side of the area between the axes.
    pub(super) left: f64,
    pub(super) right: f64,
    pub(super) top: f64,
    pub(super) bottom: f64,
    /// The height of the whole plot.
    pub(super) height: f64,
    /// The ranges of the axes.
    pub(super) x: Extent,
    pub(super) y: Extent,
    pub(super) x_ticks: Vec<Tick>,
    pub(super) y_ticks: Vec<Tick>,
    pub(super) slant: Slant,
    /// The vertical position of the horizontal axis' label.
    pub(super) x_label: f64,
    pub(super) names: Names,
}

/// The most letters written of a name along the axis, of a name in the legend, and of a label.
pub(super) const ACROSS_MAX: usize = 32;
pub(super) const NAME_MAX: usize = 60;
pub(super) const LABEL_MAX: usize = 74;

/// Cuts a text to at most `most` letters.
pub(super) fn cut(text: &str, most: usize) -> String {
    if text.chars().count() <= most {
        return text.to_owned();
    }
    let kept: String = text.chars().take(most - 1).collect();
    kept + "\u{2026}"
}

/// Estimates the width of a text.
pub(super) fn width_of(text: &str) -> f64 {
    text.chars().count() as f64 * LETTER
}

impl Layout {
    /// Lays out a plot whose points are finite.
    pub(super) fn of(plot: &Plot) -> Self {
        let points = || plot.curves.iter().flat_map(|curve| &curve.points);
        let across: Vec<f64> = points().map(|point| point.x).collect();
        let reach = points().flat_map(|point| {
            let (low, high) = point.spread.unwrap_or((point.y, point.y));
            [point.y, low, high]
        });
        let x = Extent::of(&plot.x.scale, across.iter().copied(), Ends::Exact);
        let y = Extent::of(&plot.y.scale, reach, Ends::Margin);
        let y_ticks = ticks(y, &[], 6);
        let widest = y_ticks.iter().map(|tick| width_of(&tick.label));
        let left = widest.fold(18.0, f64::max) + 14.0;
        let left = left.max(slanted_before(plot, left));
        let names = plot.curves.iter().map(|curve| width_of(&curve.name));
        let name = names.fold(0.0, f64::max) + 24.0;
        let beside = !matches!(plot.x.scale, Scale::Names(_))
            && name <= BESIDE_MAX
            && plot.curves.len() as f64 * LINE <= INNER + LINE;
        let right = if beside {
            WIDTH - name - 8.0
        } else {
            WIDTH - 26.0
        };
        let x_ticks = ticks_across(x, &across, right - left);
        let (top, bottom) = (TOP, TOP + INNER);
        let (slant, below) = below(plot, right - left);
        let x_label = bottom + below;
        let mut layout = Self {
            left,
            right,
            top,
            bottom,
            height: x_label + 12.0,
            x,
            y,
            x_ticks,
            y_ticks,
            slant,
            x_label,
            names: Names::Below(Vec::new()),
        };
        if beside {
            layout.names = Names::Beside(layout.beside(plot));
        } else {
            layout.put_below(plot);
        }
        layout
    }

    /// Returns the horizontal position of a value.
    pub(super) fn across(&self, value: f64) -> f64 {
        self.left + (self.right - self.left) * self.x.part(value)
    }

    /// Returns the vertical position of a value, from the top.
    pub(super) fn upward(&self, value: f64) -> f64 {
        self.bottom - (self.bottom - self.top) * self.y.part(value)
    }

    /// Places the names beside the ends of their curves, moved apart where they would overlap.
    fn beside(&self, plot: &Plot) -> Vec<Anchor> {
        let end = |number: usize| {
            let last = plot.curves[number].points.last();
            last.map_or(self.bottom, |point| self.upward(point.y))
        };
        let mut order: Vec<usize> = (0..plot.curves.len()).collect();
        order.sort_by(|&a, &b| end(a).total_cmp(&end(b)));
        let mut wanted: Vec<f64> = order.iter().map(|&number| end(number)).collect();
        spread_out(&mut wanted, self.top - LINE / 2.0, self.bottom + LINE / 2.0);
        let mut places = vec![Anchor { x: 0.0, y: 0.0 }; order.len()];
        for (&number, &y) in order.iter().zip(&wanted) {
            places[number] = Anchor {
                x: self.right + 20.0,
                y,
            };
        }
        places
    }

    /// Places the names in a legend below, line by line.
    fn put_below(&mut self, plot: &Plot) {
        let (mut x, mut y) = (self.left, self.height + LINE / 2.0);
        let mut places = Vec::new();
        for curve in &plot.curves {
            let width = width_of(&cut(&curve.name, NAME_MAX)) + 50.0;
            if x > self.left && x + width > WIDTH {
                (x, y) = (self.left, y + LINE);
            }
            places.push(Anchor { x, y });
            x += width;
        }
        self.height = y + LINE;
        self.names = Names::Below(places);
    }
}

/// Returns the names along the horizontal axis.
fn across_names(plot: &Plot) -> &[String] {
    match &plot.x.scale {
        Scale::Names(names) => names,
        Scale::Linear | Scale::Log => &[],
    }
}

/// Returns the width of the widest name along the horizontal axis.
fn widest_across(plot: &Plot) -> f64 {
    let names = across_names(plot).iter();
    names
        .map(|name| width_of(&cut(name, ACROSS_MAX)))
        .fold(0.0, f64::max)
}

/// Returns `Level` if each name along the horizontal axis fits into its share of `room`.
fn slant(plot: &Plot, room: f64) -> Slant {
    let share = room / across_names(plot).len().max(1) as f64;
    if widest_across(plot) + 8.0 <= share {
        Slant::Level
    } else {
        Slant::Slanted
    }
}

/// Returns the least left side of the axes at which the first name, if slanted, fits.
fn slanted_before(plot: &Plot, left: f64) -> f64 {
    let names = across_names(plot);
    let room = WIDTH - 26.0 - left;
    let Some(first) = names
        .first()
        .filter(|_| slant(plot, room) == Slant::Slanted)
    else {
        return left;
    };
    let share = room / names.len() as f64;
    width_of(&cut(first, ACROSS_MAX)) * COSINE - share / 2.0 + 4.0
}

/// Returns how names along the axis are written, and the distance of the axis' label below it.
fn below(plot: &Plot, room: f64) -> (Slant, f64) {
    match slant(plot, room) {
        Slant::Level => (Slant::Level, 42.0),
        Slant::Slanted => (Slant::Slanted, widest_across(plot) * SINE + 42.0),
    }
}

/// Moves rising positions apart until they are a line apart, between `low` and `high` if all fit.
fn spread_out(places: &mut [f64], low: f64, high: f64) {
    let mut least = low + LINE / 2.0;
    for place in places.iter_mut() {
        *place = place.max(least);
        least = *place + LINE;
    }
    let mut most = high - LINE / 2.0;
    for place in places.iter_mut().rev() {
        *place = place.min(most);
        most = *place - LINE;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_a_line_apart() {
        let mut places = [10.0, 11.0, 12.0, 100.0, 199.0, 200.0];
        spread_out(&mut places, 0.0, 200.0);
        assert!(places.windows(2).all(|two| two[1] - two[0] >= LINE - 1e-9));
        assert!(places[0] >= LINE / 2.0 && places[5] <= 200.0 - LINE / 2.0);
    }
}
