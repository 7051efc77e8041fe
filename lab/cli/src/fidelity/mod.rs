//! `brickyard fidelity`: how true the lab's configurations are to the kernel that a trace was
//! recorded on.

mod page;
mod round_trip;

use core::ops::ControlFlow;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use brickyard::node::SlowPath;
use brickyard::{MigrateType, Order};
use brickyard_designs::classics::Configuration;
use brickyard_designs::classics::linux::Burst;
use brickyard_experiments::filming::Camera;
use brickyard_host::zoneinfo;
use brickyard_results::{Better, counted};
use brickyard_run::{bar, interrupt};
use brickyard_trace::file::{self, Source};
use brickyard_trace::{Events as _, Trace};
use brickyard_workload::decisions::{self, Contradiction, Decision, Decisions, DecisionsError};
use brickyard_workload::fidelity::{self, Distance, ZoneTable};
use brickyard_workload::script::{Counts, Draw, Survey};
use brickyard_workload::start::Known;
use brickyard_workload::{
    Machine, Options, Outcome, Rules, Script, ScriptError, Start, Swap, replay,
};
use clap::Args;
use indicatif::ProgressBar;

use crate::sheet::{Cell, Line, Sheet};
use brickyard_measure::command::misuse::{Misuse, at_least_one, has_twice, no_value_twice};
use brickyard_measure::command::output::{self, SheetOutput};

use round_trip::RoundTrip;

/// The configurations that are compared unless others are named.
const CONFIGS: [Configuration; 5] = [
    Configuration::Linux618,
    Configuration::Linux612,
    Configuration::Magazine2013,
    Configuration::List2007,
    Configuration::Brickyard,
];

/// The error of a run that was interrupted before anything was known.
const NOTHING_DONE: &str = "interrupted before the first replay was finished";

/// The column of the host's own end.
const HOST: &str = "the host";

/// The column of the host's start beside its end.
const START: &str = "as the start";

/// How every trace is replayed.
const OPTIONS: Options = Options {
    start: Start::Recorded,
    rules: Rules {
        slow_path: SlowPath::MODERN,
        swap: Swap::Off,
        ..Rules::TODAY
    },
    sample_every: u64::MAX,
};

/// The options of `brickyard fidelity`.
#[derive(Debug, Args)]
#[command(after_help = "\
The error is the sum of the differences of all numbers of free blocks, without sign, in parts of the real blocks. \
The column `as the start` is the host's start beside its end: the error of a replay in which nothing happens.

Decisions need a trace with events of zones, which `brickyard record` makes unless it is told otherwise.

Example:
  sudo brickyard record -o build.parquet -- make -j8
  brickyard fidelity build.parquet --page build.html")]
pub(crate) struct Fidelity {
    /// The trace, from `brickyard record`.
    trace: PathBuf,
    /// The configurations to compare with the host.
    #[arg(long, value_delimiter = ',', value_name = "NAMES", default_values_t = CONFIGS)]
    config: Vec<Configuration>,
    /// How often what is unknown of the start is drawn.
    #[arg(long, default_value_t = 3, value_name = "N")]
    draws: usize,
    /// How many replays run in parallel. [default: the number of CPUs]
    #[arg(long, value_name = "N")]
    jobs: Option<usize>,
    /// Also measure how much of the error a trace cannot tell: each configuration's replay is
    /// recorded as the host was, without events of zones, and replayed with the same configuration.
    #[arg(long)]
    untold: bool,
    /// How many of the differences of each kind of decision are listed.
    #[arg(long, default_value_t = 3, value_name = "N")]
    differences: usize,
    /// Write a page with plots of the free blocks at the end, and all figures, to this file.
    #[arg(long, value_name = "FILE")]
    page: Option<PathBuf>,
    #[command(flatten)]
    output: SheetOutput,
}

/// The replays of one configuration, by draw.
struct Compared {
    config: Configuration,
    outcomes: Vec<Outcome>,
    distances: Vec<Distance>,
}

/// The host's own figures.
struct Host {
    start: Vec<ZoneTable>,
    end: Vec<ZoneTable>,
    free: u64,
    idle: u64,
    fallbacks: u64,
    claims: u64,
}

/// What is known of the trace and its start before the decisions tell more.
struct Begun {
    duration: u64,
    known: Known,
}

impl Fidelity {
    pub(crate) fn run(&self) -> anyhow::Result<()> {
        no_value_twice([("config", has_twice(&self.config))])?;
        at_least_one([("draws", Some(self.draws)), ("jobs", self.jobs)])?;
        self.output.check()?;
        self.check_page()?;
        interrupt::watch()?;
        let cannot = || format!("cannot read {}", self.trace.display());
        let source = Source::open(&self.trace).with_context(cannot)?;
        let trace = source.outline();
        let mut host = Host::of(trace)?;
        let machine = Machine::recorded(trace)?;
        let kinds = [
            (Configuration::Linux618, Burst::AfterHalfTheLeast),
            (Configuration::Linux612, Burst::AfterABatch),
        ];
        let kinds = kinds.into_iter();
        let (kinds, bursts): (Vec<_>, Vec<_>) = kinds
            .filter(|(config, _)| self.config.contains(config))
            .unzip();
        let reading = Reading::new(&source, !kinds.is_empty(), self.draws);
        let survey = read(Survey::read(&source, |events| reading.on(events)))?;
        host.count(survey.counts());
        let first = survey.begin(&Draw::FIRST);
        let mut decided: Vec<(Configuration, Decisions)> = Vec::new();
        if !kinds.is_empty() && survey.counts().taken > 0 {
            let followed = decisions::follow(&source, &machine, &first, &bursts, |events| {
                reading.on(events)
            });
            match followed {
                Ok(decisions) => decided.extend(kinds.into_iter().zip(decisions)),
                Err(DecisionsError::Stopped) => bail!(NOTHING_DONE),
                Err(why @ DecisionsError::Unreadable(_)) => {
                    return Err(why).with_context(cannot);
                }
                // The page says that they are not compared.
                Err(_) => {}
            }
        }
        // What the decisions have shown of the start.
        let told = decided.first().map(|(_, of)| of.clone());
        let told = told.unwrap_or_default();
        let begun = Begun {
            duration: survey.duration(),
            known: first.known(),
        };
        let scripts = self.scripts(survey, &source, &told, &reading)?;
        reading.end();
        let compared = self.compare(&scripts, &machine, &host)?;
        if compared.is_empty() {
            bail!(NOTHING_DONE);
        }
        let is_cut = |of: &Compared| {
            let cut = of.outcomes.iter().any(|outcome| outcome.interrupted);
            cut || of.outcomes.len() < self.draws
        };
        let mut cut = compared.len() < self.config.len() || compared.iter().any(is_cut);
        let mut untold = Vec::new();
        let mut failed = Ok(());
        if self.untold && !cut {
            // The comparison that is done is not lost by what fails here.
            match self.untold(&machine, &told) {
                Ok(measured) => untold = measured,
                Err(error) => failed = Err(error),
            }
            cut = failed.is_ok() && untold.len() < self.config.len();
        }
        let mut sheet = self.sheet(&source, &begun, &host, &compared, &untold, &decided);
        if cut {
            sheet.interrupted("Interrupted: the figures are of what was done until then.");
        }
        let emitted = sheet.emit(&self.output);
        if let Some(path) = &self.page {
            page::write(path, &self.trace, &host, &compared, &sheet)?;
        }
        emitted?;
        failed?;
        if cut {
            bail!("interrupted: the figures are of what was done until then");
        }
        Ok(())
    }

    /// Prepares a replay on the recorded host for each draw, with what its decisions have `told`.
    fn scripts(
        &self,
        survey: Survey<'_>,
        source: &Source,
        told: &Decisions,
        reading: &Reading,
    ) -> anyhow::Result<Vec<Script>> {
        let excluded = Some(&told.excluded);
        let draw = |seed| Draw { seed, excluded };
        let draws: Vec<Draw<'_>> = (0..self.draws as u64).map(draw).collect();
        let scripts = read(survey.scripts(source, &draws, |events| reading.on(events)))?;
        let scripts = scripts.into_iter();
        Ok(scripts
            .map(|script| script.with_reports(told.reports_free))
            .collect())
    }

    /// Fails if the page would be written over the trace or the results.
    fn check_page(&self) -> anyhow::Result<()> {
        let Some(page) = &self.page else {
            return Ok(());
        };
        let place = |path: &Path| fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        let mut others = [Some(self.trace.as_path()), self.output.path()].into_iter();
        if others.any(|other| other.is_some_and(|other| place(other) == place(page))) {
            return Err(Misuse::new(
                "the page would be written over the trace or the results: give --page a file of its own",
            )
            .into());
        }
        output::check(page)
    }

    /// Measures what the trace cannot tell, with all of it in memory.
    fn untold(&self, machine: &Machine, told: &Decisions) -> anyhow::Result<Vec<RoundTrip>> {
        let trace = file::read(&self.trace)?;
        let script = Script::drawn(&trace, 0, &told.excluded)?;
        let script = script.with_reports(told.reports_free);
        let (configs, draws) = (&self.config, self.draws);
        round_trip::measure(
            &trace, machine, &script, &OPTIONS, configs, draws, self.jobs,
        )
    }

    /// Replays the trace with every configuration, as often as is drawn.
    fn compare(
        &self,
        scripts: &[Script],
        machine: &Machine,
        host: &Host,
    ) -> anyhow::Result<Vec<Compared>> {
        let replays = self.config.len() * self.draws;
        let units = (replays * scripts[0].len()) as u64;
        let outcomes = bar::runs(replays, self.jobs, units, |place, follow| {
            let config = self.config[place / self.draws];
            let script = &scripts[place % self.draws];
            let camera = Camera::new(follow, None);
            replay(config, machine, script, &OPTIONS, camera)
                .with_context(|| format!("{config} cannot be replayed"))
        });
        let mut outcomes = outcomes.into_iter();
        let mut compared = Vec::new();
        for &config in &self.config {
            let own: Vec<Outcome> = outcomes
                .by_ref()
                .take(self.draws)
                .collect::<Result<_, _>>()?;
            if own.is_empty() {
                break;
            }
            let distance = |outcome: &Outcome| {
                fidelity::distance(&fidelity::of_replay(&outcome.zones), &host.end)
            };
            compared.push(Compared {
                config,
                distances: own.iter().map(distance).collect(),
                outcomes: own,
            });
        }
        Ok(compared)
    }

    fn sheet(
        &self,
        source: &Source,
        begun: &Begun,
        host: &Host,
        compared: &[Compared],
        untold: &[RoundTrip],
        decided: &[(Configuration, Decisions)],
    ) -> Sheet {
        let names = compared.iter().map(|of| of.config.name().to_owned());
        let trace = source.outline();
        let columns = [HOST, START].map(str::to_owned);
        let mut sheet = Sheet::new("fidelity", columns.into_iter().chain(names).collect());
        sheet.head(format!(
            "{}: {} in {:.1} s, recorded on Linux {}",
            self.trace.display(),
            counted(source.count() as usize, "event", "events"),
            begun.duration as f64 / 1e9,
            trace.header.kernel,
        ));
        let known = begun.known;
        sheet.head(format!(
            "start: {} frames idle in lists of CPUs are shown by events, {} drawn, {} counted; \
             page blocks: the types of {} are shown, of {} drawn",
            known.idle_shown,
            known.idle_drawn,
            known.idle_counted,
            known.types_shown,
            known.types_drawn,
        ));
        ends(&mut sheet, host, compared);
        if !untold.is_empty() {
            untold_errors(&mut sheet, compared, untold);
        }
        counts(&mut sheet, host, compared);
        self.decisions(&mut sheet, compared, decided);
        if decided.is_empty() {
            sheet.note("The trace has no events of zones, so decisions are not compared: record with --events zones.");
        }
        if host.end.iter().any(|zone| zone.cut) {
            sheet.note("The kernel stopped counting some free blocks at 100,000: their difference is not known.");
        }
        if let Some(sentence) = self.sentence(trace, compared) {
            sheet.note(sentence);
        }
        sheet
    }

    /// Adds how often the configurations decide as the host did.
    fn decisions(
        &self,
        sheet: &mut Sheet,
        compared: &[Compared],
        decided: &[(Configuration, Decisions)],
    ) {
        const SECTION: &str = "decisions as the host's, state by state";
        if decided.is_empty() {
            return;
        }
        let cells = |value: &dyn Fn(&Decisions) -> Option<f64>| {
            let of_config = |of: &Compared| {
                let own = decided.iter().find(|(config, _)| *config == of.config);
                own.and_then(|(_, decisions)| value(decisions))
            };
            let nothing = [None, None].into_iter();
            let values = nothing.chain(compared.iter().map(of_config));
            values.map(Cell::of).collect::<Vec<Cell>>()
        };
        for decision in Decision::ALL {
            let of = |decisions: &Decisions| decisions.agreements[decision as usize].clone();
            let part = cells(&|decisions| of(decisions).part().map(|part| part * 100.0));
            let asked = of(&decided[0].1).asked;
            let label = format!("{} ({asked} asked)", decision.name());
            sheet.push(Line {
                decimals: 2,
                ..Line::new(SECTION, label, "%", Better::Higher, part)
            });
        }
        for contradiction in Contradiction::ALL {
            let times = cells(&|decisions| {
                let times = decisions.contradictions.get(&contradiction);
                Some(times.copied().unwrap_or(0) as f64)
            });
            sheet.push(Line::new(
                "events that contradict the state",
                contradiction.name(),
                "times",
                Better::Lower,
                times,
            ));
        }
        let (config, decisions) = &decided[0];
        for decision in Decision::ALL {
            let agreement = &decisions.agreements[decision as usize];
            let mut most: Vec<_> = agreement.differences.iter().collect();
            most.sort_by_key(|&(pair, times)| (core::cmp::Reverse(*times), pair));
            for ((host, answer), times) in most.into_iter().take(self.differences) {
                sheet.note(format!(
                    "{}: the host {host}, {config} {answer}: {times} times",
                    decision.name(),
                ));
            }
        }
    }

    /// Returns in one sentence what the comparison says.
    fn sentence(&self, trace: &Trace, compared: &[Compared]) -> Option<String> {
        let best = compared.iter().min_by(|one, other| {
            let error = |of: &Compared| median(&of.distances, |distance| distance.by_type);
            error(one).total_cmp(&error(other))
        })?;
        Some(format!(
            "{} is nearest to Linux {}: {:.1} % of its free blocks are of another order, {:.1} % of another order or type.",
            best.config,
            trace.header.kernel,
            median(&best.distances, |distance| distance.by_order) * 100.0,
            median(&best.distances, |distance| distance.by_type) * 100.0,
        ))
    }
}

impl Host {
    /// Reads the host's texts; its events are counted later.
    fn of(trace: &Trace) -> anyhow::Result<Self> {
        let (start, end) = (&trace.header.start, &trace.header.end);
        if start.pagetypeinfo.is_empty() || end.pagetypeinfo.is_empty() {
            return Err(Misuse::new(
                "the trace does not have its host's pagetypeinfo: record it as root with `brickyard record`",
            )
            .into());
        }
        let zones = zoneinfo::parse(&end.zoneinfo)?;
        Ok(Self {
            start: fidelity::of_host(start)?,
            end: fidelity::of_host(end)?,
            free: zones.iter().map(|zone| zone.free).sum(),
            idle: zones.iter().map(|zone| zone.idle_in_pagesets()).sum(),
            fallbacks: 0,
            claims: 0,
        })
    }

    fn count(&mut self, counts: Counts) {
        (self.fallbacks, self.claims) = (counts.fallbacks, counts.claims);
    }
}

/// The progress of all passes over the trace before the replays.
struct Reading(ProgressBar);

impl Reading {
    /// The progress of a survey, of the decisions if they are followed, and of a script for each
    /// draw.
    fn new(source: &Source, follows: bool, draws: usize) -> Self {
        let some_draws = draws.div_ceil(Survey::AT_ONCE) as u64;
        let passes = Survey::PASSES * (1 + some_draws) + u64::from(follows);
        let template = "reading {wide_bar} {percent} %, {eta} left";
        Self(bar::bar(source.count() * passes, template))
    }

    /// Notes that so many events more are read; says whether to go on.
    fn on(&self, events: u64) -> ControlFlow<()> {
        self.0.inc(events);
        interrupt::flow()
    }

    fn end(&self) {
        self.0.finish_and_clear();
    }
}

/// Returns what was read, unless that was ended.
fn read<T>(read: Result<T, ScriptError>) -> anyhow::Result<T> {
    match read {
        Err(ScriptError::Stopped) => bail!(NOTHING_DONE),
        read => Ok(read?),
    }
}

/// Returns the median over the draws.
fn median(distances: &[Distance], value: impl Fn(&Distance) -> f64) -> f64 {
    let mut values: Vec<f64> = distances.iter().map(value).collect();
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// Returns a line of errors.
fn errors(section: &str, label: impl Into<String>, cells: impl IntoIterator<Item = Cell>) -> Line {
    Line {
        decimals: 1,
        ..Line::new(section, label, "%", Better::Lower, cells)
    }
}

/// Adds the errors of the ends.
fn ends(sheet: &mut Sheet, host: &Host, compared: &[Compared]) {
    const SECTION: &str = "error of the end (median of the draws)";
    let base = fidelity::distance(&host.start, &host.end);
    let mut line = |label: &str, value: fn(&Distance) -> f64| {
        let cells = [Cell::default(), Cell::of(value(&base) * 100.0)];
        let own = compared
            .iter()
            .map(|of| Cell::of(median(&of.distances, value) * 100.0));
        sheet.push(errors(SECTION, label, cells.into_iter().chain(own)));
    };
    line("free blocks by order", |distance| distance.by_order);
    line("by order and type", |distance| distance.by_type);
    line("by zone, order and type", |distance| distance.by_zone);
    let spread = |of: &Compared| {
        let errors = of.distances.iter().map(|distance| distance.by_type);
        let (low, high) = errors.fold((f64::MAX, 0.0_f64), |(low, high), error| {
            (low.min(error), high.max(error))
        });
        Cell::of((high - low) * 100.0)
    };
    let cells = [Cell::default(), Cell::default()];
    sheet.push(Line {
        decimals: 1,
        ..Line::new(
            SECTION,
            "spread of the draws, by order and type",
            "points",
            Better::Lower,
            cells.into_iter().chain(compared.iter().map(spread)),
        )
    });
    for zone in &host.end {
        let one = core::slice::from_ref(zone);
        let of_tables = |tables: &[ZoneTable]| {
            let own: Vec<ZoneTable> = tables
                .iter()
                .filter(|table| table.node == zone.node && table.zone == zone.zone)
                .cloned()
                .collect();
            let error = fidelity::distance(&own, one).by_type * 100.0;
            Cell::of(Some(error).filter(|error| error.is_finite()))
        };
        if zone.free.iter().flatten().all(|&blocks| blocks == 0) {
            continue;
        }
        let cells = [Cell::default(), of_tables(&host.start)];
        let own = compared
            .iter()
            .map(|of| of_tables(&fidelity::of_replay(&of.outcomes[0].zones)));
        sheet.push(errors(
            "error by zone, order and type (first draw)",
            format!("node {} {}", zone.node, zone.zone),
            cells.into_iter().chain(own),
        ));
    }
}

/// Adds what a trace cannot tell of the errors of the ends.
fn untold_errors(sheet: &mut Sheet, compared: &[Compared], untold: &[RoundTrip]) {
    let mut line = |label: &str, value: fn(&Distance) -> f64| {
        let own = compared.iter().map(|of| {
            let own = untold.iter().find(|own| own.config == of.config);
            Cell::of(own.map(|own| median(&own.distances, value) * 100.0))
        });
        let nothing = [Cell::default(), Cell::default()];
        sheet.push(errors(
            "error of a replay of the replay (median of the draws)",
            label,
            nothing.into_iter().chain(own),
        ));
    };
    line("free blocks by order, untold", |distance| distance.by_order);
    line("by order and type, untold", |distance| distance.by_type);
}

/// Adds figures of the host beside those of the replays.
fn counts(sheet: &mut Sheet, host: &Host, compared: &[Compared]) {
    const SECTION: &str = "the end in numbers (first draw)";
    let mut line = |label: &str, unit, real: Option<u64>, value: &dyn Fn(&Outcome) -> u64| {
        let real = Cell::of(real.map(|real| real as f64));
        let own = compared
            .iter()
            .map(|of| Cell::of(value(&of.outcomes[0]) as f64));
        let cells = [real, Cell::default()].into_iter().chain(own);
        sheet.push(Line::new(SECTION, label, unit, Better::Lower, cells));
    };
    let free = |outcome: &Outcome| {
        let orders = Order::ZERO.up_to(Order::MAX);
        let of_order = |order: Order| {
            let blocks = outcome.zones.iter().map(|zone| {
                zone.free[order.index()].iter().sum::<usize>()
                    - zone.free[order.index()][MigrateType::Isolate.index()]
            });
            blocks.sum::<usize>() << order.get()
        };
        orders.map(of_order).sum::<usize>() as u64
    };
    let idle = |outcome: &Outcome| outcome.zones.iter().map(|zone| zone.cached as u64).sum();
    line("frames free", "", Some(host.free), &free);
    line("idle in lists of CPUs", "frames", Some(host.idle), &idle);
    line("fallbacks", "", Some(host.fallbacks), &|o| o.fallbacks);
    line("  taking the block over", "", Some(host.claims), &|o| {
        o.claims
    });
    let huge = |tables: &[ZoneTable]| {
        let of_order = |order: Order| {
            let blocks = tables
                .iter()
                .map(|zone| zone.free[order.index()].iter().sum::<usize>());
            blocks.sum::<usize>() << (order.get() - Order::HUGE.get())
        };
        Order::HUGE.up_to(Order::MAX).map(of_order).sum::<usize>() as u64
    };
    line("huge pages free", "", Some(huge(&host.end)), &|o| {
        huge(&fidelity::of_replay(&o.zones))
    });
    let types = |kind: MigrateType| host.end.iter().map(move |zone| zone.blocks[kind.index()]);
    for (label, kind) in [
        ("page blocks unmovable", MigrateType::Unmovable),
        ("page blocks reclaimable", MigrateType::Reclaimable),
    ] {
        let real = types(kind).sum::<usize>() as u64;
        line(label, "", Some(real), &|outcome| {
            let zones = outcome.zones.iter();
            zones.map(|zone| zone.blocks[kind.index()]).sum::<usize>() as u64
        });
    }
    let mixed = |outcome: &Outcome| outcome.samples.last().map_or(0, |sample| sample.mixed);
    line("page blocks that are mixed", "", None, &mixed);
}
