//! The tables of 2005, cell by cell.

use core::array;
use std::sync::LazyLock;

use brickyard_workload::printed::rows;

use super::{AT_REST, BRK_TEST, BUILD, EXTRACT, PAGE_TEST, Quantity, UNDER_LOAD};

/// A line of the summary.
pub(super) struct Difference {
    /// Its head.
    pub(super) head: &'static str,
    /// What is measured for it.
    pub(super) of: Quantity,
    /// The kernel without two kinds.
    pub(super) clean: &'static str,
    /// The kernel with them.
    pub(super) kinds: &'static str,
    /// The difference, where one is printed.
    pub(super) difference: Option<&'static str>,
    /// In percent, or in words.
    pub(super) percent: &'static str,
    /// Digits after the point.
    pub(super) decimals: usize,
}

pub(super) static SUMMARY: LazyLock<Vec<Difference>> = LazyLock::new(|| {
    let rows = rows(include_str!("summary.csv")).into_iter();
    let differences =
        rows.map(
            |[head, of, clean, kinds, difference, percent, decimals]| Difference {
                head,
                of: match of {
                    "extract" => EXTRACT,
                    "build" => BUILD,
                    "page-test" => PAGE_TEST,
                    "brk-test" => BRK_TEST,
                    "under-load" => UNDER_LOAD,
                    "at-rest" => AT_REST,
                    other => panic!("nothing is measured as {other}"),
                },
                clean,
                kinds,
                difference: Some(difference).filter(|text| !text.is_empty()),
                percent,
                decimals: decimals.parse().expect("a number of digits"),
            },
        );
    differences.collect()
});

/// A test of AIM9.
pub(super) struct Aim9 {
    /// Its number.
    pub(super) number: &'static str,
    /// Its name.
    pub(super) name: &'static str,
    /// What an operation is.
    pub(super) what: &'static str,
    /// Elapsed time, iteration count, iteration rate, operation rate, without two kinds.
    pub(super) clean: [&'static str; 4],
    /// The same with them.
    pub(super) kinds: [&'static str; 4],
    /// The difference of the operation rates.
    pub(super) difference: &'static str,
    /// In percent.
    pub(super) percent: &'static str,
}

pub(super) static AIM9: LazyLock<Vec<Aim9>> = LazyLock::new(|| {
    let rows = rows(include_str!("aim9.csv")).into_iter();
    let tests = rows.map(|row: [&'static str; 13]| Aim9 {
        number: row[0],
        name: row[1],
        what: row[2],
        clean: array::from_fn(|place| row[3 + place]),
        kinds: array::from_fn(|place| row[7 + place]),
        difference: row[11],
        percent: row[12],
    });
    tests.collect()
});

/// High-order allocations under load: line, clean, with two kinds.
pub(super) static HIGH_ORDER: LazyLock<Vec<[&'static str; 3]>> =
    LazyLock::new(|| rows(include_str!("high_order.csv")));
