//! The surroundings of the curves: grid, axes, their labels, and the curves' names.

use core::fmt::Write as _;

use super::layout::{
    ACROSS_MAX, Anchor, LABEL_MAX, LINE, Layout, NAME_MAX, Names, Slant, TEXT, WIDTH, cut,
};
use super::palette::Look;
use super::{Plot, Scale, escape, number};

/// Writes all of them. Writing to a string cannot fail, so the results of `write!` are ignored.
pub(super) fn write(plot: &Plot, layout: &Layout, out: &mut String) {
    out.push_str("<g class=\"axes\" aria-hidden=\"true\">");
    write_stripes(plot, layout, out);
    write_upward(plot, layout, out);
    write_across(plot, layout, out);
    out.push_str("</g>");
    if plot.curves.is_empty() {
        let (x, y) = (
            (layout.left + layout.right) / 2.0,
            (layout.top + layout.bottom) / 2.0,
        );
        write_text(out, "none", "middle", x, y, "nothing was measured");
    }
    write_names(plot, layout, out);
}

/// Writes a background for every other name, which groups the name's dots.
fn write_stripes(plot: &Plot, layout: &Layout, out: &mut String) {
    let Scale::Names(names) = &plot.x.scale else {
        return;
    };
    let share = (layout.right - layout.left) / names.len().max(1) as f64;
    for number_of_name in (1..names.len()).step_by(2) {
        let _ = write!(
            out,
            "<path class=\"stripe\" d=\"M{} {}h{}V{}h-{}z\"/>",
            number(layout.left + share * number_of_name as f64),
            number(layout.top),
            number(share),
            number(layout.bottom),
            number(share)
        );
    }
}

fn write_upward(plot: &Plot, layout: &Layout, out: &mut String) {
    write_text(
        out,
        "label",
        "start",
        2.0,
        TEXT + 1.0,
        &cut(&plot.y.label, LABEL_MAX),
    );
    for tick in &layout.y_ticks {
        let y = layout.upward(tick.value);
        let _ = write!(
            out,
            "<path class=\"grid\" d=\"M{} {}H{}\"/>",
            number(layout.left),
            number(y),
            number(layout.right)
        );
        write_text(
            out,
            "tick",
            "end",
            layout.left - 7.0,
            y + TEXT * 0.35,
            &tick.label,
        );
    }
}

fn write_across(plot: &Plot, layout: &Layout, out: &mut String) {
    let _ = write!(
        out,
        "<path class=\"axis\" d=\"M{} {}H{}\"/>",
        number(layout.left),
        number(layout.bottom),
        number(layout.right)
    );
    let below = layout.bottom + TEXT + 7.0;
    for tick in &layout.x_ticks {
        let x = layout.across(tick.value);
        let _ = write!(
            out,
            "<path class=\"axis\" d=\"M{} {}v4\"/>",
            number(x),
            number(layout.bottom)
        );
        write_text(out, "tick", "middle", x, below, &tick.label);
    }
    if let Scale::Names(names) = &plot.x.scale {
        for (i, name) in names.iter().enumerate() {
            let x = layout.across(i as f64);
            match layout.slant {
                Slant::Level => write_text(out, "tick", "middle", x, below, &cut(name, ACROSS_MAX)),
                Slant::Slanted => {
                    let _ = write!(
                        out,
                        "<text class=\"tick\" text-anchor=\"end\" transform=\"translate({} {}) rotate(-36)\">{}</text>",
                        number(x + 4.0),
                        number(below - 3.0),
                        escape(&cut(name, ACROSS_MAX))
                    );
                }
            }
        }
    }
    let middle = (layout.left + layout.right) / 2.0;
    write_text(
        out,
        "label",
        "middle",
        middle,
        layout.x_label,
        &cut(&plot.x.label, LABEL_MAX),
    );
}

fn write_names(plot: &Plot, layout: &Layout, out: &mut String) {
    out.push_str("<g class=\"names\" aria-hidden=\"true\">");
    match &layout.names {
        Names::Beside(places) => {
            for (curve, &place) in plot.curves.iter().zip(places) {
                write_lead(curve, place, layout, out);
                let x = (place.x + 9.0).min(WIDTH);
                write_text(out, "name", "start", x, place.y + TEXT * 0.35, &curve.name);
            }
        }
        Names::Below(places) => {
            let lines = !matches!(plot.x.scale, Scale::Names(_));
            for (curve, &place) in plot.curves.iter().zip(places) {
                write_sample(&curve.name, place, lines, out);
                write_text(
                    out,
                    "name",
                    "start",
                    place.x + 30.0,
                    place.y + TEXT * 0.35,
                    &cut(&curve.name, NAME_MAX),
                );
            }
        }
    }
    out.push_str("</g>");
}

/// Writes a thin line from a curve's end to its name, and the marker there.
fn write_lead(curve: &super::Curve, place: Anchor, layout: &Layout, out: &mut String) {
    let look = Look::of(&curve.name);
    let Some(last) = curve.points.last() else {
        return;
    };
    let (x, y) = (layout.across(last.x), layout.upward(last.y));
    // Only for curves that end near the right side: a line across the plot would look like a curve.
    if layout.right - x < LINE {
        let _ = write!(
            out,
            "<path class=\"lead\" d=\"M{} {}L{} {}\"/>",
            number(x + 6.0),
            number(y),
            number(place.x - 6.0),
            number(place.y)
        );
    }
    let _ = write!(
        out,
        "<path class=\"mark hue-{}\" transform=\"translate({} {})\" d=\"{}\"/>",
        look.hue,
        number(place.x),
        number(place.y),
        look.marker()
    );
}

/// Writes a piece of the curve's line, if the plot has lines, and its marker.
fn write_sample(name: &str, place: Anchor, lines: bool, out: &mut String) {
    let look = Look::of(name);
    let _ = write!(out, "<g class=\"hue-{}\">", look.hue);
    if lines {
        let _ = write!(
            out,
            "<path class=\"line\" stroke-dasharray=\"{}\" d=\"M{} {}h24\"/>",
            look.dashes(),
            number(place.x),
            number(place.y)
        );
    }
    let _ = write!(
        out,
        "<path class=\"mark\" transform=\"translate({} {})\" d=\"{}\"/></g>",
        number(place.x + 12.0),
        number(place.y),
        look.marker()
    );
}

fn write_text(out: &mut String, class: &str, anchor: &str, x: f64, y: f64, text: &str) {
    let _ = write!(
        out,
        "<text class=\"{class}\" text-anchor=\"{anchor}\" x=\"{}\" y=\"{}\">{}</text>",
        number(x),
        number(y),
        escape(text)
    );
}
