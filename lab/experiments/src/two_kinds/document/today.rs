//! All configurations side by side, and the findings.

use super::words;
use super::{
    AT_REST, BRK_TEST, BUILD, CLEAN, EXPERIMENT, EXTRACT, KINDS, PAGE_TEST, Quantity, UNDER_LOAD,
    key,
};
use brickyard_pictures::plot::Scale;

use crate::document::{Finding, Plot, Table};
use crate::documents::build::{
    Row, Today, axis, curve_over_names, directions, finding, gmean, mean, names, summary, times,
    word,
};

const ALL: [&str; 7] = [
    "vanilla",
    "two-kinds-2005",
    "list-2007",
    "zone-2007",
    "combined-2007",
    "magazine-2013",
    "brickyard",
];
const FEW: [&str; 4] = ["vanilla", "two-kinds-2005", "list-2007", "brickyard"];

pub(super) fn today() -> Vec<Table> {
    let row = |head: &str, (machine, workload, metric, _): Quantity, decimals| {
        Row::new(head, machine, workload, metric).decimals(decimals)
    };
    let all = Today::gains(EXPERIMENT, &ALL);
    let few = Today::gains(EXPERIMENT, &FEW);
    let render = |head: &str, metric| {
        Row::new(head, "host", "render", metric)
            .decimals(3)
            .scaled(1000.0)
    };
    vec![
        all.table(
            "two-kinds-today-huge",
            "Huge pages, every configuration (blocks of order 10)",
            words::TODAY_HUGE,
            vec![
                row("HugePages under load", UNDER_LOAD, 0),
                row("HugePages after tests", AT_REST, 0),
            ],
        ),
        all.table(
            "two-kinds-today-time",
            "The cost in time",
            words::TODAY_TIME,
            vec![
                row("Kernel extract, elapsed, ms (simulated)", EXTRACT, 3).scaled(1000.0),
                row(
                    "Kernel extract, in the allocator, ms (simulated)",
                    (EXTRACT.0, EXTRACT.1, "system", EXTRACT.3),
                    3,
                )
                .scaled(1000.0),
                row("Kernel build, elapsed, s (simulated)", BUILD, 3),
                row(
                    "Kernel build, in the allocator, ms (simulated)",
                    (BUILD.0, BUILD.1, "system", BUILD.3),
                    3,
                )
                .scaled(1000.0),
                row("page_test, ops/s", PAGE_TEST, 0),
                row("brk_test, ops/s", BRK_TEST, 0),
            ],
        ),
        few.table(
            "two-kinds-today-render",
            "The cost to a renderer's caches",
            words::TODAY_RENDER,
            vec![
                render("render, real, ms", "real"),
                render("render, user, ms", "user"),
                render("render, sys, ms", "sys"),
            ],
        ),
    ]
}

pub(super) fn plots() -> Vec<Plot> {
    let curves = ALL.map(|config| {
        curve_over_names(
            config,
            [UNDER_LOAD, AT_REST].map(|moment| key(moment, config)),
        )
    });
    vec![Plot {
        id: "two-kinds-huge".to_owned(),
        title: "Blocks of 4 MiB that could be allocated (replayed)".to_owned(),
        about: "Of the machine's 379 blocks; 275 tries under load.".to_owned(),
        x: names("when", &["under load", "at rest"]),
        y: axis("blocks of order 10", Scale::Linear),
        curves: curves.into(),
    }]
}

pub(super) fn findings() -> Vec<Finding> {
    let one = |of: Quantity, config: &str| vec![key(of, config)];
    let more = [
        "more huge pages with two kinds than without",
        "fewer huge pages with two kinds than without",
        "as many huge pages with two kinds as without",
    ];
    let faster = [
        "faster with two kinds than without",
        "slower with two kinds than without",
        "as fast with two kinds as without",
    ];
    vec![
        summary(
            "At rest the machine has {}: {} compared with {}, {} times (published: 296 compared with 102), and {} with `brickyard`. Under load: {} compared with {} (published: 98 compared with 79), and {}. Counted on a replayed trace.",
            [
                word(one(AT_REST, KINDS), one(AT_REST, CLEAN), more),
                mean(key(AT_REST, KINDS), 0),
                mean(key(AT_REST, CLEAN), 0),
                times(key(AT_REST, KINDS), key(AT_REST, CLEAN), 2),
                mean(key(AT_REST, "brickyard"), 0),
                mean(key(UNDER_LOAD, KINDS), 0),
                mean(key(UNDER_LOAD, CLEAN), 0),
                mean(key(UNDER_LOAD, "brickyard"), 0),
            ],
        ),
        finding(
            "Allocating a page is {}: {} times the rate in page_test on this host (published: 1.006), and a simulated kernel build runs at {} times the speed (published: 1.000). With `brickyard` page_test has {} times the rate.",
            [
                word(one(PAGE_TEST, KINDS), one(PAGE_TEST, CLEAN), faster),
                times(key(PAGE_TEST, KINDS), key(PAGE_TEST, CLEAN), 3),
                times(key(BUILD, KINDS), key(BUILD, CLEAN), 3),
                times(key(PAGE_TEST, "brickyard"), key(PAGE_TEST, CLEAN), 2),
            ],
        ),
        finding(
            "brk_test allocates nothing, so it is a control: with two kinds it has {} times the rate. Any difference there is noise of the host.",
            [gmean(one(BRK_TEST, KINDS), one(BRK_TEST, CLEAN), 3)],
        ),
        directions(),
    ]
}
