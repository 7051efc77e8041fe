//! The curves: over a numeric axis a line with markers and a band, over names dots with whiskers,
//! side by side.

use core::fmt::Write as _;

use super::layout::Layout;
use super::palette::Look;
use super::ticks::short;
use super::{Curve, Plot, Point, Scale, escape, number};

/// A curve of more points has markers at some points only.
const MARKED_MAX: usize = 24;

/// About how many points have a marker then.
const MARKED: usize = 8;

/// The fraction of a name's width that its dots fill.
const FILLED: f64 = 0.76;

/// Writes one group per curve, with the curve's name in `data-curve`. Writing to a string cannot
/// fail.
pub(super) fn write(plot: &Plot, layout: &Layout, out: &mut String) {
    for (number, curve) in plot.curves.iter().enumerate() {
        let look = Look::of(&curve.name);
        let _ = write!(
            out,
            "<g class=\"curve hue-{}\" data-curve=\"{}\">",
            look.hue,
            escape(&curve.name)
        );
        match &plot.x.scale {
            Scale::Names(names) => {
                let room = (layout.right - layout.left) / names.len().max(1) as f64 * FILLED;
                let aside = (number as f64 + 0.5) / plot.curves.len() as f64 - 0.5;
                write_dots(curve, names, aside * room, look, layout, out);
            }
            Scale::Linear | Scale::Log => write_line(curve, look, layout, out),
        }
        out.push_str("</g>");
    }
}

fn write_line(curve: &Curve, look: Look, layout: &Layout, out: &mut String) {
    write_band(curve, layout, out);
    if curve.points.len() > 1 {
        let _ = write!(
            out,
            "<path class=\"line\" stroke-dasharray=\"{}\" d=\"",
            look.dashes()
        );
        for (i, point) in curve.points.iter().enumerate() {
            let step = if i == 0 { 'M' } else { 'L' };
            let (x, y) = (layout.across(point.x), layout.upward(point.y));
            let _ = write!(out, "{step}{} {}", number(x), number(y));
        }
        out.push_str("\"/>");
    }
    let last = curve.points.len() - 1;
    let every = if curve.points.len() > MARKED_MAX {
        curve.points.len().div_ceil(MARKED)
    } else {
        1
    };
    for (i, point) in curve.points.iter().enumerate() {
        if i % every == 0 || i == last {
            let title = format!("{}, {}: {}", curve.name, short(point.x), short(point.y));
            write_mark(*point, 0.0, &title, look, layout, out);
        }
    }
}

/// Writes a band from the low ends of all spreads to the high ends, if some point has a spread.
fn write_band(curve: &Curve, layout: &Layout, out: &mut String) {
    if curve.points.len() < 2 || curve.points.iter().all(|point| point.spread.is_none()) {
        return;
    }
    let place = |point: &Point, y: f64| (layout.across(point.x), layout.upward(y));
    let low = |point: &Point| place(point, point.spread.map_or(point.y, |(low, _)| low));
    let high = |point: &Point| place(point, point.spread.map_or(point.y, |(_, high)| high));
    out.push_str("<path class=\"band\" d=\"");
    let ends = curve.points.iter().map(high);
    let back = curve.points.iter().rev().map(low);
    for (i, (x, y)) in ends.chain(back).enumerate() {
        let step = if i == 0 { 'M' } else { 'L' };
        let _ = write!(out, "{step}{} {}", number(x), number(y));
    }
    out.push_str("z\"/>");
}

fn write_dots(
    curve: &Curve,
    names: &[String],
    aside: f64,
    look: Look,
    layout: &Layout,
    out: &mut String,
) {
    for point in &curve.points {
        let x = number(place_of(point.x, aside, layout));
        if layout.y.begins_at_zero() {
            let _ = write!(
                out,
                "<path class=\"stem\" d=\"M{x} {}V{}\"/>",
                number(layout.bottom),
                number(layout.upward(point.y))
            );
        }
        if let Some((low, high)) = point.spread.filter(|(low, high)| low < high) {
            let _ = write!(
                out,
                "<path class=\"whisker\" d=\"M{x} {}V{}\"/>",
                number(layout.upward(low)),
                number(layout.upward(high))
            );
        }
        let name = names.get(point.x.round() as usize);
        let title = format!(
            "{}, {}: {}",
            curve.name,
            name.map_or("", String::as_str),
            short(point.y)
        );
        write_mark(*point, aside, &title, look, layout, out);
    }
}

/// Returns the horizontal position of a point that is drawn `aside` of its own. It is clamped: a
/// point between names could lie beyond the side of the plot.
fn place_of(x: f64, aside: f64, layout: &Layout) -> f64 {
    (layout.across(x) + aside).clamp(layout.left, layout.right.max(layout.left))
}

fn write_mark(
    point: Point,
    aside: f64,
    title: &str,
    look: Look,
    layout: &Layout,
    out: &mut String,
) {
    let hollow = layout.y.is_below(point.y) || layout.x.is_below(point.x);
    let _ = write!(
        out,
        "<path class=\"mark{}\" transform=\"translate({} {})\" d=\"{}\"><title>{}</title></path>",
        if hollow { " hollow" } else { "" },
        number(place_of(point.x, aside, layout)),
        number(layout.upward(point.y)),
        look.marker(),
        escape(title)
    );
}
