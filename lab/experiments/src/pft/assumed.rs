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
//! In `ahead` half as many fill buffers overlap, so that the clearing of a page takes as long as
//! before. Only two threads of a core make the first two differ from the machine itself.

use std::sync::LazyLock;

use brickyard_machine::Profile;
use brickyard_simulate::Configuration;

use super::simulated::{FaultRun, PAGES, profile_of};
use crate::cell::{Cell, Scale};

const MACHINE: &str = "i7-2013";

const RUNS: u32 = 5;

/// An assumption.
#[derive(Debug, Clone, Copy)]
struct Assumed {
    /// Its name in workloads.
    name: &'static str,
    /// The machine.
    profile: &'static LazyLock<Profile>,
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

static CORES: LazyLock<Profile> = LazyLock::new(|| Profile {
    threads_per_core: 1,
    ..i7()
});
static FAST_THREADS: LazyLock<Profile> = LazyLock::new(|| Profile {
    shared_core_percent: 140,
    ..i7()
});
static SLOW_THREADS: LazyLock<Profile> = LazyLock::new(|| Profile {
    shared_core_percent: 180,
    ..i7()
});
static AHEAD: LazyLock<Profile> = LazyLock::new(|| {
    let i7 = i7();
    Profile {
        memory_cycles: i7.memory_cycles / 2,
        fill_buffers: i7.fill_buffers / 2,
        ..i7
    }
});

fn i7() -> Profile {
    profile_of(MACHINE).clone()
}

/// Lists, and the magazines that are to replace them.
const CONFIGURATIONS: [Configuration; 2] = [Configuration::List2007, Configuration::Magazine2013];

pub(super) fn cells() -> Vec<Cell> {
    let mut cells = Vec::new();
    for assumed in ASSUMED {
        for &cpus in assumed.cpus {
            for run in 1..=RUNS {
                let of = |configuration| cell(assumed, cpus, configuration, run);
                cells.extend(CONFIGURATIONS.map(of));
            }
        }
    }
    cells
}

fn cell(assumed: Assumed, cpus: usize, configuration: Configuration, run: u32) -> Cell {
    FaultRun {
        machine: MACHINE,
        profile: assumed.profile,
        cpus,
        assumption: Some(assumed.name.to_owned()),
        pages: PAGES,
        frames: None,
        configuration,
        run,
    }
    .cell(Scale::Full)
}
