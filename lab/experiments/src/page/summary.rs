//! The first screen: the questions, who wins by how much, where the sources are wrong, and links to
//! the sections.

use brickyard_report::counted;
use core::fmt::Write as _;

use super::Report;
use super::finding::{self, Length, write_counts};
use super::markup::{Escaped, Prose, opening, question};
use crate::directions::Directions;
use crate::document::{Among, Document, ShownIn};

/// The number of reasons for missing cells that are shown, and the number of cells for each.
const REASONS_SHOWN: usize = 6;
const CELLS_SHOWN: usize = 4;

/// Returns the summary as HTML. Writing to a string cannot fail.
pub(super) fn of(report: &Report<'_>) -> String {
    let mut out = String::new();
    let counts: Vec<Directions> = report
        .documents
        .iter()
        .map(|document| Directions::of(report.judged, document, Among::All))
        .collect();
    write_winner(report, &mut out);
    out.push_str("<div class=\"key\">");
    write_totals(&counts, &mut out);
    out.push_str(LEGEND);
    out.push_str("</div><div class=\"scroll bare\"><table class=\"summary\"><caption class=\"unseen\">Each document: its question, the results here, how many of its directions are the same, where it is wrong</caption><thead><tr><th scope=\"col\">Question</th><th scope=\"col\">Results here</th><th scope=\"col\">Directions</th><th scope=\"col\">Where the source is wrong</th></tr></thead><tbody>");
    for (document, &counts) in report.documents.iter().zip(&counts) {
        write_line(report, document, counts, &mut out);
    }
    out.push_str("</tbody></table></div>");
    write_warnings(report, &mut out);
    write_missing(report, &mut out);
    write_facts(report, &mut out);
    out
}

/// Writes who wins by how much.
fn write_winner(report: &Report<'_>, out: &mut String) {
    let winner = report.winner.as_ref().zip(report.documents.first());
    let sentence = winner.and_then(|(winner, document)| finding::of(report, document, winner));
    if let Some(sentence) = sentence {
        let _ = write!(out, "<p class=\"winner\">{sentence}</p>");
    }
}

fn write_totals(counts: &[Directions], out: &mut String) {
    let all = counts
        .iter()
        .fold(Directions::default(), |all, &counts| all.and(counts));
    if all.all() + all.none_published() == 0 {
        return;
    }
    let differences = if all.all() == 1 {
        "difference"
    } else {
        "differences"
    };
    let _ = write!(
        out,
        "<div class=\"totals\"><p>Of <b>{}</b> published {differences} that could be judged here:</p>",
        all.all()
    );
    write_counts(all, Length::Whole, out);
    out.push_str("</div>");
}

/// How to read a cell of a table; the totals explain the marks.
const LEGEND: &str = "<p><b>In a cell:</b> the small figure above is the published one; the figure below was measured here: press it for its raw rows and the command that measures them again. An asterisk after it: p is below 5 % after Holm's correction.</p>";

fn write_line(report: &Report<'_>, document: &Document, counts: Directions, out: &mut String) {
    let name = Escaped(document.experiment);
    let _ = write!(
        out,
        "<tr><th scope=\"row\"><a href=\"#{name}\">{}</a> <p>{}</p></th><td data-head=\"Results here\">",
        Prose(document.title),
        Prose(question(document.asked))
    );
    let findings = document.findings.iter();
    let sentences: Vec<String> = findings
        .filter(|finding| finding.shown == ShownIn::SummaryToo)
        .filter_map(|finding| finding::of(report, document, finding))
        .collect();
    for finding in &sentences {
        let _ = write!(out, "<p>{finding}</p>");
    }
    if sentences.is_empty() {
        out.push_str("<p class=\"muted\">Not measured in this run.</p>");
    }
    out.push_str("</td><td data-head=\"Directions\">");
    if counts.all() + counts.none_published() > 0 {
        write_counts(counts, Length::Brief, out);
    } else {
        out.push_str("<span class=\"muted\">none judged</span>");
    }
    out.push_str("</td><td data-head=\"Where the source is wrong\">");
    if let Some(first) = document.mistakes.first() {
        let _ = write!(out, "<p>{}", Prose(opening(first)));
        let more = document.mistakes.len() - 1;
        if more > 0 || opening(first).len() < first.trim().len() {
            let _ = write!(out, " <a href=\"#{name}-mistakes\">{}</a>", and_more(more));
        }
        out.push_str("</p>");
    }
    out.push_str("</td></tr>");
}

fn and_more(more: usize) -> String {
    if more == 0 {
        "Read more".to_owned()
    } else {
        format!("And {more} more")
    }
}

fn cells(count: usize) -> String {
    counted(count, "cell", "cells")
}

/// Writes what a reader must know first.
fn write_warnings(report: &Report<'_>, out: &mut String) {
    if report.warnings.is_empty() {
        return;
    }
    out.push_str(
        "<section class=\"notes\" aria-label=\"Warnings\"><h2>Before you trust a number</h2><ul>",
    );
    for warning in &report.warnings {
        let _ = write!(out, "<li>{}</li>", Prose(warning));
    }
    out.push_str("</ul></section>");
}

/// Writes which cells are missing: each reason once, with the commands that run its first cells
/// again.
fn write_missing(report: &Report<'_>, out: &mut String) {
    if report.missing.is_empty() {
        return;
    }
    let mut reasons: Vec<(&str, Vec<&str>)> = Vec::new();
    for missing in &report.missing {
        let known = reasons.iter_mut().find(|(why, _)| *why == missing.why);
        match known {
            Some((_, cells)) => cells.push(&missing.cell),
            None => reasons.push((&missing.why, vec![&missing.cell])),
        }
    }
    let _ = write!(
        out,
        "<details class=\"notes\"><summary>{} failed or not run; figures that need them are left out</summary><ul>",
        cells(report.missing.len())
    );
    let shown = &reasons[..reasons.len().min(REASONS_SHOWN)];
    for (why, names) in shown {
        let _ = write!(
            out,
            "<li>{}: {}<ul>",
            cells(names.len()),
            Escaped(why.trim())
        );
        for cell in names.iter().take(CELLS_SHOWN) {
            let command = (report.cell_command)(cell);
            let _ = write!(
                out,
                "<li>{}: <code>{}</code></li>",
                Escaped(cell),
                Escaped(&command)
            );
        }
        if names.len() > CELLS_SHOWN {
            let _ = write!(out, "<li>and {} more</li>", names.len() - CELLS_SHOWN);
        }
        out.push_str("</ul></li>");
    }
    let explained: usize = shown.iter().map(|(_, names)| names.len()).sum();
    if explained < report.missing.len() {
        let _ = write!(
            out,
            "<li>and {} more, for other reasons</li>",
            cells(report.missing.len() - explained)
        );
    }
    out.push_str("</ul></details>");
}

/// Writes the date, the version, the size of the run and the hosts.
fn write_facts(report: &Report<'_>, out: &mut String) {
    let mut hosts: Vec<String> = report
        .data
        .cells()
        .iter()
        .map(|cell| cell.host.to_string())
        .collect();
    hosts.sort_unstable();
    hosts.dedup();
    let _ = write!(
        out,
        "<p class=\"facts\">Made {} by brickyard {}, from {} of {}. Host: {}. <a href=\"#raw\">All raw rows, and the command of the run.</a></p>",
        Escaped(&report.date),
        Escaped(&report.version),
        counted(report.data.len(), "row", "rows"),
        cells(report.data.cells().len()),
        Escaped(&hosts.join("; "))
    );
}
