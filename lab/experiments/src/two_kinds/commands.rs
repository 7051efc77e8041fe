//! A kernel's sources unpacked, and the kernel built, on one simulated CPU.

use brickyard_machine::Profile as Caches;
use brickyard_results::Metric;
use brickyard_simulate::kernbench::Kernbench;
use brickyard_simulate::setting::FRAME_BYTES;
use brickyard_simulate::{Blueprint, Configuration, Setting};
use brickyard_workload::antifrag::Profile;

use crate::raw::Method;

use super::render::{SECONDS, scale_of};
use crate::cell::{Cell, Scale};
use crate::cells::protocol::KERNEL_CORE;
use crate::cells::rows::RowTemplate;
use crate::cells::simulated::{INSTRUCTIONS, OtherCount, all_served, counted_as};

/// Returns all of these cells.
pub(super) fn cells() -> Vec<Cell> {
    let mut cells = Vec::new();
    for command in &COMMANDS {
        for config in Configuration::ALL {
            cells.extend((1..=RUNS).map(|run| cell(command, config, run, None)));
        }
        for other in INSTRUCTIONS {
            let of_run = |run| cell(command, Configuration::TwoKinds2005, run, Some(other));
            cells.extend((1..=RUNS).map(of_run));
        }
    }
    cells
}

/// A command: the workload's name, the name of its trace, and how many jobs are run.
type Command = (&'static str, &'static str, usize);

/// 240 MB are unpacked, the size of a kernel tree of 2005; each recorded compile is run twice.
const COMMANDS: [Command; 2] = [("extract", "extract", 12), ("build", "kernel", 24)];

/// Runs; they differ slightly in their cache misses.
const RUNS: u32 = 3;

/// The machine whose caches the CPU has: the posting does not describe those of its own.
const CACHES: &str = "metatm-2007";

const FRAMES: usize = Profile::OF_2005.memory as usize / FRAME_BYTES;

fn setting(
    configuration: Configuration,
    seed: u64,
    more_instructions: i8,
) -> anyhow::Result<Setting> {
    Ok(Setting {
        profile: Caches::by_name(CACHES)?,
        cpus: 1,
        configuration,
        frames: FRAMES,
        seed,
        more_instructions,
    })
}

/// Returns the allocator, with the zones of this experiment's protocol.
const fn blueprint(setting: &Setting) -> Blueprint {
    setting.blueprint_of(KERNEL_CORE)
}

fn cell(
    &(workload, trace, jobs): &'static Command,
    config: Configuration,
    run: u32,
    other: OtherCount,
) -> Cell {
    let (workload, more) = counted_as(workload, other);
    Cell {
        name: format!(
            "two-kinds.{}.{}.{config}.{run}",
            Profile::OF_2005.name,
            workload.replace(' ', ".")
        ),
        kind: Method::Simulated,
        scale: match other {
            None => scale_of(config.name()),
            Some(_) => Scale::Full,
        },
        seconds: 0.2,
        work: Box::new(move |context| {
            let setting = setting(config, context.seed_of(run), more)?;
            let build = Kernbench {
                recorded: &context.traces.jobs(trace)?,
                jobs,
                workers: 1,
            };
            let measured = build.run_on(&setting, &blueprint(&setting))?;
            all_served(&measured.counts)?;
            let template = RowTemplate {
                machine: Profile::OF_2005.name,
                workload: &workload,
                config: config.name(),
                run,
            };
            let system = Metric::lower("system", SECONDS.unit);
            let rows = vec![
                template.row(&SECONDS, measured.elapsed),
                template.row(&system, measured.system),
            ];
            Ok(rows.into())
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cells::testing::{found, keys, rows_of};

    #[test]
    fn unpacking_and_building_give_the_same_rows_each_time() {
        let cells = cells();
        for workload in ["extract", "build"] {
            let name = format!("two-kinds.desktop-2005.{workload}.vanilla.1");
            let rows = rows_of(found(&cells, &name));
            assert_eq!(keys(&rows), [(workload, "elapsed"), (workload, "system")]);
            assert!(rows[0].value > 1.0 && rows[1].value > 0.0 && rows[1].value < rows[0].value);
            assert_eq!(rows, rows_of(found(&cells, &name)));
        }
    }

    /// The zone for movable pages is as large as in the protocol of the same experiment.
    #[test]
    fn a_movable_zone_has_two_fifths_of_the_memory() {
        for config in [Configuration::Zone2007, Configuration::Combined2007] {
            let (_, movable) = blueprint(&setting(config, 1, 0).unwrap())
                .plan
                .zones(config);
            let share = movable.unwrap().span.len() as f64 / FRAMES as f64;
            assert!((share - 0.4).abs() < 0.01, "{config}: {share}");
        }
    }
}
