//! Gorman 2005: two kinds of page kept apart, "light fragmentation avoidance".

mod printed;
mod today;
mod words;

use brickyard_results::Better;

use printed::{AIM9, Aim9, Difference, HIGH_ORDER, SUMMARY};

use crate::antifrag::variants;
use crate::cells::simulated::OTHER_INSTRUCTIONS;
use crate::data::Key;
use crate::document::{Claim, Document, Figure, Mistake, PrintedSpeedup, Statistic, Table};
use crate::documents::build::{columns, directed, line, printed_speedup};

const EXPERIMENT: &str = "two-kinds";
const CLEAN: &str = "vanilla";
const KINDS: &str = "two-kinds-2005";
/// Tries for a block of order 10.
const TRIES: f64 = 275.0;

/// A measured quantity: machine, workload, metric, which way is better.
type Quantity = (&'static str, &'static str, &'static str, Better);

const EXTRACT: Quantity = ("desktop-2005", "extract", "elapsed", Better::Lower);
const BUILD: Quantity = ("desktop-2005", "build", "elapsed", Better::Lower);
const PAGE_TEST: Quantity = ("host", "page_test", "rate", Better::Higher);
const BRK_TEST: Quantity = ("host", "brk_test", "rate", Better::Higher);
const UNDER_LOAD: Quantity = ("desktop-2005", "under load", "huge-pages", Better::Higher);
const AT_REST: Quantity = ("desktop-2005", "at rest", "huge-pages", Better::Higher);

fn key((machine, workload, metric, _): Quantity, config: &str) -> Key {
    Key::new(EXPERIMENT, machine, workload, config, metric)
}

pub(super) fn document() -> Document {
    Document {
        experiment: EXPERIMENT,
        title: "Two kinds of page, kept apart",
        source: "Mel Gorman, \"[PATCH 0/5] Light fragmentation avoidance without usemap\" (v21), 22 November 2005",
        by: "Gorman 2005",
        asked: words::ASKED,
        claimed: words::CLAIMED,
        decides: words::DECIDES,
        findings: today::findings(),
        mistakes: Mistake::all(include_str!("document/mistakes.txt")),
        tables: vec![
            clean_and_kinds(),
            build(),
            aim9("clean", "AIM9, clean", CLEAN, |test| test.clean),
            aim9("v21", "AIM9, with two kinds", KINDS, |test| test.kinds),
            aim9_differences(),
            cache(),
            high_order(),
        ],
        today: today::today(),
        plots: today::plots(),
    }
}

/// Returns the published direction. `brk_test` has none: it allocates no page, so the measurement
/// here is a control.
fn direction(of: Quantity, clean: &str, kinds: &str) -> Option<PrintedSpeedup> {
    (of != BRK_TEST).then(|| printed_speedup(of.3, clean, kinds))?
}

/// Returns a line of the summary: both columns, and the difference as a number and in percent.
fn difference_line(difference: &Difference) -> crate::document::TableLine {
    let &Difference {
        head,
        of,
        clean,
        kinds,
        difference,
        percent,
        decimals,
    } = difference;
    let now = || key(of, KINDS);
    let before = || key(of, CLEAN);
    let of_percent =
        Figure::compared(Statistic::DifferencePercent, now(), before()).printed(percent);
    let speedup = direction(of, clean, kinds);
    let claim = match speedup.map(|speedup| speedup.value) {
        Some(1.0) => Claim::Noise,
        _ => Claim::Untested,
    };
    let of_percent = directed(of_percent, speedup, claim);
    let of_percent = match of {
        UNDER_LOAD | AT_REST => of_percent.swept(&assumptions()),
        EXTRACT | BUILD => of_percent.swept_alone(&OTHER_INSTRUCTIONS),
        _ => of_percent,
    };
    let of_difference = Figure::compared(Statistic::Difference, now(), before()).decimals(decimals);
    let of_difference = match difference {
        Some(text) => of_difference.printed(text),
        None => of_difference,
    };
    line(
        head,
        vec![
            Some(Figure::mean(before()).printed(clean).decimals(decimals)),
            Some(Figure::mean(now()).printed(kinds).decimals(decimals)),
            Some(of_difference),
            Some(of_percent),
        ],
    )
}

fn clean_and_kinds() -> Table {
    Table {
        id: "two-kinds-summary".to_owned(),
        title: "The summary".to_owned(),
        about: words::SUMMARY.to_owned(),
        head: vec![columns(&[
            "clean",
            "anti-defrag",
            "difference",
            "in percent",
        ])],
        lines: SUMMARY.iter().map(difference_line).collect(),
    }
}

fn build() -> Table {
    let of = |head, of, text| {
        let cell = |config| Some(Figure::mean(key(of, config)).printed(text).decimals(2));
        line(head, vec![cell(CLEAN), cell(KINDS)])
    };
    Table {
        id: "two-kinds-build".to_owned(),
        title: "A kernel build (seconds)".to_owned(),
        about: words::BUILD.to_owned(),
        head: vec![columns(&["clean", "anti-defrag"])],
        lines: vec![
            of("Kernel extract", EXTRACT, "16"),
            of("Kernel build", BUILD, "736"),
        ],
    }
}

/// Returns the quantity of one of the two AIM9 tests that are run here, by name.
fn measured(test: &str) -> Option<Quantity> {
    match test {
        "page_test" => Some(PAGE_TEST),
        "brk_test" => Some(BRK_TEST),
        _ => None,
    }
}

fn aim9(
    id: &str,
    title: &str,
    config: &'static str,
    printed: impl Fn(&Aim9) -> [&'static str; 4],
) -> Table {
    let lines = AIM9.iter().map(|test| {
        let [elapsed, count, loops, rate] = printed(test);
        let rate = match measured(test.name) {
            Some(of) => Figure::mean(key(of, config)).printed(rate),
            None => Figure::not_modelled(rate),
        };
        let cells = vec![
            Some(Figure::not_modelled(elapsed)),
            Some(Figure::not_modelled(count)),
            Some(Figure::not_modelled(loops)),
            Some(rate),
        ];
        line(aim9_head(test), cells)
    });
    Table {
        id: format!("two-kinds-aim9-{id}"),
        title: title.to_owned(),
        about: words::AIM9.to_owned(),
        head: vec![columns(&[
            "Elapsed Time (sec)",
            "Iteration Count",
            "Iteration Rate (loops/sec)",
            "Operation Rate (ops/sec)",
        ])],
        lines: lines.collect(),
    }
}

fn aim9_head(test: &Aim9) -> String {
    let not = match measured(test.name) {
        Some(_) => "",
        None => " (not modelled)",
    };
    format!("{} {}, {}{not}", test.number, test.name, test.what)
}

fn aim9_differences() -> Table {
    let lines = AIM9.iter().map(|test| {
        let ([.., clean], [.., kinds]) = (test.clean, test.kinds);
        let texts = [clean, kinds, test.difference, test.percent];
        let Some(of) = measured(test.name) else {
            let cells = texts.map(|text| Some(Figure::not_modelled(text)));
            return line(aim9_head(test), cells.into());
        };
        let now = || key(of, KINDS);
        let compare = |statistic| Figure::compared(statistic, now(), key(of, CLEAN));
        let percent = directed(
            compare(Statistic::Gain).printed(test.percent),
            direction(of, clean, kinds),
            Claim::Noise,
        );
        let cells = vec![
            Some(Figure::mean(key(of, CLEAN)).printed(clean)),
            Some(Figure::mean(now()).printed(kinds)),
            Some(compare(Statistic::Difference).printed(test.difference)),
            Some(percent),
        ];
        line(aim9_head(test), cells)
    });
    Table {
        id: "two-kinds-aim9-difference".to_owned(),
        title: "AIM9: difference in performance operations (ops/sec)".to_owned(),
        about: words::AIM9_DIFFERENCE.to_owned(),
        head: vec![columns(&[
            "Clean",
            "mbuddy-v21",
            "difference",
            "in percent",
        ])],
        lines: lines.collect(),
    }
}

fn cache() -> Table {
    let metrics = ["real", "user", "sys"];
    let clean = ["7.42", "7.25", "0.078"];
    let kinds = ["7.406", "6.916", "0.088"];
    let of = |metric, config| {
        let key = Key::new(EXPERIMENT, "host", "render", config, metric);
        Figure::mean(key).decimals(3).scaled(1000.0)
    };
    let before = (0..3).map(|place| Some(of(metrics[place], CLEAN).printed(clean[place])));
    let now = (0..3).map(|place| {
        let against = Key::new(EXPERIMENT, "host", "render", CLEAN, metrics[place]);
        let figure = of(metrics[place], KINDS)
            .against(against)
            .printed(kinds[place]);
        let speedup = printed_speedup(Better::Lower, clean[place], kinds[place]);
        Some(directed(figure, speedup, Claim::Noise))
    });
    Table {
        id: "two-kinds-cache".to_owned(),
        title:
            "Rendering a large PostScript file, average of 10 (published: seconds; measured: ms)"
                .to_owned(),
        about: words::CACHE.to_owned(),
        head: vec![columns(&["real", "user", "sys"])],
        lines: vec![
            line("2.6.15-rc1-mm2-clean", before.collect()),
            line("2.6.15-rc1-mm2-mbuddy-v21", now.collect()),
        ],
    }
}

/// Returns the names of the protocol's assumptions that are varied.
fn assumptions() -> [&'static str; 3] {
    variants::OF_2005.map(|variant| variant.name)
}

fn high_order() -> Table {
    let lines = HIGH_ORDER.iter().map(|&[head, clean, kinds]| {
        let mean = |of, config| Figure::mean(key(of, config)).decimals(0);
        let judged = |of| {
            let now = mean(of, KINDS).against(key(of, CLEAN)).printed(kinds);
            let speedup = printed_speedup(Better::Higher, clean, kinds);
            let now = directed(now, speedup, Claim::Untested).swept(&assumptions());
            [mean(of, CLEAN).printed(clean), now]
        };
        let cells = match head {
            "Success allocs" => judged(UNDER_LOAD),
            "After the tests completed" => judged(AT_REST),
            "% Success" => [(CLEAN, clean), (KINDS, kinds)].map(|(config, text)| {
                let success = mean(UNDER_LOAD, config).printed(text);
                success.decimals(1).scaled(100.0 / TRIES)
            }),
            _ => [clean, kinds].map(Figure::not_modelled),
        };
        line(head, cells.map(Some).into())
    });
    Table {
        id: "two-kinds-high-order".to_owned(),
        title: "High-order allocations under load: blocks of order 10, and after the tests"
            .to_owned(),
        about: words::HIGH_ORDER.to_owned(),
        head: vec![columns(&[
            "2.6.15-rc1-mm2 Clean",
            "2.6.15-rc1-mm2 MBuddy V21",
        ])],
        lines: lines.collect(),
    }
}
