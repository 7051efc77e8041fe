//! `brickyard bench pagealloc`: the table of the 2013 magazine series.
//!
//! A sample allocates a batch of pages and frees it, over and over for at least a millisecond. `total` is the time of that loop, with no clock
//! inside. A second loop with a clock around each half, less the clock's own cost, tells how `total` divides into `alloc` and `free`: its shares
//! are taken, not its times, which a clock in so short a loop inflates. All in ns per page (per block above order 0), as one thread sees it.
//! Every request goes through the node, as a kernel's would.
//!
//! Configurations take turns in every round, so that a change of the machine's mood hits them alike.
//!
//! The original ran batch + 1 pages a sample and divided by batch, and carried sums over from one sample to the next; neither is done here.

use core::mem::MaybeUninit;
use core::slice;
use core::time::Duration;
use std::io::IsTerminal;
use std::sync::{Barrier, Mutex, PoisonError};
use std::thread;
use std::time::Instant;

use anyhow::{Context, bail};
use brickyard::bulk::BulkPolicy;
use brickyard::design::Design;
use brickyard::node::{Node, Nodes};
use brickyard::sync::{
    Exclusive, OwnLine, RawLock, Shared, SlotAccess, TestAndSetLock, TicketLock,
};
use brickyard::{
    AllocError, Configuration, Experiment, Frame, FrameRange, MachinePlan, Mobility, Request,
};
use brickyard_arena::Threads;
use brickyard_report::{Better, Host, Metric, Results, Row};
use clap::{Args, ValueEnum};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use super::schedule::{Orders, Workload, bytes, workloads};
use crate::interrupt;
use crate::misuse::Misuse;
use crate::output::Output;

/// The options of `brickyard bench pagealloc`.
#[derive(Debug, Args)]
pub(crate) struct PageAlloc {
    /// The configurations to compare; the first is the baseline. See `brickyard configs`.
    #[arg(
        long,
        value_delimiter = ',',
        default_value = "list-2007,magazine-2013,vanilla,two-kinds-2005,zone-2007,combined-2007",
        value_name = "NAMES"
    )]
    config: Vec<Configuration>,
    /// The orders, such as 0-4,9.
    #[arg(long, default_value = "0-4,9", value_name = "ORDERS")]
    orders: Orders,
    /// The largest batch; batches are 1, 2, 4 … and below 128 MiB.
    #[arg(long, default_value_t = 16384, value_name = "N")]
    max_batch: usize,
    /// How many threads run at once.
    #[arg(long, value_delimiter = ',', default_value = "1,2", value_name = "N,…")]
    threads: Vec<usize>,
    /// Samples of each row.
    #[arg(long, default_value_t = 10, value_name = "N")]
    samples: usize,
    /// The least time that a sample's loop runs, in microseconds.
    #[arg(long, default_value_t = 1000, value_name = "US")]
    sample_us: u64,
    /// The memory of the machine that is allocated from (its metadata only is real).
    #[arg(long, default_value = "1G", value_parser = bytes, value_name = "BYTES")]
    memory: usize,
    /// What the pages are asked for as.
    #[arg(long, value_enum, default_value_t = Kind::Unmovable)]
    mobility: Kind,
    /// The order in which a batch is freed.
    #[arg(long, value_enum, default_value_t = FreeOrder::Same)]
    free: FreeOrder,
    /// How a CPU reaches its lists: exclusively, or by a lock that others may try.
    #[arg(long, value_enum, default_value_t = Slots::Exclusive)]
    slots: Slots,
    /// The lock of the zones and magazines.
    #[arg(long, value_enum, default_value_t = Lock::Ticket)]
    lock: Lock,
    /// How long the zone lock is held in a bulk operation.
    #[arg(long, value_enum, default_value_t = Bulk::Hold)]
    bulk: Bulk,
    #[command(flatten)]
    output: Output,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Kind {
    Unmovable,
    Movable,
    Reclaimable,
}

impl Kind {
    const fn mobility(self) -> Mobility {
        match self {
            Self::Unmovable => Mobility::Unmovable,
            Self::Movable => Mobility::Movable,
            Self::Reclaimable => Mobility::Reclaimable,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum FreeOrder {
    /// As allocated.
    Same,
    /// Shuffled, the same way each time.
    Random,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Slots {
    Exclusive,
    Shared,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Lock {
    /// First come, first served.
    Ticket,
    /// Whoever is quickest.
    TestAndSet,
    /// A ticket lock in its own cache line.
    TicketOwnLine,
    /// A test-and-set lock in its own cache line.
    TestAndSetOwnLine,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Bulk {
    /// For the whole batch.
    Hold,
    /// Page by page.
    Release,
    /// Until somebody waits.
    Yield,
}

impl Bulk {
    const fn policy(self) -> BulkPolicy {
        match self {
            Self::Hold => BulkPolicy::Hold,
            Self::Release => BulkPolicy::ReleaseEachPage,
            Self::Yield => BulkPolicy::YieldWhenContended,
        }
    }
}

/// The three numbers of a sample, in ns per page.
#[derive(Debug, Clone, Copy, Default)]
struct Sample {
    alloc: f64,
    free: f64,
    total: f64,
}

const METRICS: [&str; 3] = ["alloc", "free", "total"];

impl Sample {
    fn metric(&self, name: &str) -> f64 {
        match name {
            "alloc" => self.alloc,
            "free" => self.free,
            _ => self.total,
        }
    }
}

const NS_PER_PAGE: &str = "ns/page";

impl PageAlloc {
    pub(crate) fn run(&self) -> anyhow::Result<()> {
        let workloads = workloads(&self.orders.0, &self.threads, self.max_batch);
        self.validate(&workloads)?;
        self.output.check()?;
        interrupt::watch()?;
        let samples = self.measure(&workloads)?;
        let results = self.results(&workloads, &samples)?;
        self.output.emit(&results, &|workload, metric| {
            workload.replacen("batch", metric, 1)
        })
    }

    /// Options that each make sense, but not together.
    fn validate(&self, workloads: &[Workload]) -> Result<(), Misuse> {
        if has_twice(&self.config) {
            return Err(Misuse::new("--config names a configuration twice"));
        }
        if has_twice(&self.threads) {
            return Err(Misuse::new("--threads names a number twice"));
        }
        if self.threads.contains(&0) || self.samples == 0 || self.max_batch == 0 {
            let why = "--threads, --samples and --max-batch must be at least 1";
            return Err(Misuse::new(why));
        }
        let pages = |w: &Workload| (w.batch << w.order.get()) * w.threads;
        let most = workloads.iter().map(pages).max().unwrap_or(0);
        // Twice the largest batch of all threads; a configuration with a zone for movable pages has half of the memory for the others.
        let needed = most * 4 * 4096;
        if self.memory < needed {
            return Err(Misuse::new(format!(
                "--memory {} is too small for these batches; give at least {}M, or a lower --max-batch",
                self.memory,
                needed.div_ceil(1 << 20)
            )));
        }
        Ok(())
    }

    /// One vector of samples for each configuration and workload, in the order of both.
    fn measure(&self, workloads: &[Workload]) -> anyhow::Result<Vec<Vec<Vec<Sample>>>> {
        let mut samples = vec![vec![Vec::new(); workloads.len()]; self.config.len()];
        let steps = self.samples * self.config.len() * workloads.len();
        let progress = progress_bar(steps as u64);
        'rounds: for round in 0..=self.samples {
            // Round 0 warms up, on the smallest batches alone.
            let warm_up = round == 0;
            let mut of_round = Vec::new();
            for turn in 0..self.config.len() {
                let index = (turn + round) % self.config.len();
                let config = self.config[index];
                progress.set_message(config.name());
                let part = if warm_up { &workloads[..1] } else { workloads };
                let taken = self.measure_one(config, part, |()| {
                    if !warm_up {
                        progress.inc(1);
                    }
                })?;
                if interrupt::asked() {
                    break 'rounds;
                }
                of_round.push((index, taken));
            }
            if warm_up {
                continue;
            }
            for (index, taken) in of_round {
                for (all, sample) in samples[index].iter_mut().zip(taken) {
                    all.push(sample);
                }
            }
        }
        progress.finish_and_clear();
        let done = samples[0][0].len();
        if interrupt::asked() {
            if done == 0 {
                bail!("interrupted before the first round was complete");
            }
            eprintln!(
                "interrupted: {done} of {} rounds are complete",
                self.samples
            );
        }
        Ok(samples)
    }

    fn measure_one(
        &self,
        config: Configuration,
        workloads: &[Workload],
        step: impl Fn(()),
    ) -> anyhow::Result<Vec<Sample>> {
        match (self.slots, self.lock) {
            (Slots::Exclusive, Lock::Ticket) => {
                self.on::<Exclusive, TicketLock>(config, workloads, step)
            }
            (Slots::Exclusive, Lock::TestAndSet) => {
                self.on::<Exclusive, TestAndSetLock>(config, workloads, step)
            }
            (Slots::Exclusive, Lock::TicketOwnLine) => {
                self.on::<Exclusive, OwnLine<TicketLock>>(config, workloads, step)
            }
            (Slots::Exclusive, Lock::TestAndSetOwnLine) => {
                self.on::<Exclusive, OwnLine<TestAndSetLock>>(config, workloads, step)
            }
            (Slots::Shared, Lock::Ticket) => self.on::<Shared, TicketLock>(config, workloads, step),
            (Slots::Shared, Lock::TestAndSet) => {
                self.on::<Shared, TestAndSetLock>(config, workloads, step)
            }
            (Slots::Shared, Lock::TicketOwnLine) => {
                self.on::<Shared, OwnLine<TicketLock>>(config, workloads, step)
            }
            (Slots::Shared, Lock::TestAndSetOwnLine) => {
                self.on::<Shared, OwnLine<TestAndSetLock>>(config, workloads, step)
            }
        }
    }

    /// Builds a machine of this configuration and runs every workload on it once.
    fn on<A: SlotAccess, L: RawLock>(
        &self,
        config: Configuration,
        workloads: &[Workload],
        step: impl Fn(()),
    ) -> anyhow::Result<Vec<Sample>> {
        let most_threads = self.threads.iter().copied().max().unwrap_or(1);
        let frames = self.memory / 4096;
        // One more slot than threads: this thread has a number too.
        let mut plan = MachinePlan::new(FrameRange::new(0, frames), most_threads + 1);
        plan.whole.tuning.bulk = self.bulk.policy();
        let mut memory = vec![MaybeUninit::uninit(); config.bytes::<A, L, Threads>(&plan)];
        let experiment = Rounds {
            options: self,
            workloads,
            step,
        };
        config
            .run::<A, L, _, _>(&plan, Threads, &mut memory, experiment)
            .context("cannot build the configuration")?
            .with_context(|| format!("{config} ran out of memory; give more --memory"))
    }

    fn results(
        &self,
        workloads: &[Workload],
        samples: &[Vec<Vec<Sample>>],
    ) -> anyhow::Result<Results> {
        let mut results = Results::new("pagealloc", Host::read());
        for block in workloads.chunk_by(|a, b| (a.order, a.threads) == (b.order, b.threads)) {
            for name in METRICS {
                let metric = Metric {
                    name,
                    unit: NS_PER_PAGE,
                    better: Better::Lower,
                };
                for workload in block {
                    let place = workloads.iter().position(|other| other == workload);
                    for (config, samples) in self.config.iter().zip(samples) {
                        let values = place
                            .map(|place| samples[place].iter().map(|s| s.metric(name)).collect());
                        let row = Row::new(
                            config.name(),
                            self.name(workload),
                            metric,
                            values.unwrap_or_default(),
                        )?;
                        results.push(row)?;
                    }
                }
            }
        }
        Ok(results)
    }

    fn name(&self, workload: &Workload) -> String {
        let mut name = format!("order-{} batch-{}", workload.order, workload.batch);
        if workload.threads > 1 {
            name += &format!(" threads-{}", workload.threads);
        }
        if self.slots == Slots::Shared {
            name += " shared";
        }
        if self.free == FreeOrder::Random {
            name += " random-free";
        }
        // What differs from the defaults, so that two runs cannot be taken for one.
        for (option, value, default) in [
            ("mobility", named(self.mobility), named(Kind::Unmovable)),
            ("lock", named(self.lock), named(Lock::Ticket)),
            ("bulk", named(self.bulk), named(Bulk::Hold)),
        ] {
            if value != default {
                name += &format!(" {option}-{value}");
            }
        }
        name
    }
}

/// The name of an option's value.
fn named(value: impl ValueEnum) -> String {
    let value = value.to_possible_value();
    value.map_or_else(String::new, |value| value.get_name().to_owned())
}

fn has_twice<T: PartialEq>(values: &[T]) -> bool {
    let mut rest = values;
    while let Some((first, behind)) = rest.split_first() {
        if behind.contains(first) {
            return true;
        }
        rest = behind;
    }
    false
}

fn progress_bar(steps: u64) -> ProgressBar {
    let progress = ProgressBar::new(steps);
    if !std::io::stderr().is_terminal() {
        progress.set_draw_target(ProgressDrawTarget::hidden());
    }
    let template = "{wide_bar} {pos}/{len} {msg}, {eta} left";
    if let Ok(style) = ProgressStyle::with_template(template) {
        progress.set_style(style);
    }
    progress
}

/// Every workload once, on one machine.
struct Rounds<'o, F> {
    options: &'o PageAlloc,
    workloads: &'o [Workload],
    step: F,
}

impl<F: Fn(())> Experiment<Threads> for Rounds<'_, F> {
    type Output = Result<Vec<Sample>, AllocError>;

    fn run<D: Design<Platform = Threads>>(self, node: &Node<'_, D>) -> Self::Output {
        let nodes = Nodes::new(slice::from_ref(node));
        let mut samples = Vec::new();
        for workload in self.workloads {
            if interrupt::asked() {
                break;
            }
            samples.push(sample(&nodes, workload, self.options)?);
            (self.step)(());
        }
        Ok(samples)
    }
}

/// One sample of a workload: the mean over its threads.
fn sample<D: Design>(
    nodes: &Nodes<'_, D>,
    workload: &Workload,
    options: &PageAlloc,
) -> Result<Sample, AllocError> {
    let barrier = Barrier::new(workload.threads);
    let all = Mutex::new(Vec::new());
    thread::scope(|scope| {
        for _ in 0..workload.threads {
            scope.spawn(|| {
                let one = sample_of_thread(nodes, workload, options, &barrier);
                all.lock().unwrap_or_else(PoisonError::into_inner).push(one);
            });
        }
    });
    let all = all.into_inner().unwrap_or_else(PoisonError::into_inner);
    let n = all.len() as f64;
    let mut mean = Sample::default();
    for one in all {
        let one = one?;
        mean.alloc += one.alloc / n;
        mean.free += one.free / n;
        mean.total += one.total / n;
    }
    Ok(mean)
}

fn sample_of_thread<D: Design>(
    nodes: &Nodes<'_, D>,
    workload: &Workload,
    options: &PageAlloc,
    barrier: &Barrier,
) -> Result<Sample, AllocError> {
    let mut batch = Batch::new(nodes, workload, options);
    let rounds = batch.rounds_in(Duration::from_micros(options.sample_us));
    // Every thread comes to every barrier, also one that has failed.
    barrier.wait();
    let total = rounds.and_then(|rounds| Ok((rounds, batch.time_whole(rounds)?)));
    barrier.wait();
    let (rounds, total) = total?;
    let (alloc, free) = batch.time_halves(rounds)?;
    let pages = rounds as f64 * workload.batch as f64;
    let total = total.as_nanos() as f64 / pages;
    let (alloc, free) = (alloc.as_nanos() as f64, free.as_nanos() as f64);
    let share = if alloc + free > 0.0 {
        alloc / (alloc + free)
    } else {
        0.5
    };
    Ok(Sample {
        alloc: total * share,
        free: total * (1.0 - share),
        total,
    })
}

/// What two readings of the clock, one behind the other, differ by: the median of many.
fn cost_of_the_clock() -> Duration {
    let mut costs: Vec<Duration> = (0..101)
        .map(|_| {
            let begun = Instant::now();
            begun.elapsed()
        })
        .collect();
    costs.sort_unstable();
    costs[costs.len() / 2]
}

/// A batch that is allocated and freed again and again.
struct Batch<'n, 'z, D: Design> {
    nodes: &'n Nodes<'z, D>,
    request: Request,
    frames: Vec<Frame>,
    // The places of the batch in the order in which they are freed.
    freed: Vec<u32>,
}

impl<'n, 'z, D: Design> Batch<'n, 'z, D> {
    fn new(nodes: &'n Nodes<'z, D>, workload: &Workload, options: &PageAlloc) -> Self {
        let mut freed: Vec<u32> = (0..workload.batch as u32).collect();
        if options.free == FreeOrder::Random {
            shuffle(&mut freed);
        }
        Self {
            nodes,
            request: Request::new(workload.order, options.mobility.mobility()),
            frames: vec![Frame::new(0); workload.batch],
            freed,
        }
    }

    #[inline]
    fn alloc(&mut self) -> Result<(), AllocError> {
        for frame in &mut self.frames {
            *frame = self.nodes.alloc(0, &self.request)?;
        }
        Ok(())
    }

    #[inline]
    fn free(&self) {
        for &place in &self.freed {
            let freed = self
                .nodes
                .free(self.frames[place as usize], self.request.order);
            debug_assert_eq!(freed, Ok(()), "the benchmark frees what it has allocated");
        }
    }

    #[inline]
    fn round(&mut self) -> Result<(), AllocError> {
        self.alloc()?;
        self.free();
        Ok(())
    }

    /// How many rounds fill the time; finding out also warms up.
    fn rounds_in(&mut self, least: Duration) -> Result<u64, AllocError> {
        self.round()?;
        let begun = Instant::now();
        let mut rounds = 0_u32;
        while rounds == 0 || begun.elapsed() < least / 4 {
            self.round()?;
            rounds += 1;
        }
        let per_round = (begun.elapsed() / rounds).max(Duration::from_nanos(1));
        Ok((least.as_nanos() / per_round.as_nanos()).max(1) as u64)
    }

    /// The time of so many rounds, with no clock inside.
    fn time_whole(&mut self, rounds: u64) -> Result<Duration, AllocError> {
        let begun = Instant::now();
        for _ in 0..rounds {
            self.round()?;
        }
        Ok(begun.elapsed())
    }

    /// The times of the allocations and of the frees of so many rounds, less what the clock costs.
    fn time_halves(&mut self, rounds: u64) -> Result<(Duration, Duration), AllocError> {
        let (mut alloc, mut free) = (Duration::ZERO, Duration::ZERO);
        let clock = cost_of_the_clock();
        for _ in 0..rounds {
            let begun = Instant::now();
            self.alloc()?;
            let between = Instant::now();
            self.free();
            alloc += (between - begun).saturating_sub(clock);
            free += between.elapsed().saturating_sub(clock);
        }
        Ok((alloc, free))
    }
}

/// Fisher and Yates, with a fixed seed: every run and every configuration frees in the same order.
fn shuffle(places: &mut [u32]) {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    for last in (1..places.len()).rev() {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        places.swap(last, (state % (last as u64 + 1)) as usize);
    }
}
