//! The workloads of 2007 under the later allocators, on both machines of the paper; the zone lock
//! is a ticket lock held for a whole bulk.

use brickyard_simulate::Configuration;
use brickyard_simulate::locks::Column;

use crate::raw::Method;

use super::simulated::{LockRun, RUNS, SIMULATOR, TIME, is_plotted, machines};
use crate::cell::{Cell, Scale};
use crate::cells::rows::RowTemplate;

const CONFIGURATIONS: [Configuration; 3] = [
    Configuration::List2007,
    Configuration::Magazine2013,
    Configuration::Brickyard,
];

/// Runs on the real machine.
const REAL_RUNS: u32 = 5;

pub(super) fn cells() -> Vec<Cell> {
    let mut cells = Vec::new();
    for (machine, cpus, runs, workloads) in machines(RUNS, REAL_RUNS) {
        for &workload in workloads {
            for run in 1..=runs {
                cells.extend(CONFIGURATIONS.map(|configuration| {
                    cell(LockRun::usual(
                        machine,
                        configuration,
                        workload,
                        cpus,
                        Column::Ticket,
                        run,
                    ))
                }));
            }
        }
    }
    cells
}

fn cell(run: LockRun) -> Cell {
    let config = run.plan.configuration.name();
    let both = run.cpus == 8 && run.run <= 2 && ["pmake", "mab"].contains(&run.workload);
    let plotted = run.plan.configuration == Configuration::Brickyard
        && run.run == 1
        && is_plotted(run.workload, run.cpus);
    let quick = run.plan.profile.name == SIMULATOR.name && (both || plotted);
    Cell {
        name: run.cell_name(config),
        kind: Method::Simulated,
        scale: Scale::quick_if(quick),
        seconds: run.seconds(),
        work: Box::new(move |context| {
            let measured = run.measure(&context)?;
            let template = RowTemplate {
                machine: run.plan.profile.name,
                workload: &run.row_workload(),
                config,
                run: run.run,
            };
            Ok(vec![template.row(&TIME, measured.seconds)].into())
        }),
    }
}
