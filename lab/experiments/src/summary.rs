//! The summary of a run for the terminal: whether each document's claims came out, with its first
//! findings, and then how today's default compares.

use crate::directions::{Directions, Judged};
use crate::document::{Among, Document, ShownIn, Verdict};
use crate::winner::winner;

/// Returns the summary, one line for each sentence.
pub fn of(documents: &[Document], judged: Judged<'_>) -> String {
    let mut out = String::new();
    for document in documents {
        out += &one(document, judged);
    }
    let winner = documents
        .first()
        .and_then(|first| winner().plain(judged, first));
    out + &winner.map(|winner| winner + "\n").unwrap_or_default()
}

fn one(document: &Document, judged: Judged<'_>) -> String {
    let (title, by, experiment) = (document.title, document.by, document.experiment);
    let mut out = format!("{title} ({by}, {experiment})\n");
    let counts = Directions::of(judged, document, Among::All);
    if let Some(answer) = counts.answer() {
        let why = counts.why_undecided().map(|why| format!(" {why}"));
        out += &format!(
            "  Did it come out? {}.{}{}\n",
            capital(answer.words()),
            in_words(counts),
            why.unwrap_or_default()
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

/// Returns the counts as a sentence, without those that are zero.
fn in_words(counts: Directions) -> String {
    let words = |verdict| match verdict {
        Verdict::Same => Some("the same"),
        Verdict::DirectionOnly => Some("of the same direction only"),
        Verdict::Opposite => Some("opposite"),
        Verdict::NoEffect => Some("without an effect"),
        Verdict::Undecided => Some("undecided"),
        Verdict::Depends => Some("dependent on an assumption"),
        Verdict::NotSwept => Some("dependent on an assumption that was not varied"),
        _ => None,
    };
    let there = Verdict::ALL.into_iter().filter(|&it| counts.number(it) > 0);
    let parts = there.filter_map(|it| Some(format!("{} {}", counts.number(it), words(it)?)));
    let parts: Vec<String> = parts.collect();
    let judged = match counts.all() {
        0 => String::new(),
        all => format!(" Of {all} published directions: {}.", parts.join(", ")),
    };
    match counts.number(Verdict::NotTestable) {
        0 => judged,
        count => format!("{judged} Not testable: {count}."),
    }
}

/// Returns words with a capital letter at the beginning.
fn capital(words: &str) -> String {
    let mut letters = words.chars();
    let first = letters.next().map(|first| first.to_uppercase().to_string());
    first.unwrap_or_default() + letters.as_str()
}
