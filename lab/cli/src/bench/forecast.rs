//! `brickyard bench forecast`: holds the forecasts of `snapshot` against what this host really
//! gives, in states of its memory in which whole blocks are few.

use std::io::{self, Write};

use anyhow::Context;
use brickyard::Order;
use brickyard_host::Host;
use brickyard_host::forecast::{self, Forecast, Forecasts, Way};
use brickyard_host::look::{Depth, Look};
use brickyard_host::trial::pool::Pool;
use brickyard_host::trial::states::{self, State};
use brickyard_host::trial::{TrialError, help};
use brickyard_report::{Column, Columns};
use brickyard_run::memory::available;
use brickyard_run::{bar, interrupt};
use clap::Args;
use serde_json::json;

use crate::snapshot::forecast as words;
use brickyard_measure::amount::zone_bytes;
use brickyard_measure::command::misuse::Misuse;
use brickyard_run::terminal::tell;

/// The options of `brickyard bench forecast`.
#[derive(Debug, Args)]
pub(crate) struct ForecastBench {
    /// How much memory the states fill. [default: 70 % of what is available]
    #[arg(long, value_parser = zone_bytes, value_name = "BYTES")]
    memory: Option<usize>,
    /// How often each state is made for each way of asking.
    #[arg(long, default_value_t = 1, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    rounds: u32,
    /// The format.
    #[arg(long, default_value = "table", value_parser = ["table", "csv", "json"])]
    format: String,
}

/// A forecast beside what came.
#[derive(Debug, Clone, Copy)]
struct Row {
    state: State,
    way: Way,
    forecast: Forecast,
    came: u64,
}

impl Row {
    /// Returns how far the forecast is off, in per cent of what came.
    fn error(&self) -> f64 {
        let came = self.came.max(1) as f64;
        (self.forecast.likely as f64 - self.came as f64) / came * 100.0
    }
}

/// The ways that are tried: those of which the outcome is not known beforehand.
const WAYS: [Way; 3] = [Way::Asking, Way::Compacted, Way::Dropped];

impl ForecastBench {
    pub(crate) fn run(&self) -> anyhow::Result<()> {
        let host = Host::here();
        let look = Look::at(&host, Depth::Lists, || 0, |_, _| {})?;
        let order = look.huge_order;
        let bytes = u64::from(look.frame_bytes) << order.get();
        if bytes != states::LEAST as u64 {
            let why = "the states are made for pages of 4 KiB and huge pages of 2 MiB, which this host does not have";
            return Err(Misuse::new(why).into());
        }
        // Tells before anything is filled that this user may not.
        drop(Pool::of(bytes)?);
        let memory = self.memory()?;
        interrupt::watch()?;
        let mut rows = Vec::new();
        let done = self.all(&host, order, memory, &mut rows);
        self.print(&rows)?;
        if interrupt::asked() {
            tell("interrupted: the rows above are what was done");
        }
        done
    }

    /// Makes each state for each way, until all are done or it is interrupted.
    fn all(
        &self,
        host: &Host,
        order: Order,
        memory: usize,
        rows: &mut Vec<Row>,
    ) -> anyhow::Result<()> {
        for _ in 0..self.rounds {
            for state in State::ALL {
                for way in WAYS {
                    match trial(host, state, way, order, memory)? {
                        Some(row) => rows.push(row),
                        None => return Ok(()),
                    }
                }
            }
        }
        Ok(())
    }

    /// Returns how much memory to fill: at most nine tenths of what is available.
    fn memory(&self) -> Result<usize, Misuse> {
        let available = available().unwrap_or(usize::MAX);
        let most = available / 10 * 9;
        let wanted = self.memory.unwrap_or(available / 10 * 7);
        if wanted < states::LEAST {
            let why = format!(
                "--memory {wanted}: a state needs at least {}M",
                states::LEAST >> 20
            );
            return Err(Misuse::new(why));
        }
        if wanted > most {
            let (wanted, most) = (wanted >> 20, most >> 20);
            let why =
                format!("--memory {wanted}M is more than this host can spare: at most {most}M");
            return Err(Misuse::new(why));
        }
        Ok(wanted)
    }

    fn print(&self, rows: &[Row]) -> anyhow::Result<()> {
        let mut out = io::stdout().lock();
        match self.format.as_str() {
            "json" => {
                let rows: Vec<_> = rows.iter().map(document).collect();
                writeln!(out, "{:#}", json!({ "rows": rows }))?;
            }
            "csv" => {
                writeln!(out, "state,way,likely,at_least,at_most,came,error_percent")?;
                for row in rows {
                    let Forecast { likely, low, high } = row.forecast;
                    let (state, way) = (row.state.name(), row.way.name());
                    let (came, error) = (row.came, row.error());
                    writeln!(out, "{state},{way},{likely},{low},{high},{came},{error:.1}")?;
                }
            }
            _ => table(rows, &mut out)?,
        }
        Ok(())
    }
}

fn document(row: &Row) -> serde_json::Value {
    json!({
        "state": row.state.name(),
        "way": row.way.name(),
        "likely": row.forecast.likely,
        "at_least": row.forecast.low,
        "at_most": row.forecast.high,
        "came": row.came,
        "error_percent": row.error(),
    })
}

fn table(rows: &[Row], out: &mut impl Write) -> io::Result<()> {
    let columns = Columns::new([
        Column::left().wide(31),
        Column::left().wide(44),
        Column::right().wide(9),
    ]);
    let heads = [
        "state", "way", "likely", "at least", "at most", "came", "error",
    ];
    writeln!(out, "{}", columns.line(heads.map(str::to_owned)))?;
    for row in rows {
        let Forecast { likely, low, high } = row.forecast;
        let numbers = [likely, low, high, row.came].map(|number| number.to_string());
        let texts = [
            row.state.name().to_owned(),
            words::label(row.way).to_owned(),
        ];
        let error = [format!("{:+.0} %", row.error())];
        let cells = texts.into_iter().chain(numbers).chain(error);
        writeln!(out, "{}", columns.line(cells))?;
    }
    Ok(())
}

/// Makes the state, forecasts, and tries; `None` if it was interrupted.
fn trial(
    host: &Host,
    state: State,
    way: Way,
    order: Order,
    memory: usize,
) -> anyhow::Result<Option<Row>> {
    let name = format!("{}, {}", state.name(), words::label(way));
    let bar = bar::bar(2 * memory as u64, "{msg} {wide_bar} {eta} left");
    bar.set_message(name.clone());
    let held = states::make(state, memory, |done| {
        bar.set_position(done as u64);
        !interrupt::asked()
    });
    bar.finish_and_clear();
    let Some(_held) = held.with_context(|| name.clone())? else {
        return Ok(None);
    };
    let look = Look::at(host, Depth::Everything, || 0, |_, _| {})?;
    let forecasts = Forecasts::new(&look, order, &host.pinned());
    let forecasts = forecasts.with_context(|| {
        let why = look.withheld.iter().map(ToString::to_string);
        why.collect::<Vec<_>>().join("; ")
    })?;
    if interrupt::asked() {
        return Ok(None);
    }
    let (asked, came) = tried(host, &look, &forecasts, way, order)?;
    let Forecast { low, likely, high } = forecasts.of(way);
    let [low, likely, high] = [low, likely, high].map(|blocks| blocks.min(asked));
    let row = Row {
        state,
        way,
        forecast: Forecast { low, likely, high },
        came,
    };
    Ok((!interrupt::asked()).then_some(row))
}

/// Does what the way says; returns how many were asked for, and the blocks that came, or that could
/// then be had.
fn tried(
    host: &Host,
    look: &Look,
    forecasts: &Forecasts,
    way: Way,
    order: Order,
) -> Result<(u64, u64), anyhow::Error> {
    if way == Way::Asking {
        let bytes = u64::from(look.frame_bytes) << order.get();
        // What is asked for and does not come costs other processes memory.
        let most = available().unwrap_or(usize::MAX) as u64 / 10 * 9 / bytes;
        let high = forecasts.of(way).high;
        let asked = (high + high / 8 + 16).min(most);
        return Ok((asked, ask(bytes, asked)?));
    }
    if way == Way::Dropped {
        help::sync_and_drop()?;
    }
    help::compact()?;
    let mut after = Look::at(host, Depth::Lists, || 0, |_, _| {})?;
    after.page_types = host.page_types().ok();
    let uninitialised = forecasts.obstacles.uninitialised >> order.get();
    Ok((u64::MAX, forecast::now(&after, order) + uninitialised))
}

fn ask(bytes: u64, blocks: u64) -> Result<u64, TrialError> {
    let mut pool = Pool::of(bytes)?;
    let _holding = interrupt::Holding::begin();
    let outcome = pool.ask(blocks, interrupt::asked);
    pool.put_back()?;
    Ok(outcome?.came)
}
