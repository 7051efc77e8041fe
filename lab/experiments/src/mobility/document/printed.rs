//! The eight tables of 2007: percent of memory allocated as huge pages.

use std::sync::LazyLock;

use brickyard_workload::printed::rows;

/// A line: the table, the machine, its architecture, and the figures of the four kernels: vanilla,
/// list-based, zone-based, combined.
pub(super) type PrintedLine = [&'static str; 7];

/// All lines. On bl6-13 the combined kernel was not measured (the machine had been removed); its 0
/// there is a missing value.
pub(super) static OF_2007: LazyLock<Vec<PrintedLine>> =
    LazyLock::new(|| rows(include_str!("published.csv")));
