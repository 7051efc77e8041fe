//! The tables of 2007 and 2008, cell by cell.
//!
//! The page as it is kept has lost the columns: means stand as `3.2913.351`, and fewer groups of
//! figures than workloads. Where a figure belongs follows from three things that agree. (1) The
//! author marks with `*` in a table's head the workloads that were too noisy to print; leaving
//! these out, there are exactly as many groups as workloads. (2) The printed speedup is the ratio
//! of the two means next to each other. (3) The same workload has like times on 8, 16 and 32 CPUs.

use core::array;
use std::sync::LazyLock;

use brickyard_workload::printed::rows;

/// The columns of one workload: mean, deviation and interval of each, and the speedups over the one
/// before.
pub(super) struct Columns<const N: usize, const STEPS: usize> {
    /// Means.
    pub(super) mean: [&'static str; N],
    /// Standard deviations.
    pub(super) deviation: [&'static str; N],
    /// 95 % intervals.
    pub(super) interval: [&'static str; N],
    /// Speedups of all but the first.
    pub(super) speedup: [&'static str; STEPS],
}

/// `unmod` and `opt`.
pub(super) type Two = Columns<2, 1>;

/// `unmod`, `ts`, `ts+opt`, `ts+opt+cl`.
pub(super) type Four = Columns<4, 3>;

/// A workload: his name, ours where it is modelled, and what he printed of it if it was not too
/// noisy.
pub(super) type Of<T> = (&'static str, Option<&'static str>, Option<T>);

impl<const N: usize, const STEPS: usize> Columns<N, STEPS> {
    fn of(row: &[&'static str]) -> Of<Self> {
        let text = |place: usize| Some(row[place]).filter(|text| !text.is_empty());
        let columns = text(2).map(|_| Self {
            mean: array::from_fn(|side| row[2 + side]),
            deviation: array::from_fn(|side| row[2 + N + side]),
            interval: array::from_fn(|side| row[2 + 2 * N + side]),
            speedup: array::from_fn(|step| row[2 + 3 * N + step]),
        });
        (row[0], text(1), columns)
    }
}

/// The rows of his tables of two columns with this in the first cell.
fn pairs(cpus: &str) -> Vec<Of<Two>> {
    let rows = rows::<10>(include_str!("pairs.csv")).into_iter();
    let rows = rows.filter(|row| row[0] == cpus);
    rows.map(|row| Two::of(&row[1..])).collect()
}

/// Simulated, by number of CPUs.
pub(super) static SIMULATED: LazyLock<[(u32, Vec<Of<Two>>); 3]> =
    LazyLock::new(|| [8, 16, 32].map(|cpus| (cpus, pairs(&cpus.to_string()))));

/// The real machine, October 2007, 15 samples.
pub(super) static REAL: LazyLock<Vec<Of<Two>>> = LazyLock::new(|| pairs("real"));

/// Ticket spinlocks, January 2008: 15 samples, 5 of the compiles.
pub(super) static TICKET: LazyLock<Vec<Of<Four>>> = LazyLock::new(|| {
    let rows = rows::<17>(include_str!("ticket.csv")).into_iter();
    rows.map(|row| Four::of(&row)).collect()
});

/// The columns of the bulk table: his name and ours.
pub(super) const BULK_WORKLOADS: [(&str, &str); 4] = [
    ("config", "config"),
    ("MAB", "mab"),
    ("dpunish", "dpunish"),
    ("pmake", "pmake"),
];

/// The lines of the bulk table: a head, our metric of the mean and of the deviation, and mean and
/// deviation of each of [`BULK_WORKLOADS`].
pub(super) static BULKS: LazyLock<Vec<[&'static str; 11]>> =
    LazyLock::new(|| rows(include_str!("bulks.csv")));
