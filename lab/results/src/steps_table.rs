//! The text table of [`Steps`]: each column against the one before it, in the form of 2007.
//!
//! The main metric is that of the document's first row: mean, deviation, interval and speedup have
//! a line each. The other metrics only have a line of means; their other figures are in the CSV and
//! the JSON. The legend says when there are too few pairs for a star: with the four runs of the
//! documents none is possible.

use std::io::{self, Write};

use crate::grid::Line;
use crate::legend::samples_text;
use crate::steps::{SIGNIFICANT_P, StepCell, Steps};
use crate::summary::t_quantile;
use crate::table::{aligned, decimals_of, fixed, texts_of};
use crate::{Better, Deviation, Host, INTERVAL_DEVIATIONS, Results, TableOptions, smallest_p};

/// The least width of a column of numbers, without the star.
const VALUE_WIDTH: usize = 9;

/// The digits of a speedup, as in 2007.
const SPEEDUP_DECIMALS: usize = 3;

/// Writes `results` as a text table, each column against the one before: title, column headings,
/// lines, legend. Without deviations there are no intervals either.
///
/// `-` is a row that a configuration, or the one before it, does not have; `n/a` a statistic that
/// the samples do not define.
///
/// # Errors
/// Those of `out`.
pub fn write_steps(
    results: &Results,
    options: &TableOptions<'_>,
    mut out: impl Write,
) -> io::Result<()> {
    let steps = Steps::new(results);
    let title = results.experiment();
    let Some(first) = steps.lines().first() else {
        return writeln!(out, "{title}\nNo rows.");
    };
    writeln!(out, "{title}, each column against the one before")?;
    let main = first.metric.name;
    let mut lines = vec![texts_of("", steps.configs(), |config| cell_text(config))];
    for line in steps.lines() {
        let label = (options.label)(line.workload, line.metric.name);
        let means = line.cells.iter().flatten().map(|cell| cell.mean);
        let decimals = decimals_of(means, options.decimals);
        lines.push(numbers(&label, line, decimals, |cell| cell.mean));
        if line.metric.name == main {
            lines.extend(details(line, options, decimals));
        }
    }
    for line in aligned(&lines) {
        writeln!(out, "{}", line.trim_end())?;
    }
    writeln!(out)?;
    write_legend(results.host(), &steps, options, &mut out)
}

/// Makes the lines under that of the mean.
fn details(
    line: &Line<'_, StepCell>,
    options: &TableOptions<'_>,
    decimals: usize,
) -> Vec<Vec<String>> {
    let mut lines = Vec::new();
    if options.deviation == Deviation::Shown {
        lines.push(numbers("  deviation", line, decimals, |cell| cell.stddev));
        lines.push(numbers("  95 % interval", line, decimals, |cell| {
            cell.interval95
        }));
    }
    lines.push(texts_of("  speedup", &line.cells, |cell| {
        speedup_text(cell.as_ref())
    }));
    lines
}

/// Makes a line with one number of each cell.
fn numbers(
    label: &str,
    line: &Line<'_, StepCell>,
    decimals: usize,
    number: impl Fn(&StepCell) -> Option<f64>,
) -> Vec<String> {
    texts_of(label, &line.cells, |cell| match cell {
        None => cell_text("-"),
        Some(cell) => number(cell).map_or_else(
            || cell_text("n/a"),
            |number| cell_text(&fixed(number, decimals)),
        ),
    })
}

/// Formats a cell's speedup with its star.
fn speedup_text(cell: Option<&StepCell>) -> String {
    let Some(step) = cell.and_then(|cell| cell.step) else {
        return cell_text("-");
    };
    match step.speedup {
        None => cell_text("n/a"),
        Some(speedup) if step.is_significant() => {
            format!("{:>VALUE_WIDTH$}*", fixed(speedup, SPEEDUP_DECIMALS))
        }
        Some(speedup) => cell_text(&fixed(speedup, SPEEDUP_DECIMALS)),
    }
}

/// Formats a text, with a space in the star's column.
fn cell_text(text: &str) -> String {
    format!("{text:>VALUE_WIDTH$} ")
}

/// Writes the lines under the table.
fn write_legend(
    host: &Host,
    steps: &Steps<'_>,
    options: &TableOptions<'_>,
    mut out: impl Write,
) -> io::Result<()> {
    let main = steps.lines()[0].metric;
    let of_main = || {
        let lines = steps.lines().iter();
        let lines = lines.filter(|line| line.metric.name == main.name);
        lines.flat_map(|line| line.cells.iter().copied().flatten())
    };
    let counts: Vec<usize> = of_main().map(|cell| cell.n).collect();
    let ratio = match main.better {
        Better::Lower => "mean of the column before / mean; above 1 is better",
        Better::Higher => "mean / mean of the column before; above 1 is better",
        Better::Neither => "none; neither direction is better",
    };
    writeln!(out, "Speedup: {ratio}.")?;
    if options.deviation == Deviation::Shown {
        write_interval(&counts, &mut out)?;
    }
    let tests: Vec<_> = of_main().filter_map(|cell| cell.step?.test).collect();
    if let Some(pairs) = tests.iter().map(|test| test.pairs + test.equal).max() {
        let least = smallest_p(pairs);
        if least < SIGNIFICANT_P {
            let chance = tests.len() as f64 * SIGNIFICANT_P;
            writeln!(
                out,
                "*: p < {SIGNIFICANT_P} by Wilcoxon's signed-rank test of {pairs} pairs (two-sided); of {} tests {chance:.1} expected by chance.",
                tests.len()
            )?;
        } else {
            writeln!(
                out,
                "No star is possible: with {pairs} pairs p is at least {least} by Wilcoxon's signed-rank test; take 6 or more."
            )?;
        }
    }
    for (unit, metrics) in units(steps) {
        writeln!(out, "{}: {unit}.", metrics.join(", "))?;
    }
    writeln!(out, "Means of {}. Host: {host}.", samples_text(&counts))
}

/// Writes which interval it is, and by how much it is too narrow.
fn write_interval(counts: &[usize], mut out: impl Write) -> io::Result<()> {
    write!(
        out,
        "95 % interval: mean +- 1.96 deviation / sqrt(n), as in 2007"
    )?;
    let least = counts.iter().copied().filter(|&n| n > 1).min();
    if let Some((n, t)) = least.and_then(|n| Some((n, t_quantile(n - 1)?))) {
        let wider = t / INTERVAL_DEVIATIONS;
        write!(out, "; by Student's t {wider:.2} times as wide for {n}")?;
    }
    writeln!(out, ".")
}

/// Groups the metrics' names by unit, in the order of first appearance.
fn units<'a>(steps: &Steps<'a>) -> Vec<(&'a str, Vec<&'a str>)> {
    let mut units: Vec<(&str, Vec<&str>)> = Vec::new();
    for metric in steps.lines().iter().map(|line| line.metric) {
        match units.iter_mut().find(|(unit, _)| *unit == metric.unit) {
            Some((_, names)) if names.contains(&metric.name) => {}
            Some((_, names)) => names.push(metric.name),
            None => units.push((metric.unit, vec![metric.name])),
        }
    }
    units
}
