//! The first screen: what each document claimed, whether it came out, and what decides that; below
//! it how today's allocators do on the same work, and what a reader must know.

use brickyard_results::counted;
use core::fmt::Write as _;

use super::finding::{self, Length, write_counts};
use super::markup::{Escaped, Prose};
use super::report::Report;
use crate::directions::{ANSWER_RULE, Answer, Directions};
use crate::document::{Among, Document, ShownIn};
use crate::judge::{NONE_RULE, SIGN_RULE, SIZE_RULE, SWEEP_RULE, ZERO_RULE};
use crate::warnings::taken_by_others;

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
    write_answers(report, &counts, &mut out);
    out.push_str("<div class=\"scroll bare\"><table class=\"summary\"><caption class=\"unseen\">Each document: what it claimed, whether it came out here, and what decides that</caption><thead><tr><th scope=\"col\">What the document claimed</th><th scope=\"col\">Did it come out here?</th><th scope=\"col\">What decides it</th></tr></thead><tbody>");
    for (document, &counts) in report.documents.iter().zip(&counts) {
        write_line(document, counts, &mut out);
    }
    out.push_str("</tbody></table></div><div class=\"key\">");
    write_totals(&counts, &mut out);
    let _ = write!(
        out,
        "<details><summary>How it is judged</summary><ul><li>{}</li><li>{}</li><li>{}</li><li>{}</li><li>{}</li><li>{}</li>{LEGEND}</ul></details></div>",
        Escaped(ANSWER_RULE),
        Escaped(SIGN_RULE),
        Escaped(SIZE_RULE),
        Escaped(SWEEP_RULE),
        Escaped(NONE_RULE),
        Escaped(ZERO_RULE)
    );
    write_warnings(report, &mut out);
    write_today(report, &mut out);
    write_missing(report, &mut out);
    write_facts(report, &mut out);
    out
}

/// Writes the answers in one sentence: the documents of each.
fn write_answers(report: &Report<'_>, counts: &[Directions], out: &mut String) {
    let parts = Answer::ALL.iter().filter_map(|&answer| {
        let documents = report.documents.iter().zip(counts);
        let of = documents.filter(|(_, counts)| counts.answer() == Some(answer));
        let links: Vec<String> = of.map(|(document, _)| link(document)).collect();
        let (word, class) = (answer.words(), class(answer));
        let links = links.join(", ");
        (!links.is_empty()).then(|| format!("<b class=\"{class}\">{word}</b>: {links}"))
    });
    let parts: Vec<String> = parts.collect();
    if !parts.is_empty() {
        let _ = write!(out, "<p class=\"answers\">{}.</p>", parts.join("; "));
    }
}

/// Returns a link to the section of a document, by its experiment.
pub(super) fn link(document: &Document) -> String {
    let name = Escaped(document.experiment);
    format!("<a href=\"#{name}\">{name}</a>")
}

fn write_line(document: &Document, counts: Directions, out: &mut String) {
    let _ = write!(
        out,
        "<tr><th scope=\"row\"><a href=\"#{}\">{}</a> <span class=\"muted\">{}</span><p>{}</p></th><td data-head=\"Did it come out here?\">",
        Escaped(document.experiment),
        Prose(document.title),
        Escaped(document.by),
        Prose(document.claimed)
    );
    match counts.answer() {
        Some(answer) => {
            let (word, class) = (answer.words(), class(answer));
            let _ = write!(out, "<b class=\"answer {class}\">{word}</b>");
            if let Some(why) = counts.why_undecided() {
                let _ = write!(out, "<p>{}</p>", Escaped(why));
            }
        }
        None if counts.beside() > 0 => {
            out.push_str("<span class=\"muted\">no direction was judged in this run</span>");
        }
        None => out.push_str("<span class=\"muted\">not measured in this run</span>"),
    }
    if counts.all() + counts.beside() > 0 {
        write_counts(counts, Length::Brief, out);
    }
    let _ = write!(
        out,
        "</td><td data-head=\"What decides it\">{}</td></tr>",
        Prose(document.decides)
    );
}

/// Returns the class of an answer: that of the verdict it is most like.
const fn class(answer: Answer) -> &'static str {
    match answer {
        Answer::Yes => "same",
        Answer::No => "opposite",
        Answer::Partly | Answer::Undecided => "noise",
        Answer::NotTestable => "none",
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
        "<div class=\"totals\"><p>Of <b>{}</b> published {differences} that were judged here:</p>",
        all.all()
    );
    write_counts(all, Length::Whole, out);
    out.push_str("</div>");
}

/// How to read a cell of a table; the totals explain the marks.
const LEGEND: &str = "<li>In a cell of a table the small figure above is the published one; the figure below was measured here: press it for its raw rows and the command that measures them again. An asterisk after it: p is below 5 % after Holm's correction.</li>";

/// Writes how today's default compares with the earlier allocators, and the first results of each
/// document.
fn write_today(report: &Report<'_>, out: &mut String) {
    let winner = report.winner.as_ref().zip(report.documents.first());
    let winner = winner.and_then(|(winner, document)| finding::of(report, document, winner));
    let mut results = Vec::new();
    for document in report.documents {
        let first = document.findings.iter();
        let first = first.filter(|finding| finding.shown == ShownIn::SummaryToo);
        for sentence in first.filter_map(|one| finding::of(report, document, one)) {
            results.push((document, sentence));
        }
    }
    if winner.is_none() && results.is_empty() {
        return;
    }
    out.push_str("<section class=\"today\" aria-labelledby=\"today-title\"><h2 id=\"today-title\">What today's allocators do on the same work</h2>");
    if let Some(sentence) = winner {
        let _ = write!(out, "<p class=\"winner\">{sentence}</p>");
    }
    out.push_str("<ul class=\"findings\">");
    for (document, sentence) in results {
        let _ = write!(out, "<li>{}: {sentence}</li>", link(document));
    }
    out.push_str("</ul></section>");
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

/// Writes what a reader can check in a few minutes; the date, the version, the size of the run and
/// the hosts.
fn write_facts(report: &Report<'_>, out: &mut String) {
    let cells_here = || {
        let cells = report.data.cells().iter();
        cells.filter(|cell| !report.behind.has(&cell.cell))
    };
    let mut seeds: Vec<u64> = cells_here().map(|cell| cell.seed).collect();
    seeds.sort_unstable();
    seeds.dedup();
    let seeds: Vec<String> = seeds.iter().map(u64::to_string).collect();
    let behind = report.behind.to_string();
    let most = taken_by_others(cells_here()).reduce(f64::max);
    let quiet = most.map(|most| {
        format!(" While they were timed here, others took at most {most:.1} % of a CPU.")
    });
    let quiet = quiet.unwrap_or_default();
    let _ = write!(
        out,
        "<details class=\"notes\"><summary>What you can check in five minutes</summary><ul><li>Press a figure: its rows, and the command that measures them again. A cell that is simulated or replayed takes seconds and gives the same rows on any machine with the same build.</li><li>Seeds: run 1 of an experiment has seed {}, run 2 the next. The number of runs is n in the figure's rows; which host timed them stands there too.</li><li>Timed figures hang on the host, and a direction counts only if two sittings of one run agree.{quiet}</li><li>What differs from the documents' systems: <code>docs/book/internals/departures.md</code>.</li><li>{}</li></ul></details>",
        seeds.join(", "),
        match behind.is_empty() {
            true => Escaped("All rows are of this run."),
            false => Escaped(&behind),
        }
    );
    let mut hosts: Vec<String> = cells_here().map(|cell| cell.host.to_string()).collect();
    hosts.sort_unstable();
    hosts.dedup();
    let rows: usize = cells_here().map(|cell| cell.rows.len()).sum();
    let _ = write!(
        out,
        "<p class=\"facts\">Made {} by brickyard {}, from {} of {}. Host: {}. <a href=\"#raw\">All raw rows, and the command of the run.</a></p>",
        Escaped(&report.date),
        Escaped(&report.version),
        counted(rows, "row", "rows"),
        cells(cells_here().count()),
        Escaped(&hosts.join("; "))
    );
}
