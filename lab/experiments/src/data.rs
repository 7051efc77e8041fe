//! All rows of a run of the experiments, indexed by key.

mod contradiction;

use core::fmt;
use std::collections::BTreeMap;

use brickyard_results::Better;
use serde::Serialize;

pub use contradiction::Contradiction;

use crate::raw::{CellRows, Method, Raw};

/// What a row measures: all rows with the same key are samples of one quantity, or points of its
/// series.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
pub struct Key {
    /// The experiment, such as `locks`.
    pub experiment: String,
    /// The machine.
    pub machine: String,
    /// What was done there.
    pub workload: String,
    /// The allocator, lock policy, or heap.
    pub config: String,
    /// What was counted.
    pub metric: String,
}

impl Key {
    /// Returns the key made of these five names.
    #[must_use]
    pub fn new(
        experiment: &str,
        machine: &str,
        workload: &str,
        config: &str,
        metric: &str,
    ) -> Self {
        Self {
            experiment: experiment.to_owned(),
            machine: machine.to_owned(),
            workload: workload.to_owned(),
            config: config.to_owned(),
            metric: metric.to_owned(),
        }
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            experiment,
            machine,
            workload,
            config,
            metric,
        } = self;
        write!(f, "{experiment}, {machine}, {workload}, {config}, {metric}")
    }
}

/// Samples whose span is not more than this part of the largest do not vary.
pub const CONSTANT: f64 = 1e-6;

/// The samples of one key: its rows that are not points of a series, by run.
#[derive(Debug, Clone, PartialEq)]
pub struct Samples<'d> {
    /// The unit.
    pub unit: &'d str,
    /// Which way is better.
    pub better: Better,
    /// How they were obtained.
    pub kind: Method,
    /// The runs, ascending.
    pub runs: Vec<u32>,
    /// The values, in the order of the runs.
    pub values: Vec<f64>,
    /// The indices of the rows for [`Data::row`], in the same order.
    pub rows: Vec<usize>,
}

impl Samples<'_> {
    /// Returns true if they do not vary, and no other run would differ: replayed ones, and several
    /// simulated ones, whose span is at most [`CONSTANT`] of the largest.
    #[must_use]
    pub fn is_constant(&self) -> bool {
        let ends = (f64::INFINITY, f64::NEG_INFINITY);
        let values = self.values.iter();
        let (low, high) = values.fold(ends, |(low, high), &it| (low.min(it), high.max(it)));
        let enough = match self.kind {
            Method::Replayed => true,
            Method::Simulated => self.values.len() > 1,
            Method::Timed => false,
        };
        enough && high - low <= CONSTANT * low.abs().max(high.abs())
    }
}

/// The series of one key: its rows that have a time, of its first run.
#[derive(Debug, Clone, PartialEq)]
pub struct Series<'d> {
    /// The unit of the values.
    pub unit: &'d str,
    /// Time in seconds, and value; the times ascend. Points at one time are a step, in the order
    /// that their cell has them in.
    pub points: Vec<(f64, f64)>,
    /// The indices of the rows for [`Data::row`], in the same order.
    pub rows: Vec<usize>,
}

/// All rows. Those of one key have one method, one unit, and agree on which way is better; a run
/// has one sample, and the points of a run at one time are all of one cell.
#[derive(Debug, Clone, Default)]
pub struct Data {
    cells: Vec<CellRows>,
    // Of each row the index of its cell and its index in that cell.
    places: Vec<(usize, usize)>,
    index: BTreeMap<Key, Vec<usize>>,
}

impl Data {
    /// Collects the rows of `cells`, which are sorted by name first, so that a row has the same
    /// index whatever the order in which cells were run.
    ///
    /// # Errors
    /// [`Contradiction`] if these are not the cells of one run.
    pub fn new(cells: Vec<CellRows>) -> Result<Self, Contradiction> {
        let data = Self::unchecked(cells);
        contradiction::check(&data)?;
        Ok(data)
    }

    /// Returns the data of only those cells for which `wanted` is true.
    #[must_use]
    pub fn part(&self, wanted: impl Fn(&CellRows) -> bool) -> Self {
        let cells = self.cells.iter().filter(|&cell| wanted(cell));
        // Rows that do not contradict each other still do not when others are left out.
        Self::unchecked(cells.cloned().collect())
    }

    fn unchecked(mut cells: Vec<CellRows>) -> Self {
        cells.sort_by(|a, b| a.cell.cmp(&b.cell));
        let mut data = Self::default();
        for (place, cell) in cells.iter().enumerate() {
            for (row, raw) in cell.rows.iter().enumerate() {
                let key = Key::new(
                    cell.experiment(),
                    &raw.machine,
                    &raw.workload,
                    &raw.config,
                    &raw.metric,
                );
                data.index.entry(key).or_default().push(data.places.len());
                data.places.push((place, row));
            }
        }
        data.cells = cells;
        data
    }

    /// Returns all cells, sorted by name.
    #[must_use]
    pub fn cells(&self) -> &[CellRows] {
        &self.cells
    }

    /// Returns the number of rows.
    #[must_use]
    pub fn len(&self) -> usize {
        self.places.len()
    }

    /// Returns true if there are no rows.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    /// Returns the row at an index below [`len`](Self::len), and its cell.
    #[must_use]
    pub fn row(&self, place: usize) -> Option<(&CellRows, &Raw)> {
        let &(cell, row) = self.places.get(place)?;
        let cell = &self.cells[cell];
        Some((cell, &cell.rows[row]))
    }

    /// Returns all keys, sorted.
    pub fn keys(&self) -> impl Iterator<Item = &Key> {
        self.index.keys()
    }

    /// Returns the samples of a key, one for each run; none if nothing was measured. Sorts them.
    #[must_use]
    pub fn samples(&self, key: &Key) -> Option<Samples<'_>> {
        let of_key = self.index.get(key)?;
        let mut by_run: BTreeMap<u32, (usize, f64)> = BTreeMap::new();
        for &place in of_key {
            let (_, raw) = self.row(place)?;
            if raw.at.is_none() {
                by_run.insert(raw.run, (place, raw.value));
            }
        }
        let &(first, _) = by_run.values().next()?;
        let (cell, raw) = self.row(first)?;
        Some(Samples {
            unit: &raw.unit,
            better: raw.better,
            kind: cell.kind,
            runs: by_run.keys().copied().collect(),
            values: by_run.values().map(|&(_, value)| value).collect(),
            rows: by_run.values().map(|&(place, _)| place).collect(),
        })
    }

    /// Returns the series of a key, of the first run that has one.
    #[must_use]
    pub fn series(&self, key: &Key) -> Option<Series<'_>> {
        let of_key = self.index.get(key)?;
        let mut points: Vec<(u32, f64, f64, usize)> = Vec::new();
        for &place in of_key {
            let (_, raw) = self.row(place)?;
            if let Some(at) = raw.at {
                points.push((raw.run, at, raw.value, place));
            }
        }
        let first = points.iter().map(|&(run, ..)| run).min()?;
        points.retain(|&(run, ..)| run == first);
        points.sort_by(|a, b| a.1.total_cmp(&b.1));
        let (_, raw) = self.row(points.first()?.3)?;
        Some(Series {
            unit: &raw.unit,
            points: points
                .iter()
                .map(|&(_, at, value, _)| (at, value))
                .collect(),
            rows: points.iter().map(|&(.., place)| place).collect(),
        })
    }
}
