//! The table `blocks`: what was in each page block when a pass over all frames ended, as runs of
//! blocks of one kind.

use std::io::{self, Write};
use std::sync::Arc;

use brickyard_trace::table::{self, Column, Fault, Group, RowGroup, properties};
use parquet::data_type::{ByteArray, ByteArrayType, Int32Type, Int64Type};
use parquet::file::writer::SerializedFileWriter;

use super::figures::{BATCH, TIME, number, text, uneven};
use crate::frames::BlockRun;
use crate::own::millis;
use crate::sample::{KINDS, Reading, number_of};

/// The folder of the table.
pub const TABLE: &str = "blocks";

/// What was in each page block at one time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BlockMap {
    /// The host's name.
    pub host: String,
    /// When the pass ended, in milliseconds since 1970.
    pub time: u64,
    /// The order of a block.
    pub order: u8,
    /// The blocks, in order.
    pub runs: Vec<BlockRun>,
}

impl BlockMap {
    /// Makes the map of a reading.
    #[must_use]
    pub fn of(host: &str, reading: &Reading) -> Self {
        Self {
            host: host.to_owned(),
            time: millis(reading.time),
            order: reading.block_order.get(),
            runs: reading.blocks.clone(),
        }
    }
}

/// Writes maps as a whole file, a row a run.
///
/// # Errors
/// Those of `out`.
#[allow(
    clippy::cast_possible_wrap,
    reason = "times and counts are far below 2^63"
)]
pub(super) fn write(out: &mut (dyn Write + Send), maps: &[Arc<BlockMap>]) -> io::Result<()> {
    let message = format!(
        "message blocks {{ required BYTE_ARRAY host (STRING); required {TIME} \
         required INT32 block_order; required INT64 first_block; required INT64 blocks; \
         required BYTE_ARRAY kind (STRING); }}"
    );
    let rows = || {
        maps.iter()
            .flat_map(|map| map.runs.iter().map(move |run| (map, run)))
    };
    let written = (|| {
        let schema = table::schema(&message)?;
        let mut writer = SerializedFileWriter::new(out, schema, Arc::new(properties()?.build()))?;
        let mut group = Group::begin(&mut writer)?;
        group
            .required::<ByteArrayType>(rows().map(|(map, _)| ByteArray::from(map.host.as_str())))?;
        group.required::<Int64Type>(rows().map(|(map, _)| map.time as i64))?;
        group.required::<Int32Type>(rows().map(|(map, _)| map.order.into()))?;
        group.required::<Int64Type>(rows().map(|(_, run)| run.first as i64))?;
        group.required::<Int64Type>(rows().map(|(_, run)| run.blocks as i64))?;
        group.required::<ByteArrayType>(
            rows().map(|(_, run)| ByteArray::from(KINDS[number_of(run.kind)].1)),
        )?;
        group.end()?;
        writer.close()
    })();
    written.map(drop).map_err(io::Error::other)
}

/// Reads maps that are not after `latest`, and keeps the newest in `newest`.
///
/// # Errors
/// If the table is not of the history, or damaged.
pub(super) fn read(
    group: &RowGroup<'_>,
    host: &str,
    latest: u64,
    newest: &mut Option<BlockMap>,
) -> Result<(), Fault> {
    let mut hosts = Column::<ByteArrayType>::open(group, "host")?;
    let mut times = Column::<Int64Type>::open(group, "time")?;
    let mut orders = Column::<Int32Type>::open(group, "block_order")?;
    let mut firsts = Column::<Int64Type>::open(group, "first_block")?;
    let mut counts = Column::<Int64Type>::open(group, "blocks")?;
    let mut kinds = Column::<ByteArrayType>::open(group, "kind")?;
    loop {
        let read = times.fill(BATCH)?;
        if read == 0 {
            return Ok(());
        }
        let others = [
            hosts.fill(BATCH)?,
            orders.fill(BATCH)?,
            firsts.fill(BATCH)?,
            counts.fill(BATCH)?,
            kinds.fill(BATCH)?,
        ];
        if others.iter().any(|&other| other != read) {
            return Err(uneven());
        }
        for row in 0..read {
            let time = number(times.take(row).copied(), "time")?;
            let own_host = text(hosts.take(row))?;
            let order = orders.take(row).and_then(|&order| u8::try_from(order).ok());
            let first = number(firsts.take(row).copied(), "first_block")?;
            let blocks = number(counts.take(row).copied(), "blocks")?;
            let kind = text(kinds.take(row))?;
            let known = KINDS.iter().find(|(_, name)| *name == kind);
            let (Some(order), Some(&(kind, _))) = (order.filter(|&order| order < 64), known) else {
                return Err(Fault::Damaged(format!(
                    "a row has the kind {kind:.20} or no valid order"
                )));
            };
            if own_host != host || time > latest {
                continue;
            }
            if newest.as_ref().is_none_or(|newest| newest.time < time) {
                *newest = Some(BlockMap {
                    host: own_host,
                    time,
                    order,
                    runs: Vec::new(),
                });
            }
            let Some(newest) = newest.as_mut().filter(|newest| newest.time == time) else {
                continue;
            };
            let end = newest
                .runs
                .last()
                .map_or(0, |last| last.first + last.blocks);
            if first < end || blocks == 0 || first.checked_add(blocks).is_none() {
                return Err(Fault::Damaged("blocks are not in order".to_owned()));
            }
            newest.runs.push(BlockRun {
                first,
                blocks,
                kind,
            });
        }
    }
}
