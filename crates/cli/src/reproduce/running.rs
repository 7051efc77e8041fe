//! The cells of a plan, run: those that are timed one by one with the host for themselves, then all others side by side. Each one's file is written as soon as it is done.

use core::sync::atomic::{AtomicBool, Ordering};
use std::collections::BTreeSet;
use std::fs;
use std::io::IsTerminal;
use std::sync::Mutex;
use std::time::Instant;

use anyhow::{Context as _, anyhow};
use brickyard_report::Host;
use brickyard_reproduce::raw::CellRows;
use brickyard_reproduce::store::Folder;
use indicatif::ProgressBar;

use super::cell::{Cell, Context};
use super::traces::Traces;
use crate::side_by_side::{self, Follow};
use crate::{interrupt, progress};

/// What all cells are run with.
pub(super) struct Running<'a> {
    pub(super) folder: &'a Folder,
    pub(super) traces: &'a Traces,
    pub(super) seed: u64,
    /// How many at once, of those that are not timed.
    pub(super) jobs: Option<usize>,
}

/// What became of the cells.
#[derive(Debug, Default)]
pub(super) struct Ended {
    /// Those that failed, with why.
    pub(super) failed: Vec<(String, anyhow::Error)>,
    /// Those that were not run, since the user ended it.
    pub(super) left: Vec<String>,
}

/// Units of progress in a second of work.
const UNITS: f64 = 1000.0;

/// Seconds between two lines of progress where standard error is no terminal.
const LINE_EVERY: u64 = 15;

impl Running<'_> {
    /// Runs them.
    ///
    /// # Errors
    /// Where a result cannot be written: what is done is kept, and all else would be lost too.
    pub(super) fn run(&self, cells: Vec<Cell>) -> anyhow::Result<Ended> {
        let all = cells.len();
        let mut left: BTreeSet<String> = cells.iter().map(|cell| cell.name.clone()).collect();
        let (exact, timed): (Vec<Cell>, Vec<Cell>) =
            cells.into_iter().partition(|cell| cell.kind.is_exact());
        let threads = self
            .jobs
            .unwrap_or_else(side_by_side::cores)
            .min(exact.len())
            .max(1);
        let units =
            |cell: &Cell, at_once: usize| (cell.seconds * UNITS / at_once as f64).ceil() as u64;
        let total: u64 = timed.iter().map(|cell| units(cell, 1)).sum::<u64>()
            + exact.iter().map(|cell| units(cell, threads)).sum::<u64>();
        let bar = progress::bar(total, "{wide_bar} {percent} % {msg}, {eta} left");
        let teller = Teller::new(all);
        let full = AtomicBool::new(false);
        let mut outcomes = Vec::new();
        for (cells, threads) in [(timed, 1), (exact, threads)] {
            outcomes.extend(side_by_side::run_with(
                &bar,
                cells.len(),
                Some(threads),
                |place, mut follow| {
                    let cell = &cells[place];
                    // Relaxed: a flag alone.
                    if full.load(Ordering::Relaxed) {
                        return None;
                    }
                    bar.set_message(cell.name.clone());
                    let outcome = self.one(cell, follow.quiet());
                    if matches!(outcome, Outcome::Unwritten(_)) {
                        full.store(true, Ordering::Relaxed);
                    }
                    follow.goes_on(units(cell, threads));
                    teller.tell(&bar);
                    Some((cell.name.clone(), outcome))
                },
            ));
        }
        bar.finish_and_clear();
        let mut ended = Ended::default();
        for (name, outcome) in outcomes.into_iter().flatten() {
            match outcome {
                Outcome::Done => {
                    left.remove(&name);
                }
                Outcome::Unwritten(error) => return Err(error),
                // What ended because the user asked for it has not failed.
                Outcome::Failed(_) if interrupt::asked() => {}
                Outcome::Failed(error) => {
                    left.remove(&name);
                    ended.failed.push((name, error));
                }
            }
        }
        ended.left = left.into_iter().collect();
        Ok(ended)
    }

    fn one(&self, cell: &Cell, follow: Follow<'_>) -> Outcome {
        let context = Context {
            seed: self.seed,
            traces: self.traces,
            follow,
        };
        let done = match (cell.work)(context) {
            Ok(done) => done,
            Err(error) => return Outcome::Failed(error),
        };
        if done.rows.is_empty() {
            return Outcome::Failed(anyhow!("it measured nothing"));
        }
        // Pages first: the cell is done when its rows are there.
        for (name, page) in &done.pages {
            let path = self.folder.file("pages").join(name);
            let written =
                fs::create_dir_all(self.folder.file("pages")).and_then(|()| fs::write(&path, page));
            if let Err(error) = written.with_context(|| format!("cannot write {}", path.display()))
            {
                return Outcome::Unwritten(error);
            }
        }
        let rows = CellRows {
            cell: cell.name.clone(),
            kind: cell.kind,
            seed: self.seed,
            host: Host::read(),
            rows: done.rows,
        };
        match self.folder.write(&rows) {
            Ok(()) => Outcome::Done,
            Err(error) => Outcome::Unwritten(error.into()),
        }
    }
}

/// What became of one cell.
#[derive(Debug)]
enum Outcome {
    Done,
    Failed(anyhow::Error),
    Unwritten(anyhow::Error),
}

/// Lines of progress, where there is no terminal to draw a bar on.
struct Teller {
    all: usize,
    begun: Instant,
    state: Mutex<(usize, u64)>,
}

impl Teller {
    fn new(all: usize) -> Self {
        Self {
            all,
            begun: Instant::now(),
            state: Mutex::new((0, 0)),
        }
    }

    /// A cell is done.
    fn tell(&self, bar: &ProgressBar) {
        let Ok(mut state) = self.state.lock() else {
            return;
        };
        state.0 += 1;
        let seconds = self.begun.elapsed().as_secs();
        if !std::io::stderr().is_terminal() && seconds >= state.1 + LINE_EVERY {
            state.1 = seconds;
            let left = bar.eta().as_secs();
            eprintln!(
                "{} of {} cells, {seconds} s, about {left} s left",
                state.0, self.all
            );
        }
    }
}
