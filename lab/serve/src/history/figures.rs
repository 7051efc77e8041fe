//! The table `hosts`: a row a sample. Its figures are a list, from which the schema, the writer,
//! the reader and `brickyard history` take their columns. An unknown figure is null.

use std::io::{self, Write};

use brickyard_host::blocks::BlockKind;
use brickyard_host::forecast::{Forecast, Way};
use brickyard_trace::table::{self, Column, Fault, RowGroup, same};
use brickyard_trace::{PageUse, columns};
use parquet::data_type::{ByteArray, ByteArrayType, DoubleType, Int64Type};

use super::millis;
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

/// How a sample gives the figure. Only a real one may have a fraction.
#[derive(Debug, Clone, Copy)]
enum Of {
    Whole(fn(&Sample) -> Option<u64>),
    Real(fn(&Sample) -> Option<f64>),
    Forecast(Way, fn(&Forecast) -> u64),
    Blocks(BlockKind),
    Used(PageUse),
    Counter(&'static str),
}

impl Figure {
    fn value(&self, sample: &Sample) -> Option<f64> {
        let reading = sample.reading.as_deref();
        let whole = match self.of {
            Of::Whole(of) => of(sample)?,
            Of::Real(of) => return of(sample),
            Of::Forecast(way, of) => of(&reading?.forecasts.as_ref()?.of(way)),
            Of::Blocks(kind) => reading?.blocks_of(kind),
            Of::Used(usage) => {
                let mut uses = reading?.by_use.iter();
                bytes(sample, uses.find(|(name, _)| *name == usage.name())?.1)
            }
            Of::Counter(name) => sample.counters.get(name)?,
        };
        Some(whole as f64)
    }
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

fn bytes(sample: &Sample, frames: u64) -> u64 {
    frames.saturating_mul(sample.look.frame_bytes.into())
}

const fn forecast(name: &'static str, way: Way, part: fn(&Forecast) -> u64) -> Figure {
    let (unit, of) = (Unit::Count, Of::Forecast(way, part));
    Figure { name, unit, of }
}

const fn blocks(name: &'static str, kind: BlockKind) -> Figure {
    let (unit, of) = (Unit::Count, Of::Blocks(kind));
    Figure { name, unit, of }
}

const fn used(name: &'static str, usage: PageUse) -> Figure {
    let (unit, of) = (Unit::Bytes, Of::Used(usage));
    Figure { name, unit, of }
}

const fn counter(name: &'static str, of_kernel: &'static str) -> Figure {
    let (unit, of) = (Unit::Total, Of::Counter(of_kernel));
    Figure { name, unit, of }
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
    forecast("huge_now_likely", Way::Now, |one| one.likely),
    forecast("huge_now_least", Way::Now, |one| one.low),
    forecast("huge_now_most", Way::Now, |one| one.high),
    forecast("huge_pool_likely", Way::Asking, |one| one.likely),
    forecast("huge_pool_least", Way::Asking, |one| one.low),
    forecast("huge_pool_most", Way::Asking, |one| one.high),
    forecast("huge_compacted_likely", Way::Compacted, |one| one.likely),
    forecast("huge_compacted_least", Way::Compacted, |one| one.low),
    forecast("huge_compacted_most", Way::Compacted, |one| one.high),
    forecast("huge_dropped_likely", Way::Dropped, |one| one.likely),
    forecast("huge_dropped_least", Way::Dropped, |one| one.low),
    forecast("huge_dropped_most", Way::Dropped, |one| one.high),
    blocks("blocks_absent", BlockKind::Absent),
    blocks("blocks_free", BlockKind::Free),
    blocks("blocks_huge", BlockKind::Huge),
    blocks("blocks_movable", BlockKind::Movable),
    blocks("blocks_perhaps", BlockKind::Perhaps),
    blocks("blocks_mixed", BlockKind::Mixed),
    blocks("blocks_unmovable", BlockKind::Unmovable),
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
    used("use_reserved_bytes", PageUse::Reserved),
    used("use_free_bytes", PageUse::Free),
    used("use_untold_bytes", PageUse::Untold),
    used("use_anonymous_bytes", PageUse::Anonymous),
    used("use_file_bytes", PageUse::File),
    used("use_slab_bytes", PageUse::Slab),
    used("use_page_table_bytes", PageUse::PageTable),
    used("use_huge_bytes", PageUse::Huge),
    counter("compaction_stalls", "compact_stall"),
    counter("compaction_successes", "compact_success"),
    counter("compaction_failures", "compact_fail"),
    counter("migrated_pages", "pgmigrate_success"),
    whole("allocation_stalls", Unit::Total, |sample| {
        sample.counters_from("allocstall")
    }),
    counter("thp_faults", "thp_fault_alloc"),
    counter("thp_fault_fallbacks", "thp_fault_fallback"),
    counter("thp_collapses", "thp_collapse_alloc"),
    counter("thp_collapse_failures", "thp_collapse_alloc_failed"),
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
        let figures = FIGURES.iter().map(|figure| figure.value(sample));
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
        let kind = match figure.of {
            Of::Real(_) => "DOUBLE",
            _ => "INT64",
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
    table::write(out, &schema(), Vec::new(), |group| {
        let rows = || rows.iter();
        group.texts(rows().map(|row| row.host.as_str()))?;
        group.texts(rows().map(|row| row.kernel.as_str()))?;
        group.required::<Int64Type>(rows().map(|row| row.time as i64))?;
        group.optional::<Int64Type>(rows().map(|row| row.reading_time.map(|time| time as i64)))?;
        for (place, figure) in FIGURES.iter().enumerate() {
            let values = rows().map(|row| row.figures.get(place).copied().flatten());
            match figure.of {
                Of::Real(_) => group.optional::<DoubleType>(values)?,
                _ => group
                    .optional::<Int64Type>(values.map(|value| value.map(|value| value as i64)))?,
            }
        }
        Ok(())
    })
}

columns! {
    /// The columns that are no figures.
    Columns of Row {
        host: ByteArrayType;
        kernel: ByteArrayType;
        time: Int64Type;
        reading_time: Int64Type, newer;
    }
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
    let mut columns = Columns::open(group)?;
    let mut figures = Vec::new();
    for figure in FIGURES {
        figures.push(match figure.of {
            Of::Real(_) => Values::Real(Column::open_newer(group, figure.name)?),
            _ => Values::Whole(Column::open_newer(group, figure.name)?),
        });
    }
    loop {
        let mut read = vec![columns.fill(BATCH)?];
        for figure in &mut figures {
            read.push(match figure {
                Values::Whole(column) => column.fill(BATCH)?,
                Values::Real(column) => column.fill(BATCH)?,
            });
        }
        let read = same(read)?;
        if read == 0 {
            return Ok(());
        }
        for place in 0..read {
            let row = columns.row(place);
            let time = number(row.time, "time")?;
            let (host, kernel) = (text(row.host)?, text(row.kernel)?);
            let reading_time = row.reading_time.and_then(|&time| u64::try_from(time).ok());
            let figures = figures.iter_mut().map(|column| match column {
                Values::Whole(column) => column.take(place).map(|&value| value as f64),
                Values::Real(column) => column.take(place).copied(),
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

/// Calls `each` with the time of each row of a group, of which no other column is read.
///
/// # Errors
/// Those of [`read`], and of `each`.
pub(super) fn each_time(
    group: &RowGroup<'_>,
    mut each: impl FnMut(u64) -> Result<(), Fault>,
) -> Result<(), Fault> {
    let mut times = Column::<Int64Type>::open(group, "time")?;
    loop {
        let read = times.fill(BATCH)?;
        if read == 0 {
            return Ok(());
        }
        for row in 0..read {
            each(number(times.take(row), "time")?)?;
        }
    }
}

/// Rows that are read at a time.
pub(super) const BATCH: usize = 1024;

/// Returns a number that must be there and not be negative.
pub(super) fn number(value: Option<&i64>, column: &str) -> Result<u64, Fault> {
    let number = value.and_then(|&value| u64::try_from(value).ok());
    number.ok_or_else(|| Fault::Damaged(format!("a row has no valid {column}")))
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
