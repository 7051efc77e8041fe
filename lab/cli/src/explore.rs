//! `brickyard explore`: randomised schedules of the allocator on up to 64 CPUs, with every
//! result checked.

use core::fmt::Write as _;
use std::io::{self, Write};
use std::panic;
use std::path::PathBuf;

use anyhow::{Context, bail};
use brickyard_machine::current;
use brickyard_simulate::Slots;
use brickyard_simulate::explore::{
    BulkPolicy, Case, Configuration, Event, Explored, Failed, FreeMemory, Interrupts, Library, Log,
    Marks, Mode, POLICIES, Pressure, SLOTS, SeedPlan, Sizes, System, explore,
};
use clap::Args;
use serde_json::json;

use brickyard_measure::command::misuse::Misuse;
use brickyard_measure::command::output;
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
    #[arg(long, value_parser = one_of(&Mode::ALL, |one| (one, one.name())), value_name = "WHAT")]
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
    #[arg(long, value_parser = one_of(&SLOTS, |one| one), value_name = "HOW")]
    slots: Option<Slots>,
    /// How long the zone lock is held in bulk operations: hold, release or yield.
    #[arg(long, value_parser = one_of(&POLICIES, |one| one), value_name = "HOW")]
    policy: Option<BulkPolicy>,
    /// Sizes of memory and caches: small, many (page blocks) or linux.
    #[arg(long, value_parser = one_of(&Sizes::ALL, |one| (one, one.name())), value_name = "HOW")]
    sizes: Option<Sizes>,
    /// How much of the memory is free at the beginning: plenty, or short, so that it runs out again
    /// and again.
    #[arg(long, value_parser = one_of(&FreeMemory::ALL, |one| (one, one.name())), value_name = "HOW")]
    memory: Option<FreeMemory>,
    /// What a request does that finds nothing: reclaim, compaction or lumpy.
    #[arg(long, value_parser = one_of(&Pressure::ALL, |one| (one, one.name())), value_name = "HOW")]
    pressure: Option<Pressure>,
    /// Watermarks: on or off.
    #[arg(long, value_parser = one_of(&Marks::ALL, |one| (one, one.name())), value_name = "HOW")]
    marks: Option<Marks>,
    /// Interrupts: on or off.
    #[arg(long, value_parser = one_of(&Interrupts::ALL, |one| (one, one.name())), value_name = "HOW")]
    interrupts: Option<Interrupts>,
    /// How many seeds at once. [default: one per core]
    #[arg(long, value_name = "N")]
    jobs: Option<usize>,
    /// The format of the counts of what was covered.
    #[arg(long, default_value = "table", value_parser = ["table", "csv", "json"])]
    format: String,
    /// Write to this file instead of to standard output.
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
}

/// Returns a parser of one of these names; its error lists them.
fn one_of<V: Copy + Sync, T: 'static>(
    all: &'static [V],
    named: fn(V) -> (T, &'static str),
) -> impl Fn(&str) -> Result<T, String> + Clone {
    move |name| {
        let named = all.iter().map(|&one| named(one));
        let found = named.clone().find(|&(_, known)| known == name);
        found.map(|(value, _)| value).ok_or_else(|| {
            let names: Vec<&str> = named.map(|(_, name)| name).collect();
            format!("the values are {}", names.join(", "))
        })
    }
}

impl Explore {
    pub(crate) fn run(&self) -> anyhow::Result<()> {
        self.validate()?;
        if let Some(path) = &self.output {
            output::check(path)?;
        }
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
        self.write(&self.summary(&explored)?)?;
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
        for (option, value) in [
            ("tasks", self.tasks),
            ("operations", self.operations),
            ("jobs", self.jobs),
            (
                "seeds",
                Some(usize::try_from(self.seeds).unwrap_or(usize::MAX)),
            ),
        ] {
            if value == Some(0) {
                return Err(Misuse::new(format!("--{option} takes 1 or more")));
            }
        }
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
        let mut text = format!("{case:?}\n");
        for line in log.lines() {
            text.push_str(&line);
            text.push('\n');
        }
        self.write(&text)?;
        match outcome {
            Ok(_) => Ok(()),
            Err(fault) => bail!("{fault}"),
        }
    }

    /// Formats what was covered.
    fn summary(&self, explored: &Explored) -> anyhow::Result<String> {
        let counts = Event::ALL
            .iter()
            .map(|&event| (event.name(), explored.covered.of(event)));
        let mut text = String::new();
        match self.format.as_str() {
            "csv" => {
                text.push_str("what,count\n");
                for (what, count) in counts {
                    writeln!(text, "{what},{count}")?;
                }
            }
            "json" => {
                let counts: serde_json::Map<_, _> = counts
                    .map(|(what, count)| (what.to_owned(), json!(count)))
                    .collect();
                let failed = explored.failed.as_ref().map(|failed| {
                    json!({
                        "replay": failed.case.to_string(),
                        "fault": failed.fault.to_string(),
                        "smaller": failed.shrunk.case.to_string(),
                        "smaller_fault": failed.shrunk.fault.to_string(),
                        "log": failed.shrunk.log,
                    })
                });
                writeln!(text, "{:#}", json!({ "covered": counts, "failed": failed }))?;
            }
            _ => {
                for (what, count) in counts {
                    writeln!(text, "{count:>14}  {what}")?;
                }
            }
        }
        Ok(text)
    }

    fn write(&self, text: &str) -> anyhow::Result<()> {
        match &self.output {
            Some(path) => std::fs::write(path, text)
                .with_context(|| format!("cannot write {}", path.display())),
            None => Ok(io::stdout().lock().write_all(text.as_bytes())?),
        }
    }
}

/// Formats the report on a seed that failed.
fn failure_report(failed: &Failed) -> String {
    let shrunk = &failed.shrunk;
    let mut text = format!(
        "seed {} failed: {}\n  replay: {}\nsmaller: {}\n  replay: {}\nlast operations:",
        failed.case.seed, failed.fault, failed.case, shrunk.fault, shrunk.case
    );
    for line in &shrunk.log {
        text.push('\n');
        text.push_str(line);
    }
    text
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
