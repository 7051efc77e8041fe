//! The table: a line per row, in the style of mmtests.

use core::fmt::Write as _;

use brickyard_results::judge::{Judged, Judgements, Timed, Verdict};
use brickyard_results::{
    BOOTSTRAP_LEAST, Better, Column, Columns, SampleKind, counted, fixed, printable as plain,
};

use super::sides::Sides;

/// Returns the table, with the lines above and below it.
pub(super) fn table(
    sides: &Sides<'_>,
    comparison: &Judgements<'_>,
    notes: &[String],
    statistics: bool,
) -> String {
    let mut text = head(sides);
    let mut heads = vec!["", "unit", "A", "B (gain)"];
    if statistics {
        heads.extend(["B / A, 95 %", "p"]);
    }
    heads.push("");
    let mut lines: Vec<Vec<String>> = vec![heads.into_iter().map(str::to_owned).collect()];
    let rows = comparison.rows.iter();
    lines.extend(rows.map(|row| line(row, statistics)));
    if let Some(gmean) = comparison.gmean {
        let (ratio, gain) = (number(gmean.ratio, 10.0), percent(gmean.gain_percent));
        let mut line = vec![String::new(); lines[0].len()];
        line[0] = "Gmean of B / A".into();
        line[2] = "1.00".into();
        line[3] = format!("{ratio:>12} ({gain:>8})");
        lines.push(line);
    }
    let last = lines[0].len() - 1;
    let columns = (0..=last).map(|column| match column {
        0 => Column::left(),
        1 => Column::left().after(2),
        _ if column == last => Column::left().after(2),
        _ => Column::right().after(2),
    });
    text += &Columns::new(columns).lines(&lines).join("\n");
    text += "\n\n";
    text += &legend(comparison, statistics).join("\n");
    for note in notes {
        text += &format!("\n{note}");
    }
    text + "\n"
}

/// Returns the lines that say what is compared.
fn head(sides: &Sides<'_>) -> String {
    let mut head = plain(sides.experiments()[0]) + "\n";
    let who = sides.files().into_iter().zip(sides.configs());
    for ((files, config), letter) in who.zip(["A", "B"]) {
        let files = files.iter().map(|file| plain(&file.display().to_string()));
        let files = files.collect::<Vec<_>>().join(", ");
        let _ = write!(head, "{letter}: {files}");
        if let Some(config) = config {
            let _ = write!(head, ", {}", plain(config));
        }
        head += if letter == "A" {
            " (baseline)\n"
        } else {
            "\n\n"
        };
    }
    head
}

/// Returns the line of a pair.
fn line(row: &Judged<'_>, statistics: bool) -> Vec<String> {
    let (a, b) = (row.pair.a.summary().mean(), row.pair.b.summary().mean());
    let scale = a.unwrap_or(0.0).abs().max(b.unwrap_or(0.0).abs());
    let value = |value: Option<f64>| value.map_or_else(nothing, |value| number(value, scale));
    let (open, close) = if row.significant {
        ('*', '*')
    } else {
        ('(', ')')
    };
    let gain = match row.gain_percent {
        Some(gain) => percent(gain),
        None if a == Some(0.0) && b.is_some() && row.pair.better() != Better::Neither => {
            "from 0".into()
        }
        None => nothing(),
    };
    let mut line = vec![
        plain(&row.pair.name),
        plain(row.pair.a.metric().unit),
        format!("{:>12}", value(a)),
        format!("{:>12} {open}{gain:>8}{close}", value(b)),
    ];
    if statistics {
        line.push(row.ratio().map_or_else(nothing, |found| {
            format!("{} to {}", four(found.ends.low), four(found.ends.high))
        }));
        line.push(match row.test {
            Some((_, p_holm)) => chance(p_holm),
            None if row.is_exact() => "exact".into(),
            None => nothing(),
        });
    }
    line.push(match row.verdict {
        Verdict::Same => String::new(),
        verdict => verdict.name().to_owned(),
    });
    line
}

/// Returns the lines that explain the table.
fn legend(comparison: &Judgements<'_>, statistics: bool) -> Vec<String> {
    let counts = Verdict::ALL.map(|verdict| format!("{} {verdict}", comparison.count(verdict)));
    let (rows, rules) = (comparison.rows.len(), comparison.rules);
    let mut legend = vec![
        format!("{}: {}.", counted(rows, "row", "rows"), counts.join(", ")),
        format!(
            "Means; positive gains are better. Stars: the sides differ: exact rows (the same work on both sides, or nothing varies) by any amount, others by Welch's test, p < {} after Holm's correction for {} tests.",
            rules.alpha, comparison.tests
        ),
        format!(
            "worse, better: the difference is proven and more than {threshold} %. unclear: a loss of more than {threshold} % is neither proven nor ruled out.",
            threshold = rules.threshold_percent
        ),
    ];
    legend.extend(timed(comparison));
    if let Some(gmean) = comparison.gmean {
        let (better, inverse) = (gmean.better, gmean.better.opposite());
        legend.push(format!(
            "Gmean: of {} rows, {better} is better; for metrics where {inverse} is better, A / B is used.",
            gmean.lines
        ));
    }
    if statistics {
        legend.push(format!(
            "B / A: Student's t of the logarithms; with {BOOTSTRAP_LEAST} or more samples per side, BCa bootstrap, 9,999 resamples. p: after Holm's correction; exact: nothing to test."
        ));
    }
    legend
}

/// Returns a line on how timed rows are judged, if there are any.
fn timed(comparison: &Judgements<'_>) -> Option<String> {
    let rows = comparison.rows.iter();
    let timed = rows.filter(|row| row.pair.kind == Some(SampleKind::Timed));
    let count = timed.count();
    (count > 0).then(|| match comparison.rules.timed {
        Timed::Rounds { threshold_percent } => format!(
            "Timed rows ({count}): worse or better only where one mean is more than {} times the other, since two runs of one build differ by up to that. More runs of both (--again-a, --again-b) find smaller differences.",
            1.0 + threshold_percent / 100.0
        ),
        Timed::Runs => format!("Timed rows ({count}): each sample is the mean of a run."),
    })
}

fn nothing() -> String {
    "n/a".into()
}

/// Formats a value with two decimals, or with four significant digits where the larger of both
/// values is below ten. Very large and very small values are in scientific notation.
fn number(value: f64, scale: f64) -> String {
    let decimals = if scale == 0.0 || scale >= 10.0 {
        2
    } else {
        (3.0 - scale.log10().floor()) as usize
    };
    if scale >= 1e12 || decimals > 9 {
        return format!("{value:.3e}");
    }
    fixed(value, decimals)
}

fn percent(value: f64) -> String {
    format!("{}%", two(value))
}

fn two(value: f64) -> String {
    if value.abs() >= 1e9 {
        return format!("{value:.2e}");
    }
    fixed(value, 2)
}

/// Formats a ratio with four decimals.
fn four(value: f64) -> String {
    if value.abs() >= 1e6 || (value != 0.0 && value.abs() < 1e-3) {
        return format!("{value:.3e}");
    }
    format!("{value:.4}")
}

/// Formats a p: with three decimals, or with one digit in scientific notation below 0.001.
fn chance(p: f64) -> String {
    if p > 0.0 && p < 0.001 {
        format!("{p:.0e}")
    } else {
        format!("{p:.3}")
    }
}
