//! `brickyard bench`: what is measured on this host and is no experiment.

mod forecast;

use clap::Subcommand;

/// The benchmarks.
#[derive(Debug, Subcommand)]
pub(crate) enum Bench {
    /// Forecasts of huge pages beside what this host gives, in four states of its memory; as root.
    Forecast(forecast::ForecastBench),
}

impl Bench {
    pub(crate) fn run(&self) -> anyhow::Result<()> {
        match self {
            Self::Forecast(bench) => bench.run(),
        }
    }
}
