//! The figures of a snapshot as JSON.

use brickyard::Order;
use brickyard_host::blocks::BlockSummary;
use brickyard_host::look::ZoneLook;
use brickyard_trace::PageUse;
use serde_json::{Map, Value, json};

use super::figures::{named_zones, summary};
use super::words::{explanation, verdict_word};
use super::{View, forecast};

/// Returns everything known. What this user may not read is `null`; `withheld` has the reasons.
pub(super) fn document(view: &View<'_>) -> Value {
    let (look, order) = (view.look, view.order);
    let zones = named_zones(look).into_iter();
    let zones: Vec<_> = zones.map(|(name, zone)| zone_value(&name, zone)).collect();
    let uses = look.by_use().into_iter();
    let uses = Map::from_iter(uses.map(|(name, frames)| (name.into(), frames.into())));
    let withheld: Vec<_> = look.withheld.iter().map(ToString::to_string).collect();
    json!({
        "host": look.host,
        "time": humantime::format_rfc3339_seconds(look.time).to_string(),
        "kernel": look.kernel,
        "frame_bytes": look.frame_bytes,
        "huge_order": look.huge_order.get(),
        "page_block_order": look.page_block_order.get(),
        "request": {
            "order": order.get(),
            "verdict": verdict_word(look.verdict(order)),
            "explanation": explanation(view),
        },
        "forecast": forecast::document(view),
        "zones": zones,
        "used_pages": uses,
        "withheld": withheld,
    })
}

fn zone_value(name: &str, zone: &ZoneLook) -> Value {
    let info = &zone.info;
    let orders = Order::ZERO.up_to(zone.max_order);
    let orders: Vec<_> = orders.map(|order| order_value(zone, order)).collect();
    let sets = info.pagesets.iter().map(
        |set| json!({"cpu": set.cpu, "pages": set.count, "high": set.high, "batch": set.batch}),
    );
    json!({
        "name": name,
        "node": info.node,
        "start_frame": info.start_pfn,
        "spanned_pages": info.spanned,
        "present_pages": info.present,
        "managed_pages": info.managed,
        "free_pages": info.free,
        "watermarks": {"min": info.min, "low": info.low, "high": info.high},
        "per_cpu_pages": info.idle_in_pagesets(),
        "per_cpu": sets.collect::<Vec<_>>(),
        "orders": orders,
        "page_blocks": blocks_value(zone),
    })
}

fn order_value(zone: &ZoneLook, order: Order) -> Value {
    let counts = &zone.counts;
    let outlook = zone.outlook.get(order.index());
    json!({
        "order": order.get(),
        "free_blocks": counts.by_order[order.index()],
        "unusable_index": f64::from(counts.unusable_index(order)) / 1000.0,
        "fragmentation_index": f64::from(counts.fragmentation_index(order)) / 1000.0,
        "request": verdict_word(zone.verdict(order)),
        "available": {
            "now": counts.suitable(order),
            "compacted": outlook.map(|outlook| outlook.compacted),
            "drained": outlook.map(|outlook| outlook.drained),
            "reclaimed": outlook.map(|outlook| outlook.reclaimed),
        },
    })
}

/// A kind of page blocks: its name, and how many there are.
type Kind = (&'static str, fn(&BlockSummary) -> u64);

/// The kinds of page blocks.
pub(super) const BLOCKS: [Kind; 8] = [
    ("free", |of| of.free),
    ("movable", |of| of.movable),
    ("in_doubt", |of| of.perhaps),
    ("mixed", |of| of.mixed),
    ("mixed_by_few", |of| of.mixed_by_few),
    ("unmovable", |of| of.unmovable),
    ("huge", |of| of.huge),
    ("absent", |of| of.absent),
];

/// Returns how many page blocks are of which kind; `null` if the frames were not read.
fn blocks_value(zone: &ZoneLook) -> Value {
    let Some(blocks) = summary(zone) else {
        return Value::Null;
    };
    let held = PageUse::ALL.map(|of| (of.name().to_owned(), blocks.in_mixed[of as usize].into()));
    let kinds = BLOCKS.map(|(kind, of)| (kind.to_owned(), of(&blocks).into()));
    let mut value = Map::from_iter(kinds);
    value.insert("pages_in_mixed".to_owned(), Map::from_iter(held).into());
    value.into()
}
