//! `brickyard bench scarce`: requests when memory is nearly exhausted, on machines of several
//! sizes.

use core::time::Duration;

use brickyard::Mobility;
use brickyard_bench::machine::Level;
use brickyard_bench::scarce::Scarce as Measurement;
use brickyard_classics::Configuration;
use brickyard_measure::choice::Choice;
use brickyard_report::bytes_text;
use brickyard_run::memory::available;
use brickyard_run::{bar, interrupt};
use clap::Args;

use brickyard_measure::command::amount::zone_bytes;
use brickyard_measure::command::choice::choice;
use brickyard_measure::command::misuse::{Misuse, at_least_one, has_twice, no_value_twice};
use brickyard_measure::command::output::Output;

/// What is compared if the user names nothing.
const CONFIGS: &str = "brickyard,list-2007";

/// The options of `brickyard bench scarce`.
#[derive(Debug, Args)]
pub(crate) struct Scarce {
    /// The configurations to compare; the first is the baseline. See `brickyard configs`.
    #[arg(long, value_delimiter = ',', default_value = CONFIGS, value_name = "NAMES")]
    config: Vec<Configuration>,
    /// The memory of the machines (only their metadata is real: up to 0.3 % of it, and 0.2 % for a
    /// list of the allocated blocks).
    #[arg(long, value_delimiter = ',', default_value = "1G,4G,16G,64G", value_parser = zone_bytes, value_name = "BYTES,…")]
    memory: Vec<usize>,
    /// The level that requests enter at.
    #[arg(long, value_parser = choice(Level::ALL), value_delimiter = ',', default_value = "node")]
    level: Vec<Level>,
    /// The mobility of the requests.
    #[arg(long, value_parser = choice(<Mobility as Choice>::ALL), default_value = "unmovable")]
    mobility: Mobility,
    /// How many samples of each row.
    #[arg(long, default_value_t = 5, value_name = "N")]
    samples: usize,
    /// The least time of a sample's loop, in microseconds.
    #[arg(long, default_value_t = 1000, value_name = "US")]
    sample_us: u64,
    #[command(flatten)]
    output: Output,
}

/// Below this, half of a zone for movable pages would have no two huge blocks.
const LEAST_MEMORY: usize = 16 << 20;

/// One byte in so many of a machine's memory is real: metadata, and the list of allocated blocks.
const ONE_IN_REAL: usize = 200;

impl Scarce {
    pub(crate) fn run(&self) -> anyhow::Result<()> {
        self.validate()?;
        self.output.check()?;
        interrupt::watch()?;
        let measurement = Measurement {
            configurations: &self.config,
            memory: &self.memory,
            level: &self.level,
            mobility: self.mobility,
            samples: self.samples,
            least: Duration::from_micros(self.sample_us),
        };
        let results = measurement.run(&bar::Steps::default())?;
        self.output.emit(&results, &|workload, _| workload.into())
    }

    fn validate(&self) -> Result<(), Misuse> {
        no_value_twice([
            ("config", has_twice(&self.config)),
            ("memory", has_twice(&self.memory)),
            ("level", has_twice(&self.level)),
        ])?;
        at_least_one([("samples", Some(self.samples))])?;
        if let Some(memory) = self.memory.iter().find(|&&memory| memory < LEAST_MEMORY) {
            return Err(Misuse::new(format!(
                "--memory {memory} has too few huge blocks; give at least {}",
                bytes_text(LEAST_MEMORY)
            )));
        }
        let most = self.memory.iter().max().copied().unwrap_or(0);
        has_room_for(most, available().unwrap_or(usize::MAX))
    }
}

/// Fails if what is real of a machine's memory is more than this host's available memory.
fn has_room_for(memory: usize, available: usize) -> Result<(), Misuse> {
    let needed = memory / ONE_IN_REAL;
    if needed <= available {
        return Ok(());
    }
    Err(Misuse::new(format!(
        "--memory {} would use {} MiB of this host's memory, and {} MiB are available; give at most {}M",
        bytes_text(memory),
        needed >> 20,
        available >> 20,
        available.saturating_mul(ONE_IN_REAL) >> 20
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_whose_metadata_this_host_cannot_hold_is_refused() {
        assert!(has_room_for(200 << 30, 1 << 30).is_ok());
        let refused = has_room_for(10 << 40, 1 << 30);
        let why = refused.map_err(|why| why.to_string()).unwrap_err();
        assert!(why.contains("at most 204800M"), "{why}");
        assert!(has_room_for(204_800 << 20, 1 << 30).is_ok());
    }
}
