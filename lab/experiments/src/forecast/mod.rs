//! `forecast`: the forecasts of `brickyard snapshot` beside what this host really gives, in states
//! of its memory in which whole blocks are few. No document has it. It needs root, fills memory, and
//! asks the kernel for huge pages.

use anyhow::{Context as _, bail};
use brickyard::Order;
use brickyard_host::Host;
use brickyard_host::forecast::{self, Forecast, Forecasts, Way};
use brickyard_host::look::{Depth, Look};
use brickyard_host::trial::pool::Pool;
use brickyard_host::trial::states::{self, State};
use brickyard_host::trial::{TrialError, help};
use brickyard_results::{Better, Metric};
use brickyard_run::interrupt;
use brickyard_run::memory::available;

use crate::cell::{Cell, Context, Scale};
use crate::cells::rows::{HOST, RowTemplate};
use crate::experiment::{Experiment, Form, On, Parameter};
use crate::raw::{Method, Raw};
use crate::refusal::Refusal;
use crate::settings::{Settings, wrong};

/// The experiment.
pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "forecast",
    about: "Huge pages that this host gives, beside how many `snapshot` said it would; as root",
    forms: &[Form::new(On::Host, 2, PARAMETERS, cells)],
    reproduced: Vec::new,
    document: None,
    uses_traces: false,
};

const PARAMETERS: &[Parameter] = &[
    Parameter::new(
        "state",
        "as-found,every-other,pinned,single",
        "states of memory: as it is found; every other page in use; one pinned page in each 2 MiB; one page in each 2 MiB that can be moved",
    ),
    Parameter::new(
        "way",
        "pool,compacted,dropped",
        "ways to huge pages: asked for by nr_hugepages; after compact_memory; after sync, drop_caches and compact_memory",
    ),
    Parameter::new(
        "memory",
        "auto",
        "how much memory the states fill; auto: 70 % of what is available, at most 90 % can be set",
    ),
];

/// The ways that are tried: those of which the outcome is not known beforehand.
const WAYS: [(&str, Way); 3] = [
    ("pool", Way::Asking),
    ("compacted", Way::Compacted),
    ("dropped", Way::Dropped),
];

const BLOCKS: Metric<'static> = Metric::new("huge pages", "pages", Better::Neither);

/// A state, and a way to huge pages from there.
#[derive(Debug, Clone, Copy)]
struct Trial {
    state: State,
    way: (&'static str, Way),
    /// How much memory the state fills.
    memory: usize,
    run: u32,
}

fn cells(settings: &Settings<'_>) -> Result<Vec<Cell>, Refusal> {
    let states = settings.list::<State>("state")?;
    let ways = settings.named("way", &WAYS, |way| way.0)?;
    let memory = memory(settings)?;
    let mut cells = Vec::new();
    for run in 1..=settings.runs {
        for &state in &states {
            for &way in &ways {
                let trial = Trial {
                    state,
                    way,
                    memory,
                    run,
                };
                cells.push(trial.cell());
            }
        }
    }
    Ok(cells)
}

/// Returns how much memory to fill: at most nine tenths of what is available.
fn memory(settings: &Settings<'_>) -> Result<usize, Refusal> {
    let available = available().unwrap_or(usize::MAX);
    let wanted = match settings.is_auto("memory") {
        true => available / 10 * 7,
        false => settings.bytes("memory")?,
    };
    if wanted < states::LEAST {
        let why = format_args!("a state needs at least {}M", states::LEAST >> 20);
        return Err(wrong("memory", why));
    }
    let most = available / 10 * 9;
    if wanted > most {
        let why = format_args!("this host can spare at most {}M", most >> 20);
        return Err(wrong("memory", why));
    }
    Ok(wanted)
}

impl Trial {
    fn cell(self) -> Cell {
        let (state, way, run) = (self.state.name(), self.way.0, self.run);
        Cell {
            name: format!("forecast.{HOST}.{state}.{way}.{run}"),
            kind: Method::Timed,
            scale: Scale::Full,
            // Each page is written, and most are given back.
            seconds: 1.0 + 5e-10 * self.memory as f64,
            work: Box::new(move |mut context| Ok(self.rows(&mut context)?.into())),
        }
    }

    /// Makes the state, forecasts, and goes the way.
    fn rows(&self, context: &mut Context<'_>) -> anyhow::Result<Vec<Raw>> {
        let host = Host::here();
        let order = Look::at(&host, Depth::Lists, || 0, |_, _| {})?.huge_order;
        let _held = self.state(&host, order, context)?;
        going_on(context)?;
        let look = Look::at(&host, Depth::Everything, || 0, |_, _| {})?;
        let forecasts = Forecasts::new(&look, order, &host.pinned());
        let forecasts = forecasts.with_context(|| {
            let why = look.withheld.iter().map(ToString::to_string);
            why.collect::<Vec<_>>().join("; ")
        })?;
        going_on(context)?;
        let (asked, came) = tried(&host, &look, &forecasts, self.way.1, order)?;
        going_on(context)?;
        let Forecast { low, likely, high } = forecasts.of(self.way.1);
        let workload = format!("{} {}", self.state.name(), self.way.0);
        let counts = [
            ("came", came),
            ("likely", likely.min(asked)),
            ("at-least", low.min(asked)),
            ("at-most", high.min(asked)),
        ];
        let row = |(config, blocks)| {
            let template = RowTemplate {
                machine: HOST,
                workload: &workload,
                config,
                run: self.run,
            };
            template.row(&BLOCKS, blocks as f64)
        };
        Ok(counts.map(row).into())
    }

    /// Brings the host's memory into the state, which lasts until what is returned is dropped.
    fn state(
        &self,
        host: &Host,
        order: Order,
        context: &mut Context<'_>,
    ) -> anyhow::Result<states::HeldMemory> {
        going_on(context)?;
        let look = Look::at(host, Depth::Lists, || 0, |_, _| {})?;
        let bytes = u64::from(look.frame_bytes) << order.get();
        if bytes != states::LEAST as u64 {
            bail!(
                "the states are made for pages of 4 KiB and huge pages of 2 MiB, which this host does not have"
            );
        }
        // Says before anything is filled that this user may not.
        drop(Pool::of(bytes)?);
        let held = states::make(self.state, self.memory, |done| {
            context.follow.goes_on(done as u64)
        });
        held.with_context(|| self.state.name())?
            .context("interrupted")
    }
}

fn going_on(context: &mut Context<'_>) -> anyhow::Result<()> {
    match context.follow.goes_on(0) {
        true => Ok(()),
        false => bail!("interrupted"),
    }
}

/// Goes a way; returns how many huge pages were asked for, and how many came or could then be had.
fn tried(
    host: &Host,
    look: &Look,
    forecasts: &Forecasts,
    way: Way,
    order: Order,
) -> anyhow::Result<(u64, u64)> {
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
