//! The lines under a table that explain it: baseline, sign, stars, geometric mean, units, samples,
//! machine.
//!
//! Only what the table shows is explained: no line about stars under a table that cannot have any.

use std::io::{self, Write};

use crate::{Better, Cell, Comparison, Gmean, Host, Significance, counted};

/// Writes the legend of a table.
pub(crate) fn write_legend(
    host: &Host,
    comparison: &Comparison<'_>,
    gmean: Option<&Gmean>,
    mut out: impl Write,
) -> io::Result<()> {
    let baseline = comparison.configs().first().copied().unwrap_or_default();
    writeln!(
        out,
        "Baseline: {baseline}. In brackets: the gain over it; positive is better."
    )?;
    if cells(comparison).any(|cell| cell.significance != Significance::Untested) {
        writeln!(
            out,
            "Stars instead of brackets: significant, the intervals mean +- 1.96 stddev do not overlap (mmtests; needs n >= 2)."
        )?;
    }
    if let Some(gmean) = gmean {
        writeln!(out, "{}", gmean_text(comparison, gmean))?;
    }
    for (unit, better, metrics) in units(comparison) {
        writeln!(out, "{}: {unit}, {better} is better.", metrics.join(", "))?;
    }
    let counts: Vec<usize> = cells(comparison).map(|cell| cell.n).collect();
    writeln!(out, "Means of {}. Host: {host}.", samples_text(&counts))
}

/// Returns all cells that exist.
fn cells(comparison: &Comparison<'_>) -> impl Iterator<Item = Cell> {
    comparison
        .lines()
        .iter()
        .flat_map(|line| line.cells.iter().copied().flatten())
}

/// Describes the geometric mean, and which lines it leaves out.
fn gmean_text(comparison: &Comparison<'_>, gmean: &Gmean) -> String {
    let mut text = String::from("Gmean: geometric mean of the ratios to the baseline");
    if comparison
        .lines()
        .iter()
        .any(|line| line.metric.better == gmean.better.opposite())
    {
        let inverted = gmean.better.opposite();
        text += &format!(", {inverted}-is-better lines inverted");
    }
    let directed = comparison.lines().iter();
    let lines = directed
        .filter(|line| line.metric.better != Better::Neither)
        .count();
    let counted = |cell: &Option<crate::GmeanCell>| cell.map_or(0, |cell| cell.lines);
    let partial = gmean
        .cells
        .iter()
        .zip(comparison.configs())
        .filter(|(cell, _)| counted(cell) < lines);
    let partial: Vec<String> = partial
        .map(|(cell, config)| format!("{config} has {} of {lines}", counted(cell)))
        .collect();
    if !partial.is_empty() {
        text += &format!("; lines without a ratio left out: {}", partial.join(", "));
    }
    text + "."
}

/// Groups the metrics' names by unit and direction, in the order of first appearance.
fn units<'a>(comparison: &Comparison<'a>) -> Vec<(&'a str, Better, Vec<&'a str>)> {
    let mut units: Vec<(&str, Better, Vec<&str>)> = Vec::new();
    for metric in comparison.lines().iter().map(|line| line.metric) {
        let same = |(unit, better, _): &&mut (&str, Better, Vec<&str>)| {
            *unit == metric.unit && *better == metric.better
        };
        match units.iter_mut().find(same) {
            Some((_, _, names)) if names.contains(&metric.name) => {}
            Some((_, _, names)) => names.push(metric.name),
            None => units.push((metric.unit, metric.better, vec![metric.name])),
        }
    }
    units
}

/// Formats the least and the greatest number of samples of the cells.
pub(crate) fn samples_text(counts: &[usize]) -> String {
    let (least, most) = (counts.iter().min(), counts.iter().max());
    match (least.copied().unwrap_or(0), most.copied().unwrap_or(0)) {
        (least, most) if least == most => format!("n = {}", counted(least, "sample", "samples")),
        (least, most) => format!("n = {least} to {most} samples"),
    }
}
