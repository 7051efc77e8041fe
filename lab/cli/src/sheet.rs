//! A sheet of figures: sections of lines, a column for each configuration. Printed as a table for
//! people, or as CSV or JSON in the format of all experiments.

use brickyard_pictures::markup::Escaped;
use brickyard_results::{
    Better, Column, Columns, Format, Host, Metric, Results, Row, SampleKind, TableOptions,
};
use std::io::{self, Write};

use brickyard_measure::command::output::SheetOutput;

/// One figure of one configuration: its samples over time, of which the last one is printed. Empty:
/// there is no such figure.
#[derive(Debug, Clone, Default)]
pub(crate) struct Cell(pub(crate) Vec<f64>);

impl Cell {
    /// A figure of one sample, if there is one.
    pub(crate) fn of(value: impl Into<Option<f64>>) -> Self {
        Self(value.into().into_iter().collect())
    }
}

/// A line of the sheet.
#[derive(Debug, Clone)]
pub(crate) struct Line {
    pub(crate) section: String,
    pub(crate) label: String,
    pub(crate) unit: &'static str,
    pub(crate) better: Better,
    pub(crate) kind: SampleKind,
    pub(crate) decimals: usize,
    pub(crate) cells: Vec<Cell>,
    pub(crate) shown: Shown,
}

/// When a line is printed in the table. CSV and JSON have all lines.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Shown {
    /// Always.
    Always,
    /// Unless all its samples have this value, at which nothing happened.
    UnlessAll(f64),
}

/// The sheet.
#[derive(Debug)]
pub(crate) struct Sheet {
    experiment: &'static str,
    // Lines above the table.
    head: Vec<String>,
    columns: Vec<String>,
    lines: Vec<Line>,
    // Lines below the table.
    notes: Vec<String>,
    // Whether the figures are those of a part of what was asked for.
    interrupted: bool,
}

impl Sheet {
    pub(crate) fn new(experiment: &'static str, columns: Vec<String>) -> Self {
        Self {
            experiment,
            head: Vec::new(),
            columns,
            lines: Vec::new(),
            notes: Vec::new(),
            interrupted: false,
        }
    }

    pub(crate) fn head(&mut self, line: impl Into<String>) {
        self.head.push(line.into());
    }

    pub(crate) fn note(&mut self, line: impl Into<String>) {
        self.notes.push(line.into());
    }

    /// Says that only a part of the run was done, and how far it came.
    pub(crate) fn interrupted(&mut self, how_far: impl Into<String>) {
        self.interrupted = true;
        self.note(how_far);
    }

    /// Returns the lines above the table.
    pub(crate) fn heads(&self) -> &[String] {
        &self.head
    }

    /// Returns the lines below the table.
    pub(crate) fn notes(&self) -> &[String] {
        &self.notes
    }

    pub(crate) fn push(&mut self, line: Line) {
        self.lines.push(line);
    }

    /// Adds a line of whole numbers, one per configuration. The table omits it where all are 0.
    pub(crate) fn counts(
        &mut self,
        section: &str,
        label: impl Into<String>,
        unit: &'static str,
        better: Better,
        values: impl IntoIterator<Item = u64>,
    ) {
        let cells = values.into_iter().map(|value| Cell::of(value as f64));
        self.push(Line {
            shown: Shown::UnlessAll(0.0),
            ..Line::new(section, label, unit, better, cells)
        });
    }

    /// Writes the sheet as `options` say. If the file cannot be written, the sheet is printed
    /// instead, so that nothing is lost.
    pub(crate) fn emit(&self, options: &SheetOutput) -> anyhow::Result<()> {
        options.put(&match options.format {
            Format::Table => self.table(),
            format => self.results()?.text(format, &TableOptions::default()),
        })
    }

    fn table(&self) -> String {
        // Section names do not count here: they may be wider than the labels.
        let label = self.lines.iter().map(|line| line.label.chars().count() + 2);
        let label = label.max().unwrap_or(0).max(24);
        let mut widths = vec![Column::left().wide(label)];
        widths.extend((0..self.columns.len()).map(|column| {
            let cells = self.lines.iter().map(|line| line.text(column));
            let texts = cells.chain([self.columns[column].clone()]);
            let width = texts.map(|text| text.chars().count()).max();
            Column::right().wide(width.unwrap_or(0)).after(2)
        }));
        widths.push(Column::left().after(2));
        let columns = Columns::new(widths);
        let mut lines = self.head.clone();
        for section in self
            .shown()
            .chunk_by(|one, other| one.section == other.section)
        {
            let heads = [&section[0].section].into_iter().chain(&self.columns);
            lines.extend([String::new(), columns.line(heads)]);
            for line in section {
                let texts = (0..self.columns.len()).map(|column| line.text(column));
                let texts = [format!("  {}", line.label)].into_iter().chain(texts);
                let unit = (!line.unit.is_empty()).then(|| line.unit.to_owned());
                lines.push(columns.line(texts.chain(unit)));
            }
        }
        if !self.notes.is_empty() {
            lines.push(String::new());
            lines.extend_from_slice(&self.notes);
        }
        lines.join("\n") + "\n"
    }

    /// Returns the lines that people see.
    fn shown(&self) -> Vec<&Line> {
        self.lines.iter().filter(|line| line.is_shown()).collect()
    }

    /// Writes the sheet as tables of HTML, one for each section.
    pub(crate) fn write_markup(&self, out: &mut impl Write) -> io::Result<()> {
        for section in self
            .shown()
            .chunk_by(|one, other| one.section == other.section)
        {
            let title = Escaped(&section[0].section);
            write!(
                out,
                "<div class=\"scroll\" role=\"group\" tabindex=\"0\" aria-label=\"{title}\"><table>\
                 <thead><tr><th scope=\"col\">{title}</th>"
            )?;
            for column in &self.columns {
                write!(out, "<th scope=\"col\">{}</th>", Escaped(column))?;
            }
            writeln!(out, "<th scope=\"col\">unit</th></tr></thead><tbody>")?;
            for line in section {
                write!(out, "<tr><th scope=\"row\">{}</th>", Escaped(&line.label))?;
                for column in 0..self.columns.len() {
                    write!(out, "<td>{}</td>", Escaped(&line.text(column)))?;
                }
                writeln!(out, "<td>{}</td></tr>", Escaped(line.unit))?;
            }
            writeln!(out, "</tbody></table></div>")?;
        }
        Ok(())
    }

    fn results(&self) -> anyhow::Result<Results> {
        let mut results = Results::new(self.experiment, Host::read());
        self.head.iter().for_each(|line| results.about_line(line));
        self.notes.iter().for_each(|line| results.note(line));
        if self.interrupted {
            results.mark_interrupted();
        }
        for line in &self.lines {
            for (column, cell) in self.columns.iter().zip(&line.cells) {
                if !cell.0.is_empty() {
                    let metric = line.metric(&line.label);
                    let row = Row::new(column, &line.section, metric, cell.0.clone())?;
                    results.push(row.of_kind(line.kind))?;
                }
            }
        }
        Ok(results)
    }
}

impl Line {
    /// Creates a line of exact whole numbers that the table always has.
    pub(crate) fn new(
        section: impl Into<String>,
        label: impl Into<String>,
        unit: &'static str,
        better: Better,
        cells: impl IntoIterator<Item = Cell>,
    ) -> Self {
        Self {
            section: section.into(),
            label: label.into(),
            unit,
            better,
            kind: SampleKind::Exact,
            decimals: 0,
            cells: cells.into_iter().collect(),
            shown: Shown::Always,
        }
    }

    fn is_shown(&self) -> bool {
        match self.shown {
            Shown::Always => true,
            Shown::UnlessAll(value) => {
                let other = |cell: &Cell| cell.0.iter().any(|&sample| sample != value);
                self.cells.iter().any(other)
            }
        }
    }

    const fn metric<'a>(&self, name: &'a str) -> Metric<'a> {
        Metric::new(name, self.unit, self.better)
    }

    fn text(&self, column: usize) -> String {
        let last = self.cells.get(column).and_then(|cell| cell.0.last());
        last.map_or_else(|| "-".into(), |&value| self.value(value))
    }

    /// Formats a value. Of one that was timed, 0 says only that it is less than can be shown.
    fn value(&self, value: f64) -> String {
        let decimals = self.decimals;
        let least = 0.1_f64.powi(decimals as i32);
        if self.kind == SampleKind::Timed && (0.0..=least / 2.0).contains(&value) {
            return format!("< {least:.decimals$}");
        }
        format!("{value:.decimals$}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_below_the_resolution_is_not_printed_as_0() {
        let cells = [0.0, 0.4, 0.6, 12.0].map(Cell::of);
        let mut line = Line::new("time", "a free", "ns", Better::Lower, cells);
        let texts = |line: &Line| [0, 1, 2, 3, 4].map(|column| line.text(column));
        assert_eq!(texts(&line), ["0", "0", "1", "12", "-"], "exact counts");
        line.kind = SampleKind::Timed;
        assert_eq!(texts(&line), ["< 1", "< 1", "1", "12", "-"]);
        line.decimals = 1;
        assert_eq!(texts(&line), ["< 0.1", "0.4", "0.6", "12.0", "-"]);
    }
}
