//! The text table, in the form of mmtests' comparison reports.
//!
//! One line per metric of a workload, one column per configuration, the first the baseline. A cell
//! is printf's `%12.2f (%7.2f%%)`, mean and gain, with stars in place of brackets where the
//! difference is significant. Below the lines follow the geometric mean and the legend, so a table
//! pasted into a mail still explains itself. The caller chooses the lines' labels (the kernel's
//! published page allocator tables label `order-0 batch-64` and `alloc` as `order-0 alloc-64`);
//! nothing here depends on the experiment.

use core::fmt;
use std::io::{self, Write};

use crate::legend::write_legend;
use crate::{Cell, Column, Columns, Comparison, Gmean, Results, Significance};

/// The width of a cell's number, by printf's `%12.2f`.
const VALUE_WIDTH: usize = 12;

/// The width of a cell's gain with its percent sign, by printf's `%7.2f%%`.
const GAIN_WIDTH: usize = 8;

/// Whether a line with the standard deviation follows each line of means.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum Deviation {
    /// Shown, labelled with the line's label and ` stddev`.
    Shown,
    /// Not shown.
    #[default]
    Hidden,
}

/// What each column is compared with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum Against {
    /// The first column: [`Comparison`], as in mmtests.
    #[default]
    First,
    /// The column before it: [`Steps`](crate::Steps), as in Porter's tables of 2007.
    Before,
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

/// Writes `results` as a text table: title, column headings, lines, geometric mean, legend. Every
/// column is compared with the first, whatever `against` is; the other table is
/// [`write_steps`](crate::write_steps).
///
/// `-` is a row that a configuration does not have, `n/a` a statistic that its samples do not
/// define.
///
/// # Errors
/// Those of `out`.
pub fn write_table(
    results: &Results,
    options: &TableOptions<'_>,
    mut out: impl Write,
) -> io::Result<()> {
    let comparison = Comparison::new(results);
    writeln!(out, "{}", results.experiment())?;
    if comparison.lines().is_empty() {
        return writeln!(out, "No rows.");
    }
    let gmean = Gmean::of(&comparison);
    for line in aligned(&texts(&comparison, gmean.as_ref(), options)) {
        writeln!(out, "{line}")?;
    }
    writeln!(out)?;
    write_legend(results.host(), &comparison, gmean.as_ref(), &mut out)
}

/// Makes the table's texts, line by line: the label (empty in the heading), then one text per
/// configuration.
fn texts(
    comparison: &Comparison<'_>,
    gmean: Option<&Gmean>,
    options: &TableOptions<'_>,
) -> Vec<Vec<String>> {
    let mut lines = vec![texts_of("", comparison.configs(), |config| {
        (*config).into()
    })];
    for line in comparison.lines() {
        let label = (options.label)(line.workload, line.metric.name);
        let means = line.cells.iter().flatten().map(|cell| cell.mean);
        let decimals = decimals_of(means, options.decimals);
        lines.push(texts_of(&label, &line.cells, |cell| {
            mean_text(cell.as_ref(), decimals)
        }));
        if options.deviation == Deviation::Shown {
            let label = format!("{label} stddev");
            lines.push(texts_of(&label, &line.cells, |cell| {
                stddev_text(cell.as_ref(), decimals)
            }));
        }
    }
    if let Some(gmean) = gmean {
        let label = format!("Gmean {}", gmean.better);
        lines.push(texts_of(&label, &gmean.cells, |cell| match cell {
            Some(cell) => cell_text(
                Some(cell.ratio),
                Some(cell.gain_percent),
                2,
                Significance::Untested,
            ),
            None => "-".into(),
        }));
    }
    lines
}

/// Makes one line's texts.
pub(crate) fn texts_of<T>(label: &str, cells: &[T], text: impl Fn(&T) -> String) -> Vec<String> {
    let mut texts = vec![label.to_owned()];
    texts.extend(cells.iter().map(text));
    texts
}

/// Formats a cell's mean.
fn mean_text(cell: Option<&Cell>, decimals: usize) -> String {
    cell.map_or_else(
        || "-".into(),
        |cell| cell_text(cell.mean, cell.gain_percent, decimals, cell.significance),
    )
}

/// Formats a cell's deviation, which has no significance.
fn stddev_text(cell: Option<&Cell>, decimals: usize) -> String {
    cell.map_or_else(
        || "-".into(),
        |cell| {
            cell_text(
                cell.stddev,
                cell.stddev_gain_percent,
                decimals,
                Significance::Untested,
            )
        },
    )
}

/// Formats a value and its gain, in brackets or stars.
fn cell_text(
    value: Option<f64>,
    gain_percent: Option<f64>,
    decimals: usize,
    significance: Significance,
) -> String {
    let value = value.map_or_else(|| "n/a".into(), |value| fixed(value, decimals));
    let gain = gain_percent.map_or_else(|| "n/a".into(), |gain| format!("{}%", fixed(gain, 2)));
    let (open, close) = match significance {
        Significance::Significant => ('*', '*'),
        Significance::NotSignificant | Significance::Untested => ('(', ')'),
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
pub(crate) fn decimals_of(means: impl Iterator<Item = Option<f64>>, usual: usize) -> usize {
    let largest = means.flatten().map(f64::abs).fold(0.0, f64::max);
    if largest == 0.0 || largest >= SMALL {
        return usual;
    }
    let zeros = -largest.log10().floor() as usize;
    usual.max(zeros + 2)
}

/// Lines whose means are all below it show more digits.
const SMALL: f64 = 1.0;

/// Formats the texts as lines: labels to the left, cells to the right, each column as wide as its
/// widest text.
pub(crate) fn aligned(lines: &[Vec<String>]) -> Vec<String> {
    Columns::new([Column::left(), Column::right().after(1)]).lines(lines)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_are_those_of_printf() {
        let cell = |significance| cell_text(Some(734.111), Some(-9.387), 2, significance);
        assert_eq!(
            cell(Significance::NotSignificant),
            "      734.11 (  -9.39%)"
        );
        assert_eq!(cell(Significance::Significant), "      734.11 *  -9.39%*");
        assert_eq!(
            cell_text(None, None, 2, Significance::Untested),
            "         n/a (     n/a)"
        );
        assert_eq!(
            cell_text(Some(0.1234), Some(0.0), 4, Significance::Untested),
            "      0.1234 (   0.00%)"
        );
    }

    #[test]
    fn small_numbers_have_three_digits() {
        let of = |means: &[f64]| decimals_of(means.iter().copied().map(Some), 2);
        assert_eq!(of(&[0.0, 0.0]), 2);
        assert_eq!(of(&[0.0004, 12.0]), 2);
        assert_eq!(of(&[1.0]), 2);
        assert_eq!(fixed(0.344, of(&[0.344])), "0.344");
        assert_eq!(fixed(0.0912, of(&[0.0912])), "0.0912");
        assert_eq!(fixed(0.000_345_6, of(&[-0.000_345_6])), "0.000346");
    }

    #[test]
    fn zero_has_no_sign() {
        assert_eq!(fixed(-0.004, 2), "0.00");
        assert_eq!(fixed(-0.0, 0), "0");
        assert_eq!(fixed(-0.006, 2), "-0.01");
        assert_eq!(fixed(-10.0, 2), "-10.00");
    }
}
