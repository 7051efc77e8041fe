//! The table `blocks`: what was in each page block when a pass over all frames ended, as runs of
//! blocks of one kind.

use std::collections::BTreeSet;
use std::io::{self, Write};
use std::sync::Arc;

use brickyard_host::blocks::BlockKind;
use brickyard_trace::columns;
use brickyard_trace::table::{self, Fault, RowGroup};
use parquet::data_type::{ByteArray, ByteArrayType, Int32Type, Int64Type};

use super::figures::{BATCH, TIME, each_time, number};
use super::millis;
use crate::frames::BlockRun;
use crate::sample::Reading;

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
    table::write(out, &message, Vec::new(), |group| {
        group.texts(rows().map(|(map, _)| map.host.as_str()))?;
        group.required::<Int64Type>(rows().map(|(map, _)| map.time as i64))?;
        group.required::<Int32Type>(rows().map(|(map, _)| map.order.into()))?;
        group.required::<Int64Type>(rows().map(|(_, run)| run.first as i64))?;
        group.required::<Int64Type>(rows().map(|(_, run)| run.blocks as i64))?;
        group.texts(rows().map(|(_, run)| run.kind.name()))
    })
}

columns! {
    /// The columns.
    Columns of Row {
        host: ByteArrayType;
        time: Int64Type;
        block_order: Int32Type;
        first_block: Int64Type;
        blocks: Int64Type;
        kind: ByteArrayType;
    }
}

/// Runs of a map, at most: a host of 8 TiB has so many page blocks.
const RUNS_MOST: usize = 1 << 22;

impl BlockMap {
    /// Adds a run, which must be behind the last.
    fn push(&mut self, run: BlockRun) -> Result<(), Fault> {
        let end = self.runs.last().map_or(0, |last| last.first + last.blocks);
        let is_sound = run.first >= end && run.blocks > 0;
        if !is_sound || run.first.checked_add(run.blocks).is_none() {
            return Err(Fault::Damaged("blocks are not in order".to_owned()));
        }
        if self.runs.len() == RUNS_MOST {
            return Err(Fault::Damaged("a map has millions of runs".to_owned()));
        }
        self.runs.push(run);
        Ok(())
    }
}

/// Calls `each` with the time, the order and the run of each row of a host.
fn each_row(
    group: &RowGroup<'_>,
    host: &str,
    mut each: impl FnMut(u64, u8, BlockRun) -> Result<(), Fault>,
) -> Result<(), Fault> {
    let mut columns = Columns::open(group)?;
    loop {
        let read = columns.fill(BATCH)?;
        if read == 0 {
            return Ok(());
        }
        for place in 0..read {
            let row = columns.row(place);
            let time = number(row.time, "time")?;
            let order = row.block_order.and_then(|&order| u8::try_from(order).ok());
            let first = number(row.first_block, "first_block")?;
            let blocks = number(row.blocks, "blocks")?;
            let kind = row.kind.map_or(&[][..], ByteArray::data);
            let mut all = BlockKind::ALL.into_iter();
            let known = all.find(|known| known.name().as_bytes() == kind);
            let (Some(order), Some(kind)) = (order.filter(|&order| order < 64), known) else {
                let why = "a row has an unknown kind or no valid order";
                return Err(Fault::Damaged(why.to_owned()));
            };
            if row.host.is_some_and(|own| own.data() == host.as_bytes()) {
                each(
                    time,
                    order,
                    BlockRun {
                        first,
                        blocks,
                        kind,
                    },
                )?;
            }
        }
    }
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
    each_row(group, host, |time, order, run| {
        if time > latest {
            return Ok(());
        }
        if newest.as_ref().is_none_or(|newest| newest.time < time) {
            *newest = Some(begin(host, time, order));
        }
        let newest = newest.as_mut().filter(|newest| newest.time == time);
        newest.map_or(Ok(()), |newest| newest.push(run))
    })
}

/// Calls `each` with every map whose time `wanted` accepts, in the order of the file. One is in
/// memory at a time.
///
/// # Errors
/// Those of [`read`].
pub(super) fn each_map(
    group: &RowGroup<'_>,
    host: &str,
    wanted: impl Fn(u64) -> bool,
    mut each: impl FnMut(BlockMap),
) -> Result<(), Fault> {
    let mut current: Option<BlockMap> = None;
    each_row(group, host, |time, order, run| {
        if let Some(other) = current.take_if(|current| current.time != time) {
            each(other);
        }
        if !wanted(time) {
            return Ok(());
        }
        let current = current.get_or_insert_with(|| begin(host, time, order));
        current.push(run)
    })?;
    current.into_iter().for_each(each);
    Ok(())
}

/// Adds the times of the maps of a group, of all hosts, that `wanted` accepts.
///
/// # Errors
/// Those of [`read`].
pub(super) fn times(
    group: &RowGroup<'_>,
    wanted: impl Fn(u64) -> bool,
    found: &mut BTreeSet<u64>,
) -> Result<(), Fault> {
    let mut last = None;
    each_time(group, |time| {
        if last.replace(time) != Some(time) && wanted(time) {
            found.insert(time);
        }
        if found.len() > TIMES_MOST {
            return Err(Fault::Damaged("it has thousands of maps".to_owned()));
        }
        Ok(())
    })
}

/// Maps of a file, at most. An hour has some hundred.
const TIMES_MOST: usize = 1 << 14;

fn begin(host: &str, time: u64, order: u8) -> BlockMap {
    BlockMap {
        host: host.to_owned(),
        time,
        order,
        runs: Vec::new(),
    }
}
