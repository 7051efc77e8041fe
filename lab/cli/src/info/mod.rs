//! `brickyard info`: a summary of a trace.

mod sections;
pub(crate) mod tables;

use core::ops::ControlFlow;
use std::path::PathBuf;

use anyhow::Context;
use brickyard_run::bar;
use brickyard_trace::Events as _;
use brickyard_trace::file::Source;
use brickyard_trace::summary::{Options, Summary};
use clap::Args;

use brickyard_measure::command::misuse::Misuse;
use brickyard_measure::command::output::SheetOutput;

/// The options of `brickyard info`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  brickyard info build.parquet
  brickyard info build.parquet --format csv | grep ^fallbacks
  brickyard info build.parquet --format json | jq .processes")]
pub(crate) struct Info {
    /// The trace, from `brickyard record` or `brickyard import`.
    trace: PathBuf,
    #[command(flatten)]
    output: SheetOutput,
    /// How many processes are listed.
    #[arg(long, default_value_t = 10, value_name = "N")]
    top: usize,
    /// How many equal time spans the rates are given for.
    #[arg(long, default_value_t = 40, value_name = "N")]
    spans: usize,
}

impl Info {
    pub(crate) fn run(&self) -> anyhow::Result<()> {
        if !(1..=100_000).contains(&self.spans) {
            return Err(Misuse::new("--spans must be from 1 to 100000").into());
        }
        let named = || format!("{}", self.trace.display());
        let source = Source::open(&self.trace).with_context(named)?;
        let options = Options {
            processes: self.top,
            spans: self.spans,
        };
        let template = "{wide_bar} {pos}/{len} events, {eta} left";
        let bar = bar::bar(source.count(), template);
        let summary = Summary::read(&source, &options, |events| {
            bar.inc(events);
            ControlFlow::Continue(())
        });
        bar.finish_and_clear();
        let summary = summary.with_context(named)?;
        let sections = sections::all(source.outline(), &summary);
        self.output
            .put(&tables::text(&sections, self.output.format))
    }
}
