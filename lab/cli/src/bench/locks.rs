//! `brickyard bench locks`: the experiment of 2007 on how long to hold the zone lock for a bulk of
//! pages, with real threads of this host.

use brickyard::Order;
use brickyard_bench::bursts::{Load, USUAL};
use brickyard_bench::locks::{Locks as Measurement, TIME};
use brickyard_bench::machine::FRAME_BYTES;
use brickyard_bench::zone2007::Zone2007;
use brickyard_classics::front::ListSizes;
use brickyard_report::{bytes_text, counted};
use brickyard_run::side_by_side::cores;
use brickyard_run::{bar, interrupt};
use brickyard_simulate::locks::Column;
use clap::Args;

use brickyard_measure::command::amount::zone_bytes;
use brickyard_measure::command::choice::or_all;
use brickyard_measure::command::misuse::{Misuse, at_least_one, has_twice, no_value_twice};
use brickyard_measure::command::output::Output;

/// The options of `brickyard bench locks`.
#[derive(Debug, Args)]
pub(crate) struct Locks {
    /// The columns, each compared with the one before it: hold, release, ticket, ticket+yield,
    /// ticket+yield+own-line. [default: all]
    #[arg(long, value_delimiter = ',', value_name = "NAMES")]
    columns: Vec<Column>,
    /// The most threads; measured with 1, 2, 4 … threads. [default: the number of CPUs]
    #[arg(long, value_name = "N")]
    threads: Option<usize>,
    /// How many pages a per-CPU list takes from or returns to the zone at once. The default is that
    /// of the paper's machine.
    #[arg(long, default_value_t = Zone2007::BATCH, value_name = "PAGES")]
    batch: usize,
    /// How many pages a per-CPU list has before it returns a batch. [default: six batches]
    #[arg(long, value_name = "PAGES")]
    high: Option<usize>,
    /// How many single pages a burst allocates.
    #[arg(long, default_value_t = USUAL.pages, value_name = "PAGES")]
    burst: usize,
    /// The order of the one block that a burst allocates besides.
    #[arg(long, default_value_t = USUAL.order.get(), value_name = "ORDER", value_parser = clap::value_parser!(u8).range(0..=10))]
    order: u8,
    /// How many multiplications a thread does between two bursts, on average; about a nanosecond
    /// each.
    #[arg(long, default_value_t = USUAL.compute, value_name = "N")]
    compute: usize,
    /// How many bursts each thread does in a run.
    #[arg(long, default_value_t = USUAL.bursts, value_name = "N")]
    bursts: u64,
    /// The memory of the zone (only its metadata is real).
    #[arg(long, default_value = "128M", value_parser = zone_bytes, value_name = "BYTES")]
    memory: usize,
    /// How many runs of each column; with fewer than six pairs no difference is significant.
    #[arg(long, default_value_t = 15, value_name = "N")]
    samples: usize,
    /// The random seed of round 1; round 2 has the next one.
    #[arg(long, default_value_t = 1, value_name = "SEED")]
    seed: u64,
    #[command(flatten)]
    output: Output,
}

/// The most computing that still ends in reasonable time.
const MOST_COMPUTE: usize = 1_000_000_000;

impl Locks {
    pub(crate) fn run(&self) -> anyhow::Result<()> {
        let columns = or_all(&self.columns, &Column::ALL);
        let cpus = cores();
        let most = self.threads.unwrap_or(cpus);
        self.validate(most)?;
        self.output.check()?;
        if most > cpus {
            eprintln!(
                "brickyard: {most} threads on {}: waiting for the lock then includes waiting for a CPU; give --threads {cpus} to measure the lock alone",
                counted(cpus, "CPU", "CPUs")
            );
        }
        interrupt::watch()?;
        let measurement = Measurement {
            columns,
            zone: Zone2007 {
                frames: self.memory / FRAME_BYTES,
                lists: ListSizes {
                    batch: self.batch,
                    high: self.high(),
                },
            },
            load: Load {
                threads: most,
                bursts: self.bursts,
                pages: self.burst,
                order: Order::new(self.order),
                compute: self.compute,
                seed: self.seed,
            },
            samples: self.samples,
        };
        let results = measurement.run(&bar::Steps::default())?;
        self.output.emit_steps(&results, &|workload, metric| {
            if metric == TIME.name {
                workload.into()
            } else {
                format!("  {metric}")
            }
        })
    }

    /// Fails if the options do not fit together.
    fn validate(&self, threads: usize) -> Result<(), Misuse> {
        no_value_twice([("columns", has_twice(&self.columns))])?;
        at_least_one([
            ("threads", Some(threads)),
            ("samples", Some(self.samples)),
            ("batch", Some(self.batch)),
            ("burst", Some(self.burst)),
            ("bursts", Some(self.bursts.min(1) as usize)),
        ])?;
        if self.compute > MOST_COMPUTE {
            let most = format!("--compute must be at most {MOST_COMPUTE}");
            return Err(Misuse::new(most));
        }
        if self.high() < self.batch {
            return Err(Misuse::new(format!(
                "--high {} is below --batch {}; give at least as much",
                self.high(),
                self.batch
            )));
        }
        // Twice what all threads hold at once, so that blocks of higher order are available too.
        let held = self.burst.saturating_add(self.high());
        let needed = held
            .saturating_add(1 << self.order)
            .saturating_mul(2 * threads)
            .saturating_mul(FRAME_BYTES)
            .checked_next_multiple_of(1 << 20)
            .unwrap_or(usize::MAX);
        if self.memory < needed.max(LEAST_MEMORY) {
            return Err(Misuse::new(format!(
                "--memory {} is too small for {} with such bursts; give at least {}, or a smaller --burst",
                bytes_text(self.memory),
                counted(threads, "thread", "threads"),
                bytes_text(needed.max(LEAST_MEMORY))
            )));
        }
        Ok(())
    }

    const fn high(&self) -> usize {
        match self.high {
            Some(high) => high,
            None => self.batch.saturating_mul(6),
        }
    }
}

/// A smaller zone does not have a block of the highest order for each of a few threads.
const LEAST_MEMORY: usize = 16 << 20;
