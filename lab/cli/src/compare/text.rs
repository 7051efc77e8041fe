//! The table: a line per row, in the style of mmtests.

use core::fmt::Write as _;

use brickyard_results::verdict::{Depth, Judged, Judgements, Test, Timed, Verdict};
use brickyard_results::{
    BOOTSTRAP_LEAST, Better, Column, Columns, GmeanCell, SampleKind, counted, fixed,
};

use super::notes::plain;
use super::sides::Sides;

/// Returns the table, with the lines above and below it.
pub(super) fn table(sides: &Sides<'_>, comparison: &Judgements<'_>, notes: &[String]) -> String {
    let mut text = head(sides);
    let depth = comparison.judge.depth;
    let mut lines = vec![heads(depth)];
    lines.extend(comparison.rows.iter().map(line));
    if let Some((_, cell)) = &comparison.gmean {
        lines.push(gmean_line(cell, depth));
    }
    let last = lines[0].len() - 1;
    let columns = (0..=last).map(|column| match column {
        0 => Column::left(),
        1 => Column::left().after(2),
        _ if column == last => Column::left().after(2),
        _ => Column::right().after(2),
    });
    for line in Columns::new(columns).lines(&lines) {
        text += line.trim_end();
        text += "\n";
    }
    text += "\n";
    for line in legend(comparison).into_iter().chain(notes.iter().cloned()) {
        text += &line;
        text += "\n";
    }
    text
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

fn heads(depth: Depth) -> Vec<String> {
    let mut heads = vec!["".into(), "unit".into(), "A".into(), "B (gain)".into()];
    if depth == Depth::Full {
        heads.extend([
            "B / A, 95 %".into(),
            "g".into(),
            "p".into(),
            "p, ranks".into(),
        ]);
    }
    heads.push(String::new());
    heads
}

/// Returns the line of a pair.
fn line(row: &Judged<'_>) -> Vec<String> {
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
    if let Some(full) = row.full {
        let ratio = full.ratio.map_or_else(nothing, |ratio| {
            format!("{} to {}", four(ratio.low), four(ratio.high))
        });
        let p = match row.test {
            Test::Exact(_) => "exact".into(),
            Test::Welch { p_holm, .. } => chance(p_holm),
            Test::None => nothing(),
        };
        let g = full.hedges_g.map_or_else(nothing, two);
        let ranks = full.rank_sum_p.map_or_else(nothing, chance);
        line.extend([ratio, g, p, ranks]);
    }
    line.push(match row.verdict {
        Verdict::Same => String::new(),
        verdict => verdict.name().to_owned(),
    });
    line
}

/// Returns the line of the geometric mean.
fn gmean_line(cell: &GmeanCell, depth: Depth) -> Vec<String> {
    let (ratio, gain) = (number(cell.ratio, 10.0), percent(cell.gain_percent));
    let mut line = vec![
        "Gmean of B / A".into(),
        String::new(),
        "1.00".into(),
        format!("{ratio:>12} ({gain:>8})"),
    ];
    if depth == Depth::Full {
        line.extend([String::new(), String::new(), String::new(), String::new()]);
    }
    line.push(String::new());
    line
}

/// Returns the lines that explain the table.
fn legend(comparison: &Judgements<'_>) -> Vec<String> {
    let counts = Verdict::ALL.map(|verdict| format!("{} {verdict}", comparison.count(verdict)));
    let (rows, judge) = (comparison.rows.len(), comparison.judge);
    let mut legend = vec![
        format!("{}: {}.", counted(rows, "row", "rows"), counts.join(", ")),
        format!(
            "Means; positive gains are better. Stars: the sides differ: exact rows (the same work on both sides, or nothing varies) by any amount, others by Welch's test, p < {} after Holm's correction for {} tests.",
            judge.alpha, comparison.tests
        ),
        format!(
            "worse, better: the difference is proven and more than {threshold} %. unclear: a loss of more than {threshold} % is neither proven nor ruled out.",
            threshold = judge.threshold_percent
        ),
    ];
    legend.extend(timed(comparison));
    if let Some((better, cell)) = &comparison.gmean {
        let inverse = better.opposite();
        legend.push(format!(
            "Gmean: of {} rows, {better} is better; for metrics where {inverse} is better, A / B is used.",
            cell.lines
        ));
    }
    if judge.depth == Depth::Full {
        legend.push(format!(
            "B / A: Student's t of the logarithms; with {BOOTSTRAP_LEAST} or more samples per side, BCa bootstrap, 9,999 resamples. g: Hedges' g, positive is better. p: after Holm's correction; exact: nothing to test. p, ranks: rank-sum test, not corrected."
        ));
    }
    legend
}

/// Returns a line on how timed rows are judged, if there are any.
fn timed(comparison: &Judgements<'_>) -> Option<String> {
    let rows = comparison.rows.iter();
    let timed = rows.filter(|row| row.pair.kind == Some(SampleKind::Timed));
    let count = timed.count();
    (count > 0).then(|| match comparison.judge.timed {
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
