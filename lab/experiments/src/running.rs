//! Runs the cells of a plan: the timed ones one at a time with nothing else running, the others in
//! parallel. Those are timed in two sittings, before the others and after them, so that what the
//! host happens to be like for some minutes does not decide. What a cell has measured is kept as
//! soon as it is done.

use core::fmt;
use core::sync::atomic::{AtomicBool, Ordering};
use core::time::Duration;
use std::collections::BTreeSet;
use std::thread;

use anyhow::anyhow;
use brickyard_results::Host;

use crate::apart::Apart;
use crate::catalog::uses_traces;
use crate::raw::CellRows;
use crate::store::{Folder, WriteError, appear};

use super::cell::{Cell, Context};
use super::lock;
use super::traces::Traces;
use super::{pages, panics, program};
use brickyard_run::interrupt;
use brickyard_run::progress::Progress;
use brickyard_run::side_by_side::{self, Follow};

/// Pages, each with the name of its file.
pub type Pages = Vec<(String, Vec<u8>)>;

/// See [`Running::keep`]. An error that is not of the rows themselves ends the run.
pub type Keep<'a> = dyn Fn(CellRows, Pages) -> Result<(), WriteError> + Sync + 'a;

/// Keeps the results of cells in a folder, each in files of its own, as soon as it is done.
pub fn in_folder(folder: &Folder) -> impl Fn(CellRows, Pages) -> Result<(), WriteError> + Sync {
    move |rows, pages| {
        // Pages first: the cell counts as done when its rows exist.
        for (name, page) in &pages {
            let path = folder.file(pages::FOLDER).join(name);
            appear(&path, |out| out.write_all(page))?;
        }
        folder.write(&rows)
    }
}

/// The settings that all cells are run with.
pub struct Running<'a> {
    /// Keeps what a cell has measured: its rows, and its pages with the names of their files.
    pub keep: &'a Keep<'a>,
    /// The recorded traces.
    pub traces: &'a Traces,
    /// The seed of all random choices.
    pub seed: u64,
    /// Whether the longest cells that are not timed are run first, so that at the end no core waits
    /// long for one that started late; else all are run as given, so that what is interrupted has
    /// whole lines.
    pub longest_first: bool,
    /// How timed cells are run in processes of their own; none: in this one.
    pub apart: Option<&'a Apart<'a>>,
    /// How many cells that are not timed run at once.
    pub jobs: Option<usize>,
    /// Receives the progress: a unit is a thousandth of a second of work.
    pub progress: &'a dyn Progress,
}

/// The cells that were not completed.
#[derive(Debug)]
#[non_exhaustive]
pub struct Ended {
    /// Those that failed, with the error.
    pub failed: Vec<(String, anyhow::Error)>,
    /// Those that were not run, since the user interrupted the run.
    pub left: Vec<String>,
}

impl Ended {
    /// Returns true if this cell failed or was not run.
    pub fn has(&self, cell: &str) -> bool {
        let failed = self.failed.iter().map(|(name, _)| name);
        failed.chain(&self.left).any(|name| name == cell)
    }

    /// Collects the outcomes of those of `left` that were started.
    fn of(
        outcomes: impl Iterator<Item = (String, Outcome)>,
        mut left: BTreeSet<String>,
    ) -> anyhow::Result<Self> {
        let mut failed = Vec::new();
        for (name, outcome) in outcomes {
            match outcome {
                Outcome::Done => {
                    left.remove(&name);
                }
                Outcome::Ended => {}
                Outcome::Failed(error) => {
                    left.remove(&name);
                    failed.push((name, error));
                }
                Outcome::Unwritten(error) => return Err(error),
            }
        }
        Ok(Self {
            failed,
            left: left.into_iter().collect(),
        })
    }
}

impl fmt::Debug for Running<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Running")
            .field("seed", &self.seed)
            .field("jobs", &self.jobs)
            .finish_non_exhaustive()
    }
}

/// Units of progress in a second of work.
const UNITS: f64 = 1000.0;

impl Running<'_> {
    /// Runs the cells.
    ///
    /// # Errors
    /// If a result cannot be written: what is done is kept, and the run stops, since later results
    /// would be lost too.
    pub fn run(&self, cells: Vec<Cell>) -> anyhow::Result<Ended> {
        let left: BTreeSet<String> = cells.iter().map(|cell| cell.name.clone()).collect();
        let (mut exact, timed): (Vec<Cell>, Vec<Cell>) =
            cells.into_iter().partition(|cell| cell.kind.is_exact());
        let (late, timed): (Vec<Cell>, Vec<Cell>) = timed.into_iter().partition(Cell::is_late);
        if self.longest_first {
            exact.sort_by(|a, b| b.seconds.total_cmp(&a.seconds));
        }
        let threads = self
            .jobs
            .unwrap_or_else(side_by_side::cores)
            .min(exact.len())
            .max(1);
        let units =
            |cell: &Cell, at_once: usize| (cell.seconds * UNITS / at_once as f64).ceil() as u64;
        let all_timed = timed.iter().chain(&late);
        let total: u64 = all_timed.map(|cell| units(cell, 1)).sum::<u64>()
            + exact.iter().map(|cell| units(cell, threads)).sum::<u64>();
        let progress = self.progress;
        progress.begin(total);
        let full = AtomicBool::new(false);
        let host = lock::HostLock::new();
        let mut outcomes = Vec::new();
        for (cells, threads) in [(timed, 1), (exact, threads), (late, 1)] {
            outcomes.extend(side_by_side::run(
                progress,
                cells.len(),
                Some(threads),
                |place, mut follow| {
                    let cell = &cells[place];
                    // Relaxed: the flag guards no other data.
                    if full.load(Ordering::Relaxed) {
                        return None;
                    }
                    progress.at(&cell.name);
                    let outcome = self.one(cell, follow.quiet(), &host);
                    match &outcome {
                        // At once, so that the user of a long run sees it before the end.
                        Outcome::Failed(error) => {
                            progress.warn(&format!("{}: {error:#}", cell.name));
                        }
                        Outcome::Unwritten(_) => full.store(true, Ordering::Relaxed),
                        Outcome::Done | Outcome::Ended => {}
                    }
                    follow.goes_on(units(cell, threads));
                    progress.done();
                    Some((cell.name.clone(), outcome))
                },
            ));
        }
        progress.end();
        Ended::of(outcomes.into_iter().flatten(), left)
    }

    fn one(&self, cell: &Cell, follow: Follow<'_>, host: &lock::HostLock) -> Outcome {
        if let Some(apart) = self.apart.filter(|_| !cell.kind.is_exact()) {
            return match apart.time(&cell.name) {
                Ok(()) => Outcome::Done,
                Err(error) => Outcome::of(error),
            };
        }
        let program = match program::of(cell, self.traces) {
            Ok(program) => program,
            Err(error) => return Outcome::Failed(error),
        };
        // Dropped when the cell has been run.
        let timing = (!cell.kind.is_exact()).then(|| host.wait(|line| self.progress.say(line)));
        if matches!(timing, Some(None)) {
            return Outcome::Ended;
        }
        let none = Traces::none();
        let context = Context {
            seed: self.seed,
            traces: if uses_traces(cell) {
                self.traces
            } else {
                &none
            },
            follow,
        };
        let done = panics::caught(|| (cell.work)(context));
        drop(timing);
        let done = match done.unwrap_or_else(|words| Err(anyhow!("it panicked: {words}"))) {
            Ok(done) => done,
            Err(error) => return Outcome::of(error),
        };
        if done.rows.is_empty() {
            return Outcome::of(anyhow!("it measured nothing"));
        }
        let rows = CellRows {
            cell: cell.name.clone(),
            kind: cell.kind,
            seed: self.seed,
            host: Host::read(),
            program,
            rows: done.rows,
        };
        match (self.keep)(rows, done.pages) {
            Ok(()) => Outcome::Done,
            // The fault is in its rows, not in the disk.
            Err(error @ WriteError::NoResult { .. }) => Outcome::Failed(error.into()),
            Err(error) => Outcome::Unwritten(error.into()),
        }
    }
}

/// The outcome of one cell.
#[derive(Debug)]
enum Outcome {
    Done,
    /// The user interrupted it.
    Ended,
    Failed(anyhow::Error),
    Unwritten(anyhow::Error),
}

/// Ctrl-C ends the processes that a cell started at once; this process may see it a moment later.
const GRACE: Duration = Duration::from_millis(50);

impl Outcome {
    /// Returns the outcome of a cell that has just ended with this error.
    fn of(error: anyhow::Error) -> Self {
        if !interrupt::asked() {
            thread::sleep(GRACE);
        }
        // A cell that the user interrupted has not failed.
        if interrupt::asked() {
            Self::Ended
        } else {
            Self::Failed(error)
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by it")]
mod tests {
    use std::path::Path;

    use crate::raw::{Method, testing};
    use brickyard_run::progress::Silent;

    use super::super::cell::{Done, Scale};
    use super::*;

    fn cell(name: &str, work: fn(Context<'_>) -> anyhow::Result<Done>) -> Cell {
        Cell {
            name: name.to_owned(),
            kind: Method::Simulated,
            scale: Scale::Quick,
            seconds: 1.0,
            work: Box::new(work),
        }
    }

    fn measured(_: Context<'_>) -> anyhow::Result<Done> {
        Ok(vec![testing::row()].into())
    }

    fn ended(cells: Vec<Cell>) -> (tempfile::TempDir, Ended) {
        let place = tempfile::tempdir().unwrap();
        let folder = Folder::new(place.path());
        let running = Running {
            keep: &in_folder(&folder),
            traces: &Traces::new(Path::new("/nowhere")),
            seed: 1,
            longest_first: true,
            apart: None,
            jobs: Some(1),
            progress: &Silent,
        };
        let ended = running.run(cells).unwrap();
        (place, ended)
    }

    #[test]
    fn a_cell_that_fails_or_panics_does_not_stop_the_others() {
        let (place, ended) = ended(vec![
            cell("pft.a", |_| panic!("out of order")),
            cell("pft.b", |_| Err(anyhow!("no luck"))),
            cell("pft.c", |_| Ok(Done::default())),
            cell("pft.d", measured),
        ]);
        assert_eq!(ended.left, [""; 0]);
        let why: Vec<String> = ended
            .failed
            .iter()
            .map(|(name, error)| format!("{name}: {error:#}"))
            .collect();
        assert_eq!(why.len(), 3, "{why:?}");
        assert!(why[0].starts_with("pft.a: it panicked: out of order ("));
        assert_eq!(why[1..], ["pft.b: no luck", "pft.c: it measured nothing"]);
        assert_eq!(Folder::new(place.path()).cells().unwrap(), ["pft.d"]);
    }

    #[test]
    fn only_a_cell_that_declares_them_is_given_traces() {
        let uses_traces = |context: Context<'_>| {
            context.traces.jobs("kernel")?;
            measured(context)
        };
        let (_place, ended) = ended(vec![
            cell("pft.a", uses_traces),
            cell("locks.a", uses_traces),
        ]);
        let why: Vec<String> = ended
            .failed
            .iter()
            .map(|(_, error)| format!("{error:#}"))
            .collect();
        assert!(why[0].contains("not one of those that use traces"));
        assert!(why[1].contains("give the folder of the traces with --traces DIR"));
    }
}
