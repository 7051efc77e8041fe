//! The first screen, the marks of verdicts, and sweeps.

use std::collections::BTreeSet;

use brickyard_experiments::directions::{ANSWER_RULE, Directions};
use brickyard_experiments::document::{Among, Figure, Verdict};
use brickyard_experiments::judge::{Judge, NONE_RULE, SIGN_RULE, SIZE_RULE, SWEEP_RULE, ZERO_RULE};
use brickyard_pictures::markup::Escaped;

use super::figures;
use crate::page_sample;

/// If no difference was published and none is measured, it is not counted as a direction.
#[test]
fn no_difference_in_either_is_no_direction() {
    let mut documents = page_sample::documents();
    documents.truncate(1);
    let data = page_sample::data();
    let judge = Judge::new(&documents, &data);
    let judged = |figure: &Figure| {
        let mut judgement = judge.judge(figure)?;
        judgement.verdict = judgement.verdict.map(|_| Verdict::NoDifference);
        Some(judgement)
    };
    let counts = Directions::of(&judged, &documents[0], Among::All);
    assert_eq!(counts.all(), 0);
    assert!(counts.number(Verdict::NoDifference) > 0);
    let page = page_sample::page_judged(&documents, &data, Vec::new(), &judged);
    assert!(page.contains("Of <b>0</b> published differences"));
    let count = format!(
        "<li class=\"verdict none\"><span aria-hidden=\"true\">=</span> <b>{}</b> no difference in either</li>",
        counts.number(Verdict::NoDifference)
    );
    // In the line of the document, and in the totals.
    assert_eq!(page.matches(&count).count(), 2);
    assert!(page.contains("title=\"no difference in either\""));
    assert!(page.contains("<span class=\"muted\">no direction was judged in this run</span>"));
    // A count of zero is left out.
    let page = page_sample::page(&documents, &data, Vec::new());
    assert!(!page.contains("no difference in either"));
}

/// The first thing on the page is whether each document's claims came out.
#[test]
fn the_page_opens_with_what_came_out() {
    let (documents, data) = (page_sample::documents(), page_sample::data());
    let page = page_sample::page(&documents, &data, Vec::new());
    let place = |text: &str| page.find(text).unwrap_or_else(|| panic!("no {text}"));
    let order = [
        "<h1>",
        "<p class=\"answers\"><b class=",
        "Did it come out here?</th>",
        "<a href=\"#pagealloc\">Magazines in front of the buddy lists</a> <span class=\"muted\">Gorman 2013</span><p>Two magazines that all CPUs share",
        "What decides it\">Made-up rounds on a made-up host: the interval of <code>a/b</code>.</td>",
        "<div class=\"totals\">",
        "How it is judged",
        "What today's allocators do on the same work",
        "<p class=\"winner\">",
        "<section class=\"part\" id=\"pagealloc\"",
        "Where the document is wrong",
        "1 slip, which changes no conclusion",
    ];
    for two in order.windows(2) {
        assert!(place(two[0]) < place(two[1]), "{} after {}", two[0], two[1]);
    }
    for rule in [
        ANSWER_RULE,
        SIGN_RULE,
        SIZE_RULE,
        SWEEP_RULE,
        NONE_RULE,
        ZERO_RULE,
    ] {
        assert!(page.contains(&Escaped(rule).to_string()), "{rule}");
    }
    // The slip is in a closed fold.
    assert!(page.contains("<details><summary>1 slip, which changes no conclusion</summary>"));
    let (_, fold) = page
        .split_once("1 slip, which changes no conclusion")
        .unwrap();
    let (fold, _) = fold.split_once("</details>").unwrap();
    assert!(fold.contains("One table says cycles") && !fold.contains("batch"));
}

/// Each verdict has its mark and its count, and each answer its word.
#[test]
fn every_verdict_has_a_mark_and_every_answer_a_word() {
    let mut documents = page_sample::documents();
    documents.truncate(1);
    let data = page_sample::data();
    let judge = Judge::new(&documents, &data);
    let mut signs = BTreeSet::new();
    for verdict in Verdict::ALL {
        let judged = |figure: &Figure| {
            let mut judgement = judge.judge(figure)?;
            judgement.verdict = judgement.verdict.map(|_| verdict);
            Some(judgement)
        };
        let page = page_sample::page_judged(&documents, &data, Vec::new(), &judged);
        let counts = Directions::of(&judged, &documents[0], Among::All);
        let all = counts.all() + counts.beside();
        assert!(
            page.contains(&format!("<b>{all}</b> {}</li>", verdict.name())),
            "{verdict:?}"
        );
        let (_, mark) = page
            .split_once(&format!("title=\"{}", verdict.name()))
            .unwrap();
        let (_, sign) = mark.split_once("aria-hidden=\"true\">").unwrap();
        signs.insert((sign.chars().next(), verdict.name()));
        let says_size = page.contains("title=\"same direction, and a size between half and twice");
        assert_eq!(says_size, verdict == Verdict::Same, "{verdict:?}");
        if let Some(answer) = counts.answer() {
            // In the sentence and in the table.
            let words = answer.words();
            let sentence = format!("\">{words}</b>: <a href=\"#pagealloc\">pagealloc</a>.</p>");
            assert!(page.contains(&sentence), "{verdict:?}: {sentence}");
            assert_eq!(
                page.matches(&format!("\">{words}</b>")).count(),
                2,
                "{verdict:?}"
            );
        }
    }
    assert_eq!(signs.len(), Verdict::ALL.len());
}

/// The ends of a sweep are figures of their own, with the rows of their members.
#[test]
fn a_sweep_shows_its_ends() {
    let (mut documents, data) = (page_sample::documents(), page_sample::data());
    documents.truncate(1);
    let page = page_sample::page(&documents, &data, Vec::new());
    let (_, table) = page.split_once("id=\"pagealloc-assumed\"").unwrap();
    let (table, _) = table.split_once("</table>").unwrap();
    let rows: Vec<&str> = table.split("<tr>").skip(2).collect();
    assert_eq!(rows.len(), 5);
    for (line, row) in rows.iter().enumerate() {
        let swept = line < 4;
        assert_eq!(
            row.matches("class=\"sweep\"").count(),
            if swept { 2 } else { 0 }
        );
        assert_eq!(
            row.matches(", 3 assumptions</span>").count(),
            if swept { 2 } else { 0 }
        );
        // One of the two cells is a mean, which has its ratio beside it.
        assert_eq!(row.matches("class=\"ratio\"").count(), 1);
        assert_eq!(figures(row).len(), if swept { 7 } else { 3 });
        let elements = figures(row);
        let verdicts: Vec<&str> = elements
            .iter()
            .filter_map(|element| element.get("data-verdict"))
            .collect();
        assert_eq!(verdicts.len(), 2);
        if !swept {
            assert_eq!(verdicts, [Verdict::NotSwept.name(); 2]);
        }
        for element in figures(row) {
            if let Some(sweep) = element.get("data-sweep") {
                assert!(sweep.contains("under 3 assumptions (lowest: "), "{sweep}");
            }
        }
    }
    // One memory turns the first machine round.
    assert!(rows[0].contains(Verdict::Depends.name()));
}
