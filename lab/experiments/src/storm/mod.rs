//! `storm`: all CPUs of a simulated machine allocate and free pages as fast as they can, and do
//! nothing else. No document has it.
//!
//! Throughput, latencies and cache traffic are those of the measured part, after a warm-up that is
//! half as long.

use brickyard_machine::Profile;
use brickyard_results::Metric;
use brickyard_simulate::setting::usual_frames;
use brickyard_simulate::storm::{Latency, Shape, Storm, StormRun};
use brickyard_simulate::{Configuration, Setting};

use crate::cell::{Cell, Context, Scale};
use crate::cells::rows::RowTemplate;
use crate::cells::simulated::{CONFIG, CPUS, Frames, MEMORY, frames, sweep};
use crate::experiment::{Experiment, Form, On, Parameter};
use crate::raw::{Method, Raw};
use crate::refusal::Refusal;
use crate::settings::{Settings, wrong};

/// The experiment.
pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "storm",
    about: "All CPUs allocate and free as fast as they can: throughput, latencies, cache lines",
    forms: &[Form::new(
        On::Simulated("metatm-2007"),
        5,
        PARAMETERS,
        cells,
    )],
    reproduced: Vec::new,
    document: None,
    uses_traces: false,
};

const PARAMETERS: &[Parameter] = &[
    Parameter::new(
        "shape",
        "hot,deep,remote",
        "bursts: hot, 1 to 24 pages, stays inside the per-CPU caches; deep, 1 to 2000, empties and overfills them; remote, 1 to 64, is freed by the next CPU, or by the same where there is one",
    ),
    CPUS,
    CONFIG,
    Parameter::new(
        "pages",
        "10000",
        "pages that each CPU allocates and frees in the measured part",
    ),
    Parameter::new(
        "unit",
        "cycles",
        "unit of latencies: cycles, or memory-latencies, the time of one fetch from the local memory",
    ),
    Parameter::new(
        "magazines",
        "2",
        "number of magazines that all CPUs share, 1 to 64: of magazine-2013 alone",
    ),
    Parameter::new(
        "limit",
        "1024",
        "pages above which a magazine gives back, at least 64: of magazine-2013 alone",
    ),
    MEMORY,
];

/// The fewest pages of a magazine: the most that it gives back at a time.
const LEAST_LIMIT: usize = 64;

/// The most magazines.
const MOST_MAGAZINES: usize = 64;

/// The frames of a machine for each of its CPUs: 256 MiB, little for machines of so many CPUs. With
/// less, a design whose caches are a share of the memory is measured at the size of that share.
const FRAMES_A_CPU: usize = 1 << 16;

const THROUGHPUT: Metric<'static> = Metric::higher("throughput", "pages/s");

/// One run.
#[derive(Debug, Clone, Copy)]
struct Run {
    storm: Storm,
    profile: &'static Profile,
    cpus: usize,
    frames: usize,
    configuration: Configuration,
    /// The number of magazines, and the pages above which one gives back.
    magazines: (usize, usize),
    /// The cycles of the unit of latencies, and its name.
    unit: (u64, &'static str),
    run: u32,
}

fn cells(settings: &Settings<'_>) -> Result<Vec<Cell>, Refusal> {
    let profile = settings.profile()?;
    let pages = settings.count("pages")?;
    let unit = match settings.text("unit") {
        "cycles" => (1, "cycles"),
        "memory-latencies" => (profile.memory_cycles, "memory latencies"),
        _ => return Err(wrong("unit", "it is cycles or memory-latencies")),
    };
    let magazines = magazines(settings)?;
    let suffix = settings.suffix(&["magazines", "limit"]);
    let shapes = settings.list::<Shape>("shape")?;
    let cpus = settings.cpus("cpus")?;
    let machines: Vec<Frames> = shapes
        .iter()
        .flat_map(|&shape| cpus.iter().map(move |&cpus| (Storm { shape, pages }, cpus)))
        .map(|(storm, cpus)| {
            let needed = storm.frames_needed(cpus);
            Frames {
                cpus,
                needed,
                usual: usual_frames(needed).max(cpus.saturating_mul(FRAMES_A_CPU)),
            }
        })
        .collect();
    let frames = frames(settings, &machines)?;
    let mut cells = Vec::new();
    for shape in shapes {
        cells.extend(sweep(settings, |cpus, configuration, run| {
            let run = Run {
                storm: Storm { shape, pages },
                profile,
                cpus,
                frames,
                configuration,
                magazines,
                unit,
                run,
            };
            run.cell(suffix.clone())
        })?);
    }
    Ok(cells)
}

/// Returns the number of magazines and the limit of each.
fn magazines(settings: &Settings<'_>) -> Result<(usize, usize), Refusal> {
    let number = settings.count("magazines")?;
    if !(1..=MOST_MAGAZINES).contains(&number) {
        let why = format_args!("give 1 to {MOST_MAGAZINES}");
        return Err(wrong("magazines", why));
    }
    let limit = settings.count("limit")?;
    if limit < LEAST_LIMIT {
        return Err(wrong("limit", format_args!("give at least {LEAST_LIMIT}")));
    }
    let configs: Vec<Configuration> = settings.list("config")?;
    let is_set = !settings.suffix(&["magazines", "limit"]).is_empty();
    if is_set && !configs.contains(&Configuration::Magazine2013) {
        let why =
            "magazine-2013 alone has magazines, and is not among the designs; give it in config";
        return Err(wrong("config", why));
    }
    Ok((number, limit))
}

impl Run {
    fn cell(self, suffix: String) -> Cell {
        let (machine, cpus) = (self.profile.name, self.cpus);
        let (shape, config, run) = (self.storm.shape, self.configuration, self.run);
        Cell {
            name: format!("storm.{machine}.{shape}-{cpus}.{config}.{run}"),
            kind: Method::Simulated,
            scale: Scale::Full,
            // Waits are many simulated accesses.
            seconds: 6e-6 * (self.storm.pages * cpus) as f64,
            work: Box::new(move |context| Ok(self.rows(&suffix, &context)?.into())),
        }
    }

    fn rows(&self, suffix: &str, context: &Context<'_>) -> anyhow::Result<Vec<Raw>> {
        let setting = Setting {
            profile: self.profile,
            cpus: self.cpus,
            configuration: self.configuration,
            frames: self.frames,
            seed: context.seed_of(self.run),
            more_instructions: 0,
        };
        let mut blueprint = setting.blueprint();
        let (magazines, limit) = self.magazines;
        blueprint.plan.whole.magazines = magazines;
        blueprint.plan.whole.magazine.limit = limit;
        let measured = self.storm.run_on(&setting, &blueprint)?;
        let workload = format!("{} cpus-{}{suffix}", self.storm.shape, self.cpus);
        let template = RowTemplate {
            machine: self.profile.name,
            workload: &workload,
            config: self.configuration.name(),
            run: self.run,
        };
        let mut rows = vec![template.row(&THROUGHPUT, measured.pages_per_second)];
        for (side, latency) in [("alloc", measured.alloc), ("free", measured.free)] {
            for (percentile, cycles) in percentiles(&latency) {
                let (length, unit) = self.unit;
                let name = format!("{side}-{percentile}");
                let metric = Metric::lower(&name, unit);
                rows.push(template.row(&metric, cycles as f64 / length as f64));
            }
        }
        let traffic = traffic(&measured, self.cpus);
        rows.extend(traffic.map(|(metric, value)| template.row(&metric, value)));
        Ok(rows)
    }
}

fn percentiles(latency: &Latency) -> [(&'static str, u64); 4] {
    [
        ("p50", latency.p50),
        ("p99", latency.p99),
        ("p99.9", latency.p999),
        ("max", latency.max),
    ]
}

fn traffic(run: &StormRun, cpus: usize) -> [(Metric<'static>, f64); 4] {
    let lower = Metric::lower;
    let accesses = run.accesses as f64 / run.pages as f64;
    let share = "% of CPU time";
    [
        (
            lower("accesses", "accesses to shared memory/page"),
            accesses,
        ),
        (
            lower("lines", "cache lines moved/page"),
            run.lines_per_page(),
        ),
        (lower("line-waits", share), run.line_waits_percent(cpus)),
        (lower("lock-waits", share), run.lock_waits_percent(cpus)),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cells::testing::rows_of;

    fn cells_with(set: &[&str]) -> Result<Vec<Cell>, Refusal> {
        let pair = |text: &&str| {
            let (name, value) = text.split_once('=').unwrap();
            (name.to_owned(), value.to_owned())
        };
        let pairs: Vec<(String, String)> = set.iter().map(pair).collect();
        cells(&Settings::new(&EXPERIMENT, None, Some(1), &pairs)?)
    }

    #[test]
    fn more_magazines_are_contended_less_and_a_larger_one_goes_to_the_zone_less_often() {
        let of = |more: &[&str]| {
            let usual = ["config=magazine-2013", "cpus=8", "pages=600"];
            let cells = cells_with(&[&usual, more].concat()).unwrap();
            let value = |rows: &[Raw], metric: &str| {
                rows.iter().find(|row| row.metric == metric).unwrap().value
            };
            let rows = rows_of(&cells[0]);
            (rows[0].workload.clone(), value(&rows, "throughput"))
        };
        let (usual, two) = of(&["shape=hot"]);
        let (named, eight) = of(&["shape=hot", "magazines=8"]);
        assert_eq!((&*usual, &*named), ("hot cpus-8", "hot cpus-8 magazines-8"));
        assert!(eight > 1.5 * two, "{eight} {two}");
        let (_, small) = of(&["shape=deep", "limit=64"]);
        let (_, large) = of(&["shape=deep", "limit=65536"]);
        assert!(large > small, "{large} {small}");
    }

    #[test]
    fn magazines_are_those_of_a_design_that_has_them() {
        for (wrong, why) in [
            (&["magazines=0"][..], "magazines"),
            (&["magazines=65"], "1 to 64"),
            (&["limit=63"], "at least 64"),
            (&["magazines=4", "config=vanilla"], "magazine-2013 alone"),
        ] {
            let refused = cells_with(wrong).unwrap_err().to_string();
            assert!(refused.contains(why), "{wrong:?}: {refused}");
        }
        assert!(cells_with(&["config=vanilla"]).is_ok());
    }
}
