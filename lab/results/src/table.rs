//! The text table: one line per metric of a workload, one column per configuration.
//!
//! Against the first column it has the form of mmtests' comparison reports: a cell is printf's
//! `%12.2f (%7.2f%%)`, mean and gain, with stars in place of brackets where the difference is
//! significant, and a line with the geometric mean. Against the column before it has the form of
//! 2007: under the means of the main metric, that of the document's first row, deviation, interval
//! and speedup have a line each; the other figures of other metrics are in the CSV and the JSON.
//!
//! A legend follows, so a table pasted into a mail still explains itself. Only what the table shows
//! is explained: no line about stars under a table that cannot have any. With the four runs of the
//! documents no star is possible, and the legend says so. The caller chooses the lines' labels (the
//! kernel's published page allocator tables label `order-0 batch-64` and `alloc` as `order-0
//! alloc-64`); nothing here depends on the experiment.

use core::fmt;

use crate::comparison::ComparedRow;
use crate::statistics::{INTERVAL_DEVIATIONS, SIGNIFICANT_P, smallest_p, t_quantile};
use crate::{
    Against, Better, Column, Columns, ComparedMetric, Comparison, Gmean, Metric, Results, Row,
    counted,
};

/// The width of a cell's number, by printf's `%12.2f`.
const VALUE_WIDTH: usize = 12;

/// The width of a cell's gain with its percent sign, by printf's `%7.2f%%`.
const GAIN_WIDTH: usize = 8;

/// The least width of a column against the one before, without the star.
const STEP_WIDTH: usize = 9;

/// Whether a line with the standard deviation follows each line of means.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum Deviation {
    /// Shown, labelled with the line's label and ` stddev`.
    Shown,
    /// Not shown. Against the column before there are no intervals then either.
    #[default]
    Hidden,
}

/// How a table is written.
#[derive(Clone, Copy)]
pub struct TableOptions<'a> {
    /// What each column is compared with. With [`Against::Before`] the CSV has additional columns,
    /// and the JSON an additional list.
    pub against: Against,
    /// Whether deviations are shown.
    pub deviation: Deviation,
    /// The digits after the point of a value; gains and the geometric mean always have two.
    pub decimals: usize,
    /// Makes a line's label from its workload and its metric's name.
    pub label: &'a dyn Fn(&str, &str) -> String,
}

impl Default for TableOptions<'_> {
    /// Against the first column, no deviations, two digits, and labels by [`plain_label`].
    fn default() -> Self {
        Self {
            against: Against::First,
            deviation: Deviation::Hidden,
            decimals: 2,
            label: &plain_label,
        }
    }
}

impl fmt::Debug for TableOptions<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TableOptions")
            .field("against", &self.against)
            .field("deviation", &self.deviation)
            .field("decimals", &self.decimals)
            .finish_non_exhaustive()
    }
}

/// Joins the workload and the metric with a space.
pub fn plain_label(workload: &str, metric: &str) -> String {
    format!("{workload} {metric}")
}

/// Returns `results` as a text table: title, column headings, lines, legend.
///
/// `-` is a row that a configuration does not have, `n/a` a statistic that its samples do not
/// define.
pub(crate) fn table(results: &Results, options: &TableOptions<'_>) -> String {
    let comparison = &Comparison::new(results, options.against);
    let mut title = results.experiment().to_owned();
    if comparison.lines.is_empty() {
        return title + "\nNo rows.\n";
    }
    let (lines, mut legend) = match options.against {
        Against::First => against_first(comparison, options),
        Against::Before => {
            title += ", each column against the one before";
            against_before(comparison, options)
        }
    };
    let of_table = |cell: &ComparedRow<'_>| {
        let main = comparison.lines[0].metric.name;
        options.against == Against::First || cell.row.metric().name == main
    };
    let counted = cells(comparison).filter(of_table);
    let counts: Vec<usize> = counted.map(|cell| cell.row.summary().n()).collect();
    legend.push(format!(
        "Means of {}. Host: {}.",
        samples_text(&counts),
        results.host()
    ));
    let columns = Columns::new([Column::left(), Column::right().after(1)]);
    let lines = columns.lines(&lines).join("\n");
    format!("{title}\n{lines}\n\n{}\n", legend.join("\n"))
}

/// The texts of a line: its label (empty in the heading), then one per configuration.
type Texts = Vec<String>;

/// Returns the lines and the legend of a table against the first column.
fn against_first(
    comparison: &Comparison<'_>,
    options: &TableOptions<'_>,
) -> (Vec<Texts>, Vec<String>) {
    let mut lines = vec![texts("", &comparison.configs, |config| (*config).into())];
    for line in &comparison.lines {
        let label = (options.label)(line.workload, line.metric.name);
        let decimals = decimals_of(line, options.decimals);
        lines.push(texts(&label, &line.cells, |cell| {
            cell.map_or_else(missing, |cell| {
                let mean = cell.row.summary().mean();
                gained(mean, cell.gain_percent(), decimals, cell.is_apart())
            })
        }));
        if options.deviation == Deviation::Shown {
            lines.push(texts(&format!("{label} stddev"), &line.cells, |cell| {
                cell.map_or_else(missing, |cell| {
                    let stddev = cell.row.summary().stddev();
                    gained(stddev, cell.stddev_gain_percent(), decimals, None)
                })
            }));
        }
    }
    let mut legend = vec![format!(
        "Baseline: {}. In brackets: the gain over it; positive is better.",
        comparison.configs[0]
    )];
    if cells(comparison).any(|cell| cell.is_apart().is_some()) {
        legend.push("Stars instead of brackets: significant, the intervals mean +- 1.96 stddev do not overlap (mmtests; needs n >= 2).".into());
    }
    let mut directions = comparison.lines.iter().map(|line| line.metric.better);
    if let Some(better) = directions.find(|better| *better != Better::Neither) {
        let gmeans: Vec<Option<Gmean>> = (0..comparison.configs.len())
            .map(|config| gmean(comparison, config, better))
            .collect();
        lines.push(texts(&format!("Gmean {better}"), &gmeans, |gmean| {
            gmean.map_or_else(missing, |gmean| {
                gained(Some(gmean.ratio), Some(gmean.gain_percent), 2, None)
            })
        }));
        legend.push(gmean_text(comparison, &gmeans, better));
    }
    for (metric, names) in units(comparison, |metric| (metric.unit, metric.better)) {
        let (unit, better) = (metric.unit, metric.better);
        legend.push(format!("{names}: {unit}, {better} is better."));
    }
    (lines, legend)
}

/// Returns the geometric mean of one configuration's ratios to the first.
fn gmean(comparison: &Comparison<'_>, config: usize, better: Better) -> Option<Gmean> {
    let ratios = comparison.lines.iter().filter_map(|line| {
        let cell = line.cells[config]?;
        let mean = |row: &Row| row.summary().mean();
        Some((line.metric.better, mean(cell.row)?, mean(cell.base?)?))
    });
    Gmean::of(better, ratios)
}

/// Describes the geometric mean, and which lines it leaves out.
fn gmean_text(comparison: &Comparison<'_>, gmeans: &[Option<Gmean>], better: Better) -> String {
    let mut text = String::from("Gmean: geometric mean of the ratios to the baseline");
    let lines = || comparison.lines.iter().map(|line| line.metric.better);
    let inverted = better.opposite();
    if lines().any(|of_line| of_line == inverted) {
        text += &format!(", {inverted}-is-better lines inverted");
    }
    let lines = lines()
        .filter(|of_line| *of_line != Better::Neither)
        .count();
    let counted = |gmean: &Option<Gmean>| gmean.map_or(0, |gmean| gmean.lines);
    let both = gmeans.iter().map(counted).zip(&comparison.configs);
    let partial = both.filter(|(counted, _)| *counted < lines);
    let partial: Vec<String> = partial
        .map(|(counted, config)| format!("{config} has {counted} of {lines}"))
        .collect();
    if !partial.is_empty() {
        text += &format!("; lines without a ratio left out: {}", partial.join(", "));
    }
    text + "."
}

/// Returns the lines and the legend of a table whose columns are compared with the one before.
fn against_before(
    comparison: &Comparison<'_>,
    options: &TableOptions<'_>,
) -> (Vec<Texts>, Vec<String>) {
    // A space in the star's column.
    let padded = |text: &str| format!("{text:>STEP_WIDTH$} ");
    let mut lines = vec![texts("", &comparison.configs, padded)];
    let main = comparison.lines[0].metric;
    for line in &comparison.lines {
        let decimals = decimals_of(line, options.decimals);
        let mut numbers = |label: &str, number: fn(ComparedRow<'_>) -> Option<f64>| {
            lines.push(texts(label, &line.cells, |cell| {
                let number = cell.map(|cell| number(cell).map(|number| fixed(number, decimals)));
                padded(&number.map_or_else(missing, |number| number.unwrap_or("n/a".into())))
            }));
        };
        let label = (options.label)(line.workload, line.metric.name);
        numbers(&label, |cell| cell.row.summary().mean());
        if line.metric.name != main.name {
            continue;
        }
        if options.deviation == Deviation::Shown {
            numbers("  deviation", |cell| cell.row.summary().stddev());
            numbers("  95 % interval", |cell| cell.interval95());
        }
        lines.push(texts("  speedup", &line.cells, |cell| {
            let Some(cell) = cell.filter(|cell| cell.base.is_some()) else {
                return padded("-");
            };
            let speedup = cell.speedup().map(|speedup| fixed(speedup, 3));
            match speedup {
                Some(speedup) if cell.has_star() => format!("{speedup:>STEP_WIDTH$}*"),
                speedup => padded(&speedup.unwrap_or("n/a".into())),
            }
        }));
    }
    let ratio = match main.better {
        Better::Lower => "mean of the column before / mean; above 1 is better",
        Better::Higher => "mean / mean of the column before; above 1 is better",
        Better::Neither => "none; neither direction is better",
    };
    let mut legend = vec![format!("Speedup: {ratio}.")];
    if options.deviation == Deviation::Shown {
        legend.push(interval_text(comparison));
    }
    legend.extend(star_text(comparison));
    for (metric, names) in units(comparison, |metric| metric.unit) {
        legend.push(format!("{names}: {}.", metric.unit));
    }
    (lines, legend)
}

/// Says which interval it is, and by how much it is too narrow.
fn interval_text(comparison: &Comparison<'_>) -> String {
    let counts = main_cells(comparison).map(|cell| cell.row.summary().n());
    let least = counts.filter(|&n| n > 1).min();
    let wider = least.and_then(|n| Some((n, t_quantile(n - 1)? / INTERVAL_DEVIATIONS)));
    let wider = wider.map_or_else(String::new, |(n, wider)| {
        format!("; by Student's t {wider:.2} times as wide for {n}")
    });
    format!("95 % interval: mean +- 1.96 deviation / sqrt(n), as in 2007{wider}.")
}

/// Says what a star means, or why there can be none.
fn star_text(comparison: &Comparison<'_>) -> Option<String> {
    let tests: Vec<_> = main_cells(comparison)
        .filter_map(|cell| cell.signed_rank())
        .collect();
    let pairs = tests.iter().map(|test| test.pairs + test.equal).max()?;
    let least = smallest_p(pairs);
    Some(if least < SIGNIFICANT_P {
        let chance = tests.len() as f64 * SIGNIFICANT_P;
        format!(
            "*: p < {SIGNIFICANT_P} by Wilcoxon's signed-rank test of {pairs} pairs (two-sided); of {} tests {chance:.1} expected by chance.",
            tests.len()
        )
    } else {
        format!(
            "No star is possible: with {pairs} pairs p is at least {least} by Wilcoxon's signed-rank test; take 6 or more."
        )
    })
}

/// Returns all cells that exist.
fn cells<'c>(comparison: &'c Comparison<'_>) -> impl Iterator<Item = ComparedRow<'c>> {
    let lines = comparison.lines.iter();
    lines.flat_map(|line| line.cells.iter().copied().flatten())
}

/// Returns those of the main metric.
fn main_cells<'c>(comparison: &'c Comparison<'_>) -> impl Iterator<Item = ComparedRow<'c>> {
    let main = comparison.lines[0].metric.name;
    cells(comparison).filter(move |cell| cell.row.metric().name == main)
}

/// Groups the metrics' names by `key`, in the order of first appearance.
fn units<'a, K: PartialEq>(
    comparison: &Comparison<'a>,
    key: fn(Metric<'a>) -> K,
) -> Vec<(Metric<'a>, String)> {
    let mut units: Vec<(Metric<'_>, Vec<&str>)> = Vec::new();
    for metric in comparison.lines.iter().map(|line| line.metric) {
        match units
            .iter_mut()
            .find(|(first, _)| key(*first) == key(metric))
        {
            Some((_, names)) if names.contains(&metric.name) => {}
            Some((_, names)) => names.push(metric.name),
            None => units.push((metric, vec![metric.name])),
        }
    }
    let units = units.into_iter();
    units
        .map(|(metric, names)| (metric, names.join(", ")))
        .collect()
}

/// Formats the least and the greatest number of samples of the cells.
fn samples_text(counts: &[usize]) -> String {
    let (least, most) = (counts.iter().min(), counts.iter().max());
    match (least.copied().unwrap_or(0), most.copied().unwrap_or(0)) {
        (least, most) if least == most => format!("n = {}", counted(least, "sample", "samples")),
        (least, most) => format!("n = {least} to {most} samples"),
    }
}

/// Makes one line's texts.
fn texts<T: Copy>(label: &str, cells: &[T], text: impl Fn(T) -> String) -> Texts {
    let mut texts = vec![label.to_owned()];
    texts.extend(cells.iter().copied().map(text));
    texts
}

fn missing() -> String {
    "-".into()
}

/// Formats a value and its gain, in brackets or, if it is significant, in stars.
fn gained(
    value: Option<f64>,
    gain_percent: Option<f64>,
    decimals: usize,
    is_significant: Option<bool>,
) -> String {
    let value = value.map_or_else(|| "n/a".into(), |value| fixed(value, decimals));
    let gain = gain_percent.map_or_else(|| "n/a".into(), |gain| format!("{}%", fixed(gain, 2)));
    let (open, close) = match is_significant {
        Some(true) => ('*', '*'),
        Some(false) | None => ('(', ')'),
    };
    format!("{value:>VALUE_WIDTH$} {open}{gain:>GAIN_WIDTH$}{close}")
}

/// Formats a number with `decimals` digits after the point; one that rounds to zero has no sign.
#[must_use]
pub fn fixed(number: f64, decimals: usize) -> String {
    let text = format!("{number:.decimals$}");
    match text.strip_prefix('-') {
        Some(zero) if !zero.contains(|c: char| c.is_ascii_digit() && c != '0') => zero.into(),
        _ => text,
    }
}

/// Returns the digits after the point that a line needs: so many as all have, or more where its
/// largest mean would otherwise show fewer than three.
fn decimals_of(line: &ComparedMetric<'_>, usual: usize) -> usize {
    let cells = line.cells.iter().flatten();
    let means = cells.filter_map(|cell| cell.row.summary().mean());
    decimals_for(means.map(f64::abs).fold(0.0, f64::max), usual)
}

fn decimals_for(largest: f64, usual: usize) -> usize {
    if largest == 0.0 || largest >= 1.0 {
        return usual;
    }
    let zeros = -largest.log10().floor() as usize;
    usual.max(zeros + 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_are_those_of_printf() {
        let cell = |stars| gained(Some(734.111), Some(-9.387), 2, Some(stars));
        assert_eq!(cell(false), "      734.11 (  -9.39%)");
        assert_eq!(cell(true), "      734.11 *  -9.39%*");
        assert_eq!(gained(None, None, 2, None), "         n/a (     n/a)");
    }

    #[test]
    fn small_numbers_have_three_digits_and_zero_has_no_sign() {
        assert_eq!([0.0, 12.0, 1.0].map(|mean| decimals_for(mean, 2)), [2; 3]);
        assert_eq!(fixed(0.344, decimals_for(0.344, 2)), "0.344");
        assert_eq!(fixed(0.0912, decimals_for(0.0912, 2)), "0.0912");
        assert_eq!(fixed(-0.004, 2), "0.00");
        assert_eq!(fixed(-0.006, 2), "-0.01");
    }
}
