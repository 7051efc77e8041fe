//! `brickyard help designs`: the designs, by the name of their configuration.

use brickyard::FrameRange;
use brickyard::sync::{Exclusive, TicketLock};
use brickyard_designs::classics::{Configuration, MachinePlan};
use brickyard_measure::command::output::format;
use brickyard_measure::threads::Threads;
use brickyard_results::{Cell, Format, Listing};
use brickyard_run::terminal::print;
use clap::Args;

/// Frames of the machine whose metadata is sized: 64 GiB.
const FRAMES: usize = 64 << 18;
const FRAME_BYTES: usize = 4096;
const CPUS: usize = 8;

/// The options of `brickyard help designs`.
#[derive(Debug, Args)]
pub(crate) struct Designs {
    /// The format of the list.
    #[arg(long, default_value = "table", value_parser = format())]
    format: Format,
}

impl Designs {
    pub(crate) fn run(&self) -> anyhow::Result<()> {
        let plan = MachinePlan::new(FrameRange::new(0, FRAMES), CPUS);
        let percent = |config: &Configuration| {
            let bytes = config.bytes::<Exclusive, TicketLock, Threads>(&plan);
            let percent = bytes as f64 * 100.0 / (FRAMES * FRAME_BYTES) as f64;
            let text = format!("{percent:.4}");
            Cell::shown((percent * 10000.0).round() / 10000.0, text)
        };
        let listing = Listing::of(
            Configuration::ALL,
            &[
                ("config", &|config| config.name().into()),
                ("metadata_percent", &percent),
                ("about", &|config| config.about().into()),
            ],
        );
        Ok(print(&listing.text(self.format))?)
    }
}
