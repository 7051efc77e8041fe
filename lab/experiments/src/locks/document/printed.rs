//! The tables of 2007 and 2008, cell by cell.
//!
//! The archived page has lost the columns: means run together as `3.2913.351`, and there are fewer
//! groups of figures than workloads. Three facts that agree show where a figure belongs. (1) In a
//! table's head the author marks with `*` the workloads that were too noisy to print; without
//! these there are exactly as many groups as workloads. (2) The printed speedup is the ratio of two
//! adjacent means. (3) The same workload has similar times on 8, 16 and 32 CPUs.

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

/// A workload: its name in the paper, our name if it is modelled, and what was printed if it was
/// not too noisy.
pub(super) type PrintedWorkload<T> = (&'static str, Option<&'static str>, Option<T>);

impl<const N: usize, const STEPS: usize> Columns<N, STEPS> {
    fn of(row: &[&'static str]) -> PrintedWorkload<Self> {
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

/// Returns the rows of the tables of two columns whose first cell is `cpus`.
fn pairs(cpus: &str) -> Vec<PrintedWorkload<Two>> {
    let rows = rows::<10>(include_str!("pairs.csv")).into_iter();
    let rows = rows.filter(|row| row[0] == cpus);
    rows.map(|row| Two::of(&row[1..])).collect()
}

/// Simulated, by number of CPUs.
pub(super) static SIMULATED: LazyLock<[(u32, Vec<PrintedWorkload<Two>>); 3]> =
    LazyLock::new(|| [8, 16, 32].map(|cpus| (cpus, pairs(&cpus.to_string()))));

/// The real machine, October 2007, 15 samples.
pub(super) static REAL: LazyLock<Vec<PrintedWorkload<Two>>> = LazyLock::new(|| pairs("real"));

/// Ticket spinlocks, January 2008: 15 samples, 5 of the compiles.
pub(super) static TICKET: LazyLock<Vec<PrintedWorkload<Four>>> = LazyLock::new(|| {
    let rows = rows::<17>(include_str!("ticket.csv")).into_iter();
    rows.map(|row| Four::of(&row)).collect()
});

/// The columns of the bulk table: the paper's name and ours.
pub(super) const BULK_WORKLOADS: [(&str, &str); 4] = [
    ("config", "config"),
    ("MAB", "mab"),
    ("dpunish", "dpunish"),
    ("pmake", "pmake"),
];

/// The lines of the bulk table: a head, our metrics of the mean and the deviation, and the mean and
/// deviation of each of [`BULK_WORKLOADS`].
pub(super) static BULKS: LazyLock<Vec<[&'static str; 11]>> =
    LazyLock::new(|| rows(include_str!("bulks.csv")));
