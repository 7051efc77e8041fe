//! Figures shared by the table, CSV, JSON and the live view.

use brickyard_host::blocks::BlockSummary;
use brickyard_host::look::{Look, ZoneLook};
use brickyard_host::zoneinfo::ZoneInfo;

use crate::page_kinds::zone_name;

/// Returns the zones with their printed names.
pub(crate) fn named_zones(look: &Look) -> Vec<(String, &ZoneLook)> {
    let infos: Vec<ZoneInfo> = look.zones.iter().map(|zone| zone.info.clone()).collect();
    let named = look
        .zones
        .iter()
        .map(|zone| (zone_name(&zone.info, &infos), zone));
    named.collect()
}

/// Returns the page blocks of one zone; `None` if its frames were not read.
pub(crate) fn summary(zone: &ZoneLook) -> Option<BlockSummary> {
    (!zone.blocks.is_empty()).then(|| BlockSummary::of(&zone.blocks))
}

/// Returns the size of so many frames in MiB.
pub(crate) fn mib(frames: u64, frame_bytes: u32) -> f64 {
    frames as f64 * f64::from(frame_bytes) / f64::from(1 << 20)
}

/// Returns the size of a block as text: `4 KiB`, `2 MiB`, `1 GiB`.
pub(crate) fn block_size(order: u8, frame_bytes: u32) -> String {
    let kib = (u128::from(frame_bytes) << order) / 1024;
    match kib {
        0..1024 => format!("{kib} KiB"),
        1024..1_048_576 => format!("{} MiB", kib / 1024),
        _ => format!("{} GiB", kib / 1_048_576),
    }
}

/// Returns an amount of memory as text, with three or four digits.
pub(crate) fn amount(frames: u64, frame_bytes: u32) -> String {
    let mib = mib(frames, frame_bytes);
    if mib < 1.0 {
        format!("{:.0} KiB", mib * 1024.0)
    } else if mib >= 10_240.0 {
        format!("{:.1} GiB", mib / 1024.0)
    } else if mib >= 100.0 {
        format!("{mib:.0} MiB")
    } else {
        format!("{mib:.1} MiB")
    }
}
