//! Page faults on simulated machines, each run a cell: the machine of 2013 with 1 to 8 CPUs, as in
//! its tables, and the simulator of 2007 with up to 32, for the curve over CPUs.
//!
//! The document's processes touched a fifth of the memory, 3.2 GiB, 20 times: more than caches
//! hold, so the pages of a fault come from memory. So that they do here too, all processes together
//! touch at least [`TIMES_CACHES`] times what the last levels hold ([`pages`]). That is 64 MiB on
//! the first machine, which has one cache of 8 MiB, and 16 MiB a CPU on the second, where each CPU
//! has one of 4 MiB, but 64 MiB where there are fewer than four. How the size changes the result on
//! the first machine is measured in `sizes.rs`. There are five runs: they differ only by the
//! refresh of the memory, which makes a thousandth with lists, and up to three hundredths where
//! CPUs wait for magazines.

use brickyard_machine::Profile;
use brickyard_simulate::pft::{FaultFigures, Pft};
use brickyard_simulate::setting::FRAME_BYTES;
use brickyard_simulate::{Configuration, Setting};

use crate::raw::{Method, Raw};

use crate::cell::{Cell, Scale};
use crate::cells::configs::SIMULATED_OF_2013;
use crate::cells::rows::RowTemplate;
use crate::cells::simulated::{CONFIG, Frames, MEMORY, frames, sweep};
use crate::experiment::Parameter;
use crate::refusal::Refusal;
use crate::settings::{Settings, wrong};
use brickyard_results::{Metric, counted};
use brickyard_simulate::setting::usual_frames;

/// Faults per second of CPU time, and per second of elapsed time.
pub(super) const FAULTS_CPU: Metric<'static> = faults("faults/cpu");
pub(super) const FAULTS_SEC: Metric<'static> = faults("faults/sec");

/// Pages freed per second of CPU time.
pub(super) const FREES_CPU: Metric<'static> = Metric::higher("frees/cpu", "pages/s");

/// Cache lines that a CPU took from other CPUs' caches, or whose copies there it ended, for each
/// fault.
const LINES_FAULT: Metric<'static> = Metric::lower("lines/fault", "lines");

const fn faults(name: &'static str) -> Metric<'static> {
    Metric::higher(name, "faults/s")
}

/// A machine, and what is run on it.
#[derive(Debug, Clone, Copy)]
struct Machine {
    profile: &'static Profile,
    cpus: &'static [usize],
    runs: u32,
    /// How many of the runs belong to the quick scale.
    quick_runs: u32,
    /// The numbers of CPUs in it.
    quick_cpus: &'static [usize],
}

const MACHINES: [Machine; 2] = [
    Machine {
        profile: Profile::I7_2013,
        cpus: &[1, 2, 3, 4, 5, 6, 7, 8],
        runs: RUNS_2013,
        quick_runs: 2,
        quick_cpus: &[1, 2, 3, 4, 5, 6, 7, 8],
    },
    Machine {
        profile: Profile::METATM_2007,
        cpus: &[1, 2, 4, 8, 16, 32],
        runs: RUNS,
        quick_runs: 1,
        quick_cpus: &[1, 4, 32],
    },
];

/// The configurations of a quick run: the document's, and the default. Magazines on 32 CPUs are
/// left out: a run takes five seconds.
const IN_QUICK: [Configuration; 3] = [
    Configuration::List2007,
    Configuration::Magazine2013,
    Configuration::Brickyard,
];

/// The fewest pages that all processes touch together.
pub(super) const PAGES: usize = (64 << 20) / FRAME_BYTES;

/// All processes together touch at least this many times what the last levels of the machine hold.
const TIMES_CACHES: usize = 4;

/// Returns the pages that all processes touch together on a machine of `cpus` CPUs: the rule that
/// they do not fit into its caches.
pub(super) fn pages(profile: &Profile, cpus: usize) -> usize {
    let lines = match profile.llc {
        Some(llc) => llc.lines * profile.nodes,
        None => profile.l2.lines * profile.cores(cpus),
    };
    PAGES.max(TIMES_CACHES * lines * profile.line_bytes / FRAME_BYTES)
}

/// The runs on the machine of the document, as many as there.
pub(super) const RUNS_2013: u32 = 20;

/// The runs on the other one.
pub(super) const RUNS: u32 = 5;

/// What can be set on a simulated machine.
pub(super) const PARAMETERS: &[Parameter] = &[
    CONFIG,
    Parameter::new(
        "cpus",
        "1,2,4,8,16,32,64",
        "numbers of CPUs, 1 to 256; the document has 1 to 8, and 20 runs",
    ),
    Parameter::new(
        "touched",
        "400M",
        "memory that all processes fault in together; the document used a fifth of the memory",
    ),
    MEMORY,
];

/// Returns the cells of a run with these settings.
///
/// # Errors
/// [`Refusal`], if a value is wrong, or two do not fit together.
pub(super) fn set(settings: &Settings<'_>) -> Result<Vec<Cell>, Refusal> {
    let profile = settings.profile()?;
    let all_cpus = settings.cpus("cpus")?;
    let pages = settings.bytes("touched")? / FRAME_BYTES;
    let most = all_cpus.iter().max().copied().unwrap_or(1);
    // With fewer pages, startup effects would dominate.
    let least = most.saturating_mul(64);
    if pages < least {
        let kib = least.saturating_mul(FRAME_BYTES) >> 10;
        let cpus = counted(most, "CPU", "CPUs");
        let why = format_args!("too little for {cpus}; give at least {kib}K");
        return Err(wrong("touched", why));
    }
    let machine = |&cpus: &usize| {
        let needed = Pft { pages }.frames_needed(cpus);
        Frames {
            cpus,
            needed,
            usual: usual_frames(needed),
        }
    };
    let machines: Vec<Frames> = all_cpus.iter().map(machine).collect();
    let frames = frames(settings, &machines)?;
    sweep(settings, |cpus, configuration, run| {
        FaultRun {
            profile,
            cpus,
            assumption: None,
            pages,
            frames: Some(frames),
            configuration,
            run,
            more_instructions: 0,
        }
        .cell(Scale::Full)
    })
}

pub(super) fn cells() -> Vec<Cell> {
    let mut cells = Vec::new();
    for machine in MACHINES {
        for &cpus in machine.cpus {
            for run in 1..=machine.runs {
                let of = |configuration| cell(machine, cpus, configuration, run);
                cells.extend(SIMULATED_OF_2013.map(of));
            }
        }
    }
    cells
}

fn cell(machine: Machine, cpus: usize, configuration: Configuration, run: u32) -> Cell {
    let profile = machine.profile;
    let is_quick = run <= machine.quick_runs
        && machine.quick_cpus.contains(&cpus)
        && IN_QUICK.contains(&configuration)
        && (configuration, cpus) != (Configuration::Magazine2013, 32);
    FaultRun {
        profile,
        cpus,
        assumption: None,
        pages: pages(profile, cpus),
        frames: None,
        configuration,
        run,
        more_instructions: 0,
    }
    .cell(Scale::quick_if(is_quick))
}

/// A run of page faults on a simulated machine.
#[derive(Debug, Clone)]
pub(super) struct FaultRun {
    /// The machine, or a variant of it.
    pub(super) profile: &'static Profile,
    pub(super) cpus: usize,
    /// What it assumes beside the document, as a word of its workload.
    pub(super) assumption: Option<String>,
    /// The pages that all processes touch together.
    pub(super) pages: usize,
    /// The frames of the machine; `None` for the usual, and the rows of the reproduction.
    pub(super) frames: Option<usize>,
    pub(super) configuration: Configuration,
    pub(super) run: u32,
    /// See [`Setting::more_instructions`].
    pub(super) more_instructions: i8,
}

impl FaultRun {
    /// Returns the cell of this run.
    pub(super) fn cell(self, scale: Scale) -> Cell {
        let assumption = self.assumption.as_deref();
        let place = |separator: &str| {
            let assumption = assumption.map(|word| format!("{separator}{word}"));
            format!("cpus-{}{}", self.cpus, assumption.unwrap_or_default())
        };
        let (name, workload) = (place("."), place(" "));
        Cell {
            name: format!(
                "pft.{}.{name}.{}.{}",
                self.profile.name, self.configuration, self.run
            ),
            kind: Method::Simulated,
            scale,
            seconds: seconds(self.pages),
            work: Box::new(move |context| {
                let pft = Pft { pages: self.pages };
                let measured = pft.run(&Setting {
                    profile: self.profile,
                    cpus: self.cpus,
                    configuration: self.configuration,
                    frames: self
                        .frames
                        .unwrap_or_else(|| usual_frames(pft.frames_needed(self.cpus))),
                    seed: context.seed_of(self.run),
                    more_instructions: self.more_instructions,
                })?;
                let template = RowTemplate {
                    machine: self.profile.name,
                    workload: &workload,
                    config: self.configuration.name(),
                    run: self.run,
                };
                let mut rows = rows(&template, &measured);
                if self.frames.is_some() {
                    rows.push(template.row(&FREES_CPU, measured.frees_per_cpu_second()));
                }
                Ok(rows.into())
            }),
        }
    }
}

/// Returns the rows of a run.
fn rows(template: &RowTemplate<'_>, measured: &FaultFigures) -> Vec<Raw> {
    vec![
        template.row(&FAULTS_CPU, measured.faults_per_cpu_second()),
        template.row(&FAULTS_SEC, measured.faults_per_second()),
        template.row(&LINES_FAULT, measured.lines_per_fault()),
    ]
}

/// Estimates how many seconds a core of today takes for so many pages.
const fn seconds(pages: usize) -> f64 {
    18e-6 * pages as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_of_every_machine_exceed_its_caches() {
        for machine in MACHINES {
            let profile = machine.profile;
            for &cpus in machine.cpus {
                let touched = pages(profile, cpus) * FRAME_BYTES;
                // What all caches hold together, whether one has what another has or not.
                let private = profile.cores(cpus) * profile.l2.lines;
                let shared = profile.llc.map_or(0, |llc| llc.lines * profile.nodes);
                let caches = (private + shared) * profile.line_bytes;
                assert!(
                    touched >= 4 * caches,
                    "{} {cpus}: {touched} {caches}",
                    profile.name
                );
            }
        }
        let metatm = Profile::METATM_2007;
        assert_eq!(pages(metatm, 32), 32 * (16 << 20) / FRAME_BYTES);
        assert_eq!(pages(metatm, 1), PAGES);
    }
}
