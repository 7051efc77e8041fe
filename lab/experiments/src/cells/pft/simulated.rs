//! Page faults on simulated machines, each run a cell: the machine of 2013 with 1 to 8 CPUs, as in
//! its tables, and the simulator of 2007 with up to 32, for the curve over CPUs.
//!
//! The document's processes touched a fifth of the memory, 3.2 GiB, 20 times. Here they touch
//! 64 MiB, which is eight times what the last level of the first machine holds: the pages of a
//! fault come from memory, as in the document. On the second machine that is so on few CPUs only:
//! each has a cache of 4 MiB, so from eight CPUs on (8 MiB each) pages are found in it, and on 32
//! CPUs (2 MiB each) all that a CPU keeps for itself. How the size changes the result on the first
//! machine is measured in `sizes.rs`. There are five runs: they differ only by the
//! refresh of the memory, which makes a thousandth with lists, and up to three hundredths where CPUs
//! wait for magazines.

use brickyard_machine::Profile;
use brickyard_simulate::pft::{Measured, Pft};
use brickyard_simulate::setting::FRAME_BYTES;
use brickyard_simulate::{Configuration, Setting};

use crate::raw::{Method, Raw};

use super::{FAULTS_CPU, FAULTS_SEC, LINES_FAULT};
use crate::cell::{Cell, Scale};
use crate::cells::configs::SIMULATED_OF_2013;
use crate::cells::rows::RowTemplate;
use brickyard_simulate::setting::usual_frames;

/// A machine, and what is run on it.
#[derive(Debug, Clone, Copy)]
struct Machine {
    name: &'static str,
    cpus: &'static [usize],
    /// How many of the runs belong to the quick scale.
    quick_runs: u32,
}

const MACHINES: [Machine; 2] = [
    Machine {
        name: "i7-2013",
        cpus: &[1, 2, 3, 4, 5, 6, 7, 8],
        quick_runs: 2,
    },
    Machine {
        name: "metatm-2007",
        cpus: &[1, 2, 4, 8, 16, 32],
        quick_runs: 1,
    },
];

/// The configurations of a quick run: the document's, and the default.
const IN_QUICK: [Configuration; 3] = [
    Configuration::List2007,
    Configuration::Magazine2013,
    Configuration::Brickyard,
];

/// Pages that all processes touch together.
const PAGES: usize = (64 << 20) / FRAME_BYTES;

const RUNS: u32 = 5;

pub(super) fn cells() -> Vec<Cell> {
    let mut cells = Vec::new();
    for machine in MACHINES {
        for &cpus in machine.cpus {
            for run in 1..=RUNS {
                let of = |configuration| cell(machine, cpus, configuration, run);
                cells.extend(SIMULATED_OF_2013.map(of));
            }
        }
    }
    cells
}

fn cell(machine: Machine, cpus: usize, configuration: Configuration, run: u32) -> Cell {
    Cell {
        name: format!("pft.{}.cpus-{cpus}.{configuration}.{run}", machine.name),
        kind: Method::Simulated,
        scale: Scale::quick_if(run <= machine.quick_runs && IN_QUICK.contains(&configuration)),
        seconds: seconds(PAGES),
        work: Box::new(move |context| {
            let pft = Pft { pages: PAGES };
            let measured = pft.run(&Setting {
                profile: Profile::by_name(machine.name)?,
                cpus,
                configuration,
                frames: usual_frames(pft.frames_needed(cpus)),
                seed: context.seed_of(run),
            })?;
            let template = RowTemplate {
                machine: machine.name,
                workload: &format!("cpus-{cpus}"),
                config: configuration.name(),
                run,
            };
            Ok(rows(&template, &measured).into())
        }),
    }
}

/// Returns the rows of a run.
pub(super) fn rows(template: &RowTemplate<'_>, measured: &Measured) -> Vec<Raw> {
    vec![
        template.row(&FAULTS_CPU, measured.faults_per_cpu_second()),
        template.row(&FAULTS_SEC, measured.faults_per_second()),
        template.row(&LINES_FAULT, measured.lines_per_fault()),
    ]
}

/// Estimates how many seconds a core of today takes for so many pages.
pub(super) const fn seconds(pages: usize) -> f64 {
    18e-6 * pages as f64
}
