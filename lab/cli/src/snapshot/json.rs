//! The figures of a snapshot as JSON.

use brickyard::Order;
use brickyard_host::look::ZoneLook;
use brickyard_trace::PageUse;
use serde_json::{Map, Value, json};

use super::figures::{named_zones, summary};
use super::words::{explanation, verdict_word};
use super::{View, forecast};

/// Returns everything known. What this user may not read is `null`; `withheld` has the reasons.
pub(super) fn document(view: &View<'_>) -> Value {
    let (look, order) = (view.look, view.order);
    let zones = named_zones(look);
    let zones: Vec<_> = zones
        .iter()
        .map(|(name, zone)| zone_value(name, zone))
        .collect();
    let uses: Map<_, _> = look
        .by_use()
        .into_iter()
        .map(|(name, frames)| (name.into(), frames.into()))
        .collect();
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
    let orders: Vec<_> = Order::ZERO
        .up_to(zone.max_order)
        .map(|order| order_value(zone, order))
        .collect();
    let sets: Vec<_> = info
        .pagesets
        .iter()
        .map(
            |set| json!({"cpu": set.cpu, "pages": set.count, "high": set.high, "batch": set.batch}),
        )
        .collect();
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
        "per_cpu": sets,
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

fn blocks_value(zone: &ZoneLook) -> Value {
    let Some(blocks) = summary(zone) else {
        return Value::Null;
    };
    let held = PageUse::ALL.map(|usage| {
        (
            usage.name().to_owned(),
            blocks.in_mixed[usage as usize].into(),
        )
    });
    let held: Map<_, _> = held.into_iter().collect();
    json!({
        "free": blocks.free,
        "movable": blocks.movable,
        "in_doubt": blocks.perhaps,
        "mixed": blocks.mixed,
        "mixed_by_few": blocks.mixed_by_few,
        "unmovable": blocks.unmovable,
        "huge": blocks.huge,
        "absent": blocks.absent,
        "pages_in_mixed": held,
    })
}
