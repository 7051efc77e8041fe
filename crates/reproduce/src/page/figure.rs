//! A measured figure as an element that leads to its rows, what was published for it, and the mark of its verdict.

use core::fmt::Write as _;

use super::markup::Escaped;
use crate::document::{Figure, Statistic};
use crate::judge::{Judgement, Verdict};

/// The statistics by the name that `data-statistic` has, and in words. `value` is a row by itself.
pub(super) const STATISTICS: [(&str, &str); 18] = [
    ("mean", "mean"),
    ("median", "median"),
    ("min", "smallest sample"),
    ("max", "largest sample"),
    ("range", "largest sample less the smallest"),
    ("stddev", "standard deviation (over n - 1)"),
    (
        "interval95",
        "half of the 95 % interval, 1.96 deviations over the root of n",
    ),
    (
        "speedup",
        "speedup of the mean over that of the baseline; above 1 is better",
    ),
    (
        "gain",
        "gain of the mean over that of the baseline; positive is better",
    ),
    ("difference", "mean less that of the baseline"),
    (
        "difference-percent",
        "mean less that of the baseline, in percent of that",
    ),
    ("share", "mean in percent of that of the whole"),
    (
        "gmean-speedup",
        "geometric mean of speedups, pair by pair; above 1 is better",
    ),
    ("value", "one row as it is"),
    (
        "gain-min",
        "gain of the smallest sample over that of the baseline; positive is better",
    ),
    (
        "gain-max",
        "gain of the largest sample over that of the baseline; positive is better",
    ),
    (
        "gain-stddev",
        "gain of the standard deviation over that of the baseline; positive is less of it",
    ),
    (
        "gain-range",
        "gain of the range over that of the baseline; positive is less of it",
    ),
];

/// The name of a statistic in `data-statistic`.
pub(super) const fn name(statistic: Statistic) -> &'static str {
    let place = match statistic {
        Statistic::Mean => 0,
        Statistic::Median => 1,
        Statistic::Min => 2,
        Statistic::Max => 3,
        Statistic::Range => 4,
        Statistic::StdDev => 5,
        Statistic::Interval95 => 6,
        Statistic::Speedup => 7,
        Statistic::Gain => 8,
        Statistic::Difference => 9,
        Statistic::DifferencePercent => 10,
        Statistic::Share => 11,
        Statistic::GmeanSpeedup => 12,
        // 13 is a row by itself.
        Statistic::GainMin => 14,
        Statistic::GainMax => 15,
        Statistic::GainStdDev => 16,
        Statistic::GainRange => 17,
    };
    STATISTICS[place].0
}

/// The number as it is shown: scaled, to the digits that the figure asks for, with commas from five digits on.
pub(crate) fn shown(figure: &Figure, judgement: &Judgement) -> String {
    with_commas(&format!(
        "{:.*}",
        figure.decimals,
        judgement.value * figure.scale
    ))
}

/// A number by itself, to four digits.
pub(super) fn four_digits(value: f64) -> String {
    if value == 0.0 || !value.is_finite() {
        return format!("{value}");
    }
    let size = value.abs().log10().floor();
    if !(-5.0..15.0).contains(&size) {
        return format!("{value:.3e}");
    }
    let decimals = (3.0 - size).clamp(0.0, 9.0) as usize;
    let text = format!("{value:.decimals$}");
    if text.contains('.') {
        let text = text.trim_end_matches('0').trim_end_matches('.');
        return with_commas(text);
    }
    with_commas(&text)
}

/// `1234567.8` as `1,234,567.8`; numbers of four digits stay as they are.
fn with_commas(text: &str) -> String {
    let digits = text.trim_start_matches('-');
    let (whole, rest) = digits.split_at(digits.find('.').unwrap_or(digits.len()));
    if whole.len() < 5 || !whole.bytes().all(|byte| byte.is_ascii_digit()) {
        return text.to_owned();
    }
    let mut out = text[..text.len() - digits.len()].to_owned();
    for (i, digit) in whole.chars().enumerate() {
        if i > 0 && (whole.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out + rest
}

/// A link to the rows of a figure, with `text` in it. Writing to a string cannot fail.
pub(super) fn write_link(figure: &Figure, judgement: &Judgement, text: &str, out: &mut String) {
    let published = figure.published.map(|published| published.text);
    write_element(
        Form::Number,
        name(figure.statistic),
        judgement,
        published,
        text,
        out,
    );
}

/// A link to the rows of a figure that has chosen this word.
pub(super) fn write_word(figure: &Figure, judgement: &Judgement, word: &str, out: &mut String) {
    write_element(
        Form::Word,
        name(figure.statistic),
        judgement,
        None,
        word,
        out,
    );
}

/// A link to one row of a series.
pub(super) fn write_row_link(row: usize, value: f64, text: &str, unit: &str, out: &mut String) {
    let judgement = Judgement {
        value,
        unit: unit.to_owned(),
        rows: vec![row],
        n: 1,
        speedup: None,
        interval: None,
        effect: None,
        p: None,
        p_holm: None,
        verdict: None,
    };
    write_element(Form::Number, "value", &judgement, None, text, out);
}

/// What stands in a figure's element.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    Number,
    /// A word that the number has chosen.
    Word,
}

fn write_element(
    form: Form,
    statistic: &str,
    judgement: &Judgement,
    published: Option<&str>,
    text: &str,
    out: &mut String,
) {
    out.push_str(match form {
        Form::Number => "<a class=\"figure\" href=\"#raw\" data-rows=\"",
        Form::Word => "<a class=\"figure word\" href=\"#raw\" data-rows=\"",
    });
    for (i, row) in judgement.rows.iter().enumerate() {
        let comma = if i > 0 { "," } else { "" };
        let _ = write!(out, "{comma}{row}");
    }
    let _ = write!(
        out,
        "\" data-statistic=\"{statistic}\" data-value=\"{}\" data-n=\"{}\" data-unit=\"{}\"",
        judgement.value,
        judgement.n,
        Escaped(&judgement.unit)
    );
    let numbers = [
        ("speedup", judgement.speedup),
        ("low", judgement.interval.map(|(low, _)| low)),
        ("high", judgement.interval.map(|(_, high)| high)),
        ("effect", judgement.effect),
        ("p", judgement.p),
        ("p-holm", judgement.p_holm),
    ];
    for (name, number) in numbers {
        if let Some(number) = number {
            let _ = write!(out, " data-{name}=\"{number}\"");
        }
    }
    if let Some(by) = judgement.interval_by() {
        let _ = write!(out, " data-interval-by=\"{}\"", Escaped(by));
    }
    if let Some(verdict) = judgement.verdict {
        let _ = write!(out, " data-verdict=\"{}\"", verdict.name());
    }
    if let Some(published) = published {
        let _ = write!(out, " data-published=\"{}\"", Escaped(published));
    }
    let _ = write!(out, ">{}</a>", Escaped(text));
}

/// The sign of a verdict, and its class.
pub(super) const fn sign(verdict: Verdict) -> (&'static str, &'static str) {
    match verdict {
        Verdict::Same => ("\u{2713}", "same"),
        Verdict::Opposite => ("\u{2717}", "opposite"),
        Verdict::WithinNoise => ("\u{2248}", "noise"),
        Verdict::NoDifference => ("=", "none"),
    }
}

/// The mark of a verdict: a sign, and the words for a screen reader and under the pointer.
pub(super) fn write_mark(verdict: Verdict, out: &mut String) {
    let (sign, class) = sign(verdict);
    let words = match verdict {
        Verdict::Same => "same direction",
        Verdict::Opposite => "opposite direction",
        Verdict::WithinNoise => "within noise",
        Verdict::NoDifference => "no difference in either",
    };
    let _ = write!(
        out,
        "<span class=\"verdict {class}\" title=\"{words}\"><span aria-hidden=\"true\">{sign}</span><span class=\"unseen\">, {words}</span></span>"
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_written_for_readers() {
        for (text, shown) in [
            ("1234.50", "1234.50"),
            ("12345.50", "12,345.50"),
            ("-1234567", "-1,234,567"),
            ("inf", "inf"),
        ] {
            assert_eq!(with_commas(text), shown);
        }
        for (value, shown) in [
            (0.0, "0"),
            (1234.56, "1235"),
            (0.012345, "0.01235"),
            (-7.5, "-7.5"),
            (98765.4, "98,765"),
            (1e-9, "1.000e-9"),
        ] {
            assert_eq!(four_digits(value), shown);
        }
    }
}
