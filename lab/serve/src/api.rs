//! What the page asks for, as JSON. Times are in milliseconds since 1970, memory is in frames
//! unless a name says bytes.

use core::ops::Range;
use std::time::SystemTime;

use brickyard::Order;
use brickyard_host::blocks::BlockKind;
use brickyard_host::forecast::Way;
use brickyard_host::look::ZoneLook;
use brickyard_trace::PageUse;
use serde::{Serialize, Serializer};
use serde_json::{Value, json};

use crate::board::Board;
use crate::frames::BlockRun;
use crate::history::figures::HostRow;
use crate::history::millis;
use crate::history::read;
use crate::sample::{Reading, Sample};

type Object = serde_json::Map<String, Value>;

/// The host at the time of a sample.
pub(crate) fn now(board: &Board, sample: &Sample) -> Value {
    let look = &sample.look;
    let reading = sample.reading.as_deref();
    let mut withheld: Vec<_> = sample
        .sources
        .iter()
        .filter_map(|source| {
            let why = source.withheld.as_ref()?;
            Some(json!({ "source": source.name, "why": why }))
        })
        .collect();
    if let Some(why) = board.sample_withheld() {
        withheld.push(json!({ "source": "lists, so that all here is old", "why": why }));
    }
    if let Some(why) = board.history_withheld() {
        withheld.push(json!({ "source": "history", "why": why }));
    }
    json!({
        "host": look.host,
        "kernel": look.kernel,
        "version": env!("CARGO_PKG_VERSION"),
        "time_ms": millis(look.time),
        "frame_bytes": look.frame_bytes,
        "huge_order": look.huge_order.get(),
        "block_order": reading.map_or(look.page_block_order, |reading| reading.block_order).get(),
        "available_bytes": sample.available,
        "huge_free": sample.huge_free(),
        "zones": look.zones.iter().map(zone).collect::<Vec<_>>(),
        "memory_use": uses(sample),
        "blocks": reading.map(|reading| {
            BlockKind::ALL.iter().map(|&kind| (kind.name().to_owned(), reading.blocks_of(kind).into())).collect::<Object>()
        }),
        "forecasts": reading.and_then(|reading| forecasts(sample, reading)),
        "pinned": reading.and_then(|reading| reading.pinned),
        "gigantic": reading.map(|reading| json!({ "free": reading.gigantic.free, "emptiable": reading.gigantic.emptiable })),
        "frames": reading.map(|reading| json!({ "time_ms": millis(reading.time), "pass_seconds": reading.took.as_secs_f64() })),
        "pass": sample.progress.map(|done| json!({ "done": done })),
        "counters": {
            "compaction_stalls": sample.counters.get("compact_stall"),
            "compaction_successes": sample.counters.get("compact_success"),
            "compaction_failures": sample.counters.get("compact_fail"),
            "thp_faults": sample.counters.get("thp_fault_alloc"),
            "thp_fault_fallbacks": sample.counters.get("thp_fault_fallback"),
            "allocation_stalls": sample.counters_from("allocstall"),
        },
        "fallbacks": sample.fallbacks.as_deref().map(|rows| {
            rows.iter().map(|row| json!({ "process": row.process, "mobility": row.mobility, "from": row.from, "count": row.count })).collect::<Vec<_>>()
        }),
        "withheld": withheld,
        "cost": {
            "cpu_seconds": sample.cost.cpu.as_secs_f64(),
            "share": sample.cost.share,
            "budget": sample.cost.budget,
            "resident_bytes": sample.cost.resident,
        },
        "history": board.history.as_ref().and_then(|folder| {
            let (from, to) = read::span(folder, &look.host)?;
            Some(json!({ "from_ms": millis(from), "to_ms": millis(to) }))
        }),
    })
}

fn zone(zone: &ZoneLook) -> Value {
    let info = &zone.info;
    let orders = || Order::ZERO.up_to(zone.max_order);
    json!({
        "node": info.node,
        "name": info.name,
        "start_frame": info.start_pfn,
        "frames": info.spanned,
        "managed": info.managed,
        "free": info.free,
        "min": info.min,
        "low": info.low,
        "high": info.high,
        "idle": info.idle_in_pagesets(),
        "free_blocks": orders().map(|order| zone.counts.by_order[order.index()]).collect::<Vec<_>>(),
        "unusable": orders().map(|order| f64::from(zone.counts.unusable_index(order)) / 1000.0).collect::<Vec<_>>(),
    })
}

/// Memory by use: by the frames if they were read, else by the kernel's counters.
fn uses(sample: &Sample) -> Object {
    let of_lists = || sample.look.by_use();
    let uses = sample
        .reading
        .as_ref()
        .map_or_else(of_lists, |reading| reading.by_use.clone());
    uses.into_iter()
        .map(|(name, frames)| (name.to_owned(), frames.into()))
        .collect()
}

fn forecasts(sample: &Sample, reading: &Reading) -> Option<Value> {
    let forecasts = reading.forecasts.as_ref()?;
    let ways = Way::ALL.map(|way| {
        let forecast = forecasts.of(way);
        json!({ "way": way.name(), "likely": forecast.likely, "at_least": forecast.low, "at_most": forecast.high })
    });
    Some(
        json!({ "order": sample.look.huge_order.get(), "time_ms": millis(reading.time), "ways": ways }),
    )
}

/// The page blocks of the newest pass, or of the newest in the history that is not after `time`.
pub(crate) fn map(board: &Board, time: Option<SystemTime>) -> Result<String, String> {
    let newest = board.newest().ok_or("there is no sample yet")?;
    let reading = newest.reading.as_deref();
    if let Some(reading) = reading
        && time.is_none_or(|time| millis(reading.time) <= millis(time))
    {
        let order = reading.block_order.get();
        return blocks(millis(reading.time), order, &reading.blocks);
    }
    let (Some(time), Some(folder)) = (time, &board.history) else {
        return Err(if time.is_some() {
            "there is no history: --history was not given"
        } else {
            "the frames were not read: see what is withheld"
        }
        .to_owned());
    };
    let recent = board.recent().maps;
    if let Some(map) = recent.iter().rev().find(|map| map.time <= millis(time)) {
        return blocks(map.time, map.order, &map.runs);
    }
    let found = read::map(folder, &newest.look.host, time).map_err(|why| why.to_string())?;
    let found = found.ok_or("the history has no map of that time")?;
    blocks(found.time, found.order, &found.runs)
}

/// A map of page blocks. It is written as it is read: as a tree of values, one of 1 TiB would take
/// hundreds of MiB for a moment.
#[derive(Serialize)]
struct Map<'m> {
    time_ms: u64,
    block_order: u8,
    kinds: [&'static str; BlockKind::ALL.len()],
    #[serde(serialize_with = "runs")]
    runs: &'m [BlockRun],
}

fn runs<S: Serializer>(runs: &[BlockRun], serializer: S) -> Result<S::Ok, S::Error> {
    let runs = runs.iter();
    serializer.collect_seq(runs.map(|run| (run.first, run.blocks, run.kind as usize)))
}

fn blocks(time: u64, order: u8, runs: &[BlockRun]) -> Result<String, String> {
    let map = Map {
        time_ms: time,
        block_order: order,
        kinds: BlockKind::ALL.map(BlockKind::name),
        runs,
    };
    serde_json::to_string(&map).map_err(|why| why.to_string())
}

/// The frames of the newest pass: a letter a frame.
pub(crate) fn frames(sample: &Sample, first: u64, count: u64) -> Result<Value, String> {
    let reading = sample
        .reading
        .as_ref()
        .ok_or("the frames were not read: see what is withheld")?;
    if first >= reading.frames.end() {
        return Err("memory ends before that frame".to_owned());
    }
    let letters: String = reading
        .frames
        .uses(first, count)
        .map(|usage| char::from(b'A' + usage as u8))
        .collect();
    Ok(json!({
        "first": first,
        "time_ms": millis(reading.time),
        "uses": PageUse::ALL.map(PageUse::name),
        "frames": letters,
    }))
}

/// The samples of a time from the history, at most `points` of them.
pub(crate) fn series(
    board: &Board,
    time: Range<SystemTime>,
    points: usize,
) -> Result<Value, String> {
    let newest = board.newest().ok_or("there is no sample yet")?;
    let folder = board.history.as_ref();
    let folder = folder.ok_or("there is no history: --history was not given")?;
    let wanted = millis(time.start)..millis(time.end);
    let found = read::hosts(folder, Some(&newest.look.host), time, points);
    let mut found = found.map_err(|why| why.to_string())?;
    // What is not in the files yet.
    let last = found.rows.last().map_or(0, |row| row.time);
    let recent = board.recent().rows.into_iter();
    let recent = recent.filter(|row| row.time > last && wanted.contains(&row.time));
    found.rows.extend(recent.map(|row| (*row).clone()));
    let row = |row: &HostRow| {
        let figures = SERIES.iter().map(|name| json!(row.get(name)));
        core::iter::once(json!(row.time))
            .chain(figures)
            .collect::<Value>()
    };
    let mut maps: Vec<u64> = found
        .rows
        .iter()
        .filter_map(|row| row.reading_time)
        .collect();
    maps.dedup();
    Ok(json!({
        "columns": core::iter::once("time_ms").chain(SERIES).collect::<Value>(),
        "rows": found.rows.iter().map(row).collect::<Value>(),
        "maps": maps,
        "faults": found.faults.iter().map(ToString::to_string).collect::<Value>(),
    }))
}

/// The figures of a series.
const SERIES: [&str; 10] = [
    "free_bytes",
    "available_bytes",
    "per_cpu_idle_bytes",
    "huge_free",
    "huge_pool_likely",
    "huge_dropped_likely",
    "unusable_huge",
    "blocks_mixed",
    "compaction_stalls",
    "thp_fault_fallbacks",
];
