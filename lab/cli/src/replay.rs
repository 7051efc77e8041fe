//! `brickyard replay`: replays a trace through several configurations, side by side.

use core::ops::ControlFlow;
use std::collections::BTreeMap;
use std::path::PathBuf;

use anyhow::{Context, bail};
use brickyard::Order;
use brickyard_designs::classics::Configuration;
use brickyard_experiments::filming::{Camera, film};
use brickyard_pictures::pagetypes::Film;
use brickyard_results::bytes_text;
use brickyard_results::{Better, SampleKind, counted};
use brickyard_run::memory::available;
use brickyard_run::side_by_side::cores;
use brickyard_run::{bar, interrupt};
use brickyard_trace::file::{ReadError, Source};
use brickyard_trace::{Event, Events, Trace, What};
use brickyard_workload::antifrag::Reclaim;
use brickyard_workload::fidelity;
use brickyard_workload::outcome::{Mixer, OfOrder, Sample};
use brickyard_workload::script::{Whose, passes};
use brickyard_workload::{
    Machine, Options, Outcome, Rules, Script, ScriptError, Start, Swap, replay as replayed,
};
use clap::Args;

use crate::filming::Pictures;
use crate::sheet::{Cell, Line, Sheet, Shown};
use brickyard_measure::amount::zone_bytes;
use brickyard_measure::command::choice::{choice, or_all};
use brickyard_measure::command::misuse::{Misuse, at_least_one, has_twice, no_value_twice};
use brickyard_measure::command::output::SheetOutput;

/// Bytes of this host's memory for each frame of a machine that is replayed on: the record that the
/// model kernel has of it, and the metadata of the design that has most.
const BYTES_PER_FRAME: usize = 28;

/// The error of a replay that was interrupted before anything was known.
const NOTHING_DONE: &str = "interrupted before the first configuration was finished";

/// The options of `brickyard replay`.
#[derive(Debug, Args)]
pub(crate) struct Replay {
    /// The trace, from `brickyard record` or `brickyard import`.
    trace: PathBuf,
    /// The configurations to compare; the first is the baseline. See `brickyard help designs`.
    /// [default: all]
    #[arg(long, value_delimiter = ',', value_name = "NAMES")]
    config: Vec<Configuration>,
    /// Replay on a machine of this size, empty at first.
    /// [default: the recorded host, in its recorded state]
    #[arg(long, value_parser = zone_bytes, value_name = "BYTES")]
    memory: Option<usize>,
    /// What a request tries that finds no free block.
    #[arg(long, default_value = "compaction", value_parser = choice(Reclaim::NAMES), value_name = "HOW")]
    slow_path: Reclaim,
    /// Allow pages of processes to be written to swap.
    #[arg(long)]
    swap: bool,
    /// Leave out the trace's requests above this order. [default: none is left out]
    #[arg(long, value_parser = clap::value_parser!(u8).range(0..=i64::from(Order::MAX.get())), value_name = "ORDER")]
    max_order: Option<u8>,
    /// Seconds of the trace between two samples.
    #[arg(long, default_value_t = 2.0, value_name = "SECONDS")]
    every: f64,
    /// How many configurations run in parallel. [default: the number of CPUs]
    #[arg(long, value_name = "N")]
    jobs: Option<usize>,
    /// How many requesters that mixed page blocks are listed.
    #[arg(long, default_value_t = 5, value_name = "N")]
    mixers: usize,
    #[command(flatten)]
    pictures: Pictures,
    #[command(flatten)]
    output: SheetOutput,
}

/// A trace without the requests above an order, also without those that failed on the host, and
/// what the host fell back on for them. The frees of what they took are dropped by the replay, as
/// those of any block that it does not know.
struct UpTo<'a, S> {
    source: &'a S,
    max: Option<Order>,
    /// How many requests were left out in the last pass.
    left_out: core::cell::Cell<usize>,
}

impl<S: Events> Events for UpTo<'_, S> {
    fn outline(&self) -> &Trace {
        self.source.outline()
    }

    fn count(&self) -> u64 {
        self.source.count()
    }

    fn last_time(&self) -> u64 {
        self.source.last_time()
    }

    fn pass(
        &self,
        mut take: impl FnMut(&[Event], &[String]) -> ControlFlow<()>,
    ) -> Result<(), ReadError> {
        let Some(max) = self.max else {
            return self.source.pass(take);
        };
        let is_request =
            |event: &Event| matches!(event.what, What::Alloc { .. } | What::Failure { .. });
        let mut left = Vec::new();
        self.left_out.set(0);
        self.source.pass(|events, names| {
            let is_above = |event: &Event| event.order > max;
            let above = events.iter().filter(|event| is_above(event));
            let requests = above.filter(|event| is_request(event)).count();
            self.left_out.set(self.left_out.get() + requests);
            left.clear();
            left.extend(
                events
                    .iter()
                    .filter(|event| !is_above(event) || event.what == What::Free),
            );
            take(&left, names)
        })
    }
}

impl Replay {
    pub(crate) fn run(&self) -> anyhow::Result<()> {
        self.validate()?;
        self.output.check()?;
        self.pictures.check()?;
        interrupt::watch()?;
        let source = Source::open(&self.trace)
            .with_context(|| format!("cannot replay {}", self.trace.display()))?;
        let trace = source.outline();
        let (machine, start) = self.machine(trace)?;
        let (script, left_out) = self.script(&source)?;
        let configs = or_all(&self.config, &Configuration::ALL);
        self.fits(&machine, configs.len())?;
        let runs = self.replay_all(configs, &machine, start, &script)?;
        if runs.is_empty() {
            bail!(NOTHING_DONE);
        }
        let films: Vec<Film> = runs.iter().filter_map(|run| run.film.clone()).collect();
        self.sheet(trace, left_out, &script, &machine, &runs)
            .emit(&self.output)?;
        if self.pictures.any() {
            let title = format!("{} replayed", self.trace.display());
            self.pictures.write(&films, &title)?;
        }
        if runs.iter().any(|run| run.outcome.interrupted) {
            bail!("interrupted: the figures are of what was done until then");
        }
        Ok(())
    }

    /// Prepares the trace; returns how many requests were left out, too.
    fn script(&self, source: &Source) -> anyhow::Result<(Script, usize)> {
        let source = UpTo {
            source,
            max: self.max_order.and_then(Order::try_new),
            left_out: core::cell::Cell::new(0),
        };
        let whose = match self.memory {
            None => Whose::HOST,
            Some(_) => Whose::Other,
        };
        let template = "reading {wide_bar} {percent} %, {eta} left";
        let bar = bar::bar(source.count() * passes(&whose), template);
        let script = Script::read(&source, whose, |events| {
            bar.inc(events);
            interrupt::flow()
        });
        bar.finish_and_clear();
        let script = match script {
            Err(ScriptError::Stopped) => bail!(NOTHING_DONE),
            script => script.with_context(|| format!("cannot replay {}", self.trace.display()))?,
        };
        Ok((script, source.left_out.get()))
    }

    fn validate(&self) -> Result<(), Misuse> {
        if !self.every.is_finite() || self.every <= 0.0 {
            return Err(Misuse::new("--every must be more than 0 seconds"));
        }
        no_value_twice([("config", has_twice(&self.config))])?;
        at_least_one([("jobs", self.jobs)])
    }

    /// Fails if this host has too little memory for so many configurations.
    fn fits(&self, machine: &Machine, configs: usize) -> Result<(), Misuse> {
        let at_once = self.jobs.unwrap_or_else(cores).min(configs);
        let available = available().unwrap_or(usize::MAX);
        has_room_for(machine.frames(), at_once, available)
    }

    /// Returns the machine to replay on, and the state its memory starts in.
    fn machine(&self, trace: &Trace) -> anyhow::Result<(Machine, Start)> {
        let header = &trace.header;
        Ok(match self.memory {
            None => (Machine::recorded(trace)?, Start::Recorded),
            Some(memory) => {
                let cpus = usize::from(header.cpus);
                let frame_bytes = header.frame_bytes.max(512) as usize;
                let machine = Machine::sized(memory as u64, cpus, frame_bytes)?;
                (machine, Start::Empty)
            }
        })
    }

    fn replay_all(
        &self,
        configs: &[Configuration],
        machine: &Machine,
        start: Start,
        script: &Script,
    ) -> anyhow::Result<Vec<Replayed>> {
        let options = Options {
            start,
            rules: Rules {
                slow_path: self.slow_path.slow_path(),
                swap: if self.swap { Swap::On } else { Swap::Off },
                ..Rules::TODAY
            },
            sample_every: (self.every * 1e9) as u64,
        };
        let units = (configs.len() * script.len()) as u64;
        let runs = bar::runs(configs.len(), self.jobs, units, |place, follow| {
            let config = configs[place];
            let zones = machine.zones_for(config);
            let (max, huge) = (machine.max_order, machine.huge_order);
            let mut film = self
                .pictures
                .any()
                .then(|| film(config.name(), &zones, max, huge, machine.frame_bytes))
                .transpose()?;
            let camera = Camera::new(follow, film.as_mut());
            let outcome = replayed(config, machine, script, &options, camera)
                .with_context(|| format!("{config} cannot be replayed"))?;
            Ok(Replayed {
                config,
                outcome,
                film,
            })
        });
        runs.into_iter().collect()
    }

    fn sheet(
        &self,
        trace: &Trace,
        left_out: usize,
        script: &Script,
        machine: &Machine,
        runs: &[Replayed],
    ) -> Sheet {
        let columns = runs
            .iter()
            .map(|run| run.config.name().to_owned())
            .collect();
        let mut sheet = Sheet::new("replay", columns);
        let host = if trace.header.kernel.is_empty() {
            "an unknown host".to_owned()
        } else {
            format!("Linux {}", trace.header.kernel)
        };
        sheet.head(format!(
            "{}: {} in {:.1} s, recorded on {host}",
            self.trace.display(),
            counted(script.len(), "step", "steps"),
            script.duration() as f64 / 1e9,
        ));
        let memory = machine.frames() * machine.frame_bytes;
        let whose = match self.memory {
            None => "that host, in its recorded state",
            Some(_) => "a machine of another size, empty at first",
        };
        sheet.head(format!(
            "replayed on {whose}: {} ({} frames), {}",
            bytes_text(memory >> 20 << 20),
            machine.frames(),
            counted(machine.cpus, "CPU", "CPUs"),
        ));
        if let Some(max) = self.max_order {
            sheet.head(format!(
                "left out: {} above order {max}",
                counted(left_out, "request", "requests")
            ));
        }
        requests(&mut sheet, runs);
        frees(&mut sheet, runs);
        mixing(&mut sheet, runs, self.mixers);
        over_time(&mut sheet, runs);
        indices(&mut sheet, machine.max_order, runs);
        huge_pages(&mut sheet, machine, runs);
        pressure(&mut sheet, runs);
        time(&mut sheet, runs);
        sheet.note(format!(
            "On the recorded host: {}, {} (repeated here, and freed at once if they succeed).",
            counted(script.host_fallbacks(), "fallback", "fallbacks"),
            counted(script.host_failures(), "failed request", "failed requests"),
        ));
        if self.memory.is_none()
            && let Some(sentence) = verdict(trace, runs)
        {
            sheet.note(sentence);
        }
        let lost: u64 = trace.header.lost.iter().map(|lost| lost.events).sum();
        if lost > 0 {
            sheet.note(format!(
                "{} lost during the recording: the figures on frees may be off by as many.",
                counted(lost, "event was", "events were")
            ));
        }
        if runs.iter().any(|run| run.config.has_movable_zone()) {
            sheet.note(
                "Where a configuration has a zone for movable pages, that zone is half of memory.",
            );
        }
        if !self.swap && runs.iter().any(|run| run.outcome.all_requests().failed > 0) {
            sheet.note("Requests failed while pages of processes could not be written to swap; --swap allows it.");
        }
        if runs.iter().any(|run| run.outcome.interrupted) {
            let done = |run: &Replayed| {
                let steps = counted(run.outcome.steps, "step", "steps");
                format!("{} after {steps}", run.config)
            };
            let done: Vec<String> = runs.iter().map(done).collect();
            sheet.interrupted(format!("Interrupted: {}.", done.join(", ")));
        }
        sheet
    }
}

/// Returns what the recorded host would have gained or lost by the default design, and how far that
/// can be trusted: as far as the replay with the host's own design ends like the host. `None`
/// unless both were replayed, and the host's end is known.
fn verdict(trace: &Trace, runs: &[Replayed]) -> Option<String> {
    let of = |config| runs.iter().find(|run| run.config == config);
    let kernel = own_design(&trace.header.kernel);
    let (host, ours) = (of(kernel)?, of(Configuration::Brickyard)?);
    if trace.header.end.pagetypeinfo.is_empty() {
        return None;
    }
    let real = fidelity::of_host(&trace.header.end).ok()?;
    let end = fidelity::of_replay(&host.outcome.zones);
    let distance = fidelity::distance(&end, &real);
    let mixed = |run: &Replayed| run.outcome.samples.last().map_or(0, |sample| sample.mixed);
    let median = |run: &Replayed| {
        let times = run.outcome.alloc_ns;
        times.map_or_else(|| "-".to_owned(), |(median, _)| format!("{median:.0}"))
    };
    Some(format!(
        "With {kernel} as the base line, whose replay ends within {:.1} % of this host's free blocks \
         by order and within {:.1} % by order and type: in its place, {} would have had {} huge pages \
         free ({} after compaction) instead of {} ({}), {} mixed page blocks instead of {}, and an \
         allocation would have taken {} ns instead of {} (median).",
        distance.by_order * 100.0,
        distance.by_type * 100.0,
        ours.config,
        ours.outcome.huge.now,
        ours.outcome.huge.compacted,
        host.outcome.huge.now,
        host.outcome.huge.compacted,
        mixed(ours),
        mixed(host),
        median(ours),
        median(host),
    ))
}

/// Returns the configuration with the rules of this kernel, or of the next that there is one for.
fn own_design(release: &str) -> Configuration {
    let mut numbers = release.split(|c: char| !c.is_ascii_digit());
    let mut number = || numbers.next().and_then(|number| number.parse::<u32>().ok());
    match (number(), number()) {
        (Some(major), Some(minor)) if (major, minor) < (6, 15) => Configuration::Linux612,
        _ => Configuration::Linux618,
    }
}

/// Fails if replays on so many frames, `at_once` in parallel, need more than the available memory.
fn has_room_for(frames: usize, at_once: usize, available: usize) -> Result<(), Misuse> {
    let each = frames.saturating_mul(BYTES_PER_FRAME);
    let needed = each.saturating_mul(at_once);
    if needed <= available {
        return Ok(());
    }
    let fewer = if each <= available { " or --jobs" } else { "" };
    Err(Misuse::new(format!(
        "the replay would use about {} MiB of memory, and {} MiB are available; give a smaller --memory{fewer}",
        needed >> 20,
        available >> 20
    )))
}

/// The result of one configuration.
#[derive(Debug)]
struct Replayed {
    config: Configuration,
    outcome: Outcome,
    film: Option<Film>,
}

/// Returns a value of each run.
fn each(runs: &[Replayed], value: impl Fn(&Outcome) -> u64) -> impl Iterator<Item = u64> {
    runs.iter().map(move |run| value(&run.outcome))
}

fn requests(sheet: &mut Sheet, runs: &[Replayed]) {
    const SECTION: &str = "allocations";
    let asked = |order: Order| {
        runs.iter()
            .map(move |run| run.outcome.requests[order.index()].asked)
    };
    let served = |of: OfOrder| of.asked - of.failed;
    for order in Order::ZERO
        .up_to(Order::MAX)
        .filter(|&order| asked(order).any(|n| n > 0))
    {
        let of = |outcome: &Outcome| outcome.requests[order.index()];
        let label = format!("order {order}");
        let values = each(runs, |o| served(of(o)));
        sheet.counts(SECTION, label, "served", Better::Higher, values);
        let label = format!("order {order} failed");
        let failed = each(runs, |o| of(o).failed);
        sheet.counts(SECTION, label, "", Better::Lower, failed);
    }
}

fn frees(sheet: &mut Sheet, runs: &[Replayed]) {
    const SECTION: &str = "frees";
    let mut line = |label: &str, value: fn(&Outcome) -> u64| {
        sheet.counts(SECTION, label, "", Better::Lower, each(runs, value));
    };
    line("of whole blocks", |o| o.frees.whole);
    line("of parts, or of several", |o| o.frees.parts);
    line("dropped: reclaimed before", |o| o.frees.reclaimed);
    line("dropped: never served", |o| o.frees.refused);
    line("dropped: taken before", |o| o.frees.unknown);
    line("lost: allocated again", |o| o.double);
    line("cached at the start", |o| o.from_caches);
    line("start: not placed", |o| o.unplaced);
}

fn mixing(sheet: &mut Sheet, runs: &[Replayed], named: usize) {
    const SECTION: &str = "fallbacks";
    let mut line = |label: &str, value: fn(&Outcome) -> u64| {
        sheet.counts(SECTION, label, "", Better::Lower, each(runs, value));
    };
    line("on another mobility", |o| o.fallbacks);
    line("without taking the block over", |o| o.mixing);
    line("taking the block over", |o| o.claims);
    line("times a page block became mixed", |o| {
        o.mixers.values().sum()
    });
    let mut all: BTreeMap<&Mixer, u64> = BTreeMap::new();
    for run in runs {
        for (mixer, times) in &run.outcome.mixers {
            *all.entry(mixer).or_default() += times;
        }
    }
    let mut most: Vec<(&Mixer, u64)> = all.into_iter().collect();
    most.sort_by_key(|&(mixer, times)| (core::cmp::Reverse(times), mixer));
    for (mixer, _) in most.into_iter().take(named) {
        let label = format!("{} {} order {}", mixer.name, mixer.mobility, mixer.order);
        let times = each(runs, |o| o.mixers.get(mixer).copied().unwrap_or(0));
        sheet.counts("page blocks mixed by", label, "times", Better::Lower, times);
    }
}

fn over_time(sheet: &mut Sheet, runs: &[Replayed]) {
    const SECTION: &str = "over time (last sample)";
    let mut line = |label: &str, unit, better, value: fn(&Sample) -> f64| {
        let samples = runs.iter().map(|run| run.outcome.samples.iter());
        let cells = samples.map(|samples| Cell(samples.map(value).collect()));
        sheet.push(Line::new(SECTION, label, unit, better, cells));
    };
    line("mixed page blocks", "", Better::Lower, |s| s.mixed as f64);
    line("huge pages free", "", Better::Higher, |s| s.huge as f64);
    line("frames free", "", Better::Higher, |s| s.free as f64);
    line("unusable for huge pages", "per mille", Better::Lower, |s| {
        f64::from(s.unusable)
    });
    line("idle in caches", "frames", Better::Lower, |s| {
        s.cached as f64
    });
}

fn indices(sheet: &mut Sheet, max: Order, runs: &[Replayed]) {
    for order in Order::ZERO.up_to(max) {
        let unusable = each(runs, |o| u64::from(o.free.unusable_index(order)));
        let (label, unit) = (format!("order {order}"), "per mille");
        sheet.counts("unusable index", label, unit, Better::Lower, unusable);
    }
    for order in Order::ZERO.up_to(max) {
        let index =
            |run: &Replayed| f64::from(run.outcome.free.fragmentation_index(order)) / 1000.0;
        let section = "fragmentation index (-1 would succeed, 0 lack, 1 pieces)";
        let cells = runs.iter().map(|run| Cell::of(index(run)));
        sheet.push(Line {
            decimals: 3,
            shown: Shown::UnlessAll(-1.0),
            ..Line::new(section, format!("order {order}"), "", Better::Lower, cells)
        });
    }
}

fn huge_pages(sheet: &mut Sheet, machine: &Machine, runs: &[Replayed]) {
    let section = format!("huge pages (order {})", machine.huge_order);
    let mut line = |label: &str, unit, better, value: fn(&Outcome) -> usize| {
        let values = each(runs, |o| value(o) as u64);
        sheet.counts(&section, label, unit, better, values);
    };
    let (lower, higher) = (Better::Lower, Better::Higher);
    line("free now", "", higher, |o| o.huge.now);
    line("after draining caches", "", higher, |o| o.huge.drained);
    line("after reclaim", "", higher, |o| o.huge.reclaimed);
    line("after compaction", "", higher, |o| o.huge.compacted);
    line("  pages moved for it", "", lower, |o| o.huge.moved);
    line("  pages that could not move", "", lower, |o| o.huge.stuck);
    line("possible at best", "", higher, |o| o.huge.possible);
    line("idle in caches at the end", "frames", lower, |o| o.idle);
}

fn pressure(sheet: &mut Sheet, runs: &[Replayed]) {
    const SECTION: &str = "reclaim and compaction";
    let mut line = |label: &str, unit, value: fn(&Outcome) -> u64| {
        sheet.counts(SECTION, label, unit, Better::Lower, each(runs, value));
    };
    line("direct reclaim, calls", "", |o| o.pressure.direct_calls);
    line("freed by requests", "frames", |o| o.pressure.direct);
    line("freed in the background", "frames", |o| {
        o.pressure.background
    });
    line("freed for lumps", "frames", |o| o.pressure.lumpy);
    line("written before", "frames", |o| o.pressure.written);
    line("moved while it ran", "frames", |o| o.pressure.moved);
    line("waited for writes", "ms", |o| o.pressure.waited / 1_000_000);
}

fn time(sheet: &mut Sheet, runs: &[Replayed]) {
    let mut line = |label: &str, unit, better, decimals, value: fn(&Outcome) -> Option<f64>| {
        let cells = runs.iter().map(|run| Cell::of(value(&run.outcome)));
        sheet.push(Line {
            kind: SampleKind::Timed,
            decimals,
            ..Line::new("time", label, unit, better, cells)
        });
    };
    let lower = Better::Lower;
    line("an allocation, median", "ns", lower, 0, |o| {
        Some(o.alloc_ns?.0)
    });
    line("an allocation, 99 in 100", "ns", lower, 0, |o| {
        Some(o.alloc_ns?.1)
    });
    line("a free, median", "ns", lower, 0, |o| Some(o.free_ns?.0));
    line("a free, 99 in 100", "ns", lower, 0, |o| Some(o.free_ns?.1));
    line("replay", "million steps a second", Better::Higher, 1, |o| {
        Some(o.steps as f64 / o.seconds.max(1e-9) / 1e6)
    });
}

#[cfg(test)]
mod tests {
    use brickyard::MigrateType;
    use brickyard_trace::NameId;

    use super::*;

    #[test]
    fn a_replay_that_needs_more_memory_than_there_is_does_not_begin() {
        let frames = 1 << 20;
        let each = frames * BYTES_PER_FRAME;
        assert!(has_room_for(frames, 2, 2 * each).is_ok());
        let why = |at_once, available| {
            let refused = has_room_for(frames, at_once, available);
            refused.map_err(|why| why.to_string()).unwrap_err()
        };
        let two = why(2, 2 * each - 1);
        assert!(two.contains("a smaller --memory or --jobs"), "{two}");
        let one = why(2, each - 1);
        assert!(one.ends_with("a smaller --memory"), "{one}");
        assert!(has_room_for(usize::MAX, 2, 1 << 40).is_err());
    }

    #[test]
    fn a_kernel_has_the_rules_of_its_version() {
        let of = |release| own_design(release).name();
        assert_eq!(of("6.12.41+deb13-amd64"), "linux-6.12");
        assert_eq!(of("5.10.0"), "linux-6.12");
        assert_eq!(of("6.14.0-rc1"), "linux-6.12");
        assert_eq!(of("6.18.44-fc-v657"), "linux-6.18");
        assert_eq!(of("7.2"), "linux-6.18");
        assert_eq!(of(""), "linux-6.18");
    }

    #[test]
    fn a_request_above_the_order_is_left_out_whether_the_host_served_it_or_not() {
        let (mobility, flags) = (MigrateType::Movable, 0);
        let from_order = Order::new(4);
        let of = |order, what| Event {
            time: 0,
            frame: 0,
            what,
            order: Order::new(order),
            pid: 0,
            name: NameId(0),
            cpu: 0,
        };
        let of_each = [
            What::Alloc { mobility, flags },
            What::Failure { mobility, flags },
            What::Fallback {
                mobility,
                from_order,
                from: mobility,
                claimed: false,
            },
            What::Free,
        ];
        let at_order = |order| of_each.map(|what| of(order, what));
        let trace = Trace {
            events: [at_order(2), at_order(3)].concat(),
            ..Trace::default()
        };
        let up_to = |max| {
            let source = UpTo {
                source: &trace,
                max,
                left_out: core::cell::Cell::new(0),
            };
            let mut left = Vec::new();
            // As often as one likes.
            for _ in 0..2 {
                left.clear();
                let all = source.pass(|events, _| {
                    left.extend_from_slice(events);
                    ControlFlow::Continue(())
                });
                all.unwrap();
            }
            (left, source.left_out.get())
        };
        // A free may be of a part of a block that was there at the start.
        let left = [&at_order(2)[..], &[of(3, What::Free)]].concat();
        assert_eq!(up_to(Some(Order::new(2))), (left, 2));
        assert_eq!(up_to(Some(Order::new(3))), (trace.events.clone(), 0));
        assert_eq!(up_to(None), (trace.events.clone(), 0));
    }
}
