//! The batches of 2013 with threads of this host: ns per page for an allocation and a free, by order
//! and batch; or their instructions, counted by valgrind.
//!
//! A round is a cell, in which every contestant has its turn at each setting of the machine. An
//! allocator of another project is a contestant where the program has it (`peers/`).

use core::time::Duration;

use brickyard_bench::best_peer::{best_peers, text};
use brickyard_bench::conditions::Conditions;
use brickyard_bench::contestant::Contestant;
use brickyard_bench::instructions::{Instructions, LARGEST_BATCH};
use brickyard_bench::machine::{Bulk, FRAME_BYTES, Level, Lock};
use brickyard_bench::rounds::{Pace, Rounds};
use brickyard_bench::schedule::{Orders, Schedule, Workload, goals, sensible};
use brickyard_designs::classics::Configuration;
use brickyard_results::{Results, bytes_text};
use brickyard_run::terminal::tell;

use super::batches::METRICS;
use crate::cell::{Cell, Scale};
use crate::cells::rows::{HOST, RowTemplate};
use crate::cells::timed::{Round, TimedExperiment};
use crate::experiment::Parameter;
use crate::raw::{Method, Raw};
use crate::refusal::Refusal;
use crate::settings::{Settings, wrong};

/// What can be set.
pub(super) const PARAMETERS: &[Parameter] = &[
    Parameter::new(
        "config",
        "auto",
        "designs, the first is the baseline (see `brickyard help designs`), and yardsticks: fetch-add, whose allocation is one uncontended atomic fetch-add and whose free is nothing, and array-stack, a bare stack of frame numbers without a lock; auto: the designs of the documents, or brickyard and all peers",
    ),
    Parameter::new(
        "peers",
        "no",
        "yes: also measure every peer, another project's allocator, and tell the best of them for each row; only brickyard-peers has them, see the folder `peers`",
    ),
    Parameter::new(
        "measure",
        "time",
        "time; or instructions: those of an allocation and of a free under valgrind, loop included, for single pages in batches of 1, 64 and 16384, at the zone and at the node",
    ),
    Parameter::new(
        "rows",
        "all",
        "all: every combination of the parameters below; or goals: the rows that the default design has goals for",
    ),
    Parameter::new("orders", "0-4,9", "orders of the blocks, such as 0-4,9"),
    Parameter::new(
        "max-batch",
        "16384",
        "largest batch; batches are 1, 2, 4 ... and below 128 MiB",
    ),
    Parameter::new("threads", "1,2", "numbers of threads that run in parallel"),
    Parameter::new(
        "api",
        "single",
        "calls: single, one a block, or bulk, one a batch",
    ),
    Parameter::new(
        "free",
        "same",
        "how a batch is freed: same, in the order of allocation; random, the same each time; remote, by another thread",
    ),
    Parameter::new(
        "fill",
        "0",
        "percent of the memory that is allocated beforehand, page by page, chosen at random",
    ),
    Parameter::new(
        "level",
        "auto",
        "levels that requests enter at: node or zone (only with the ticket lock); auto: node, for instructions both",
    ),
    Parameter::new(
        "slots",
        "exclusive",
        "how a CPU accesses its lists: exclusive, or shared, through a lock that other CPUs may try",
    ),
    Parameter::new("sample-us", "1000", "least time of a sample's loop, in us"),
    Parameter::new(
        "memory",
        "1G",
        "memory of the machine, of which only the metadata is real",
    ),
    Parameter::new(
        "mobility",
        "unmovable",
        "mobility of the requests: unmovable, movable or reclaimable",
    ),
    Parameter::new(
        "lock",
        "ticket",
        "lock of the zones and magazines: ticket, test-and-set, ticket-own-line or test-and-set-own-line",
    ),
    Parameter::new(
        "bulk",
        "hold",
        "how long the zone lock is held in a bulk operation: hold, release (for one page) or yield; brickyard and linux-... have hold alone",
    ),
    Parameter::new(
        "masking",
        "nothing",
        "what a mask of interrupts does: nothing, or flags, what a kernel does but for `cli` (x86-64)",
    ),
];

/// The designs that are compared if the user names none.
const CONFIGS: [&str; 7] = [
    "brickyard",
    "list-2007",
    "magazine-2013",
    "vanilla",
    "two-kinds-2005",
    "zone-2007",
    "combined-2007",
];

/// Returns the cells of a run with these settings.
///
/// # Errors
/// [`Refusal`], if a value is wrong, or two do not fit together.
pub(super) fn set(settings: &Settings<'_>) -> Result<Vec<Cell>, Refusal> {
    let contestants = contestants(settings)?;
    let conditions = conditions(settings)?;
    let mut of_bulk = contestants.iter().filter(|one| always_holds(one.name()));
    if let (Some(one), true) = (of_bulk.next(), conditions.bulk != Bulk::Hold) {
        let why = format_args!("{one} cannot release a lock in a bulk; leave {one} out of config");
        return Err(wrong("bulk", why));
    }
    let is_counted = match settings.text("measure") {
        "time" => false,
        "instructions" => true,
        _ => return Err(wrong("measure", "it is time or instructions")),
    };
    let levels: Vec<Level> = match (settings.is_auto("level"), is_counted) {
        (true, true) => vec![Level::Zone, Level::Node],
        (true, false) => vec![Level::Node],
        (false, _) => settings.list("level")?,
    };
    if levels.contains(&Level::Zone) && conditions.lock != Lock::Ticket {
        let why = "zone works only with lock=ticket; leave one of the two out";
        return Err(wrong("level", why));
    }
    if is_counted {
        return counted(settings, &contestants, conditions, levels);
    }
    let workloads = workloads(settings, &levels, conditions)?;
    let least = Duration::from_micros(settings.count("sample-us")? as u64);
    let turns = workloads.len() * contestants.len();
    let timed = TimedExperiment {
        name: "pagealloc.host.batches",
        quick: 0,
        // A loop without a clock and one with it, and what precedes them.
        seconds: 4.0 * least.as_secs_f64() * turns as f64,
        work: move |mut round: Round<'_>| {
            let mut rows = Vec::new();
            for workloads in workloads.chunk_by(|a, b| a.is_at_the_setting_of(b)) {
                let rounds = Rounds {
                    workloads,
                    pace: Pace::Sample(least),
                    step: &|| {},
                };
                let what = conditions.name(&workloads[0]);
                let taken =
                    round.turns(&what, 1, &contestants, |one| conditions.turn(&one, &rounds))?;
                let taken = taken.in_order_of(&contestants);
                for (place, workload) in workloads.iter().enumerate() {
                    let name = conditions.name(workload);
                    for (contestant, taken) in &taken {
                        // None where it had too few free blocks.
                        let Some(sample) = taken.0.get(place).copied().flatten() else {
                            if round.is_first() && !matches!(contestant, Contestant::Yardstick(_)) {
                                tell(format_args!(
                                    "brickyard: {contestant} had too few free blocks for {name}"
                                ));
                            }
                            continue;
                        };
                        let values = [sample.alloc, sample.free, sample.total];
                        let template = round.template(&name, contestant.name());
                        let of_sample = METRICS.iter().zip(values);
                        rows.extend(of_sample.map(|(metric, value)| template.row(metric, value)));
                    }
                }
            }
            Ok(rows)
        },
    };
    Ok(timed.rounds(settings.runs))
}

/// Returns what is below the table: the best peer of each row.
pub(super) fn below(settings: &Settings<'_>, results: &Results) -> String {
    let peers: Vec<&str> = settings.peers.iter().map(|peer| peer.name()).collect();
    let label = |workload: &str, metric: &str| format!("{workload} {metric}");
    match results.rows().first().map(brickyard_results::Row::config) {
        Some(first) if !peers.contains(&first) => {
            text(first, &best_peers(results, first, &peers, &label))
        }
        _ => String::new(),
    }
}

/// Returns true for a design that cannot release a lock in a bulk operation.
fn always_holds(name: &str) -> bool {
    let design = name.parse::<Configuration>();
    design.is_ok_and(|design| !design.has_bulk_policies())
}

fn contestants(settings: &Settings<'_>) -> Result<Vec<Contestant>, Refusal> {
    let with_peers = match settings.text("peers") {
        "no" => false,
        "yes" => true,
        _ => return Err(wrong("peers", "it is yes or no")),
    };
    let mut names: Vec<String> = match (settings.is_auto("config"), with_peers) {
        (true, true) => vec!["brickyard".to_owned()],
        (true, false) => {
            let holds = settings.text("bulk") == Bulk::Hold.name();
            let all = CONFIGS
                .into_iter()
                .filter(|name| holds || !always_holds(name));
            all.map(str::to_owned).collect()
        }
        (false, _) => settings.list("config")?,
    };
    if with_peers {
        if settings.peers.is_empty() {
            let why = "this program has none; run `cargo run --release -- run pagealloc --on host --set peers=yes` in the folder `peers`";
            return Err(wrong("peers", why));
        }
        for peer in settings.peers {
            if !names.iter().any(|name| name == peer.name()) {
                names.push(peer.name().to_owned());
            }
        }
    }
    Contestant::named(&names, settings.peers).map_err(|why| wrong("config", why))
}

fn conditions(settings: &Settings<'_>) -> Result<Conditions, Refusal> {
    let frames = settings.bytes("memory")? / FRAME_BYTES;
    Ok(Conditions {
        frames,
        mobility: settings.mobility()?,
        lock: settings.one("lock")?,
        bulk: settings.one("bulk")?,
        masking: settings.one("masking")?,
    })
}

/// Returns the workloads that the settings name and that are possible; says why others are left out.
fn workloads(
    settings: &Settings<'_>,
    levels: &[Level],
    conditions: Conditions,
) -> Result<Vec<Workload>, Refusal> {
    let requested = match settings.text("rows") {
        "goals" => goals(levels),
        "all" => {
            let orders: Orders = settings.one("orders")?;
            let fill = settings.list_by("fill", |text| match text.parse() {
                Ok(percent) if percent < 100 => Ok(percent),
                _ => Err("give percentages of 0 to 99"),
            })?;
            let schedule = Schedule {
                slots: settings.list("slots")?,
                fill,
                level: levels.to_vec(),
                threads: settings.threads("threads", || vec![1, 2])?,
                api: settings.list("api")?,
                freed: settings.list("free")?,
                orders: orders.0,
                least_batch: 1,
                most_batch: settings.count("max-batch")?,
            };
            schedule.workloads()
        }
        _ => return Err(wrong("rows", "it is all or goals")),
    };
    let (workloads, left_out) = sensible(requested, conditions.frames);
    if workloads.is_empty() {
        return Err(Refusal::Setting(format!(
            "nothing is left to measure: {}; add order 0, an even number of threads, a lower fill or more memory",
            left_out.join("; ")
        )));
    }
    let most = workloads.iter().map(Workload::pages).max().unwrap_or(0);
    has_room_for(most, conditions)?;
    for reason in left_out {
        tell(format_args!("brickyard: {reason}"));
    }
    Ok(workloads)
}

/// Fails if there is too little memory for so many pages at once.
fn has_room_for(most: usize, conditions: Conditions) -> Result<(), Refusal> {
    let memory = conditions.frames * FRAME_BYTES;
    // Twice the largest batch of all threads; a configuration with a zone for movable pages has half
    // of the memory for the others.
    let needed = most.saturating_mul(4 * FRAME_BYTES);
    if memory >= needed {
        return Ok(());
    }
    Err(wrong(
        "memory",
        format_args!(
            "{} is too small for these batches; give at least {}M, or a lower max-batch",
            bytes_text(memory),
            needed.div_ceil(1 << 20)
        ),
    ))
}

/// Returns a cell for each figure that is counted.
fn counted(
    settings: &Settings<'_>,
    contestants: &[Contestant],
    conditions: Conditions,
    levels: Vec<Level>,
) -> Result<Vec<Cell>, Refusal> {
    let most_batch = settings.count("max-batch")?;
    has_room_for(most_batch.min(LARGEST_BATCH), conditions)?;
    let instructions = Instructions {
        levels,
        slots: settings.list("slots")?,
        most_batch,
        conditions,
    };
    let mut cells = Vec::new();
    for turn in instructions.turns() {
        cells.extend(contestants.iter().map(|&contestant| {
            let (workload, name) = (instructions.name(turn), contestant.name());
            Cell {
                name: format!("pagealloc.host.{}.{name}", workload.replace(' ', "-")),
                // Counted, so the same for one build wherever it runs.
                kind: Method::Simulated,
                scale: Scale::Full,
                seconds: 2.0,
                work: Box::new(move |_| {
                    let figures = conditions.count(&contestant, turn)?;
                    let template = RowTemplate {
                        machine: HOST,
                        workload: &workload,
                        config: name,
                        run: 1,
                    };
                    let figures = figures.into_iter();
                    let rows = figures.map(|(metric, value)| template.row(&metric, value));
                    Ok(rows.collect::<Vec<Raw>>().into())
                }),
            }
        }));
    }
    Ok(cells)
}
