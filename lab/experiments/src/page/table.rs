//! A table: in each cell what was published, what was measured, and how the directions compare.

use brickyard_results::counted;
use core::fmt::Write as _;

use super::figure;
use super::markup::{Escaped, Prose, plain};
use super::report::Report;
use crate::data::Key;
use crate::document::{Figure, Table, TableLine};
use crate::numbers;

/// Writes the heading, the paragraph `about`, and the table. Writing to a string cannot fail.
pub(super) fn write(report: &Report<'_>, table: &Table, about: &str, out: &mut String) {
    let id = Escaped(&table.id);
    let title = plain(&table.title);
    let (shown, left_out): (Vec<&TableLine>, Vec<&TableLine>) =
        table.lines.iter().partition(|line| {
            let mut figures = line.cells.iter().flatten();
            figures.any(|figure| has_content(report, figure))
        });
    let _ = write!(
        out,
        "<div class=\"table\" id=\"{id}\"><h4>{}</h4><p class=\"about\">{}</p>",
        Prose(&table.title),
        Prose(about),
    );
    write_runs(report, table, out);
    if !shown.is_empty() {
        let _ = write!(
            out,
            "<div class=\"scroll\" role=\"group\" tabindex=\"0\" aria-label=\"Table: {}\"><table><caption class=\"unseen\">{}</caption><thead>",
            Escaped(&title),
            Escaped(&title)
        );
        write_head(table, out);
        out.push_str("</thead><tbody>");
        write_lines(report, table, &shown, out);
        out.push_str("</tbody></table></div>");
    }
    if !left_out.is_empty() {
        let _ = write!(
            out,
            "<p class=\"muted\">{} in this run.</p>",
            counted(left_out.len(), "line has no row", "lines have no rows")
        );
    }
    out.push_str("</div>");
}

/// Writes how many samples the figures of the table have. Geometric means do not count: theirs is a
/// number of pairs.
fn write_runs(report: &Report<'_>, table: &Table, out: &mut String) {
    let figures = table
        .lines
        .iter()
        .flat_map(|line| line.cells.iter().flatten());
    let counts = figures
        .filter(|figure| !figure.statistic.is_of_pairs())
        .filter_map(|figure| Some((report.judged)(figure)?.n));
    let ends = counts.fold(None, |ends, n| {
        let (least, most) = ends.unwrap_or((n, n));
        Some((least.min(n), most.max(n)))
    });
    let Some((least, most)) = ends else {
        return;
    };
    let runs = if least == most {
        counted(most, "run", "runs")
    } else {
        format!("{least} to {most} runs")
    };
    let _ = write!(
        out,
        "<p class=\"runs muted\">Measured here: {runs} per figure.</p>"
    );
}

fn write_lines(report: &Report<'_>, table: &Table, lines: &[&TableLine], out: &mut String) {
    // If nothing in a table is modelled, its paragraph says so once.
    let all = table
        .lines
        .iter()
        .flat_map(|line| line.cells.iter().flatten());
    let measured = all.into_iter().any(|figure| !figure.of.is_empty());
    for line in lines {
        let _ = write!(out, "<tr><th scope=\"row\">{}</th>", Prose(&line.head));
        for cell in &line.cells {
            match cell {
                None => out.push_str("<td></td>"),
                Some(figure) => write_cell(report, figure, measured, out),
            }
        }
        out.push_str("</tr>");
    }
}

/// Returns true if a figure was published, or measured in this run.
fn has_content(report: &Report<'_>, figure: &Figure) -> bool {
    figure.published.is_some() || has_rows(report, figure)
}

/// Returns true if there are rows for all keys of a figure; of a statistic over pairs, for at
/// least one pair.
fn has_rows(report: &Report<'_>, figure: &Figure) -> bool {
    let measured = |key: &Key| report.data.samples(key).is_some();
    if figure.statistic.is_of_pairs() {
        let mut pairs = figure.of.iter().zip(&figure.against);
        return pairs.any(|(of, against)| measured(of) && measured(against));
    }
    !figure.of.is_empty() && figure.of.iter().chain(&figure.against).all(measured)
}

fn write_head(table: &Table, out: &mut String) {
    for (number, heads) in table.head.iter().enumerate() {
        out.push_str("<tr>");
        if number == 0 {
            let _ = write!(out, "<td rowspan=\"{}\"></td>", table.head.len());
        }
        for head in heads {
            let text = Prose(&head.text);
            if head.span > 1 {
                let _ = write!(
                    out,
                    "<th scope=\"colgroup\" colspan=\"{}\">{text}</th>",
                    head.span
                );
            } else {
                let _ = write!(out, "<th scope=\"col\">{text}</th>");
            }
        }
        out.push_str("</tr>");
    }
}

fn write_cell(report: &Report<'_>, figure: &Figure, measured: bool, out: &mut String) {
    out.push_str("<td>");
    if let Some(published) = &figure.published {
        let _ = write!(
            out,
            "<span class=\"published\"><span class=\"unseen\">published </span>{}</span>",
            Escaped(published.text)
        );
        if measured {
            out.push_str("<span class=\"unseen\">, measured </span>");
        }
    }
    match (report.judged)(figure) {
        Some(judgement) => {
            let text = numbers::in_cell(figure, &judgement);
            figure::write_link(figure, &judgement, &text, out);
            if judgement.is_significant() {
                out.push_str("<span class=\"star\" title=\"p below 5 % after Holm's correction\"><span aria-hidden=\"true\">*</span><span class=\"unseen\">, significant</span></span>");
            }
            figure::write_mark(figure, &judgement, out);
            figure::write_ratio(figure, &judgement, out);
            if let Some(sweep) = &judgement.sweep {
                figure::write_sweep(figure, &judgement, sweep, out);
            }
        }
        None if figure.of.is_empty() && !measured => {}
        None if figure.of.is_empty() => out.push_str("<span class=\"muted\">not modelled</span>"),
        None if has_rows(report, figure) => out.push_str("<span class=\"muted\" title=\"cannot be computed from its rows\"><span aria-hidden=\"true\">\u{2013}</span><span class=\"unseen\">no number</span></span>"),
        None => out.push_str("<span class=\"muted\">no rows</span>"),
    }
    out.push_str("</td>");
}
