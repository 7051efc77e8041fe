//! `brickyard-heap slab`: heaps for small objects, ours and others, in one run.

mod child;
mod selection;

use core::time::Duration;

use crate::slab::baseline::MOST_BYTES;
use crate::slab::turn::HeapPeer;
use crate::slab::work::{SlabWork, Workload};
use crate::slab::{Slab as Measurement, instructions};
use anyhow::bail;
use brickyard_measure::objects::crowd::Clock;
use brickyard_measure::objects::object::Shape;
use brickyard_results::{Against, Results, bytes_text, plain_label};
use brickyard_run::{bar, interrupt};
use clap::Args;

use brickyard_measure::command::choice::choice;
use brickyard_measure::command::misuse::{Misuse, at_least_one, has_twice, no_value_twice};
use brickyard_measure::command::output::Output;
use brickyard_results::bytes_of;
use selection::{Chosen, choose};

pub(crate) use child::SlabTurn;

/// The options of `brickyard-heap slab`.
#[derive(Debug, Args)]
pub(crate) struct Slab {
    /// What is compared; the first is the baseline. By default everything available: our heaps,
    /// `system` (the system's malloc), libraries found on this machine (`jemalloc.so`,
    /// `tcmalloc.so`, `mimalloc.so`, and `brickyard.so` beside this program), and two yardsticks of
    /// fixed buffers: `floor`, inlined, and `floor-dynamic`, called like malloc.
    #[arg(long, value_delimiter = ',', value_name = "NAMES")]
    config: Vec<String>,
    /// More libraries to load before the system's malloc, as NAME=PATH; the column is called
    /// NAME.so. A name alone is one of the libraries above. LD_PRELOAD of the environment is
    /// ignored.
    #[arg(long, value_delimiter = ',', value_name = "NAME=PATH,…")]
    preload: Vec<String>,
    /// The workloads.
    #[arg(
        long,
        value_parser = choice(Workload::user_choices()),
        value_delimiter = ',',
        default_value = "socket,local,remote,swap,tail"
    )]
    workload: Vec<Workload>,
    /// How many threads run `socket`, and, with two or more, `swap`.
    #[arg(
        long,
        value_delimiter = ',',
        default_value = "1,2,8",
        value_name = "N,…"
    )]
    threads: Vec<usize>,
    /// The largest batch of `local`; batches are 1, 2, 4 …
    #[arg(long, default_value_t = 16384, value_name = "N")]
    max_batch: usize,
    /// The size of the objects of `local`, `remote`, `swap` and `tail`, in bytes.
    #[arg(long, value_delimiter = ',', default_value = "64", value_name = "BYTES,…",
        value_parser = clap::value_parser!(u32).range(i64::from(Shape::LEAST)..=i64::from(MOST_BYTES)))]
    size: Vec<u32>,
    /// How much memory is live in `producers` (default 181M), and in `refill` and `giveback`
    /// (default 488M).
    #[arg(long, value_parser = bytes_of, value_name = "BYTES")]
    live: Option<usize>,
    /// How long `giveback` leaves the process idle, for memory to be returned, in seconds.
    #[arg(
        long,
        default_value_t = 10.0,
        value_name = "SECONDS",
        allow_negative_numbers = true
    )]
    rest: f64,
    /// How many samples of each row.
    #[arg(long, default_value_t = 5, value_name = "N")]
    samples: usize,
    /// The approximate time of a sample, in microseconds.
    #[arg(long, default_value_t = 20_000, value_name = "US")]
    sample_us: u64,
    /// The clock of `socket`, `local` and `swap`: `cpu` is for a machine that has other work too.
    #[arg(long, value_parser = choice(Clock::NAMES), default_value = "wall")]
    clock: Clock,
    /// Only count the instructions of an allocation and of a free that hit, at 64 and at 1216
    /// bytes, under valgrind.
    #[arg(long, conflicts_with_all = ["workload", "threads", "max_batch", "size", "live", "rest", "samples", "sample_us", "clock"])]
    instructions: bool,
    #[command(flatten)]
    output: Output,
}

/// Less memory has too few objects for the resident memory to mean anything.
const LEAST_LIVE: usize = 1 << 20;

/// The longest sample, and the longest rest: ten minutes.
const MOST_SECONDS: u64 = 600;

/// A heap may use this many times the live memory.
const MOST_TIMES: usize = 3;

impl Slab {
    pub(crate) fn run(&self, peers: &[&'static dyn HeapPeer]) -> anyhow::Result<()> {
        self.validate()?;
        let Chosen {
            contestants,
            skipped,
        } = choose(&self.config, &self.preload, peers)?;
        let works = self.works()?;
        self.output.check()?;
        for reason in skipped {
            eprintln!("brickyard: {reason}");
        }
        if contestants.is_empty() {
            bail!("nothing is left to measure");
        }
        interrupt::watch()?;
        let progress = bar::Steps::default();
        if self.instructions {
            return match instructions::count(&contestants, &progress)? {
                Some(results) => self.output.emit(&results, Against::First, &plain_label, ""),
                None => Ok(()),
            };
        }
        let measurement = Measurement {
            contestants: &contestants,
            works: &works,
            rest: Duration::from_secs_f64(self.rest),
            samples: self.samples,
        };
        let (results, failed) = measurement.run(&progress)?;
        self.emit(&results, failed)
    }

    fn emit(&self, results: &Results, failed: usize) -> anyhow::Result<()> {
        if results.rows().is_empty() {
            bail!("none of the contestants has a row in any of these workloads");
        }
        self.output
            .emit(results, Against::First, &plain_label, "")?;
        if failed > 0 {
            bail!("{failed} of the rows are missing, see above");
        }
        Ok(())
    }

    /// Fails if the options do not fit together.
    fn validate(&self) -> Result<(), Misuse> {
        no_value_twice([
            ("workload", has_twice(&self.workload)),
            ("threads", has_twice(&self.threads)),
            ("size", has_twice(&self.size)),
        ])?;
        at_least_one([
            ("samples", Some(self.samples)),
            ("max-batch", Some(self.max_batch)),
            ("threads", self.threads.iter().copied().min()),
        ])?;
        if !(1..=MOST_SECONDS * 1_000_000).contains(&self.sample_us) {
            return Err(Misuse::new("--sample-us must be from 1 to 600000000"));
        }
        if !(0.0..=MOST_SECONDS as f64).contains(&self.rest) {
            return Err(Misuse::new("--rest must be from 0 to 600 seconds"));
        }
        Ok(())
    }

    /// Returns every workload with its parameters, in the order of the rows.
    fn works(&self) -> Result<Vec<SlabWork>, Misuse> {
        let mut works = Vec::new();
        for &workload in &self.workload {
            let work = SlabWork {
                workload,
                threads: 1,
                batch: 1,
                size: Shape::LEAST,
                live: self.live.unwrap_or(workload.live()),
                sample_us: self.sample_us,
                clock: self.clock,
            };
            let threads = self
                .threads
                .iter()
                .map(|&threads| SlabWork { threads, ..work });
            let sizes = self.size.iter().map(|&size| SlabWork { size, ..work });
            match workload {
                Workload::Socket => works.extend(threads),
                Workload::Local => works.extend(sizes.flat_map(|of_size| {
                    let batches = (0..usize::BITS).map(|shift| 1 << shift);
                    let batches = batches.take_while(|&batch| batch <= self.max_batch);
                    batches.map(move |batch| SlabWork { batch, ..of_size })
                })),
                Workload::Remote | Workload::Tail | Workload::Hits => works.extend(sizes),
                Workload::Swap => {
                    let swapping = threads.filter(|work| work.threads > 1);
                    works.extend(swapping.flat_map(|of_threads| {
                        let sizes = self.size.iter();
                        sizes.map(move |&size| SlabWork { size, ..of_threads })
                    }));
                }
                Workload::Producers | Workload::Refill | Workload::Giveback => works.push(work),
            }
        }
        if works.is_empty() {
            return Err(Misuse::new(
                "--workload swap needs two threads or more; add 2 to --threads",
            ));
        }
        self.fits(&works)?;
        Ok(works)
    }

    /// Fails if there is too little memory for the live memory of the workloads.
    fn fits(&self, works: &[SlabWork]) -> Result<(), Misuse> {
        let about_memory = works.iter().filter(|work| work.workload.is_about_memory());
        let Some(most) = about_memory.map(|work| work.live).max() else {
            return Ok(());
        };
        if most < LEAST_LIVE {
            return Err(Misuse::new(format!(
                "--live {most} is too little to compare heaps; give at least {}",
                bytes_text(LEAST_LIVE)
            )));
        }
        match brickyard_run::memory::available() {
            Some(available) if available / MOST_TIMES < most => Err(Misuse::new(format!(
                "a heap may use {MOST_TIMES} times its live memory, but only {} MiB are available; give a --live of at most {}M",
                available >> 20,
                (available / MOST_TIMES) >> 20
            ))),
            _ => Ok(()),
        }
    }
}
