//! The first screen: what was asked, who wins by how much, where the sources are wrong, and the way to each part.

use core::fmt::Write as _;

use super::Report;
use super::figure;
use super::finding::{self, Length, write_counts};
use super::markup::{Escaped, Prose, opening, question};
use crate::directions::Directions;
use crate::document::{Among, Document, Place};
use crate::judge::Verdict;

/// The summary as HTML. Writing to a string cannot fail.
pub(super) fn of(report: &Report<'_>) -> String {
    let mut out = String::new();
    let counts: Vec<Directions> = report
        .documents
        .iter()
        .map(|document| Directions::of(report.judged, document, Among::All))
        .collect();
    write_totals(&counts, &mut out);
    out.push_str("<div class=\"scroll bare\"><table class=\"summary\"><caption class=\"unseen\">Each document: what it asked, what came out here, how many of its directions come out, where it is wrong</caption><thead><tr><th scope=\"col\">What was asked</th><th scope=\"col\">What came out here</th><th scope=\"col\">Directions</th><th scope=\"col\">Where the source is wrong</th></tr></thead><tbody>");
    for (document, &counts) in report.documents.iter().zip(&counts) {
        write_line(report, document, counts, &mut out);
    }
    out.push_str("</tbody></table></div>");
    write_notes(report, &mut out);
    write_facts(report, &mut out);
    out
}

fn write_totals(counts: &[Directions], out: &mut String) {
    let all = counts
        .iter()
        .fold(Directions::default(), |all, &counts| all.and(counts));
    if all.all() == 0 {
        return;
    }
    let _ = write!(
        out,
        "<div class=\"totals\"><p>Of <b>{}</b> published differences that could be judged here:</p>",
        all.all()
    );
    write_counts(all, Length::Whole, out);
    out.push_str("</div>");
}

fn write_line(report: &Report<'_>, document: &Document, counts: Directions, out: &mut String) {
    let name = Escaped(document.experiment);
    let _ = write!(
        out,
        "<tr><th scope=\"row\"><a href=\"#{name}\">{}</a><p>{}</p></th><td data-head=\"What came out here\">",
        Prose(document.title),
        Prose(question(document.asked))
    );
    let findings = document.findings.iter();
    let told: Vec<String> = findings
        .filter(|finding| finding.place == Place::Summary)
        .filter_map(|finding| finding::of(report, document, finding))
        .collect();
    for finding in &told {
        let _ = write!(out, "<p>{finding}</p>");
    }
    if told.is_empty() {
        out.push_str("<p class=\"muted\">Not measured in this run.</p>");
    }
    out.push_str("</td><td data-head=\"Directions\">");
    if counts.all() > 0 {
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
        "More of it".to_owned()
    } else {
        format!("And {more} more")
    }
}

fn cells(count: usize) -> String {
    format!("{count} {}", if count == 1 { "cell" } else { "cells" })
}

/// What a reader must know first.
fn write_notes(report: &Report<'_>, out: &mut String) {
    if !report.warnings.is_empty() {
        out.push_str("<section class=\"notes\" aria-label=\"Warnings\"><h2>Before you believe a number</h2><ul>");
        for warning in &report.warnings {
            let _ = write!(out, "<li>{}</li>", Prose(warning));
        }
        out.push_str("</ul></section>");
    }
    if !report.missing.is_empty() {
        let _ = write!(
            out,
            "<details class=\"notes\"><summary>{} not run, or failed; what needs them is left out</summary><ul>",
            cells(report.missing.len())
        );
        for cell in &report.missing {
            let command = (report.cell_command)(cell);
            let _ = write!(
                out,
                "<li>{}: <code>{}</code></li>",
                Escaped(cell),
                Escaped(&command)
            );
        }
        out.push_str("</ul></details>");
    }
}

/// When, where, of what; and how to read a cell.
fn write_facts(report: &Report<'_>, out: &mut String) {
    let mut hosts: Vec<String> = report
        .data
        .cells()
        .iter()
        .map(|cell| cell.host.to_string())
        .collect();
    hosts.sort_unstable();
    hosts.dedup();
    let hosts = hosts.join("; ");
    let marks = [
        (Verdict::Same, "the same direction as published"),
        (Verdict::Opposite, "the opposite"),
        (Verdict::WithinNoise, "within noise"),
    ]
    .map(|(verdict, words)| {
        let (sign, class) = figure::sign(verdict);
        format!("<span class=\"verdict {class}\">{sign}</span> {words}")
    });
    let _ = write!(
        out,
        "<div class=\"facts\"><p><b>How to read a cell.</b> Above, small, what the document printed; below what was measured here: press it for its raw rows and the command that repeats them. \
        {}. A star after a measured figure: p is below 5 % after Holm's correction.</p>\
        <p>Made {} by brickyard {}, from {} rows of {}. Host: {}. <a href=\"#raw\">All raw rows and the command.</a></p></div>",
        marks.join(", "),
        Escaped(&report.date),
        Escaped(&report.version),
        report.data.len(),
        cells(report.data.cells().len()),
        Escaped(&hosts)
    );
}
