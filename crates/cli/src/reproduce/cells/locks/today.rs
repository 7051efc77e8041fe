//! The workloads of 2007 under the allocators that came later: the lock a ticket lock, held for a whole bulk.

use brickyard_reproduce::raw::Kind;
use brickyard_simulate::Configuration;
use brickyard_simulate::locks::Column;
use brickyard_workload::jobs::Workload;

use super::simulated::{CPUS, RUNS, Run, SIMULATOR, TIME, workload};
use crate::reproduce::cell::{Cell, Scale};
use crate::reproduce::cells::rows::Of;

const CONFIGURATIONS: [Configuration; 3] = [
    Configuration::List2007,
    Configuration::Magazine2013,
    Configuration::Brickyard,
];

pub(super) fn cells() -> Vec<Cell> {
    let mut cells = Vec::new();
    for cpus in CPUS {
        for workload in Workload::ALL.map(|workload| workload.name) {
            for run in 1..=RUNS {
                cells.extend(CONFIGURATIONS.map(|configuration| {
                    cell(Run {
                        machine: SIMULATOR,
                        workload,
                        cpus,
                        column: Column::Ticket,
                        configuration,
                        run,
                    })
                }));
            }
        }
    }
    cells
}

fn cell(run: Run) -> Cell {
    let config = run.configuration.name();
    let quick = run.cpus == 8 && run.run <= 2 && ["pmake", "mab"].contains(&run.workload);
    Cell {
        name: format!(
            "locks.{}.{}-{}.{config}.{}",
            run.machine, run.workload, run.cpus, run.run
        ),
        kind: Kind::Simulated,
        scale: if quick { Scale::Quick } else { Scale::Full },
        seconds: run.seconds(),
        work: Box::new(move |context| {
            let measured = run.measure(&context)?;
            let of = Of {
                machine: run.machine,
                workload: &workload(run.workload, run.cpus),
                config,
                run: run.run,
            };
            Ok(vec![of.row(&TIME, measured.seconds)].into())
        }),
    }
}
