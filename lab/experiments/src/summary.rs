//! The summary of a run for the terminal: which allocator wins, and for each document its
//! directions and its first findings.

use crate::directions::{Directions, Judged};
use crate::document::{Among, Document, ShownIn};
use crate::documents;

/// Returns the summary, one line for each sentence.
pub fn of(documents: &[Document], judged: Judged<'_>) -> String {
    let winner = documents
        .first()
        .and_then(|first| documents::winner().plain(judged, first));
    let mut out = winner.map(|winner| winner + "\n").unwrap_or_default();
    for document in documents {
        out += &one(document, judged);
    }
    out
}

fn one(document: &Document, judged: Judged<'_>) -> String {
    let mut out = format!("{} ({})\n", document.title, document.experiment);
    let counts = Directions::of(judged, document, Among::All);
    if counts.all() > 0 {
        out += &format!(
            "  of {} published directions {} are the same here, {} opposite, {} within noise{}\n",
            counts.all(),
            counts.same,
            counts.opposite,
            counts.noise,
            match counts.not_testable {
                0 => String::new(),
                count => format!("; {count} more cannot be tested"),
            }
        );
    }
    let first = document
        .findings
        .iter()
        .filter(|finding| finding.shown == ShownIn::SummaryToo);
    for text in first.filter_map(|finding| finding.plain(judged, document)) {
        out += &format!("  {text}\n");
    }
    out
}
