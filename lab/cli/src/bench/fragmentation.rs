//! `brickyard bench fragmentation`: how many huge blocks are left after random allocations and
//! frees.

use brickyard_bench::fragmentation::Fragmentation as Measurement;
use brickyard_classics::Configuration;
use brickyard_report::bytes_text;
use brickyard_run::{bar, interrupt};
use clap::Args;

use brickyard_measure::command::amount::zone_bytes;
use brickyard_measure::command::choice::or_all;
use brickyard_measure::command::misuse::{Misuse, at_least_one, has_twice, no_value_twice};
use brickyard_measure::command::output::Output;

/// The options of `brickyard bench fragmentation`.
#[derive(Debug, Args)]
pub(crate) struct Fragmentation {
    /// The configurations to compare; the first is the baseline. See `brickyard configs`.
    /// [default: all]
    #[arg(long, value_delimiter = ',', value_name = "NAMES")]
    config: Vec<Configuration>,
    /// The memory of the machine (only its metadata is real).
    #[arg(long, default_value = "1G", value_parser = zone_bytes, value_name = "BYTES")]
    memory: usize,
    /// How many rounds, each of which frees a tenth of the allocated pages and allocates as many.
    #[arg(long, default_value_t = 100, value_name = "N")]
    rounds: usize,
    /// The random seed of sample 1; sample 2 has the next one.
    #[arg(long, default_value_t = 1, value_name = "SEED")]
    seed: u64,
    /// Samples of each row, each with a seed of its own.
    #[arg(long, default_value_t = 5, value_name = "N")]
    samples: usize,
    #[command(flatten)]
    output: Output,
}

/// Below this, half of the free memory of a zone for movable pages would not be two huge blocks.
const LEAST_MEMORY: usize = 16 << 20;

impl Fragmentation {
    pub(crate) fn run(&self) -> anyhow::Result<()> {
        self.validate()?;
        self.output.check()?;
        interrupt::watch()?;
        let configs = or_all(&self.config, &Configuration::ALL);
        let measurement = Measurement {
            configurations: configs,
            memory: self.memory,
            rounds: self.rounds,
            seed: self.seed,
            samples: self.samples,
        };
        let results = measurement.run(&bar::Steps::default())?;
        let label = |workload: &str, metric: &str| format!("{metric} {workload}");
        self.output.emit(&results, &label)
    }

    fn validate(&self) -> Result<(), Misuse> {
        no_value_twice([("config", has_twice(&self.config))])?;
        at_least_one([("samples", Some(self.samples))])?;
        if self.memory < LEAST_MEMORY {
            let least = bytes_text(LEAST_MEMORY);
            return Err(Misuse::new(format!(
                "--memory {} has too few huge blocks; give at least {least}",
                self.memory
            )));
        }
        Ok(())
    }
}
