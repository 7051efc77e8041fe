//! `brickyard antifrag`: the protocol of 2005 and 2007, on recorded traces.

use std::io::IsTerminal;
use std::path::{Path, PathBuf};

use anyhow::Context;
use brickyard_classics::Configuration;
use brickyard_experiments::antifrag::{AntifragRun, Filmed, Load, Settings, load_of};
use brickyard_report::bytes_text;
use brickyard_report::pagetypes::Film;
use brickyard_report::{Better, counted};
use brickyard_run::{bar, interrupt};
use brickyard_trace::file;
use brickyard_workload::Script;
use brickyard_workload::antifrag::{self, Known, Profile, Reclaim, published, published_2005};
use clap::Args;

use crate::filming::Pictures;
use crate::how::How;
use crate::sheet::{Cell, Line, Sheet};
use brickyard_measure::command::amount::bytes;
use brickyard_measure::command::choice::or_all;
use brickyard_measure::command::misuse::{Misuse, at_least_one, has_twice, no_value_twice};
use brickyard_measure::command::output::SheetOutput;

/// The options of `brickyard antifrag`.
#[derive(Debug, Args)]
pub(crate) struct Antifrag {
    /// The trace of a build, one job at a time; seven copies of it run at once.
    ///
    /// Of this and the next, only the events of the recorded command count.
    #[arg(long, value_name = "FILE")]
    compile: PathBuf,
    /// The trace of a walk over the file system, which runs beside them.
    #[arg(long, value_name = "FILE")]
    walk: PathBuf,
    /// The machines, by their names in the documents. [default: all six]
    #[arg(long, value_delimiter = ',', value_name = "NAMES")]
    machine: Vec<String>,
    /// The configurations to compare. [default: all]
    #[arg(long, value_delimiter = ',', value_name = "NAMES")]
    config: Vec<Configuration>,
    /// How reclaim works. [default: all three]
    #[arg(long, value_delimiter = ',', value_name = "HOW")]
    reclaim: Vec<How>,
    #[command(flatten)]
    settings: Protocol,
    /// How many runs at once. [default: one per core]
    #[arg(long, value_name = "N")]
    jobs: Option<usize>,
    #[command(flatten)]
    pictures: Pictures,
    #[command(flatten)]
    output: SheetOutput,
}

/// The settings of the protocol.
#[derive(Debug, Clone, Copy, Args)]
struct Protocol {
    /// The size of the source tree; all builds but one work on copies of their own.
    #[arg(long, default_value = "250M", value_parser = bytes, value_name = "BYTES")]
    tree: usize,
    /// Seconds from the start of one build to the start of the next.
    #[arg(long, default_value_t = Settings::DEFAULT.gap, value_name = "SECONDS")]
    gap: f64,
    /// Seconds that all builds run before the first huge page is requested (2005: 60).
    #[arg(long, default_value_t = Settings::DEFAULT.settle, value_name = "SECONDS")]
    settle: f64,
    /// How many times longer a build takes than its recording did.
    /// [default: 4 for the CPUs of the time, times 7 builds, divided by the machine's CPUs]
    #[arg(long, value_name = "TIMES")]
    stretch: Option<f64>,
    /// The factor on each machine's memory.
    #[arg(long, default_value_t = Settings::DEFAULT.memory, value_name = "TIMES")]
    memory: f64,
    /// Draws which moments of the builds coincide. 0: they begin at even times.
    #[arg(long, default_value_t = Settings::DEFAULT.phase, value_name = "SEED")]
    phase: u64,
    /// Seconds that background reclaim of 2.6 sleeps after each pass below priority 10. Linux slept
    /// so long, or shorter, by the disk's queue, which is not modelled.
    #[arg(long, default_value_t = Settings::DEFAULT.nap, value_name = "SECONDS")]
    nap: f64,
    /// Percent of memory open to kernel allocations, where a configuration has a zone for movable
    /// pages (2007: 60).
    #[arg(long, default_value_t = Settings::DEFAULT.kernelcore, value_name = "PERCENT", value_parser = clap::value_parser!(u8).range(1..100))]
    kernelcore: u8,
    /// Seconds between two samples under load.
    #[arg(long, default_value_t = Settings::DEFAULT.every, value_name = "SECONDS")]
    every: f64,
}

impl Protocol {
    const fn settings(&self) -> Settings {
        Settings {
            tree: self.tree,
            gap: self.gap,
            settle: self.settle,
            stretch: self.stretch,
            memory: self.memory,
            min_free: None,
            phase: self.phase,
            nap: self.nap,
            kernelcore: self.kernelcore,
            every: self.every,
        }
    }
}

/// The largest tree.
const MOST_TREE: usize = 16 << 30;

type Done = (AntifragRun, antifrag::Result, Option<Film>);

impl Antifrag {
    pub(crate) fn run(&self) -> anyhow::Result<()> {
        let profiles = self.profiles()?;
        self.validate(&profiles)?;
        self.output.check()?;
        self.pictures.check()?;
        interrupt::watch()?;
        let (compile, walk) = (script(&self.compile)?, script(&self.walk)?);
        let configs = or_all(&self.config, &Configuration::ALL);
        let hows: Vec<Reclaim> = if self.reclaim.is_empty() {
            Reclaim::ALL.to_vec()
        } else {
            self.reclaim.iter().map(|how| how.reclaim()).collect()
        };
        let mut runs = Vec::new();
        for &profile in &profiles {
            for &reclaim in &hows {
                for &config in configs {
                    runs.push(AntifragRun {
                        profile,
                        reclaim,
                        config,
                    });
                }
            }
        }
        let load = Load {
            compile: &compile,
            walk: &walk,
        };
        let done = self.run_all(&runs, &load)?;
        if done.is_empty() {
            anyhow::bail!("interrupted before the first run had finished");
        }
        self.sheet(&profiles, &hows, configs, &done)
            .emit(&self.output)?;
        if self.pictures.any() {
            let films: Vec<Film> = done.into_iter().filter_map(|(.., film)| film).collect();
            self.pictures
                .write(&films, "huge pages under load and at rest")?;
        }
        if interrupt::asked() {
            anyhow::bail!("interrupted: the figures are of what was done until then");
        }
        Ok(())
    }

    fn profiles(&self) -> anyhow::Result<Vec<Profile>> {
        let all = core::iter::once(Profile::OF_2005).chain(Profile::OF_2007);
        if self.machine.is_empty() {
            return Ok(all.collect());
        }
        let named = self.machine.iter().map(|name| {
            Profile::named(name).ok_or_else(|| {
                let names: Vec<&str> = all.clone().map(|profile| profile.name).collect();
                Misuse::new(format!(
                    "there is no machine `{name}`: it is one of {}",
                    names.join(", ")
                ))
                .into()
            })
        });
        named.collect()
    }

    fn validate(&self, profiles: &[Profile]) -> Result<(), Misuse> {
        if has_twice(&self.machine) || has_twice(&self.reclaim) {
            return Err(Misuse::new("--machine or --reclaim names a value twice"));
        }
        if self.settings.tree > MOST_TREE {
            return Err(Misuse::new(
                "--tree must be at most 16G: there are seven at once",
            ));
        }
        for (name, seconds) in [
            ("gap", self.settings.gap),
            ("settle", self.settings.settle),
            ("every", self.settings.every),
        ] {
            if !(0.001..=3600.0).contains(&seconds) {
                return Err(Misuse::new(format!(
                    "--{name} must be from 0.001 to 3600 seconds"
                )));
            }
        }
        if !(0.0..=3600.0).contains(&self.settings.nap) {
            return Err(Misuse::new("--nap must be from 0 to 3600 seconds"));
        }
        let wrong = |times| !(0.01..=10_000.0).contains(&times);
        if self.settings.stretch.is_some_and(wrong) {
            return Err(Misuse::new("--stretch must be from 0.01 to 10000"));
        }
        if !(0.1..=10.0).contains(&self.settings.memory) {
            return Err(Misuse::new("--memory must be from 0.1 to 10"));
        }
        at_least_one([("jobs", self.jobs)])?;
        no_value_twice([("config", has_twice(&self.config))])?;
        let several = profiles.len() > 1 || self.reclaim.len() != 1;
        if self.pictures.any() && several {
            return Err(Misuse::new(
                "pictures show one machine and one way of reclaim: give --machine NAME --reclaim HOW",
            ));
        }
        Ok(())
    }

    fn run_all(&self, runs: &[AntifragRun], load: &Load<'_>) -> anyhow::Result<Vec<Done>> {
        // Progress counts runs: the number of steps of a run depends on its allocator.
        let units = runs.len() as u64;
        let done = bar::runs(runs.len(), self.jobs, units, |place, mut follow| {
            let run = runs[place];
            let filmed = if self.pictures.any() {
                Filmed::Yes
            } else {
                Filmed::No
            };
            let (result, film) =
                run.run(&self.settings.settings(), load, filmed, follow.quiet())?;
            follow.goes_on(1);
            if !std::io::stderr().is_terminal() {
                let how = run.reclaim.name();
                eprintln!("done: {}, {how}, {}", run.profile.name, run.config);
            }
            Ok((run, result, film))
        });
        let done: anyhow::Result<Vec<Done>> = done.into_iter().collect();
        let mut done = done?;
        done.retain(|(_, result, _)| !result.interrupted);
        Ok(done)
    }

    fn sheet(
        &self,
        profiles: &[Profile],
        hows: &[Reclaim],
        configs: &[Configuration],
        done: &[Done],
    ) -> Sheet {
        let columns = configs
            .iter()
            .map(|config| config.name().to_owned())
            .collect();
        let mut sheet = Sheet::new("antifrag", columns);
        sheet.head(format!(
            "Seven builds ({}) on trees of {}, and a walk ({}).",
            self.compile.display(),
            bytes_text(self.settings.tree),
            self.walk.display()
        ));
        sheet.head(format!(
            "A build starts every {} s; {} s after the last, huge pages are requested every 0.1 s. Where there is a zone for movable pages, {} % of memory is open to kernel allocations.",
            self.settings.gap, self.settings.settle, self.settings.kernelcore
        ));
        sheet.head("Measured, and in brackets the published figure.");
        for profile in profiles {
            for &how in hows {
                let of = |config: Configuration| {
                    let same = |run: &AntifragRun| {
                        run.profile == *profile && run.reclaim == how && run.config == config
                    };
                    done.iter()
                        .find(|(run, ..)| same(run))
                        .map(|(_, result, _)| result)
                };
                lines(&mut sheet, profile, how, configs, of);
            }
        }
        for profile in profiles {
            sheet.note(format!(
                "{}: {}, {} ({}), {}, huge pages of order {}",
                profile.name,
                profile.architecture,
                bytes_text(profile.memory as usize),
                match profile.memory_from {
                    Known::Published => "published",
                    Known::Assumed => "assumed",
                },
                counted(profile.cpus, "CPU", "CPUs"),
                profile.huge,
            ));
        }
        if interrupt::asked() {
            sheet.interrupted("Interrupted: what is missing was not run.");
        }
        sheet
    }
}

/// Adds the lines of one machine and one way of reclaim.
fn lines<'d>(
    sheet: &mut Sheet,
    profile: &Profile,
    how: Reclaim,
    configs: &[Configuration],
    of: impl Fn(Configuration) -> Option<&'d antifrag::Result>,
) {
    let section = format!("{}, {}", profile.name, how.name());
    let of_2005 = *profile == Profile::OF_2005;
    let mut line = |label: &str,
                    unit,
                    better,
                    decimals,
                    value: &dyn Fn(&antifrag::Result) -> f64,
                    published: &dyn Fn(Configuration) -> Option<f64>| {
        let cells = configs.iter().map(|&config| match of(config) {
            Some(result) => Cell {
                samples: vec![value(result)],
                published: published(config),
            },
            None => Cell::default(),
        });
        sheet.push(Line {
            decimals,
            ..Line::new(&section, label, unit, better, cells)
        });
    };
    let higher = Better::Higher;
    if of_2005 {
        // The posting's kernel had no lumpy reclaim.
        let plain = |config| published_2005(config).filter(|_| how == Reclaim::Plain);
        let load = |config| plain(config).map(|(load, _)| f64::from(load));
        let rest = |config| plain(config).map(|(_, rest)| f64::from(rest));
        let mut blocks = |label, value, published| {
            line(label, "blocks of order 10", higher, 0, value, published);
        };
        blocks("under load, of 275", &|r| r.load.got as f64, &load);
        blocks("at rest", &|r| r.rest.got as f64, &rest);
    } else {
        let published = |config| published(profile.name, how, config);
        let load = |config| published(config).map(|p| f64::from(p.load));
        let rest = |config| published(config).map(|p| f64::from(p.rest));
        let mut percent =
            |label, value, published| line(label, "% of memory", higher, 1, value, published);
        percent("under load", &|r| r.percent(r.load.got), &load);
        percent("at rest", &|r| r.percent(r.rest.got), &rest);
    }
    let none = |_: Configuration| None;
    let possible = |r: &antifrag::Result| r.rest.got as f64 * 100.0 / r.rest_possible.max(1) as f64;
    let label = "at rest, of what is possible";
    line(label, "%", higher, 1, &possible, &none);
    let mut count = |label, value: fn(&antifrag::Result) -> u64| {
        line(label, "", Better::Lower, 0, &|r| value(r) as f64, &none);
    };
    count("mixed page blocks, at most", |r| {
        let mixed = r.samples.iter().map(|sample| sample.mixed);
        mixed.max().unwrap_or(0)
    });
    count("requests of the load failed", |r| r.served.failed);
    count("frames reclaimed", |r| {
        r.pressure.direct + r.pressure.background + r.pressure.lumpy
    });
    count("frames moved", |r| r.pressure.moved);
}

/// Reads a trace as a load.
fn script(path: &Path) -> anyhow::Result<Script> {
    let trace = file::read(path).with_context(|| format!("cannot replay {}", path.display()))?;
    Ok(load_of(&trace)?)
}

#[cfg(test)]
mod tests {
    use clap::{Args, FromArgMatches};

    use super::*;

    #[test]
    fn the_default_settings_are_those_of_the_command() {
        let command = Protocol::augment_args(clap::Command::new("antifrag"));
        let matches = command.get_matches_from(["antifrag"]);
        let protocol = Protocol::from_arg_matches(&matches).unwrap();
        assert_eq!(protocol.settings(), Settings::DEFAULT);
    }
}
