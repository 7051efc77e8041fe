//! Page faults on the simulated machine of 2013 by the pages that each process touches; each run a
//! cell. The document gives neither the size nor a sweep: its benchmark touches a fifth of the
//! memory, 3.2 GiB in all.
//!
//! Small processes find their pages in caches again, large ones do not, and that decides which
//! design wins. Two sizes have several runs on every number of CPUs: the published directions are
//! judged over them. The smallest, which caches hold, and the largest are shown beside them.

use brickyard_machine::Profile;
use brickyard_simulate::Configuration;

use super::simulated::{FaultRun, RUNS_2013};
use crate::cell::{Cell, Scale};

/// What is run of a size.
#[derive(Debug, Clone, Copy)]
struct Size {
    /// Pages of a process.
    pages: usize,
    cpus: &'static [usize],
    runs: u32,
}

/// 2, 8, 32 and 128 MiB.
const SIZES: [Size; 4] = [
    Size {
        pages: 512,
        cpus: &SHOWN,
        runs: 1,
    },
    Size {
        pages: 2048,
        cpus: &ALL,
        runs: RUNS_2013,
    },
    Size {
        pages: 8192,
        cpus: &ALL,
        runs: RUNS_2013,
    },
    Size {
        pages: 32768,
        cpus: &SHOWN,
        runs: 1,
    },
];

const SHOWN: [usize; 3] = [2, 4, 8];
const ALL: [usize; 7] = [2, 3, 4, 5, 6, 7, 8];

/// The most pages of all processes together that a quick run has.
const QUICK_PAGES: usize = 16384;

/// Lists, and the magazines that are to replace them.
const CONFIGURATIONS: [Configuration; 2] = [Configuration::List2007, Configuration::Magazine2013];

pub(super) fn cells() -> Vec<Cell> {
    let mut cells = Vec::new();
    for size in SIZES {
        for &cpus in size.cpus {
            for run in 1..=size.runs {
                let of = |configuration| cell(cpus, size.pages, configuration, run);
                cells.extend(CONFIGURATIONS.map(of));
            }
        }
    }
    cells
}

fn cell(cpus: usize, pages: usize, configuration: Configuration, run: u32) -> Cell {
    let all = cpus * pages;
    let is_quick = run == 1 && all <= QUICK_PAGES && SHOWN.contains(&cpus);
    FaultRun {
        profile: Profile::I7_2013,
        cpus,
        assumption: Some(format!("pages-{pages}")),
        pages: all,
        frames: None,
        configuration,
        run,
        more_instructions: 0,
    }
    .cell(Scale::quick_if(is_quick))
}
