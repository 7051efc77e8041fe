//! A measured figure as an element that links to its rows, with what was published for it and the
//! mark of its verdict.

use core::fmt::Write as _;

use super::markup::Escaped;
use crate::document::{Claim, Figure, Statistic, Verdict};
use crate::judge::{Judgement, Member, Sweep};
use crate::numbers::four_digits;

/// The name and the description of a single row, which is not a statistic.
pub(super) const ROW: (&str, &str) = ("value", "the value of one row");

/// Writes a link to the rows of a figure, with `text` in it. Writing to a string cannot fail.
pub(super) fn write_link(figure: &Figure, judgement: &Judgement, text: &str, out: &mut String) {
    let element = Element {
        form: Form::Number,
        statistic: figure.statistic.name(),
        scale: figure.scale,
        published: figure.published.map(|published| published.text),
        text,
    };
    element.write(judgement, out);
}

/// Writes the ratio of a judged cell whose own number is none, and the published one.
pub(super) fn write_ratio(figure: &Figure, judgement: &Judgement, out: &mut String) {
    let published = figure.published.and_then(|published| published.speedup);
    let (Some(own), Some(published)) = (judgement.speedup, published) else {
        return;
    };
    if judgement.verdict.is_none() || figure.statistic == Statistic::Speedup {
        return;
    }
    out.push_str("<span class=\"ratio\">");
    write_times(own, judgement.rows.clone(), judgement.n, out);
    let _ = write!(out, " times (published {})</span>", four_digits(published));
}

/// Writes a speedup as a link to its rows.
fn write_times(value: f64, rows: Vec<usize>, n: usize, out: &mut String) {
    if value.is_infinite() {
        // No number that a script could compute again.
        out.push_str("<span title=\"the baseline is 0\">\u{221e}</span>");
        return;
    }
    let element = Element {
        form: Form::Number,
        statistic: Statistic::Speedup.name(),
        scale: 1.0,
        published: None,
        text: &four_digits(value),
    };
    element.write(&Judgement::alone(value, "times", rows, n), out);
}

/// Writes the ends of a sweep, each a link to the rows of its member.
pub(super) fn write_sweep(figure: &Figure, judgement: &Judgement, sweep: &Sweep, out: &mut String) {
    let (statistic, unit) = match figure.least() {
        Some(_) => (Statistic::Mean, judgement.unit.as_str()),
        None => (Statistic::Speedup, "times"),
    };
    let write_end = |member: &Member, out: &mut String| {
        if statistic == Statistic::Speedup {
            return write_times(member.value, member.rows.clone(), member.n, out);
        }
        let element = Element {
            form: Form::Number,
            statistic: statistic.name(),
            scale: 1.0,
            published: None,
            text: &four_digits(member.value),
        };
        let alone = Judgement::alone(member.value, unit, member.rows.clone(), member.n);
        element.write(&alone, out);
    };
    out.push_str("<span class=\"sweep\">");
    write_end(&sweep.lowest, out);
    out.push_str(" to ");
    write_end(&sweep.highest, out);
    let _ = write!(
        out,
        " {}, {} assumptions</span>",
        Escaped(unit),
        sweep.members
    );
}

/// Writes a link to the rows of a figure that has chosen this word.
pub(super) fn write_word(figure: &Figure, judgement: &Judgement, word: &str, out: &mut String) {
    let element = Element {
        form: Form::Word,
        statistic: figure.statistic.name(),
        scale: figure.scale,
        published: None,
        text: word,
    };
    element.write(judgement, out);
}

/// A row of a series: its index, its value, and what that is multiplied by when it is shown.
pub(super) struct Row<'r> {
    pub(super) place: usize,
    pub(super) value: f64,
    pub(super) unit: &'r str,
    pub(super) scale: f64,
}

/// Writes a link to one row of a series.
pub(super) fn write_row_link(row: &Row<'_>, text: &str, out: &mut String) {
    let element = Element {
        form: Form::Number,
        statistic: ROW.0,
        scale: row.scale,
        published: None,
        text,
    };
    let judgement = Judgement::alone(row.value, row.unit, vec![row.place], 1);
    element.write(&judgement, out);
}

/// What a figure's element shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    Number,
    /// A word that the number has chosen.
    Word,
}

/// A figure's element, without its judgement.
struct Element<'e> {
    form: Form,
    statistic: &'e str,
    scale: f64,
    published: Option<&'e str>,
    text: &'e str,
}

impl Element<'_> {
    fn write(&self, judgement: &Judgement, out: &mut String) {
        out.push_str(match self.form {
            Form::Number => "<a class=\"figure\" href=\"#raw\" data-rows=\"",
            Form::Word => "<a class=\"figure word\" href=\"#raw\" data-rows=\"",
        });
        for (i, row) in judgement.rows.iter().enumerate() {
            let comma = if i > 0 { "," } else { "" };
            let _ = write!(out, "{comma}{row}");
        }
        let _ = write!(
            out,
            "\" data-statistic=\"{}\" data-value=\"{}\" data-n=\"{}\" data-unit=\"{}\"",
            self.statistic,
            judgement.value,
            judgement.n,
            Escaped(&judgement.unit)
        );
        if self.scale != 1.0 {
            let _ = write!(out, " data-scale=\"{}\"", self.scale);
        }
        write_tests(judgement, out);
        if let Some(published) = self.published {
            let _ = write!(out, " data-published=\"{}\"", Escaped(published));
        }
        let _ = write!(out, ">{}</a>", Escaped(self.text));
    }
}

/// Writes the results of comparing the two sides.
fn write_tests(judgement: &Judgement, out: &mut String) {
    let numbers = [
        ("speedup", judgement.speedup),
        ("low", judgement.interval.map(|found| found.ends.low)),
        ("high", judgement.interval.map(|found| found.ends.high)),
        ("p", judgement.p),
        ("p-holm", judgement.p_holm),
    ];
    for (name, number) in numbers {
        if let Some(number) = number {
            let _ = write!(out, " data-{name}=\"{number}\"");
        }
    }
    if judgement.assumed {
        out.push_str(" data-assumed=\"\"");
    }
    if let Some(sweep) = &judgement.sweep {
        let (low, high) = (&sweep.lowest, &sweep.highest);
        let _ = write!(
            out,
            " data-sweep=\"{} to {} under {} assumptions (lowest: {}; highest: {})\"",
            four_digits(low.value),
            four_digits(high.value),
            sweep.members,
            Escaped(&low.label),
            Escaped(&high.label)
        );
    }
    if let Some(found) = judgement.interval {
        let _ = write!(out, " data-interval-by=\"{}\"", found.method.name());
    }
    if let Some(verdict) = judgement.verdict {
        let itself = by_itself(judgement);
        let _ = write!(out, " data-verdict=\"{}{itself}\"", verdict.name());
    }
}

/// Returns what a verdict that depends on assumptions would be without the others, as an addition to
/// its name.
fn by_itself(judgement: &Judgement) -> String {
    let itself = judgement.by_itself;
    itself.map_or_else(String::new, |it| format!("; by itself: {}", it.name()))
}

/// Returns the sign of a verdict, and its class.
pub(super) const fn sign(verdict: Verdict) -> (&'static str, &'static str) {
    match verdict {
        Verdict::Same => ("\u{2713}", "same"),
        Verdict::DirectionOnly => ("\u{25d0}", "same"),
        Verdict::Opposite => ("\u{2717}", "opposite"),
        Verdict::NoEffect => ("\u{2248}", "noise"),
        Verdict::Undecided => ("~", "noise"),
        Verdict::Depends => ("?", "noise"),
        Verdict::NotSwept => ("\u{2026}", "noise"),
        Verdict::NoDifference => ("=", "none"),
        Verdict::OnlyHere => ("\u{2260}", "none"),
        Verdict::Unclear => ("\u{225f}", "none"),
        Verdict::NotTestable => ("\u{2205}", "none"),
        Verdict::Contradicted => ("\u{2298}", "none"),
    }
}

/// Returns what a verdict says of this figure, in words.
fn words(figure: &Figure, verdict: Verdict) -> String {
    let name = verdict.name();
    if figure.published.map(|published| published.claim) == Some(Claim::NoHarm) {
        return match verdict {
            Verdict::Same => format!("{name}: nothing is slower by more than 1 %, as claimed"),
            Verdict::Opposite => format!("{name}: slower by more than 1 %, against the claim"),
            _ => name.to_owned(),
        };
    }
    match (verdict, figure.least(), figure.why_not_testable()) {
        (Verdict::Same, Some(least), _) => format!("{name}: at least {least}, as claimed"),
        (Verdict::Opposite, Some(least), _) => format!("{name}: below {least}, against the claim"),
        (Verdict::Same, ..) => format!(
            "{name} direction, and a size between half and twice the published one (of the logarithms, as far as rounding allows)"
        ),
        (Verdict::Opposite, ..) => format!("{name} direction"),
        (_, _, Some(why)) => format!("{name}: {why}"),
        _ => name.to_owned(),
    }
}

/// Writes the mark of a figure's verdict: a sign, and words for screen readers and the tooltip.
pub(super) fn write_mark(figure: &Figure, judgement: &Judgement, out: &mut String) {
    let Some(verdict) = judgement.verdict else {
        return;
    };
    let (sign, class) = sign(verdict);
    let words = words(figure, verdict) + &by_itself(judgement);
    let words = Escaped(&words);
    let _ = write!(
        out,
        "<span class=\"verdict {class}\" title=\"{words}\"><span aria-hidden=\"true\">{sign}</span><span class=\"unseen\">, {words}</span></span>"
    );
}
