//! Page faults on the simulated machine of 2013 under other assumptions about the machine; each run
//! a cell. What is assumed decides how soon the zone's lock is busy all the time: from then on
//! lists gain nothing from more CPUs, and magazines, which take that lock less often, overtake
//! them.
//!
//! | workload | what is assumed |
//! |---|---|
//! | `cores` | each CPU is a core of its own |
//! | `threads-140`, `threads-180` | instructions of two threads of a core take 1.4 and 1.8 times as long, not 1.6 |
//! | `ahead` | half of a fetch from memory is hidden, as where the processor fetches the next records of frames ahead |
//!
//! | `instructions-fewer`, `instructions-more` | an instruction of each access fewer or more than counted, with magazines alone; on 32 CPUs of the machine of 2007 with the default |
//!
//! In `ahead` half as many fill buffers overlap, so that the clearing of a page takes as long as
//! before. Only two threads of a core make the first two differ from the machine itself.

use brickyard_machine::Profile;
use brickyard_simulate::Configuration;

use super::simulated::{FaultRun, PAGES, RUNS, RUNS_2013, pages};
use crate::cell::{Cell, Scale};
use crate::cells::simulated::INSTRUCTIONS;

const I7: &Profile = Profile::I7_2013;

/// The machine on which the default is compared with lists on this many CPUs.
const METATM: &Profile = Profile::METATM_2007;
const MOST_CPUS: usize = 32;

/// An assumption.
#[derive(Debug, Clone, Copy)]
struct Assumed {
    /// Its name in workloads.
    name: &'static str,
    /// The machine.
    profile: &'static Profile,
    cpus: &'static [usize],
}

const SHARED: [usize; 4] = [5, 6, 7, 8];

const ASSUMED: [Assumed; 4] = [
    Assumed {
        name: "cores",
        profile: &CORES,
        cpus: &SHARED,
    },
    Assumed {
        name: "threads-140",
        profile: &FAST_THREADS,
        cpus: &SHARED,
    },
    Assumed {
        name: "threads-180",
        profile: &SLOW_THREADS,
        cpus: &SHARED,
    },
    Assumed {
        name: "ahead",
        profile: &AHEAD,
        cpus: &[2, 3, 4, 5, 6, 7, 8],
    },
];

static CORES: Profile = Profile {
    threads_per_core: 1,
    ..*I7
};
static FAST_THREADS: Profile = Profile {
    shared_core_percent: 140,
    ..*I7
};
static SLOW_THREADS: Profile = Profile {
    shared_core_percent: 180,
    ..*I7
};
static AHEAD: Profile = Profile {
    memory_cycles: I7.memory_cycles / 2,
    fill_buffers: I7.fill_buffers / 2,
    ..*I7
};

/// Lists, and the magazines that are to replace them.
const CONFIGURATIONS: [Configuration; 2] = [Configuration::List2007, Configuration::Magazine2013];

pub(super) fn cells() -> Vec<Cell> {
    let mut cells = Vec::new();
    for assumed in ASSUMED {
        for &cpus in assumed.cpus {
            for run in 1..=RUNS_2013 {
                let of = |configuration| cell(assumed, cpus, configuration, run);
                cells.extend(CONFIGURATIONS.map(of));
            }
        }
    }
    for (name, more_instructions) in INSTRUCTIONS {
        for cpus in 2..=8 {
            let of_run = |run| FaultRun {
                assumption: Some(name.to_owned()),
                more_instructions,
                ..usual(cpus, Configuration::Magazine2013, run)
            };
            cells.extend((1..=RUNS_2013).map(|run| of_run(run).cell(Scale::Full)));
        }
        let of_today = |run| FaultRun {
            profile: METATM,
            assumption: Some(name.to_owned()),
            pages: pages(METATM, MOST_CPUS),
            more_instructions,
            ..usual(MOST_CPUS, Configuration::Brickyard, run)
        };
        cells.extend((1..=RUNS).map(|run| of_today(run).cell(Scale::Full)));
    }
    cells
}

fn cell(assumed: Assumed, cpus: usize, configuration: Configuration, run: u32) -> Cell {
    FaultRun {
        profile: assumed.profile,
        assumption: Some(assumed.name.to_owned()),
        ..usual(cpus, configuration, run)
    }
    .cell(Scale::Full)
}

fn usual(cpus: usize, configuration: Configuration, run: u32) -> FaultRun {
    FaultRun {
        profile: Profile::I7_2013,
        cpus,
        assumption: None,
        pages: PAGES,
        frames: None,
        configuration,
        run,
        more_instructions: 0,
    }
}
