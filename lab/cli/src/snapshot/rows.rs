//! The figures of a snapshot as CSV: a line per figure, with host and time, so that several
//! snapshots can be stacked.

use std::io::{self, Write};

use brickyard::Order;
use brickyard_host::forecast::Way;
use brickyard_host::look::ZoneLook;
use brickyard_trace::PageUse;

use super::View;
use super::figures::{named_zones, summary};
use super::words::verdict_word;

/// Writes all figures. Column `of` is the order or use, where a figure has one value for each.
pub(super) fn write(view: &View<'_>, out: &mut impl Write) -> io::Result<()> {
    let look = view.look;
    let time = humantime::format_rfc3339_seconds(look.time);
    let of = format!("\"{}\",{time}", look.host.replace('"', "\"\""));
    writeln!(out, "host,time,zone,figure,of,value")?;
    for (name, zone) in named_zones(look) {
        let mut figure = |figure: &str, key: &str, value: String| {
            writeln!(out, "{of},{name},{figure},{key},{value}")
        };
        let info = &zone.info;
        for (name, frames) in [
            ("present_pages", info.present),
            ("managed_pages", info.managed),
            ("free_pages", info.free),
            ("min_pages", info.min),
            ("low_pages", info.low),
            ("high_pages", info.high),
            ("per_cpu_pages", info.idle_in_pagesets()),
        ] {
            figure(name, "", frames.to_string())?;
        }
        for order in Order::ZERO.up_to(zone.max_order) {
            of_order(zone, order, &mut figure)?;
        }
        of_blocks(zone, &mut figure)?;
    }
    for (usage, frames) in look.by_use() {
        writeln!(out, "{of},all,used_pages,\"{usage}\",{frames}")?;
    }
    let Some(forecasts) = &view.forecasts else {
        return Ok(());
    };
    for way in Way::ALL {
        let forecast = forecasts.of(way);
        for (name, value) in [
            ("likely", forecast.likely),
            ("at_least", forecast.low),
            ("at_most", forecast.high),
        ] {
            let way = way.name();
            writeln!(out, "{of},all,{way}_{name},{},{value}", view.order)?;
        }
    }
    Ok(())
}

fn of_order(
    zone: &ZoneLook,
    order: Order,
    figure: &mut impl FnMut(&str, &str, String) -> io::Result<()>,
) -> io::Result<()> {
    let of = order.to_string();
    let counts = &zone.counts;
    figure(
        "free_blocks",
        &of,
        counts.by_order[order.index()].to_string(),
    )?;
    figure(
        "unusable_index",
        &of,
        (f64::from(counts.unusable_index(order)) / 1000.0).to_string(),
    )?;
    figure(
        "fragmentation_index",
        &of,
        (f64::from(counts.fragmentation_index(order)) / 1000.0).to_string(),
    )?;
    figure("request", &of, verdict_word(zone.verdict(order)).into())?;
    figure("available_now", &of, counts.suitable(order).to_string())?;
    if let Some(outlook) = zone.outlook.get(order.index()) {
        figure("available_compacted", &of, outlook.compacted.to_string())?;
        figure("available_drained", &of, outlook.drained.to_string())?;
        figure("available_reclaimed", &of, outlook.reclaimed.to_string())?;
    }
    Ok(())
}

fn of_blocks(
    zone: &ZoneLook,
    figure: &mut impl FnMut(&str, &str, String) -> io::Result<()>,
) -> io::Result<()> {
    let Some(blocks) = summary(zone) else {
        return Ok(());
    };
    for (kind, count) in [
        ("free", blocks.free),
        ("movable", blocks.movable),
        ("in doubt", blocks.perhaps),
        ("mixed", blocks.mixed),
        ("mixed by few", blocks.mixed_by_few),
        ("unmovable", blocks.unmovable),
        ("huge", blocks.huge),
        ("absent", blocks.absent),
    ] {
        figure("page_blocks", kind, count.to_string())?;
    }
    for usage in PageUse::ALL {
        let frames = blocks.in_mixed[usage as usize];
        figure("pages_in_mixed_blocks", usage.name(), frames.to_string())?;
    }
    Ok(())
}
