//! The section of a document: its question, the findings, its mistakes, then plots, its tables,
//! today's tables, and the player.

use brickyard_results::counted;
use core::fmt::Write as _;

use super::finding;
use super::markup::{Escaped, Prose};
use super::report::{Embedded, Report};
use super::{plots, table};
use crate::document::{Document, Table, Weight};

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

/// Writes the mistakes that change a conclusion, and in a closed fold those that do not.
fn write_mistakes(document: &Document, out: &mut String) {
    let of = |weight| {
        document
            .mistakes
            .iter()
            .filter(move |one| one.weight == weight)
    };
    let write = |weight, out: &mut String| {
        out.push_str("<ul class=\"mistakes\">");
        for mistake in of(weight) {
            let _ = write!(out, "<li>{}</li>", Prose(mistake.text));
        }
        out.push_str("</ul>");
    };
    if of(Weight::Conclusion).next().is_some() {
        let _ = write!(
            out,
            "<h3 id=\"{}-mistakes\">Where the document is wrong, or does not support its conclusion</h3>",
            Escaped(document.experiment)
        );
        write(Weight::Conclusion, out);
    }
    let slips = of(Weight::Print).count();
    if slips > 0 {
        let _ = write!(
            out,
            "<details><summary>{}, which {} no conclusion</summary>",
            counted(slips, "slip", "slips"),
            if slips == 1 { "changes" } else { "change" }
        );
        write(Weight::Print, out);
        out.push_str("</details>");
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
