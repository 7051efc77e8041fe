//! The table `zones`: the free blocks of each order in each zone of a sample.

use std::io::{self, Write};
use std::sync::Arc;

use brickyard::Order;
use brickyard_host::look::ZoneLook;
use brickyard_trace::table;
use parquet::data_type::{DoubleType, Int32Type, Int64Type};

use super::figures::TIME;
use super::millis;
use crate::sample::Sample;

/// The folder of the table.
pub const TABLE: &str = "zones";

/// The kernel's types that have a column; those of all others are summed up in one more.
const TYPES: [&str; 3] = ["Unmovable", "Movable", "Reclaimable"];

/// The columns of the zone's own.
const BYTES: [&str; 4] = ["free_bytes", "min_bytes", "low_bytes", "high_bytes"];

/// A row of the table.
#[derive(Debug, Clone, PartialEq)]
pub struct ZoneRow {
    /// The host's name.
    pub host: Arc<str>,
    /// When the sample was taken, in milliseconds since 1970.
    pub time: u64,
    /// The zone's node.
    pub node: u32,
    /// The zone's name.
    pub zone: Arc<str>,
    /// The order.
    pub order: u8,
    /// Free blocks of exactly this order.
    pub free_blocks: u64,
    /// The share of the free memory in smaller blocks, 0 to 1.
    pub unusable: f64,
    /// Why a request would fail: 0 lack of memory, 1 fragmentation; null if it would not.
    pub fragmentation: Option<f64>,
    /// The zone's free memory and its watermarks min, low and high, in bytes: the same for each
    /// order.
    pub bytes: [u64; BYTES.len()],
    /// Free blocks by type: unmovable, movable, reclaimable, others; null if they were not read.
    pub by_type: Option<[u64; TYPES.len() + 1]>,
}

impl ZoneRow {
    /// Makes the rows of a sample.
    #[must_use]
    pub fn of(sample: &Sample) -> Vec<Self> {
        let host: Arc<str> = sample.look.host.as_str().into();
        let time = millis(sample.look.time);
        let of_zone = |zone: &ZoneLook| {
            let name: Arc<str> = zone.info.name.as_str().into();
            let info = &zone.info;
            let bytes = [info.free, info.min, info.low, info.high]
                .map(|frames| frames.saturating_mul(sample.look.frame_bytes.into()));
            let rows = Order::ZERO.up_to(zone.max_order).map(|order| {
                let index = zone.counts.fragmentation_index(order);
                Self {
                    host: Arc::clone(&host),
                    time,
                    node: zone.info.node,
                    zone: Arc::clone(&name),
                    order: order.get(),
                    free_blocks: zone.counts.by_order[order.index()] as u64,
                    unusable: f64::from(zone.counts.unusable_index(order)) / 1000.0,
                    fragmentation: (index > -1000).then(|| f64::from(index.max(0)) / 1000.0),
                    bytes,
                    by_type: by_type(sample, zone, order),
                }
            });
            rows.collect::<Vec<_>>()
        };
        sample.look.zones.iter().flat_map(of_zone).collect()
    }
}

fn by_type(sample: &Sample, zone: &ZoneLook, order: Order) -> Option<[u64; TYPES.len() + 1]> {
    let types = sample.page_types.as_ref()?;
    let mut counts = [0; TYPES.len() + 1];
    for row in &types.free {
        if (row.node, &row.zone) == (zone.info.node, &zone.info.name) {
            let own = TYPES.iter().position(|name| *name == row.kind);
            let count = row
                .free
                .get(order.index())
                .map_or(0, |count| count.at_least());
            counts[own.unwrap_or(TYPES.len())] += count;
        }
    }
    Some(counts)
}

/// Writes rows as a whole file.
///
/// # Errors
/// Those of `out`.
#[allow(
    clippy::cast_possible_wrap,
    reason = "times and counts are far below 2^63"
)]
pub(super) fn write(out: &mut (dyn Write + Send), rows: &[ZoneRow]) -> io::Result<()> {
    let message = format!(
        "message zones {{ required BYTE_ARRAY host (STRING); required {TIME} \
         required INT32 node; required BYTE_ARRAY zone (STRING); required INT32 order; \
         required INT64 free_blocks; required DOUBLE unusable; optional DOUBLE fragmentation; \
         optional INT64 free_unmovable; optional INT64 free_movable; \
         optional INT64 free_reclaimable; optional INT64 free_other; {} }}",
        BYTES
            .map(|name| format!("required INT64 {name};"))
            .join(" ")
    );
    table::write(out, &message, Vec::new(), |group| {
        let rows = || rows.iter();
        group.texts(rows().map(|row| &*row.host))?;
        group.required::<Int64Type>(rows().map(|row| row.time as i64))?;
        group.required::<Int32Type>(rows().map(|row| row.node as i32))?;
        group.texts(rows().map(|row| &*row.zone))?;
        group.required::<Int32Type>(rows().map(|row| i32::from(row.order)))?;
        group.required::<Int64Type>(rows().map(|row| row.free_blocks as i64))?;
        group.required::<DoubleType>(rows().map(|row| row.unusable))?;
        group.optional::<DoubleType>(rows().map(|row| row.fragmentation))?;
        for place in 0..=TYPES.len() {
            let counts = rows().map(|row| row.by_type.map(|counts| counts[place] as i64));
            group.optional::<Int64Type>(counts)?;
        }
        for place in 0..BYTES.len() {
            group.required::<Int64Type>(rows().map(|row| row.bytes[place] as i64))?;
        }
        Ok(())
    })
}
