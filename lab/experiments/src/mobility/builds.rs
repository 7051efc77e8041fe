//! Builds on the CPUs of the five machines, simulated.

use brickyard_machine::Profile as Caches;
use brickyard_results::Metric;
use brickyard_simulate::kernbench::Kernbench;
use brickyard_simulate::setting::FRAME_BYTES;
use brickyard_simulate::{Configuration, Setting};
use brickyard_workload::antifrag::Profile;
use brickyard_workload::jobs::Job;

use crate::raw::{Method, Raw};

use crate::cell::{Cell, Context, Scale};
use crate::cells::protocol::KERNEL_CORE;
use crate::cells::rows::RowTemplate;
use crate::cells::simulated::{INSTRUCTIONS, OtherCount, all_served, counted_as};

/// Returns all of these cells.
pub(super) fn cells() -> Vec<Cell> {
    let mut cells = Vec::new();
    for profile in Profile::OF_2007 {
        for config in BUILT {
            cells.extend((1..=RUNS).map(|run| build_cell(profile, config, run, None)));
        }
        for config in PROPOSED {
            for other in INSTRUCTIONS {
                cells.extend((1..=RUNS).map(|run| build_cell(profile, config, run, Some(other))));
            }
        }
    }
    cells
}

/// The kernels whose builds were timed in the mail, and `brickyard`.
const BUILT: [Configuration; 5] = [
    Configuration::Vanilla,
    Configuration::List2007,
    Configuration::Zone2007,
    Configuration::Combined2007,
    Configuration::Brickyard,
];

/// Those of them that the mail compares with the first.
const PROPOSED: [Configuration; 3] = [
    Configuration::List2007,
    Configuration::Zone2007,
    Configuration::Combined2007,
];

/// The machine whose builds are in the quick run.
const QUICK_BUILT: &str = "elm3b245";

/// Runs: the means are over three builds, as in the mail.
const RUNS: u32 = 3;

/// Compile jobs of a build: each recorded job four times.
const COMPILES: usize = 48;

/// Compile jobs at once, for each CPU.
const WORKERS: usize = 2;

/// The machine whose caches the CPUs have: the mail does not describe those of its machines.
const CACHES: &str = "metatm-2007";

const CPU_TIME: Metric<'static> = Metric::lower("cpu-time", "s");

const ELAPSED: Metric<'static> = Metric::lower("elapsed", CPU_TIME.unit);

fn build_cell(profile: Profile, config: Configuration, run: u32, other: OtherCount) -> Cell {
    let (workload, more_instructions) = counted_as("kernbench", other);
    Cell {
        name: format!(
            "mobility.{}.{}.{config}.{run}",
            profile.name,
            workload.replace(' ', ".")
        ),
        kind: Method::Simulated,
        scale: Scale::quick_if(profile.name == QUICK_BUILT && other.is_none()),
        seconds: 0.3,
        work: Box::new(move |context| {
            let setting = Setting {
                profile: Caches::by_name(CACHES)?,
                cpus: profile.cpus,
                configuration: config,
                frames: profile.memory as usize / FRAME_BYTES,
                seed: context.seed_of(run),
                more_instructions,
            };
            Ok(build(&profile, &setting, &workload, run, &context)?.into())
        }),
    }
}

fn build(
    profile: &Profile,
    setting: &Setting,
    workload: &str,
    run: u32,
    context: &Context<'_>,
) -> anyhow::Result<Vec<Raw>> {
    let recorded = rotated(&context.traces.jobs("kernel")?, setting.seed);
    let build = Kernbench {
        recorded: &recorded,
        jobs: COMPILES,
        workers: WORKERS * setting.cpus,
    };
    let measured = build.run_on(setting, &setting.blueprint_of(KERNEL_CORE))?;
    all_served(&measured.counts)?;
    let template = RowTemplate {
        machine: profile.name,
        workload,
        config: setting.configuration.name(),
        run,
    };
    Ok(vec![
        template.row(&CPU_TIME, measured.user + measured.system),
        template.row(&ELAPSED, measured.elapsed),
    ])
}

/// Returns the jobs of the build, starting with a different one in each run. Which job is the last,
/// with the other CPUs idle, affects the elapsed time more than any allocator does; so it is varied
/// by the seed, in the same way for all configurations.
fn rotated(recorded: &[Job], seed: u64) -> Vec<Job> {
    let mut jobs = recorded.to_vec();
    if !jobs.is_empty() {
        let first = seed % jobs.len() as u64;
        jobs.rotate_left(first as usize);
    }
    jobs
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cells::testing::{found, rows_of, traces};

    #[test]
    fn a_build_gives_the_same_rows_each_time_and_others_with_another_seed() {
        let cells = cells();
        let cell = |run| format!("mobility.gekko-lp1.kernbench.zone-2007.{run}");
        let once = rows_of(found(&cells, &cell(1)));
        let keys: Vec<&str> = once.iter().map(|row| &*row.metric).collect();
        assert_eq!(keys, ["cpu-time", "elapsed"]);
        for row in &once {
            assert_eq!(
                (&*row.machine, &*row.workload, row.run),
                ("gekko-lp1", "kernbench", 1)
            );
            assert!(row.value > 1.0);
        }
        // Two CPUs.
        assert!(once[0].value > 1.8 * once[1].value && once[0].value <= 2.0 * once[1].value);
        assert_eq!(once, rows_of(found(&cells, &cell(1))));
        assert_ne!(once[1].value, rows_of(found(&cells, &cell(2)))[1].value);
    }

    #[test]
    fn a_rotated_build_has_all_its_jobs() {
        let jobs = traces().jobs("kernel").unwrap();
        let turned = rotated(&jobs, 5);
        assert_eq!(turned[0], jobs[5]);
        assert_eq!(turned[turned.len() - 1], jobs[4]);
        assert_eq!(rotated(&jobs, jobs.len() as u64), *jobs);
        assert_eq!(rotated(&[], 3), []);
    }
}
