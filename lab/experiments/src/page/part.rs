//! The section of a document: its question, the findings, its mistakes, then plots, its tables,
//! today's tables, and the player.

use core::fmt::Write as _;

use super::finding;
use super::markup::{Escaped, Prose};
use super::{Embedded, Report, plots, table};
use crate::document::{Document, Table};

/// The number of mistakes shown at once; the others are in a folded list.
const MISTAKES_SHOWN: usize = 3;

/// Returns the section as HTML. Writing to a string cannot fail.
pub(super) fn of(report: &Report<'_>, document: &Document) -> String {
    let mut out = String::new();
    let name = Escaped(document.experiment);
    let _ = write!(
        out,
        "<section class=\"part\" id=\"{name}\" aria-labelledby=\"{name}-title\"><h2 id=\"{name}-title\">{}</h2><p class=\"source\">{}</p><p>{}</p>",
        Prose(document.title),
        Prose(document.source),
        Prose(document.asked)
    );
    write_findings(report, document, &mut out);
    write_mistakes(document, &mut out);
    if !document.plots.is_empty() {
        out.push_str("<h3>Plots</h3>");
        plots::write_all(report, &document.plots, &mut out);
    }
    write_tables(
        report,
        "The document's tables, with the figures measured here",
        &document.tables,
        &mut out,
    );
    write_tables(
        report,
        "The same with today's configurations",
        &document.today,
        &mut out,
    );
    for page in &report.pages {
        if page.experiment == document.experiment {
            write_player(page, &mut out);
        }
    }
    out.push_str("<p class=\"up\"><a href=\"#top\">Back to the summary</a></p></section>\n");
    out
}

fn write_findings(report: &Report<'_>, document: &Document, out: &mut String) {
    let findings: Vec<String> = document
        .findings
        .iter()
        .filter_map(|finding| finding::of(report, document, finding))
        .collect();
    out.push_str("<h3>Results here</h3>");
    if findings.is_empty() {
        out.push_str("<p class=\"muted\">None of it was measured in this run.</p>");
        return;
    }
    out.push_str("<ul class=\"findings\">");
    for finding in findings {
        let _ = write!(out, "<li>{finding}</li>");
    }
    out.push_str("</ul>");
}

fn write_mistakes(document: &Document, out: &mut String) {
    if document.mistakes.is_empty() {
        return;
    }
    let (shown, more) = document
        .mistakes
        .split_at(document.mistakes.len().min(MISTAKES_SHOWN));
    let write = |mistakes: &[&str], out: &mut String| {
        for mistake in mistakes {
            let _ = write!(out, "<li>{}</li>", Prose(mistake));
        }
    };
    let _ = write!(
        out,
        "<h3 id=\"{}-mistakes\">Where the document is wrong, or does not support its conclusion</h3><ul class=\"mistakes\">",
        Escaped(document.experiment)
    );
    write(shown, out);
    out.push_str("</ul>");
    if !more.is_empty() {
        let _ = write!(
            out,
            "<details><summary>{} more</summary><ul class=\"mistakes\">",
            more.len()
        );
        write(more, out);
        out.push_str("</ul></details>");
    }
}

fn write_tables(report: &Report<'_>, heading: &str, tables: &[Table], out: &mut String) {
    if tables.is_empty() {
        return;
    }
    let _ = write!(out, "<h3>{heading}</h3>");
    let mut before = "";
    for table in tables {
        // A text that several consecutive tables share is shown once.
        let about = if table.about == before {
            "As for the previous table."
        } else {
            &table.about
        };
        table::write(report, table, about, out);
        before = &table.about;
    }
}

/// Writes a page in a frame of its own, which may run the player's script exactly as this version
/// writes it, and nothing else. A page that another version wrote plays only when opened as a file.
fn write_player(page: &Embedded, out: &mut String) {
    let _ = write!(
        out,
        "<h3>{title}</h3><p>Each pixel is a page of memory. Also available as <a href=\"{}\">a separate page</a>.</p>\
        <iframe class=\"player\" loading=\"lazy\" sandbox=\"allow-scripts\" title=\"{title}\" srcdoc=\"{}\"></iframe>",
        Escaped(&page.file),
        Escaped(&page.html),
        title = Escaped(&page.title)
    );
}
