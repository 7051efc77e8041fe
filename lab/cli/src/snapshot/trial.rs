//! `brickyard snapshot --try N`: asks for huge pages really, beside what was forecast.

use anyhow::Context;
use brickyard_host::forecast::Way;
use brickyard_host::trial::pool::{Pool, PutBack};
use brickyard_host::trial::{Outcome, TrialError, memory};
use brickyard_run::interrupt;
use brickyard_run::memory::available;
use serde_json::json;

use super::View;
use super::figures::block_size;
use super::forecast;
use brickyard_measure::command::misuse::Misuse;
use brickyard_results::{Format, Listing, cells};
use brickyard_run::terminal::{print, tell};

/// Asks for so many, prints what came, and gives it back, also after Ctrl-C.
pub(super) fn run(
    view: &View<'_>,
    count: u64,
    by: Option<&str>,
    format: Format,
) -> anyhow::Result<()> {
    let bytes = u64::from(view.look.frame_bytes) << view.order.get();
    let most = available().unwrap_or(usize::MAX) as u64 / 10 * 9 / bytes;
    if count > most {
        return Err(Misuse::new(format!(
            "--try {count} is more than nine tenths of the memory that is available: at most {most}"
        ))
        .into());
    }
    interrupt::watch()?;
    let (by, (outcome, put_back)) = match by {
        Some("memory") => ("memory", of_memory(view, count, bytes)?),
        Some(_) => ("pool", of_pool(count, bytes)?),
        None => match of_pool(count, bytes) {
            Err(TrialError::Denied { .. }) => ("memory", of_memory(view, count, bytes)?),
            tried => ("pool", tried?),
        },
    };
    if outcome.stopped {
        tell(format!("interrupted before all {count} were asked for"));
    }
    let forecast = view.forecasts.as_ref();
    let forecast = forecast.map(|all| all.of(Way::Asking));
    let forecast = forecast.map(|of| [of.likely, of.low, of.high].map(|number| number.min(count)));
    let Outcome { asked, came, .. } = outcome;
    let seconds = outcome.took.as_secs_f64();
    print(&match format {
        Format::Json => {
            let document = json!({
                "by": by,
                "order": view.order.get(),
                "asked": asked,
                "came": came,
                "interrupted": outcome.stopped,
                "seconds": seconds,
                "forecast": forecast::document(view),
            });
            format!("{document:#}\n")
        }
        Format::Csv => {
            let columns = "by order asked came seconds likely at_least at_most interrupted";
            let mut listing = Listing::new(columns);
            let [likely, low, high] = forecast.map_or([None; 3], |of| of.map(Some));
            let (order, seconds) = (view.order.get(), format!("{seconds:.3}"));
            let stopped = outcome.stopped;
            listing.push(cells![
                by, order, asked, came, seconds, likely, low, high, stopped
            ]);
            listing.csv()
        }
        Format::Table => {
            let size = block_size(view.order.get(), view.look.frame_bytes);
            let by = if by == "pool" {
                "nr_hugepages"
            } else {
                "memory of its own"
            };
            let forecast = forecast.map(|[likely, low, high]| {
                format!("The forecast for nr_hugepages was {likely} ({low} to {high}).\n")
            });
            format!(
                "{came} of {count} huge pages of {size} came by {by}, in {seconds:.2} s; all are given back.\n{}",
                forecast.unwrap_or_default()
            )
        }
    })?;
    Ok(put_back?)
}

/// Returns what came, and whether the pool was put back.
fn of_pool(count: u64, bytes: u64) -> Result<(Outcome, Result<(), TrialError>), TrialError> {
    let mut pool = Pool::of(bytes)?;
    let _holding = interrupt::Holding::begin();
    let outcome = pool.ask(count, interrupt::asked);
    match pool.put_back() {
        Ok(PutBack { in_use, changed }) => {
            if in_use > 0 {
                tell(format!(
                    "{in_use} of them were taken by other processes meanwhile: they go back when those end"
                ));
            }
            if changed != 0 {
                tell(format!(
                    "somebody else changed nr_hugepages by {changed} meanwhile: that is left as it is"
                ));
            }
        }
        // What came is told all the same.
        Err(error) => {
            return match outcome {
                Ok(outcome) => Ok((outcome, Err(error))),
                Err(_) => Err(error),
            };
        }
    }
    Ok((outcome?, Ok(())))
}

fn of_memory(
    view: &View<'_>,
    count: u64,
    bytes: u64,
) -> anyhow::Result<(Outcome, Result<(), TrialError>)> {
    if view.order != view.look.huge_order {
        return Err(Misuse::new(format!(
            "--by memory asks for huge pages of order {}, and not {}: leave --order out",
            view.look.huge_order, view.order
        ))
        .into());
    }
    let bytes = usize::try_from(bytes).context("a huge page is larger than all addresses")?;
    // The kernel has it back already.
    Ok((memory::ask(count, bytes, interrupt::asked)?, Ok(())))
}
