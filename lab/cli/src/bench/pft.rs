//! `brickyard bench pft`: how many page faults per second the page allocator would allow, by the
//! number of threads (the page fault test of mmtests).

use brickyard_bench::masking::Masking;
use brickyard_bench::pft::{Column, Pft as Measurement};
use brickyard_measure::choice::Choice;
use brickyard_report::{bytes_text, counted};
use brickyard_run::memory::available;
use brickyard_run::side_by_side::cores;
use brickyard_run::{bar, interrupt};
use clap::Args;

use brickyard_measure::command::amount::zone_bytes;
use brickyard_measure::command::choice::choice;
use brickyard_measure::command::misuse::{Misuse, at_least_one, has_twice, no_value_twice};
use brickyard_measure::command::output::Output;

/// What is compared if the user names nothing.
const CONFIGS: &str = "vanilla,magazine-2013,brickyard";

/// The options of `brickyard bench pft`.
#[derive(Debug, Args)]
pub(crate) struct Pft {
    /// What is compared; the first is the baseline. Configurations (see `brickyard configs`), and
    /// `array-stack`: a bare stack of pages for each thread, to show the cost of clearing alone.
    #[arg(long, value_delimiter = ',', default_value = CONFIGS, value_name = "NAMES")]
    config: Vec<Column>,
    /// The most threads; measured with 1, 2, 3 … threads. [default: the number of CPUs]
    #[arg(long, value_name = "N")]
    threads: Option<usize>,
    /// The memory that pages are allocated from, all of it real.
    /// [default: 256M; with more than 16 threads, 16M for each]
    #[arg(long, value_parser = zone_bytes, value_name = "BYTES")]
    memory: Option<usize>,
    /// How often a sample allocates and frees all pages.
    #[arg(long, default_value_t = 4, value_name = "N")]
    passes: usize,
    /// How many samples of each row.
    #[arg(long, default_value_t = 10, value_name = "N")]
    samples: usize,
    /// What a mask of interrupts does: nothing, or what a kernel does but for `cli` (x86-64).
    #[arg(long, value_parser = choice(Masking::ALL), default_value = "nothing")]
    masking: Masking,
    #[command(flatten)]
    output: Output,
}

/// The least memory per thread: a quarter of it stays free, which is more than is in caches that
/// other threads cannot reach.
const LEAST_PER_THREAD: usize = 16 << 20;

const LEAST_DEFAULT: usize = 256 << 20;

impl Pft {
    pub(crate) fn run(&self) -> anyhow::Result<()> {
        let cpus = cores();
        let most = self.threads.unwrap_or(cpus);
        let memory = self.memory.unwrap_or_else(|| {
            let per_thread = most.saturating_mul(LEAST_PER_THREAD);
            per_thread.max(LEAST_DEFAULT)
        });
        self.validate(most, memory)?;
        self.output.check()?;
        if most > cpus {
            eprintln!(
                "brickyard: {most} threads on {}: above {}, faults/sec cannot grow",
                counted(cpus, "CPU", "CPUs"),
                counted(cpus, "thread", "threads")
            );
        }
        interrupt::watch()?;
        let measurement = Measurement {
            columns: &self.config,
            threads: most,
            memory,
            passes: self.passes,
            samples: self.samples,
            masking: self.masking,
        };
        let results = measurement.run(&bar::Steps::default())?;
        self.output.emit(&results, &|workload, metric| {
            workload.replacen("threads", metric, 1)
        })
    }

    /// Fails if the options do not fit together.
    fn validate(&self, threads: usize, memory: usize) -> Result<(), Misuse> {
        no_value_twice([("config", has_twice(&self.config))])?;
        at_least_one([
            ("threads", Some(threads)),
            ("samples", Some(self.samples)),
            ("passes", Some(self.passes)),
        ])?;
        let least = threads.saturating_mul(LEAST_PER_THREAD);
        if memory < least {
            return Err(Misuse::new(format!(
                "--memory {} is too small for {}; give at least {}",
                bytes_text(memory),
                counted(threads, "thread", "threads"),
                bytes_text(least)
            )));
        }
        match available() {
            Some(available) if memory > available / 2 => Err(Misuse::new(format!(
                "{} of memory would be used, but only {} MiB are available; give a --memory of at most {}M, or fewer --threads",
                bytes_text(memory),
                available >> 20,
                (available / 2) >> 20
            ))),
            _ => Ok(()),
        }
    }
}
