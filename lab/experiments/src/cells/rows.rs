//! Making the rows of a cell: what several of them have in common is given once.

use brickyard_results::Metric;

use crate::raw::Raw;

/// The name of the machine in rows that are timed.
pub(crate) const HOST: &str = "host";

/// What the rows to be made have in common: a workload under a configuration, in one run.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RowTemplate<'w> {
    /// A simulated profile, a machine that was replayed, or [`HOST`].
    pub(crate) machine: &'w str,
    /// What was done there.
    pub(crate) workload: &'w str,
    /// The allocator, lock policy, or heap.
    pub(crate) config: &'w str,
    /// Which run or round, from 1.
    pub(crate) run: u32,
}

impl RowTemplate<'_> {
    /// Returns the row of a value that is not a point of a series.
    pub(crate) fn row(&self, metric: &Metric<'_>, value: f64) -> Raw {
        Raw {
            machine: self.machine.to_owned(),
            workload: self.workload.to_owned(),
            config: self.config.to_owned(),
            metric: metric.name.to_owned(),
            unit: metric.unit.to_owned(),
            better: metric.better,
            run: self.run,
            at: None,
            value,
        }
    }
}
