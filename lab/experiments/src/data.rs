//! All rows of a run of the experiments, found by what they are.

mod contradiction;

use core::fmt;
use std::collections::BTreeMap;

use brickyard_report::Better;
use serde::Serialize;

pub use contradiction::Contradiction;

use crate::raw::{CellRows, Method, Raw};

/// What a row is of: all rows with the same key are samples of one thing, or points of its series.
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
    /// From its five words.
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

/// The samples of one key: rows without a place along a series, by run.
#[derive(Debug, Clone, PartialEq)]
pub struct Samples<'d> {
    /// The unit.
    pub unit: &'d str,
    /// Which way is better.
    pub better: Better,
    /// How they came about.
    pub kind: Method,
    /// The runs, rising.
    pub runs: Vec<u32>,
    /// The values, in the order of the runs.
    pub values: Vec<f64>,
    /// The places of the rows in [`Data::row`], in the same order.
    pub rows: Vec<usize>,
}

/// The points of one key: rows with a place along a series, of its first run.
#[derive(Debug, Clone, PartialEq)]
pub struct Series<'d> {
    /// The unit of the values.
    pub unit: &'d str,
    /// Place in seconds, and value; the places rise. Points of one place are a step, in the order
    /// of their cell.
    pub points: Vec<(f64, f64)>,
    /// The places of the rows in [`Data::row`], in the same order.
    pub rows: Vec<usize>,
}

/// All rows. Those of one key are of one kind, in one unit, and agree on which way is better; of
/// one run there is one sample, and of one run and place the points of one cell.
#[derive(Debug, Clone, Default)]
pub struct Data {
    cells: Vec<CellRows>,
    // Of each row its cell and its place there.
    places: Vec<(usize, usize)>,
    index: BTreeMap<Key, Vec<usize>>,
}

impl Data {
    /// The rows of `cells`, which are sorted by name first, so that a row has the same place
    /// whatever the order in which cells were run.
    ///
    /// # Errors
    /// [`Contradiction`]: these are not the cells of one run.
    pub fn new(cells: Vec<CellRows>) -> Result<Self, Contradiction> {
        let data = Self::unchecked(cells);
        contradiction::check(&data)?;
        Ok(data)
    }

    /// Those cells alone of which `wanted` is true.
    #[must_use]
    pub fn part(&self, wanted: impl Fn(&CellRows) -> bool) -> Self {
        let cells = self.cells.iter().filter(|&cell| wanted(cell));
        // A part of rows that agree agrees.
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

    /// All cells, by name.
    #[must_use]
    pub fn cells(&self) -> &[CellRows] {
        &self.cells
    }

    /// How many rows there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.places.len()
    }

    /// Is there none?
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    /// The row at a place below [`len`](Self::len), and its cell.
    #[must_use]
    pub fn row(&self, place: usize) -> Option<(&CellRows, &Raw)> {
        let &(cell, row) = self.places.get(place)?;
        let cell = &self.cells[cell];
        Some((cell, &cell.rows[row]))
    }

    /// All keys, sorted.
    pub fn keys(&self) -> impl Iterator<Item = &Key> {
        self.index.keys()
    }

    /// The samples of a key, one a run; none where nothing was measured. Costs a sort of them.
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

    /// The series of a key, of the first run that has one.
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
