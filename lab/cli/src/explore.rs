//! `brickyard explore`: randomised schedules of the allocator on up to 64 CPUs, with every
//! result checked.

use std::panic;

use anyhow::bail;
use brickyard_machine::current;
use brickyard_simulate::Slots;
use brickyard_simulate::explore::{
    BulkPolicy, Case, Configuration, Event, Explored, Failed, FreeMemory, Interrupts, Library, Log,
    Marks, Mode, POLICIES, Pressure, SeedPlan, Sizes, System, explore,
};
use clap::Args;
use serde_json::{Map, json};

use brickyard_measure::command::misuse::{Misuse, at_least_one};
use brickyard_measure::command::output::SheetOutput;
use brickyard_results::{Format, Listing};
use brickyard_run::named::by_name;
use brickyard_run::{bar, interrupt, side_by_side};

/// The options of `brickyard explore`. A seed chooses the mode, configuration, sizes, CPUs, tasks and
/// their operations, and the schedule; the options override its choices.
#[derive(Debug, Args)]
pub(crate) struct Explore {
    /// Number of seeds.
    #[arg(
        long,
        default_value_t = 1000,
        value_name = "N",
        conflicts_with = "replay"
    )]
    seeds: u64,
    /// The first seed.
    #[arg(
        long,
        default_value_t = 0,
        value_name = "SEED",
        conflicts_with = "replay"
    )]
    from: u64,
    /// Run this one seed, and print its last operations.
    #[arg(long, value_name = "SEED")]
    replay: Option<u64>,
    /// The kind of test: mixed, all operations concurrently; stop, the same while CPUs are stopped
    /// for millions of cycles at any access; or starve, one task requests what is not free while all
    /// others allocate and free without end. [default: most seeds are mixed, some stop, few starve]
    #[arg(long, value_name = "WHAT")]
    mode: Option<Mode>,
    /// Use this configuration only, see `brickyard help designs`.
    #[arg(long, value_name = "NAME")]
    config: Option<Configuration>,
    /// CPUs, 1 to 256.
    #[arg(long, value_name = "N")]
    cpus: Option<usize>,
    /// Tasks that use the allocator.
    #[arg(long, value_name = "N")]
    tasks: Option<usize>,
    /// Operations of each task.
    #[arg(long, value_name = "N")]
    operations: Option<usize>,
    /// Which CPUs may enter a CPU's lists and stash: exclusive (only the CPU itself; with ticket
    /// locks in the zones) or shared (any; with test-and-set locks).
    #[arg(long, value_name = "HOW")]
    slots: Option<Slots>,
    /// How long the zone lock is held in bulk operations: hold, release or yield.
    #[arg(long, value_parser = |name: &str| by_name(POLICIES, name), value_name = "HOW")]
    policy: Option<BulkPolicy>,
    /// Sizes of memory and caches: small, many (page blocks) or linux.
    #[arg(long, value_name = "HOW")]
    sizes: Option<Sizes>,
    /// How much of the memory is free at the beginning: plenty, or short, so that it runs out again
    /// and again.
    #[arg(long, value_name = "HOW")]
    memory: Option<FreeMemory>,
    /// What a request does that finds nothing: reclaim, compaction or lumpy.
    #[arg(long, value_name = "HOW")]
    pressure: Option<Pressure>,
    /// Watermarks: on or off.
    #[arg(long, value_name = "HOW")]
    marks: Option<Marks>,
    /// Interrupts: on or off.
    #[arg(long, value_name = "HOW")]
    interrupts: Option<Interrupts>,
    /// How many seeds at once. [default: one per core]
    #[arg(long, value_name = "N")]
    jobs: Option<usize>,
    #[command(flatten)]
    output: SheetOutput,
}

impl Explore {
    pub(crate) fn run(&self) -> anyhow::Result<()> {
        self.validate()?;
        self.output.check()?;
        silence_simulated_panics();
        if let Some(seed) = self.replay {
            return self.replay(seed);
        }
        interrupt::watch()?;
        let bar = bar::bar(self.seeds, "{bar:30} {pos}/{len} seeds, {eta} left");
        let case = |seed| self.case(seed);
        let explored = explore(
            &Library,
            &SeedPlan {
                threads: self.jobs.unwrap_or_else(side_by_side::cores),
                case: &case,
                progress: &|runs| bar.set_position(runs),
                stop: &interrupt::asked,
                ..SeedPlan::new(self.from..self.from + self.seeds)
            },
        );
        bar.finish_and_clear();
        self.output.put(&summary(&explored, self.output.format))?;
        if explored.runs < self.seeds && explored.failed.is_none() {
            eprintln!(
                "interrupted after {} of {} seeds",
                explored.runs, self.seeds
            );
        }
        match &explored.failed {
            None => Ok(()),
            Some(failed) => bail!("{}", failure_report(failed)),
        }
    }

    fn validate(&self) -> Result<(), Misuse> {
        if self.cpus.is_some_and(|cpus| !(1..=256).contains(&cpus)) {
            return Err(Misuse::new("--cpus takes 1 to 256"));
        }
        at_least_one([
            ("tasks", self.tasks),
            ("operations", self.operations),
            ("jobs", self.jobs),
            ("seeds", Some(self.seeds.min(1) as usize)),
        ])?;
        if self.tasks.is_some_and(|tasks| tasks > 1024) {
            return Err(Misuse::new("--tasks takes at most 1024"));
        }
        if self.from.checked_add(self.seeds).is_none() {
            return Err(Misuse::new(
                "--from plus --seeds exceeds the largest seed; give a smaller one",
            ));
        }
        Ok(())
    }

    /// Returns the case of `seed`, with the choices of the options.
    fn case(&self, seed: u64) -> Case {
        let chosen = Case::of(seed);
        Case {
            mode: self.mode.unwrap_or(chosen.mode),
            configuration: self.config.unwrap_or(chosen.configuration),
            slots: self.slots.unwrap_or(chosen.slots),
            policy: self.policy.unwrap_or(chosen.policy),
            sizes: self.sizes.unwrap_or(chosen.sizes),
            memory: self.memory.unwrap_or(chosen.memory),
            pressure: self.pressure.unwrap_or(chosen.pressure),
            marks: self.marks.unwrap_or(chosen.marks),
            interrupts: self.interrupts.unwrap_or(chosen.interrupts),
            cpus: self.cpus.unwrap_or(chosen.cpus),
            tasks: self.tasks.unwrap_or(chosen.tasks),
            operations: self.operations.unwrap_or(chosen.operations),
            ..chosen
        }
    }

    fn replay(&self, seed: u64) -> anyhow::Result<()> {
        let (case, log) = (self.case(seed), Log::new());
        let outcome = Library.run(&case, &log);
        let lines = log.lines();
        self.output
            .put(&format!("{case:?}\n{}\n", lines.join("\n")))?;
        match outcome {
            Ok(_) => Ok(()),
            Err(fault) => bail!("{fault}"),
        }
    }
}

/// Formats what was covered.
fn summary(explored: &Explored, format: Format) -> String {
    let counts = Event::ALL.map(|event| (event.name(), explored.covered.of(event)));
    let listing = Listing::of(
        counts,
        &[("what", &|of| of.0.into()), ("count", &|of| of.1.into())],
    );
    match format {
        Format::Table => listing.lines()[1..].join("\n") + "\n",
        Format::Csv => listing.csv(),
        Format::Json => {
            let counts = counts.map(|(what, count)| (what.to_owned(), json!(count)));
            let failed = explored.failed.as_ref().map(|failed| {
                json!({
                    "replay": failed.case.to_string(),
                    "fault": failed.fault.to_string(),
                    "smaller": failed.shrunk.case.to_string(),
                    "smaller_fault": failed.shrunk.fault.to_string(),
                    "log": failed.shrunk.log,
                })
            });
            format!(
                "{:#}\n",
                json!({ "covered": Map::from_iter(counts), "failed": failed })
            )
        }
    }
}

/// Formats the report on a seed that failed.
fn failure_report(failed: &Failed) -> String {
    let shrunk = &failed.shrunk;
    let log: String = shrunk.log.iter().map(|line| format!("\n{line}")).collect();
    format!(
        "seed {} failed: {}\n  replay: {}\nsmaller: {}\n  replay: {}\nlast operations:{log}",
        failed.case.seed, failed.fault, failed.case, shrunk.fault, shrunk.case
    )
}

/// Suppresses the message of a panic inside a simulated task, which is reported as a finding; other
/// panics print as usual.
fn silence_simulated_panics() {
    let usual = panic::take_hook();
    panic::set_hook(Box::new(move |info| {
        if !current::is_simulated() {
            usual(info);
        }
    }));
}
