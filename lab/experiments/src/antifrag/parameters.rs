//! The protocol of 2005 and 2007 with settings of the user's choice, for the two experiments that
//! have it.

use brickyard_designs::classics::Configuration;
use brickyard_pictures::pagetypes::{Film, html};
use brickyard_results::{Better, Metric, bytes_of};
use brickyard_workload::antifrag::{self, Profile, Reclaim};

use super::{AntifragRun, Filmed, Settings as Protocol};
use crate::cell::{Cell, Context, Done, Scale};
use crate::cells::protocol;
use crate::cells::rows::RowTemplate;
use crate::experiment::Parameter;
use crate::raw::{Method, Raw};
use crate::refusal::Refusal;
use crate::settings::{Settings, wrong};

/// What can be set.
pub(crate) const PARAMETERS: &[Parameter] = &[
    Parameter::new(
        "config",
        "auto",
        "designs, the first is the baseline; auto: all",
    ),
    Parameter::new(
        "reclaim",
        "plain,lumpy,compaction",
        "how reclaim works: plain, the oldest pages wherever they are; lumpy, the block around the oldest page (2007 to 2012); compaction, compaction first, then reclaim (since 2010)",
    ),
    Parameter::new(
        "tree",
        "250M",
        "size of the source tree; all builds but one work on copies of their own",
    ),
    Parameter::new(
        "gap",
        "16",
        "seconds from the start of one build to the start of the next",
    ),
    Parameter::new(
        "settle",
        "60",
        "seconds that all builds run before the first huge page is requested",
    ),
    Parameter::new(
        "stretch",
        "auto",
        "how many times longer a build takes than its recording did; auto: 4 for the CPUs of the time, times 7 builds, divided by the machine's CPUs",
    ),
    Parameter::new("memory", "1", "factor on the machine's memory"),
    Parameter::new(
        "phase",
        "0",
        "draws which moments of the builds coincide; 0: they begin at even times",
    ),
    Parameter::new(
        "nap",
        "0.1",
        "seconds that background reclaim of 2.6 sleeps after each pass below priority 10; Linux slept so long, or shorter, by the disk's queue, which is not modelled",
    ),
    Parameter::new(
        "kernelcore",
        "60",
        "percent of memory open to kernel allocations, where a design has a zone for movable pages",
    ),
    Parameter::new("every", "2", "seconds between two samples under load"),
    Parameter::new(
        "pictures",
        "no",
        "yes: make a page of each way of reclaim, with a player of all designs",
    ),
];

/// The largest tree.
const MOST_TREE: usize = 16 << 30;

/// Returns the cells of a run with these settings on the machine that they name.
///
/// # Errors
/// [`Refusal`], if a value is wrong.
pub(crate) fn cells(settings: &Settings<'_>) -> Result<Vec<Cell>, Refusal> {
    let profile = Profile::named(settings.machine)
        .ok_or_else(|| Refusal::Setting(format!("there is no machine {}", settings.machine)))?;
    let configs = match settings.is_auto("config") {
        true => Configuration::ALL.to_vec(),
        false => settings.list("config")?,
    };
    let reclaims = settings.list::<Reclaim>("reclaim")?;
    let filmed = match settings.text("pictures") {
        "no" => Filmed::No,
        "yes" => Filmed::Yes,
        _ => return Err(wrong("pictures", "it is yes or no")),
    };
    let protocol = protocol_of(settings)?;
    let suffix = settings.suffix(&[
        "tree",
        "gap",
        "settle",
        "stretch",
        "memory",
        "phase",
        "nap",
        "kernelcore",
    ]);
    let mut cells = Vec::new();
    for reclaim in reclaims {
        let of = |configs: Vec<Configuration>| Runs {
            experiment: settings.experiment,
            profile,
            reclaim,
            configs,
            protocol,
            filmed,
            suffix: suffix.clone(),
        };
        match filmed {
            // All designs are on one page.
            Filmed::Yes => cells.push(of(configs.clone()).cell()),
            Filmed::No => cells.extend(configs.iter().map(|&config| of(vec![config]).cell())),
        }
    }
    Ok(cells)
}

/// Returns the protocol's settings.
pub(crate) fn protocol_of(settings: &Settings<'_>) -> Result<Protocol, Refusal> {
    let within = |name: &str, least: f64, most: f64| -> Result<f64, Refusal> {
        let value: f64 = settings.one(name)?;
        match (least..=most).contains(&value) {
            true => Ok(value),
            false => Err(wrong(name, format_args!("give one of {least} to {most}"))),
        }
    };
    let tree = bytes_of(settings.text("tree")).map_err(|error| wrong("tree", error))?;
    if tree > MOST_TREE {
        return Err(wrong("tree", "give at most 16G: there are seven at once"));
    }
    Ok(Protocol {
        tree,
        gap: within("gap", 0.001, 3600.0)?,
        settle: within("settle", 0.001, 3600.0)?,
        stretch: match settings.is_auto("stretch") {
            true => None,
            false => Some(within("stretch", 0.01, 10_000.0)?),
        },
        memory: within("memory", 0.1, 10.0)?,
        min_free: None,
        phase: settings.one("phase")?,
        nap: within("nap", 0.0, 3600.0)?,
        kernelcore: match settings.one("kernelcore")? {
            percent @ 1..=99 => percent,
            _ => return Err(wrong("kernelcore", "give one of 1 to 99")),
        },
        every: within("every", 0.001, 3600.0)?,
    })
}

/// Runs of the protocol on one machine with one way of reclaim.
struct Runs {
    experiment: &'static str,
    profile: Profile,
    reclaim: Reclaim,
    configs: Vec<Configuration>,
    protocol: Protocol,
    filmed: Filmed,
    suffix: String,
}

impl Runs {
    fn cell(self) -> Cell {
        let (machine, reclaim) = (self.profile.name, self.reclaim.name());
        let configs: Vec<&str> = self.configs.iter().map(|config| config.name()).collect();
        Cell {
            name: format!(
                "{}.{machine}.{reclaim}.{}",
                self.experiment,
                configs.join("+"),
            ),
            kind: Method::Replayed,
            scale: Scale::Full,
            seconds: 3.0 * self.configs.len() as f64,
            work: Box::new(move |context| self.run(&context)),
        }
    }

    fn run(&self, context: &Context<'_>) -> anyhow::Result<Done> {
        let (mut rows, mut films) = (Vec::new(), Vec::new());
        for &config in &self.configs {
            let run = AntifragRun {
                profile: self.profile,
                reclaim: self.reclaim,
                config,
            };
            let (result, film) = protocol::run(&run, &self.protocol, self.filmed, context)?;
            rows.extend(self.rows(config, &result));
            films.extend(film);
        }
        let mut done = Done::from(rows);
        if self.filmed == Filmed::Yes {
            let films: Vec<&Film> = films.iter().collect();
            let (machine, reclaim) = (self.profile.name, self.reclaim.name());
            let mut page = Vec::new();
            html::write(&films, &format!("{machine}, {reclaim}"), &mut page)?;
            done.pages.push((format!("{machine}-{reclaim}.html"), page));
        }
        Ok(done)
    }

    fn rows(&self, config: Configuration, result: &antifrag::Result) -> Vec<Raw> {
        let workload = format!("{}{}", self.reclaim.name(), self.suffix);
        let template = RowTemplate {
            machine: self.profile.name,
            workload: &workload,
            config: config.name(),
            run: 1,
        };
        let of_2005 = self.profile == Profile::OF_2005;
        // In 2005 blocks were counted, in 2007 the share of memory.
        let (unit, huge): (_, fn(&antifrag::Result, usize) -> f64) = match of_2005 {
            true => ("blocks of order 10", |_, pages| pages as f64),
            false => ("% of memory", antifrag::Result::percent),
        };
        let mixed = result.samples.iter().map(|sample| sample.mixed).max();
        let pressure = &result.pressure;
        let reclaimed = pressure.direct + pressure.background + pressure.lumpy;
        let lower = |name, unit| Metric::new(name, unit, Better::Lower);
        let higher = |name| Metric::new(name, unit, Better::Higher);
        let figures = [
            (higher("under-load"), huge(result, result.load.got)),
            (higher("at-rest"), huge(result, result.rest.got)),
            (higher("possible"), huge(result, result.rest_possible)),
            (lower("mixed", "page blocks"), mixed.unwrap_or(0) as f64),
            (lower("failed", "requests"), result.served.failed as f64),
            (lower("reclaimed", "frames"), reclaimed as f64),
            (lower("moved", "frames"), pressure.moved as f64),
        ];
        let figures = figures.into_iter();
        figures
            .map(|(metric, value)| template.row(&metric, value))
            .collect()
    }
}
