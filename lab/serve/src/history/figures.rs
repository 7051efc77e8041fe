//! The table `hosts`: a row a sample. Its figures are a list, from which the schema, the writer,
//! the reader and `brickyard history` take their columns. An unknown figure is null.

use std::io::{self, Write};
use std::sync::Arc;

use brickyard_files::{self as table, Column, Fault, Group, RowGroup, properties};
use brickyard_host::blocks::BlockKind;
use brickyard_host::forecast::Way;
use brickyard_trace::PageUse;
use parquet::data_type::{ByteArray, ByteArrayType, DoubleType, Int64Type};
use parquet::file::writer::SerializedFileWriter;

use crate::own::millis;
use crate::sample::{Reading, Sample};

/// The folder of the table.
pub const TABLE: &str = "hosts";

/// A figure of a sample.
#[derive(Debug, Clone, Copy)]
pub struct Figure {
    /// The name of its column.
    pub name: &'static str,
    /// What it counts.
    pub unit: Unit,
    of: Of,
}

/// What a figure counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// Things.
    Count,
    /// Bytes.
    Bytes,
    /// Things since the host was booted.
    Total,
    /// Parts of 1.
    Share,
    /// Seconds.
    Seconds,
}

/// How a sample gives the figure: as a whole number, or as one with a fraction.
#[derive(Debug, Clone, Copy)]
enum Of {
    Whole(fn(&Sample) -> Option<u64>),
    Real(fn(&Sample) -> Option<f64>),
}

const fn whole(name: &'static str, unit: Unit, of: fn(&Sample) -> Option<u64>) -> Figure {
    Figure {
        name,
        unit,
        of: Of::Whole(of),
    }
}

const fn real(name: &'static str, unit: Unit, of: fn(&Sample) -> Option<f64>) -> Figure {
    Figure {
        name,
        unit,
        of: Of::Real(of),
    }
}

fn reading(sample: &Sample) -> Option<&Reading> {
    sample.reading.as_deref()
}

fn kind(sample: &Sample, kind: BlockKind) -> Option<u64> {
    Some(reading(sample)?.blocks_of(kind))
}

fn usage(sample: &Sample, usage: PageUse) -> Option<u64> {
    let uses = &reading(sample)?.by_use;
    let found = uses.iter().find(|&&(name, _)| name == usage.name());
    found.map(|&(_, frames)| bytes(sample, frames))
}

fn bytes(sample: &Sample, frames: u64) -> u64 {
    frames.saturating_mul(sample.look.frame_bytes.into())
}

/// The likely number of a way, the least and the most.
fn forecast(sample: &Sample, way: Way) -> Option<[u64; 3]> {
    let forecast = reading(sample)?.forecasts.as_ref()?.of(way);
    Some([forecast.likely, forecast.low, forecast.high])
}

/// All figures, in the order of their columns.
pub const FIGURES: [Figure; 53] = [
    whole("frame_bytes", Unit::Bytes, |sample| {
        Some(sample.look.frame_bytes.into())
    }),
    whole("huge_order", Unit::Count, |sample| {
        Some(sample.look.huge_order.get().into())
    }),
    whole("managed_bytes", Unit::Bytes, |sample| {
        Some(sample.managed_bytes())
    }),
    whole("free_bytes", Unit::Bytes, |sample| {
        Some(sample.free_bytes())
    }),
    whole("available_bytes", Unit::Bytes, |sample| sample.available),
    whole("per_cpu_idle_bytes", Unit::Bytes, |sample| {
        Some(sample.per_cpu_idle_bytes())
    }),
    whole("huge_free", Unit::Count, |sample| Some(sample.huge_free())),
    real("unusable_huge", Unit::Share, |sample| {
        Some(sample.unusable(sample.look.huge_order))
    }),
    whole("huge_now_likely", Unit::Count, |sample| {
        Some(forecast(sample, Way::Now)?[0])
    }),
    whole("huge_now_least", Unit::Count, |sample| {
        Some(forecast(sample, Way::Now)?[1])
    }),
    whole("huge_now_most", Unit::Count, |sample| {
        Some(forecast(sample, Way::Now)?[2])
    }),
    whole("huge_pool_likely", Unit::Count, |sample| {
        Some(forecast(sample, Way::Asking)?[0])
    }),
    whole("huge_pool_least", Unit::Count, |sample| {
        Some(forecast(sample, Way::Asking)?[1])
    }),
    whole("huge_pool_most", Unit::Count, |sample| {
        Some(forecast(sample, Way::Asking)?[2])
    }),
    whole("huge_compacted_likely", Unit::Count, |sample| {
        Some(forecast(sample, Way::Compacted)?[0])
    }),
    whole("huge_compacted_least", Unit::Count, |sample| {
        Some(forecast(sample, Way::Compacted)?[1])
    }),
    whole("huge_compacted_most", Unit::Count, |sample| {
        Some(forecast(sample, Way::Compacted)?[2])
    }),
    whole("huge_dropped_likely", Unit::Count, |sample| {
        Some(forecast(sample, Way::Dropped)?[0])
    }),
    whole("huge_dropped_least", Unit::Count, |sample| {
        Some(forecast(sample, Way::Dropped)?[1])
    }),
    whole("huge_dropped_most", Unit::Count, |sample| {
        Some(forecast(sample, Way::Dropped)?[2])
    }),
    whole("blocks_absent", Unit::Count, |sample| {
        kind(sample, BlockKind::Absent)
    }),
    whole("blocks_free", Unit::Count, |sample| {
        kind(sample, BlockKind::Free)
    }),
    whole("blocks_huge", Unit::Count, |sample| {
        kind(sample, BlockKind::Huge)
    }),
    whole("blocks_movable", Unit::Count, |sample| {
        kind(sample, BlockKind::Movable)
    }),
    whole("blocks_perhaps", Unit::Count, |sample| {
        kind(sample, BlockKind::Perhaps)
    }),
    whole("blocks_mixed", Unit::Count, |sample| {
        kind(sample, BlockKind::Mixed)
    }),
    whole("blocks_unmovable", Unit::Count, |sample| {
        kind(sample, BlockKind::Unmovable)
    }),
    whole("mixed_by_few", Unit::Count, |sample| {
        Some(
            reading(sample)?
                .zones
                .iter()
                .map(|zone| zone.blocks.mixed_by_few)
                .sum(),
        )
    }),
    whole("gigantic_free", Unit::Count, |sample| {
        Some(reading(sample)?.gigantic.free)
    }),
    whole("gigantic_emptiable", Unit::Count, |sample| {
        Some(reading(sample)?.gigantic.emptiable)
    }),
    whole("gigantic_movable", Unit::Count, |sample| {
        Some(reading(sample)?.gigantic.movable)
    }),
    whole("pinned_bytes", Unit::Bytes, |sample| {
        Some(bytes(sample, reading(sample)?.pinned?))
    }),
    whole("use_reserved_bytes", Unit::Bytes, |sample| {
        usage(sample, PageUse::Reserved)
    }),
    whole("use_free_bytes", Unit::Bytes, |sample| {
        usage(sample, PageUse::Free)
    }),
    whole("use_untold_bytes", Unit::Bytes, |sample| {
        usage(sample, PageUse::Untold)
    }),
    whole("use_anonymous_bytes", Unit::Bytes, |sample| {
        usage(sample, PageUse::Anonymous)
    }),
    whole("use_file_bytes", Unit::Bytes, |sample| {
        usage(sample, PageUse::File)
    }),
    whole("use_slab_bytes", Unit::Bytes, |sample| {
        usage(sample, PageUse::Slab)
    }),
    whole("use_page_table_bytes", Unit::Bytes, |sample| {
        usage(sample, PageUse::PageTable)
    }),
    whole("use_huge_bytes", Unit::Bytes, |sample| {
        usage(sample, PageUse::Huge)
    }),
    whole("compaction_stalls", Unit::Total, |sample| {
        sample.counters.get("compact_stall")
    }),
    whole("compaction_successes", Unit::Total, |sample| {
        sample.counters.get("compact_success")
    }),
    whole("compaction_failures", Unit::Total, |sample| {
        sample.counters.get("compact_fail")
    }),
    whole("migrated_pages", Unit::Total, |sample| {
        sample.counters.get("pgmigrate_success")
    }),
    whole("allocation_stalls", Unit::Total, |sample| {
        sample.counters_from("allocstall")
    }),
    whole("thp_faults", Unit::Total, |sample| {
        sample.counters.get("thp_fault_alloc")
    }),
    whole("thp_fault_fallbacks", Unit::Total, |sample| {
        sample.counters.get("thp_fault_fallback")
    }),
    whole("thp_collapses", Unit::Total, |sample| {
        sample.counters.get("thp_collapse_alloc")
    }),
    whole("thp_collapse_failures", Unit::Total, |sample| {
        sample.counters.get("thp_collapse_alloc_failed")
    }),
    whole("fallbacks", Unit::Total, |sample| {
        Some(sample.fallbacks.as_ref()?.iter().map(|row| row.count).sum())
    }),
    real("pass_seconds", Unit::Seconds, |sample| {
        Some(reading(sample)?.took.as_secs_f64())
    }),
    real("cpu_seconds", Unit::Seconds, |sample| {
        Some(sample.cost.cpu.as_secs_f64())
    }),
    whole("resident_bytes", Unit::Bytes, |sample| {
        Some(sample.cost.resident)
    }),
];

/// Returns the place of a figure in [`FIGURES`].
#[must_use]
pub fn place_of(name: &str) -> Option<usize> {
    FIGURES.iter().position(|figure| figure.name == name)
}

/// A row of the table.
#[derive(Debug, Clone, PartialEq)]
pub struct HostRow {
    /// The host's name.
    pub host: String,
    /// The kernel's release.
    pub kernel: String,
    /// When the sample was taken, in milliseconds since 1970.
    pub time: u64,
    /// When the pass over all frames ended that the figures of frames are from.
    pub reading_time: Option<u64>,
    /// The figures, as in [`FIGURES`].
    pub figures: Vec<Option<f64>>,
}

impl HostRow {
    /// Makes the row of a sample.
    #[must_use]
    pub fn of(sample: &Sample) -> Self {
        let figures = FIGURES.iter().map(|figure| match figure.of {
            Of::Whole(of) => of(sample).map(|whole| whole as f64),
            Of::Real(of) => of(sample),
        });
        Self {
            host: sample.look.host.clone(),
            kernel: sample.look.kernel.clone(),
            time: millis(sample.look.time),
            reading_time: reading(sample).map(|reading| millis(reading.time)),
            figures: figures.collect(),
        }
    }

    /// Returns a figure by its name; `None` if it is unknown.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<f64> {
        *self.figures.get(place_of(name)?)?
    }
}

/// A column with a time.
pub(super) const TIME: &str = "INT64 time (TIMESTAMP(MILLIS,true));";

fn schema() -> String {
    let figures = FIGURES.map(|figure| {
        let kind = if matches!(figure.of, Of::Whole(_)) {
            "INT64"
        } else {
            "DOUBLE"
        };
        format!("optional {kind} {};", figure.name)
    });
    format!(
        "message hosts {{ required BYTE_ARRAY host (STRING); required BYTE_ARRAY kernel (STRING); \
         required {TIME} optional INT64 reading_time (TIMESTAMP(MILLIS,true)); {} }}",
        figures.join(" ")
    )
}

/// Writes rows as a whole file.
///
/// # Errors
/// Those of `out`.
#[allow(
    clippy::cast_possible_wrap,
    reason = "times and counts are far below 2^63"
)]
pub(super) fn write(out: &mut (dyn Write + Send), rows: &[HostRow]) -> io::Result<()> {
    let written = (|| {
        let schema = table::schema(&schema())?;
        let mut writer = SerializedFileWriter::new(out, schema, Arc::new(properties()?.build()))?;
        let mut group = Group::begin(&mut writer)?;
        group
            .required::<ByteArrayType>(rows.iter().map(|row| ByteArray::from(row.host.as_str())))?;
        group.required::<ByteArrayType>(
            rows.iter().map(|row| ByteArray::from(row.kernel.as_str())),
        )?;
        group.required::<Int64Type>(rows.iter().map(|row| row.time as i64))?;
        group.optional::<Int64Type>(
            rows.iter()
                .map(|row| row.reading_time.map(|time| time as i64)),
        )?;
        for (place, figure) in FIGURES.iter().enumerate() {
            let values = rows
                .iter()
                .map(|row| row.figures.get(place).copied().flatten());
            match figure.of {
                Of::Whole(_) => group
                    .optional::<Int64Type>(values.map(|value| value.map(|value| value as i64)))?,
                Of::Real(_) => group.optional::<DoubleType>(values)?,
            }
        }
        group.end()?;
        writer.close()
    })();
    written.map(drop).map_err(io::Error::other)
}

/// A column of figures.
enum Values {
    Whole(Column<Int64Type>),
    Real(Column<DoubleType>),
}

/// Reads the rows of a group whose time `wanted` accepts, which is called with the time and the
/// number of each row in its turn. A figure that the file lacks is null.
///
/// # Errors
/// If the table is not of the history, or damaged.
pub(super) fn read(
    group: &RowGroup<'_>,
    mut wanted: impl FnMut(u64) -> bool,
    rows: &mut Vec<HostRow>,
) -> Result<(), Fault> {
    let mut hosts = Column::<ByteArrayType>::open(group, "host")?;
    let mut kernels = Column::<ByteArrayType>::open(group, "kernel")?;
    let mut times = Column::<Int64Type>::open(group, "time")?;
    let mut readings = Column::<Int64Type>::open_newer(group, "reading_time")?;
    let mut columns = Vec::new();
    for figure in FIGURES {
        columns.push(match figure.of {
            Of::Whole(_) => Values::Whole(Column::open_newer(group, figure.name)?),
            Of::Real(_) => Values::Real(Column::open_newer(group, figure.name)?),
        });
    }
    let mut left = Left::of(group);
    loop {
        let read = left.take(times.fill(BATCH)?)?;
        if read == 0 {
            return Ok(());
        }
        let mut others = vec![
            hosts.fill(BATCH)?,
            kernels.fill(BATCH)?,
            readings.fill(BATCH)?,
        ];
        for column in &mut columns {
            others.push(match column {
                Values::Whole(column) => column.fill(BATCH)?,
                Values::Real(column) => column.fill(BATCH)?,
            });
        }
        if others.iter().any(|&other| other != read) {
            return Err(uneven());
        }
        for row in 0..read {
            let time = number(times.take(row).copied(), "time")?;
            let host = text(hosts.take(row))?;
            let kernel = text(kernels.take(row))?;
            let reading_time = readings
                .take(row)
                .and_then(|&time| u64::try_from(time).ok());
            let figures = columns.iter_mut().map(|column| match column {
                Values::Whole(column) => column.take(row).map(|&value| value as f64),
                Values::Real(column) => column.take(row).copied(),
            });
            let figures: Vec<_> = figures.collect();
            if wanted(time) {
                rows.push(HostRow {
                    host,
                    kernel,
                    time,
                    reading_time,
                    figures,
                });
            }
        }
    }
}

/// Returns how many rows of a group have a time that is wanted.
///
/// # Errors
/// As of [`read`].
pub(super) fn count(group: &RowGroup<'_>, wanted: impl Fn(u64) -> bool) -> Result<u64, Fault> {
    let mut times = Column::<Int64Type>::open(group, "time")?;
    let (mut count, mut left) = (0, Left::of(group));
    loop {
        let read = left.take(times.fill(BATCH)?)?;
        if read == 0 {
            return Ok(count);
        }
        for row in 0..read {
            count += u64::from(wanted(number(times.take(row).copied(), "time")?));
        }
    }
}

/// Rows that are read at a time.
pub(super) const BATCH: usize = 1024;

pub(super) fn uneven() -> Fault {
    Fault::Damaged("its columns have different lengths".to_owned())
}

/// Returns a number that must be there and not be negative.
pub(super) fn number(value: Option<i64>, column: &str) -> Result<u64, Fault> {
    let number = value.and_then(|value| u64::try_from(value).ok());
    number.ok_or_else(|| Fault::Damaged(format!("a row has no valid {column}")))
}

/// The rows that a group may still have: its pages could have more than it says, which was checked.
pub(super) struct Left(u64);

impl Left {
    pub(super) fn of(group: &RowGroup<'_>) -> Self {
        Self(u64::try_from(group.reader.metadata().num_rows()).unwrap_or(0))
    }

    /// Counts rows that were read, and returns their number.
    pub(super) fn take(&mut self, rows: usize) -> Result<usize, Fault> {
        let left = self.0.checked_sub(rows as u64);
        self.0 = left.ok_or_else(|| Fault::Damaged("it has more rows than it says".to_owned()))?;
        Ok(rows)
    }
}

/// Bytes of a text, at most. The kernel's names have 64; what a file has in one page could be in
/// memory once for each row.
const TEXT_MOST: usize = 256;

/// Returns a text that must be there.
pub(super) fn text(value: Option<&ByteArray>) -> Result<String, Fault> {
    let text = value.filter(|value| value.len() <= TEXT_MOST);
    let text = text.and_then(|value| value.as_utf8().ok());
    text.map(str::to_owned)
        .ok_or_else(|| Fault::Damaged("a row has no valid text".to_owned()))
}
