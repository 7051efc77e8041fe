//! Global drains while 1 to 32 CPUs of a simulated machine fault in pages; each run a cell.
//!
//! `brickyard` runs twice: as a CPU's slot is its own, and as it is lent to a drainer.

use brickyard_machine::Profile;
use brickyard_results::Metric;
use brickyard_simulate::drains::{DrainRun, Drains};
use brickyard_simulate::setting::usual_frames;
use brickyard_simulate::{Configuration, Setting, Slots};

use crate::cell::{Cell, Scale};
use crate::cells::rows::RowTemplate;
use crate::raw::Method;

const MACHINE: &str = "metatm-2007";

/// Busy CPUs; one more drains.
const CPUS: [usize; 4] = [1, 4, 8, 32];

const CONTESTANTS: [(Configuration, Slots); 4] = [
    (Configuration::List2007, Slots::Exclusive),
    (Configuration::Magazine2013, Slots::Exclusive),
    (Configuration::Brickyard, Slots::Exclusive),
    (Configuration::Brickyard, Slots::Shared),
];

/// Pages that each busy CPU faults in: 10 ms of the machine's time, and a drain every millisecond.
const PAGES: usize = 512;
const EVERY_CYCLES: u64 = 1_000_000;

const RUNS: u32 = 3;

type Figure = (Metric<'static>, fn(&DrainRun) -> f64);

const FIGURES: [Figure; 4] = [
    (cycles("drain"), |run| run.drain_cycles),
    (cycles("lost"), |run| run.lost_cycles),
    (cycles("alloc-p99.9"), |run| run.alloc.p999 as f64),
    (cycles("alloc-p99.9-undrained"), |run| {
        run.alloc_undrained.p999 as f64
    }),
];

const fn cycles(name: &'static str) -> Metric<'static> {
    Metric::lower(name, "cycles")
}

/// The most CPUs in a quick run: with more, a run takes a second.
const QUICK_CPUS: usize = 8;

pub(super) fn cells() -> Vec<Cell> {
    let mut cells = Vec::new();
    for cpus in CPUS {
        for run in 1..=RUNS {
            cells.extend(
                CONTESTANTS.map(|(configuration, slots)| cell(cpus, configuration, slots, run)),
            );
        }
    }
    cells
}

fn cell(cpus: usize, configuration: Configuration, slots: Slots, run: u32) -> Cell {
    let lent = match slots {
        Slots::Exclusive => "",
        Slots::Shared => " lent",
    };
    Cell {
        name: format!(
            "pagealloc.{MACHINE}.drains-{cpus}{}.{configuration}.{run}",
            lent.replace(' ', "-")
        ),
        kind: Method::Simulated,
        scale: Scale::quick_if(run == 1 && cpus <= QUICK_CPUS),
        seconds: 60e-6 * (PAGES * cpus) as f64,
        work: Box::new(move |context| {
            let drains = Drains {
                pages: PAGES,
                every: EVERY_CYCLES,
                slots,
            };
            let cpus_in_all = cpus + 1;
            let measured = drains.run(&Setting {
                profile: Profile::by_name(MACHINE)?,
                cpus: cpus_in_all,
                configuration,
                frames: usual_frames(Drains::frames_needed(cpus_in_all)),
                seed: context.seed_of(run),
                more_instructions: 0,
            })?;
            let template = RowTemplate {
                machine: MACHINE,
                workload: &format!("drains cpus-{cpus}{lent}"),
                config: configuration.name(),
                run,
            };
            let rows = FIGURES
                .iter()
                .map(|(metric, value)| template.row(metric, value(&measured)));
            Ok(rows.collect::<Vec<_>>().into())
        }),
    }
}
