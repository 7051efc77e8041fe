//! `brickyard help designs`: the designs, by the name of their configuration.

use std::io::{self, Write};

use brickyard::FrameRange;
use brickyard::sync::{Exclusive, TicketLock};
use brickyard_designs::classics::{Configuration, MachinePlan};
use brickyard_measure::threads::Threads;
use brickyard_results::{Column, Columns};
use clap::Args;
use serde_json::json;

/// Frames of the machine whose metadata is sized: 64 GiB.
const FRAMES: usize = 64 << 18;
const FRAME_BYTES: usize = 4096;
const CPUS: usize = 8;

/// The options of `brickyard help designs`.
#[derive(Debug, Args)]
pub(crate) struct Designs {
    /// The format of the list.
    #[arg(long, default_value = "table", value_parser = ["table", "csv", "json"])]
    format: String,
}

impl Designs {
    pub(crate) fn run(&self) -> anyhow::Result<()> {
        let plan = MachinePlan::new(FrameRange::new(0, FRAMES), CPUS);
        let rows: Vec<_> = Configuration::ALL
            .into_iter()
            .map(|config| {
                let bytes = config.bytes::<Exclusive, TicketLock, Threads>(&plan);
                let percent = bytes as f64 * 100.0 / (FRAMES * FRAME_BYTES) as f64;
                (config, (percent * 10000.0).round() / 10000.0)
            })
            .collect();
        let mut out = io::stdout().lock();
        match self.format.as_str() {
            "csv" => {
                writeln!(out, "config,metadata_percent,about")?;
                for (config, percent) in rows {
                    writeln!(out, "{config},{percent},\"{}\"", config.about())?;
                }
            }
            "json" => {
                let rows = rows.iter().map(|(config, percent)| {
                    json!({
                        "config": config.name(),
                        "metadata_percent": percent,
                        "about": config.about(),
                    })
                });
                let rows: Vec<_> = rows.collect();
                writeln!(out, "{:#}", json!(rows))?;
            }
            _ => {
                let columns = Columns::new([
                    Column::left().wide(16),
                    Column::right().wide(9).after(1),
                    Column::left().after(2),
                ]);
                let heads = ["configuration", "metadata", "rebuilds"];
                writeln!(out, "{}", columns.line(heads))?;
                for (config, percent) in rows {
                    let percent = format!("{percent:.4} %");
                    let line = columns.line([config.name(), &percent, config.about()]);
                    writeln!(out, "{line}")?;
                }
            }
        }
        Ok(())
    }
}
