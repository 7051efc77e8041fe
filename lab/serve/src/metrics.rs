//! The newest sample as OpenMetrics, by the conventions of Prometheus: base units, totals with
//! their suffix, `node` and `zone` as labels. What is not known has no line.

use core::fmt;
use core::sync::atomic::Ordering;
use std::sync::Arc;

use brickyard::Order;
use brickyard_host::forecast::Way;
use brickyard_host::look::ZoneLook;
use brickyard_trace::PageUse;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, MetricEncoder, NoLabelSet, text};
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::{Registry, Unit};

use crate::board::Board;
use crate::process;
use crate::sample::{KINDS, Reading, Sample, ZoneBlocks, count_of};

/// The content type of [`text()`].
pub const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Returns the metrics as text; without a sample only those of the service itself.
#[must_use]
pub fn text(board: &Arc<Board>) -> String {
    let mut host = Registry::with_prefix("brickyard");
    host.register_collector(Box::new(OfHost(Arc::clone(board))));
    let mut process = Registry::default();
    process.register_collector(Box::new(OfProcess(Arc::clone(board))));
    let mut text = String::new();
    // Writing to a string does not fail.
    let _ =
        text::encode_registry(&mut text, &host).and_then(|()| text::encode(&mut text, &process));
    text
}

#[derive(Debug)]
struct OfHost(Arc<Board>);

impl Collector for OfHost {
    fn encode(&self, encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let mut out = Families(encoder);
        service(&mut out, &self.0)?;
        let Some(sample) = self.0.newest() else {
            return Ok(());
        };
        zones(&mut out, &sample)?;
        whole(&mut out, &sample)?;
        counters(&mut out, &sample)?;
        match &sample.reading {
            Some(reading) => frames(&mut out, &sample, reading),
            None => Ok(()),
        }
    }
}

/// What every process tells, by names that Prometheus gives.
#[derive(Debug)]
struct OfProcess(Arc<Board>);

impl Collector for OfProcess {
    fn encode(&self, encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let mut out = Families(encoder);
        out.total(
            "process_cpu",
            "CPU time of this process",
            Some(Unit::Seconds),
            process::cpu().as_secs_f64(),
        )?;
        out.one(
            "process_resident_memory",
            "Resident memory of this process",
            Some(Unit::Bytes),
            process::resident() as f64,
        )?;
        out.one(
            "process_start_time",
            "When this process began, since 1970",
            Some(Unit::Seconds),
            process::seconds(self.0.began),
        )
    }
}

/// A label and its value.
type Label = (&'static str, String);

/// Writes families of metrics.
struct Families<'a>(DescriptorEncoder<'a>);

impl Families<'_> {
    /// Writes a gauge without labels.
    fn one(&mut self, name: &str, help: &str, unit: Option<Unit>, value: f64) -> fmt::Result {
        let mut metric = self
            .0
            .encode_descriptor(name, help, unit.as_ref(), MetricType::Gauge)?;
        metric.encode_gauge(&value)
    }

    /// Writes a total without labels.
    fn total(&mut self, name: &str, help: &str, unit: Option<Unit>, value: f64) -> fmt::Result {
        let mut metric =
            self.0
                .encode_descriptor(name, help, unit.as_ref(), MetricType::Counter)?;
        metric.encode_counter::<NoLabelSet, _, f64>(&value, None)
    }

    /// Writes a gauge that is always 1, and what it says in its labels.
    fn info(&mut self, name: &str, help: &str, labels: Vec<Label>) -> fmt::Result {
        let mut metric = self
            .0
            .encode_descriptor(name, help, None, MetricType::Info)?;
        metric.encode_info(&labels)
    }

    /// Writes a gauge with a line for each set of labels; nothing without any.
    fn gauges(
        &mut self,
        name: &str,
        help: &str,
        unit: Option<Unit>,
        lines: impl IntoIterator<Item = (Vec<Label>, f64)>,
    ) -> fmt::Result {
        self.lines(
            name,
            help,
            unit.as_ref(),
            MetricType::Gauge,
            lines,
            |metric, value| metric.encode_gauge(&value),
        )
    }

    fn lines(
        &mut self,
        name: &str,
        help: &str,
        unit: Option<&Unit>,
        kind: MetricType,
        lines: impl IntoIterator<Item = (Vec<Label>, f64)>,
        write: impl Fn(&mut MetricEncoder<'_>, f64) -> fmt::Result,
    ) -> fmt::Result {
        let mut lines = lines.into_iter().peekable();
        if lines.peek().is_none() {
            return Ok(());
        }
        let mut family = self.0.encode_descriptor(name, help, unit, kind)?;
        for (labels, value) in lines {
            write(&mut family.encode_family(&labels)?, value)?;
        }
        Ok(())
    }
}

fn service(out: &mut Families<'_>, board: &Board) -> fmt::Result {
    let version = vec![("version", env!("CARGO_PKG_VERSION").to_owned())];
    out.info("build", "The version of the service", version)?;
    if board.history.is_some() {
        let bytes = board.history_bytes.load(Ordering::Relaxed) as f64;
        out.one(
            "history",
            "Size of the history's files of this host",
            Some(Unit::Bytes),
            bytes,
        )?;
        let errors = board.history_errors.load(Ordering::Relaxed) as f64;
        out.total(
            "history_errors",
            "How often the history could not be written",
            None,
            errors,
        )?;
    }
    let errors = board.sample_errors.load(Ordering::Relaxed) as f64;
    out.total(
        "sample_errors",
        "How often the lists could not be read",
        None,
        errors,
    )?;
    let refused = board.refused.load(Ordering::Relaxed) as f64;
    out.total(
        "http_refused",
        "Requests refused, and connections that gave way or ended before their answer",
        None,
        refused,
    )
}

fn of_zone(zone: &ZoneLook) -> Vec<Label> {
    vec![
        ("node", zone.info.node.to_string()),
        ("zone", zone.info.name.clone()),
    ]
}

fn with(mut labels: Vec<Label>, name: &'static str, value: impl fmt::Display) -> Vec<Label> {
    labels.push((name, value.to_string()));
    labels
}

fn zones(out: &mut Families<'_>, sample: &Sample) -> fmt::Result {
    let look = &sample.look;
    let bytes = |frames: u64| frames as f64 * f64::from(look.frame_bytes);
    let each = |of: fn(&ZoneLook) -> u64| {
        look.zones
            .iter()
            .map(move |zone| (of_zone(zone), bytes(of(zone))))
    };
    let unit = Some(Unit::Bytes);
    out.gauges(
        "zone_managed",
        "Memory that the kernel's allocator manages",
        unit.clone(),
        each(|zone| zone.info.managed),
    )?;
    out.gauges(
        "zone_free",
        "Free memory, that in per-CPU lists not included",
        unit.clone(),
        each(|zone| zone.info.free),
    )?;
    out.gauges(
        "zone_per_cpu_idle",
        "Free memory in per-CPU lists, which other CPUs cannot use and compaction does not empty",
        unit.clone(),
        each(|zone| zone.info.idle_in_pagesets()),
    )?;
    let marks = look.zones.iter().flat_map(|zone| {
        let info = &zone.info;
        [("min", info.min), ("low", info.low), ("high", info.high)]
            .map(|(mark, frames)| (with(of_zone(zone), "mark", mark), bytes(frames)))
    });
    out.gauges(
        "zone_watermark",
        "Watermarks: requests wait below min, background reclaim begins below low and ends at high",
        unit,
        marks,
    )?;
    let by_order = |of: fn(&ZoneLook, Order) -> Option<f64>| {
        look.zones.iter().flat_map(move |zone| {
            let orders = Order::ZERO.up_to(zone.max_order);
            orders.filter_map(move |order| {
                Some((with(of_zone(zone), "order", order.get()), of(zone, order)?))
            })
        })
    };
    out.gauges(
        "free_blocks",
        "Free blocks of exactly this order",
        None,
        by_order(|zone, order| Some(zone.counts.by_order[order.index()] as f64)),
    )?;
    out.gauges(
        "unusable_free",
        "Share of the free memory in blocks smaller than this order, 0 to 1",
        Some(Unit::Other("ratio".to_owned())),
        by_order(unusable),
    )?;
    out.gauges("fragmentation_index", "Why a request of this order would fail: 0 lack of memory, 1 fragmentation; absent where a block is free", None, by_order(index))?;
    mobilities(out, sample)
}

fn unusable(zone: &ZoneLook, order: Order) -> Option<f64> {
    let free = zone.counts.free_frames();
    let suited = zone.counts.suitable(order) << order.get();
    Some(if free == 0 {
        0.0
    } else {
        1.0 - suited.min(free) as f64 / free as f64
    })
}

fn index(zone: &ZoneLook, order: Order) -> Option<f64> {
    let index = zone.counts.fragmentation_index(order);
    // -1000 where it would not fail; between -500 and 0 with a single free block that is too small.
    (index > -1000).then(|| f64::from(index.max(0)) / 1000.0)
}

fn mobilities(out: &mut Families<'_>, sample: &Sample) -> fmt::Result {
    let Some(types) = &sample.page_types else {
        return Ok(());
    };
    let free = types.free.iter().flat_map(|row| {
        let zone = vec![
            ("node", row.node.to_string()),
            ("zone", row.zone.clone()),
            ("mobility", row.kind.clone()),
        ];
        row.free.iter().enumerate().map(move |(order, count)| {
            (with(zone.clone(), "order", order), count.at_least() as f64)
        })
    });
    out.gauges(
        "free_blocks_by_mobility",
        "Free blocks by the kernel's type of their page block; the kernel counts up to 100000",
        None,
        free,
    )?;
    let blocks = types.blocks.iter().flat_map(|zone| {
        zone.blocks.iter().map(|(kind, blocks)| {
            let labels = vec![
                ("node", zone.node.to_string()),
                ("zone", zone.zone.clone()),
                ("mobility", kind.clone()),
            ];
            (labels, *blocks as f64)
        })
    });
    out.gauges(
        "page_blocks_by_mobility",
        "Page blocks by the kernel's type, whatever is in them",
        None,
        blocks,
    )
}

fn whole(out: &mut Families<'_>, sample: &Sample) -> fmt::Result {
    let look = &sample.look;
    let labels = vec![("host", look.host.clone()), ("kernel", look.kernel.clone())];
    out.info("host", "The host's name and its kernel's release", labels)?;
    out.one(
        "sample_timestamp",
        "When the lists were read, since 1970",
        Some(Unit::Seconds),
        process::seconds(look.time),
    )?;
    if let Some(available) = sample.available {
        out.one(
            "available",
            "Memory that could be had without swapping, by the kernel's estimate",
            Some(Unit::Bytes),
            available as f64,
        )?;
    }
    let huge = u64::from(look.frame_bytes) << look.huge_order.get();
    out.one(
        "huge_page",
        "Size of a huge page",
        Some(Unit::Bytes),
        huge as f64,
    )?;
    out.one(
        "huge_pages_free",
        "Huge pages that a request would get now, by the free lists and watermarks",
        None,
        sample.huge_free() as f64,
    )?;
    if let Some(free) = sample.pool_free {
        out.one(
            "huge_pages_pool_free",
            "Huge pages of the kernel's pool (nr_hugepages) that nobody uses",
            None,
            free as f64,
        )?;
    }
    out.one(
        "sampler_cpu_budget",
        "Share of one CPU that sampling keeps to on average",
        Some(Unit::Other("ratio".to_owned())),
        sample.cost.budget,
    )?;
    let sources = sample.sources.iter().map(|source| {
        let is_read = source.withheld.is_none();
        (
            vec![("source", source.name.to_owned())],
            f64::from(u8::from(is_read)),
        )
    });
    out.gauges(
        "source_readable",
        "Whether a source of the kernel can be read: 1 or 0",
        None,
        sources,
    )
}

/// The kernel's counters: our name, its names in /proc/vmstat (those that begin so, summed up), and
/// what it counts.
const COUNTERS: [(&str, &str, &str); 12] = [
    (
        "compaction_stalls",
        "compact_stall",
        "Requests that waited for compaction",
    ),
    (
        "compaction_successes",
        "compact_success",
        "Requests that waited for compaction and got their block",
    ),
    (
        "compaction_failures",
        "compact_fail",
        "Requests that waited for compaction in vain",
    ),
    (
        "compaction_scanned_pages",
        "compact_migrate_scanned",
        "Pages that compaction looked at to move them",
    ),
    (
        "migrated_pages",
        "pgmigrate_success",
        "Pages that were moved, by compaction and for other reasons",
    ),
    (
        "compaction_daemon_wakes",
        "compact_daemon_wake",
        "How often background compaction was woken",
    ),
    (
        "allocation_stalls",
        "allocstall",
        "Requests that waited for reclaim",
    ),
    (
        "thp_faults",
        "thp_fault_alloc",
        "Page faults that got a transparent huge page",
    ),
    (
        "thp_fault_fallbacks",
        "thp_fault_fallback",
        "Page faults that wanted a transparent huge page and got small pages",
    ),
    (
        "thp_collapses",
        "thp_collapse_alloc",
        "Transparent huge pages made of small pages in the background",
    ),
    (
        "thp_collapse_failures",
        "thp_collapse_alloc_failed",
        "Attempts at that for which no huge page came",
    ),
    (
        "thp_splits",
        "thp_split_page",
        "Transparent huge pages that were split",
    ),
];

fn counters(out: &mut Families<'_>, sample: &Sample) -> fmt::Result {
    for (name, of_kernel, help) in COUNTERS {
        let value = match of_kernel {
            // One for each zone.
            "allocstall" => sample.counters_from(of_kernel),
            _ => sample.counters.get(of_kernel),
        };
        if let Some(value) = value {
            out.total(name, help, None, value as f64)?;
        }
    }
    let Some(fallbacks) = &sample.fallbacks else {
        return Ok(());
    };
    out.total(
        "fallbacks_lost",
        "Fallbacks that were not counted, since the kernel's buffers were full",
        None,
        sample.fallbacks_lost as f64,
    )?;
    let lines = fallbacks.iter().map(|row| {
        let labels = vec![
            ("process", row.process.clone()),
            ("mobility", row.mobility.clone()),
            ("from", row.from.clone()),
        ];
        (labels, row.count as f64)
    });
    let help = "Requests that got memory from page blocks of another mobility, by the task's name";
    out.lines(
        "fallbacks",
        help,
        None,
        MetricType::Counter,
        lines,
        |metric, value| metric.encode_counter::<NoLabelSet, _, f64>(&value, None),
    )
}

fn frames(out: &mut Families<'_>, sample: &Sample, reading: &Reading) -> fmt::Result {
    let bytes = |frames: u64| frames as f64 * f64::from(sample.look.frame_bytes);
    let unit = Some(Unit::Bytes);
    out.one(
        "page_flags_timestamp",
        "When the newest complete pass over all frames ended, since 1970",
        Some(Unit::Seconds),
        process::seconds(reading.time),
    )?;
    out.one(
        "page_flags_pass",
        "How long that pass took",
        Some(Unit::Seconds),
        reading.took.as_secs_f64(),
    )?;
    if let Some(forecasts) = &reading.forecasts {
        let ways = [
            (Way::Now, "now"),
            (Way::Asking, "pool"),
            (Way::Compacted, "compacted"),
            (Way::Dropped, "dropped"),
        ];
        let lines = ways.into_iter().flat_map(|(way, name)| {
            let forecast = forecasts.of(way);
            [
                ("likely", forecast.likely),
                ("least", forecast.low),
                ("most", forecast.high),
            ]
            .map(|(bound, count)| {
                (
                    vec![("way", name.to_owned()), ("bound", bound.to_owned())],
                    count as f64,
                )
            })
        });
        out.gauges("huge_pages_forecast", "Huge pages that would come: asked for now, through nr_hugepages, after compact_memory, after sync, drop_caches and compact_memory", None, lines)?;
    }
    let gigantic = [
        ("free", reading.gigantic.free),
        ("emptiable", reading.gigantic.emptiable),
    ];
    let lines = gigantic.map(|(state, count)| (vec![("state", state.to_owned())], count as f64));
    out.gauges(
        "gigantic_regions",
        "Aligned regions of 1 GiB that are free, or could be emptied",
        None,
        lines,
    )?;
    let of_zone =
        |zone: &ZoneBlocks| vec![("node", zone.node.to_string()), ("zone", zone.zone.clone())];
    let zones = || reading.zones.iter();
    let kinds = zones().flat_map(|zone| {
        KINDS.map(|(kind, name)| {
            (
                with(of_zone(zone), "kind", name),
                count_of(&zone.blocks, kind) as f64,
            )
        })
    });
    out.gauges("page_blocks", "Page blocks by what is in them; mixed ones have movable pages next to pages that cannot be moved", None, kinds)?;
    let few = zones().map(|zone| (of_zone(zone), zone.blocks.mixed_by_few as f64));
    out.gauges(
        "page_blocks_mixed_by_few",
        "Mixed page blocks with at most 8 pages that cannot be moved",
        None,
        few,
    )?;
    let mixing = PageUse::ALL.into_iter().filter(|&usage| {
        !matches!(
            usage,
            PageUse::Hole | PageUse::Free | PageUse::Anonymous | PageUse::File
        )
    });
    let mixing = mixing.map(|usage| {
        let frames = reading
            .zones
            .iter()
            .map(|zone| zone.blocks.in_mixed[usage as usize])
            .sum();
        (vec![("use", usage.name().to_owned())], bytes(frames))
    });
    out.gauges(
        "mixed_page_blocks",
        "Memory in mixed page blocks that is of the kernel, by its use",
        unit.clone(),
        mixing,
    )?;
    let uses = reading
        .by_use
        .iter()
        .map(|&(name, frames)| (vec![("use", name.to_owned())], bytes(frames)));
    out.gauges("memory_use", "Memory by use", unit.clone(), uses)?;
    let Some(pinned) = reading.pinned else {
        return Ok(());
    };
    out.one(
        "pinned",
        "Memory that processes have pinned, for devices to write to",
        unit,
        bytes(pinned),
    )
}
