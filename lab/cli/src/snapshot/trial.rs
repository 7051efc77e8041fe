//! `brickyard snapshot --try N`: asks for huge pages really, beside what was forecast.

use std::io::{self, Write};

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
use brickyard_run::terminal::tell;

/// Asks for so many, prints what came, and gives it back, also after Ctrl-C.
pub(super) fn run(
    view: &View<'_>,
    count: u64,
    by: Option<&str>,
    format: &str,
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
    let mut out = io::stdout().lock();
    let forecast = view.forecasts.as_ref();
    let forecast = forecast.map(|all| all.of(Way::Asking));
    let limit = |number: u64| number.min(count);
    let seconds = outcome.took.as_secs_f64();
    if format == "json" {
        let document = json!({
            "by": by,
            "order": view.order.get(),
            "asked": outcome.asked,
            "came": outcome.came,
            "interrupted": outcome.stopped,
            "seconds": seconds,
            "forecast": forecast::document(view),
        });
        writeln!(out, "{document:#}")?;
    } else if format == "csv" {
        writeln!(
            out,
            "by,order,asked,came,seconds,likely,at_least,at_most,interrupted"
        )?;
        let numbers = forecast.map(|of| [of.likely, of.low, of.high].map(limit));
        let numbers =
            numbers.map_or_else(|| ",,".into(), |n| format!("{},{},{}", n[0], n[1], n[2]));
        let order = view.order;
        let Outcome {
            asked,
            came,
            stopped,
            ..
        } = outcome;
        writeln!(
            out,
            "{by},{order},{asked},{came},{seconds:.3},{numbers},{stopped}"
        )?;
    } else {
        let size = block_size(view.order.get(), view.look.frame_bytes);
        let by = if by == "pool" {
            "nr_hugepages"
        } else {
            "memory of its own"
        };
        writeln!(
            out,
            "{} of {count} huge pages of {size} came by {by}, in {seconds:.2} s; all are given back.",
            outcome.came
        )?;
        if let Some(of) = forecast {
            writeln!(
                out,
                "The forecast for nr_hugepages was {} ({} to {}).",
                limit(of.likely),
                limit(of.low),
                limit(of.high)
            )?;
        }
    }
    out.flush()?;
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
