//! Page faults on simulated machines, each run a cell: the machine of 2013 with 1 to 8 CPUs, as in
//! its tables, and the simulator of 2007 with up to 32, for the curve over CPUs.
//!
//! The document's processes touched a fifth of the memory, 20 times. Here they touch less, but
//! enough for the start-up to be a small part (64 MiB instead of 400 change the figures of the
//! first machine by less than a hundredth; the second has more CPUs and 128 MiB). There are five
//! runs: they differ only by the refresh of the memory, a few parts in ten thousand.

use brickyard_machine::Profile;
use brickyard_simulate::pft::Pft;
use brickyard_simulate::setting::FRAME_BYTES;
use brickyard_simulate::{Configuration, Setting};

use crate::raw::Method;

use super::{FAULTS_CPU, FAULTS_SEC};
use crate::cell::{Cell, Scale};
use crate::cells::configs::SIMULATED_OF_2013;
use crate::cells::rows::RowTemplate;
use brickyard_simulate::setting::usual_frames;

/// A machine, and what is run on it.
#[derive(Debug, Clone, Copy)]
struct Machine {
    name: &'static str,
    cpus: &'static [usize],
    /// The MiB that all processes touch together.
    touched_mib: usize,
    /// How many of the runs belong to the quick scale.
    quick_runs: u32,
}

const MACHINES: [Machine; 2] = [
    Machine {
        name: "i7-2013",
        cpus: &[1, 2, 3, 4, 5, 6, 7, 8],
        touched_mib: 64,
        quick_runs: 2,
    },
    Machine {
        name: "metatm-2007",
        cpus: &[1, 2, 4, 8, 16, 32],
        touched_mib: 128,
        quick_runs: 1,
    },
];

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
        scale: Scale::quick_if(run <= machine.quick_runs),
        seconds: 0.0012 * machine.touched_mib as f64,
        work: Box::new(move |context| {
            let pft = Pft {
                pages: (machine.touched_mib << 20) / FRAME_BYTES,
            };
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
            let rows = vec![
                template.row(&FAULTS_CPU, measured.faults_per_cpu_second()),
                template.row(&FAULTS_SEC, measured.faults_per_second()),
            ];
            Ok(rows.into())
        }),
    }
}
