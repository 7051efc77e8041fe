//! Page faults on the simulated machine of 2013 by the pages that each process touches; each run a
//! cell. The document gives neither the size nor a sweep: its benchmark touches a fifth of the
//! memory, 3.2 GiB in all.
//!
//! Small processes find their pages in caches again, large ones do not, and that decides which
//! design wins. One run each: with magazines seeds differ by up to some hundredths, sizes by more.

use brickyard_machine::Profile;
use brickyard_simulate::pft::Pft;
use brickyard_simulate::setting::usual_frames;
use brickyard_simulate::{Configuration, Setting};

use super::simulated::{rows, seconds};
use crate::cell::{Cell, Scale};
use crate::cells::rows::RowTemplate;
use crate::raw::Method;

const MACHINE: &str = "i7-2013";

const CPUS: [usize; 3] = [2, 4, 8];

/// Pages of a process: 2, 8, 32 and 128 MiB.
const PAGES: [usize; 4] = [512, 2048, 8192, 32768];

/// The most pages of all processes together that a quick run has.
const QUICK_PAGES: usize = 32768;

/// Lists, and the magazines that are to replace them.
const CONFIGURATIONS: [Configuration; 2] = [Configuration::List2007, Configuration::Magazine2013];

const RUN: u32 = 1;

pub(super) fn cells() -> Vec<Cell> {
    let mut cells = Vec::new();
    for cpus in CPUS {
        for pages in PAGES {
            cells.extend(CONFIGURATIONS.map(|configuration| cell(cpus, pages, configuration)));
        }
    }
    cells
}

fn cell(cpus: usize, pages: usize, configuration: Configuration) -> Cell {
    let all = cpus * pages;
    Cell {
        name: format!("pft.{MACHINE}.cpus-{cpus}.pages-{pages}.{configuration}.{RUN}"),
        kind: Method::Simulated,
        scale: Scale::quick_if(all <= QUICK_PAGES),
        seconds: seconds(all),
        work: Box::new(move |context| {
            let pft = Pft { pages: all };
            let measured = pft.run(&Setting {
                profile: Profile::by_name(MACHINE)?,
                cpus,
                configuration,
                frames: usual_frames(pft.frames_needed(cpus)),
                seed: context.seed_of(RUN),
            })?;
            let template = RowTemplate {
                machine: MACHINE,
                workload: &format!("cpus-{cpus} pages-{pages}"),
                config: configuration.name(),
                run: RUN,
            };
            Ok(rows(&template, &measured).into())
        }),
    }
}
