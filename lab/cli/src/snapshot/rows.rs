//! The figures of a snapshot as CSV: a line per figure, with host and time, so that several
//! snapshots can be stacked.

use brickyard_host::forecast::Way;
use brickyard_results::{Listing, cells};
use brickyard_trace::PageUse;
use serde_json::Value;

use super::{View, json};

/// Returns all figures, from the JSON document. Column `of` is the order or use, where a figure has
/// one value for each.
pub(super) fn csv(view: &View<'_>) -> String {
    let document = json::document(view);
    let mut listing = Listing::new("host time zone figure of value");
    let mut add = |zone: &Value, figure: &str, of: &str, value: &Value| {
        if !value.is_null() {
            let [host, time] = [&document["host"], &document["time"]].map(Value::clone);
            listing.push(cells![host, time, zone.clone(), figure, of, value.clone()]);
        }
    };
    for zone in document["zones"].as_array().into_iter().flatten() {
        let name = &zone["name"];
        for figure in ["present_pages", "managed_pages", "free_pages"] {
            add(name, figure, "", &zone[figure]);
        }
        for mark in ["min", "low", "high"] {
            add(
                name,
                &format!("{mark}_pages"),
                "",
                &zone["watermarks"][mark],
            );
        }
        add(name, "per_cpu_pages", "", &zone["per_cpu_pages"]);
        for order in zone["orders"].as_array().into_iter().flatten() {
            let of = order["order"].to_string();
            for figure in [
                "free_blocks",
                "unusable_index",
                "fragmentation_index",
                "request",
            ] {
                add(name, figure, &of, &order[figure]);
            }
            for when in ["now", "compacted", "drained", "reclaimed"] {
                add(
                    name,
                    &format!("available_{when}"),
                    &of,
                    &order["available"][when],
                );
            }
        }
        let blocks = &zone["page_blocks"];
        for (kind, _) in json::BLOCKS {
            add(name, "page_blocks", &kind.replace('_', " "), &blocks[kind]);
        }
        for usage in PageUse::ALL.map(PageUse::name) {
            add(
                name,
                "pages_in_mixed_blocks",
                usage,
                &blocks["pages_in_mixed"][usage],
            );
        }
    }
    let all = Value::from("all");
    for (usage, frames) in view.look.by_use() {
        add(&all, "used_pages", usage, &frames.into());
    }
    for way in Way::ALL.map(Way::name) {
        for end in ["likely", "at_least", "at_most"] {
            let value = &document["forecast"]["ways"][way][end];
            add(
                &all,
                &format!("{way}_{end}"),
                &view.order.to_string(),
                value,
            );
        }
    }
    listing.csv()
}
