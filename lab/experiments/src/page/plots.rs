//! Plots: the picture, and below it every point as a figure.

use core::fmt::Write as _;

use brickyard_pictures::plot::{self, Axis, Scale};
use brickyard_results::counted;

use super::figure;
use super::markup::{Escaped, Prose, plain};
use super::report::Report;
use crate::document::{Curve, Figure, Plot, Points, Statistic};
use crate::judge::Judgement;
use crate::numbers::four_digits;

/// A measured point.
struct PlottedPoint {
    /// Its horizontal position.
    x: f64,
    /// Its vertical position, before it is scaled.
    value: f64,
    /// The smallest and the largest of its samples.
    spread: Option<(f64, f64)>,
    source: Source,
}

/// What a point is computed from.
enum Source {
    /// The mean of samples.
    Samples(Box<(Figure, Judgement)>),
    /// A single row, and its unit.
    Row(usize, String),
}

/// A curve that has points.
struct Drawn<'p> {
    curve: &'p Curve,
    points: Vec<PlottedPoint>,
}

/// Writes the plots that have rows, and how many have none. Writing to a string cannot fail.
pub(super) fn write_all(report: &Report<'_>, plots: &[Plot], out: &mut String) {
    let all = plots.iter().map(|plot| (plot, drawn(report, plot)));
    let (shown, empty): (Vec<_>, Vec<_>) = all.partition(|(_, drawn)| !drawn.is_empty());
    if !shown.is_empty() {
        out.push_str("<div class=\"plots\">");
        for (plot, drawn) in &shown {
            write(plot, drawn, out);
        }
        out.push_str("</div>");
    }
    if !empty.is_empty() {
        let _ = write!(
            out,
            "<p class=\"muted\">{} in this run.</p>",
            counted(empty.len(), "plot has no rows", "plots have no rows")
        );
    }
}

/// Returns the curves that have points.
fn drawn<'p>(report: &Report<'_>, plot: &'p Plot) -> Vec<Drawn<'p>> {
    let all = plot.curves.iter().map(|curve| Drawn {
        curve,
        points: points(report, curve),
    });
    all.filter(|drawn| !drawn.points.is_empty()).collect()
}

/// Writes a figure: heading, paragraph, picture, table.
fn write(plot: &Plot, drawn: &[Drawn<'_>], out: &mut String) {
    let id = Escaped(&plot.id);
    let _ = write!(
        out,
        "<figure class=\"plotted\" id=\"plot-{id}\"><figcaption><h4>{}</h4><p>{}</p></figcaption>",
        Prose(&plot.title),
        Prose(&plot.about)
    );
    let title = plain(&plot.title);
    let _ = write!(
        out,
        "<div class=\"scroll bare\" role=\"group\" tabindex=\"0\" aria-label=\"Plot: {}\">{}</div><details><summary>Every point as a number</summary>",
        Escaped(&title),
        picture(plot, drawn).svg()
    );
    write_table(plot, drawn, out);
    out.push_str("</details></figure>");
}

fn points(report: &Report<'_>, curve: &Curve) -> Vec<PlottedPoint> {
    match &curve.points {
        Points::Samples(places) => places
            .iter()
            .filter_map(|(x, key)| {
                let figure = Figure::new(Statistic::Mean, key.clone()).scaled(curve.scale);
                let judgement = (report.judged)(&figure)?;
                let samples = report.data.samples(key)?;
                let low = samples.values.iter().copied().fold(f64::INFINITY, f64::min);
                let high = samples
                    .values
                    .iter()
                    .copied()
                    .fold(f64::NEG_INFINITY, f64::max);
                Some(PlottedPoint {
                    x: *x,
                    value: judgement.value,
                    spread: (samples.values.len() > 1).then_some((low, high)),
                    source: Source::Samples(Box::new((figure, judgement))),
                })
            })
            .collect(),
        Points::Series(key) => {
            let Some(series) = report.data.series(key) else {
                return Vec::new();
            };
            let places = series.points.iter().zip(&series.rows);
            places
                .map(|(&(x, value), &row)| PlottedPoint {
                    x,
                    value,
                    spread: None,
                    source: Source::Row(row, series.unit.to_owned()),
                })
                .collect()
        }
    }
}

fn picture(plot: &Plot, drawn: &[Drawn<'_>]) -> plot::Plot {
    // An axis of names shows only those that have a point, or a quick run would have gaps.
    let mut places: Vec<usize> = drawn
        .iter()
        .flat_map(|drawn| drawn.points.iter().map(|point| name_at(point.x)))
        .collect();
    places.sort_unstable();
    places.dedup();
    let is_named = matches!(plot.x.scale, Scale::Names(_));
    let across = |x: f64| {
        let place = is_named.then(|| places.binary_search(&name_at(x)).ok());
        place.flatten().map_or(x, |place| place as f64)
    };
    let axis = |axis: &Axis| Axis {
        label: plain(&axis.label),
        scale: match &axis.scale {
            Scale::Names(names) => {
                let shown = places.iter().filter_map(|&place| names.get(place));
                Scale::Names(shown.cloned().collect())
            }
            scale => scale.clone(),
        },
    };
    let curves = drawn.iter().map(|Drawn { curve, points }| plot::Curve {
        name: curve.name.clone(),
        points: points
            .iter()
            .map(|point| plot::Point {
                x: across(point.x),
                y: point.value * curve.scale,
                spread: point
                    .spread
                    .map(|(low, high)| (low * curve.scale, high * curve.scale)),
            })
            .collect(),
    });
    plot::Plot {
        id: format!("{}-picture", plot.id),
        title: plain(&plot.title),
        about: plain(&plot.about),
        x: axis(&plot.x),
        y: axis(&plot.y),
        curves: curves.collect(),
    }
}

/// Writes a table with a line for each horizontal position and a column for each curve.
fn write_table(plot: &Plot, drawn: &[Drawn<'_>], out: &mut String) {
    let mut places: Vec<f64> = drawn
        .iter()
        .flat_map(|drawn| drawn.points.iter().map(|point| point.x))
        .collect();
    places.sort_by(f64::total_cmp);
    places.dedup();
    let title = plain(&plot.title);
    let _ = write!(
        out,
        "<div class=\"scroll\" role=\"group\" tabindex=\"0\" aria-label=\"Points: {}\"><table><caption class=\"unseen\">{}: {}</caption><thead><tr><th scope=\"col\">{}</th>",
        Escaped(&title),
        Escaped(&title),
        Prose(&plot.y.label),
        Prose(&plot.x.label)
    );
    for drawn in drawn {
        let _ = write!(out, "<th scope=\"col\">{}</th>", Escaped(&drawn.curve.name));
    }
    out.push_str("</tr></thead><tbody>");
    // The points of each curve are sorted, so one pass over each is enough. Several points may have
    // the same position.
    let mut nexts: Vec<_> = drawn
        .iter()
        .map(|drawn| {
            let mut sorted: Vec<&PlottedPoint> = drawn.points.iter().collect();
            sorted.sort_by(|a, b| a.x.total_cmp(&b.x));
            (drawn.curve, sorted.into_iter().peekable())
        })
        .collect();
    for place in places {
        let _ = write!(
            out,
            "<tr><th scope=\"row\">{}</th>",
            place_name(plot, place)
        );
        for (curve, next) in &mut nexts {
            out.push_str("<td>");
            let mut before = "";
            while let Some(point) = next.next_if(|point| point.x.total_cmp(&place).is_le()) {
                out.push_str(before);
                write_point(curve, point, out);
                before = ", ";
            }
            out.push_str("</td>");
        }
        out.push_str("</tr>");
    }
    out.push_str("</tbody></table></div>");
}

fn write_point(curve: &Curve, point: &PlottedPoint, out: &mut String) {
    let text = four_digits(point.value * curve.scale);
    match &point.source {
        Source::Samples(mean) => figure::write_link(&mean.0, &mean.1, &text, out),
        Source::Row(place, unit) => {
            let row = figure::Row {
                place: *place,
                value: point.value,
                unit,
                scale: curve.scale,
            };
            figure::write_row_link(&row, &text, out);
        }
    }
}

/// Returns the number of the name at a position.
fn name_at(place: f64) -> usize {
    place.round().max(0.0) as usize
}

fn place_name(plot: &Plot, place: f64) -> String {
    match &plot.x.scale {
        Scale::Names(names) => names
            .get(name_at(place))
            .map_or_else(String::new, |name| Escaped(name).to_string()),
        // A whole number, such as a number of CPUs, is shown in full.
        Scale::Linear | Scale::Log if place.fract() == 0.0 && place.abs() < 1e15 => {
            format!("{place}")
        }
        Scale::Linear | Scale::Log => four_digits(place),
    }
}
