//! The newest sample as OpenMetrics, by the conventions of Prometheus: base units, totals with
//! their suffix, `node` and `zone` as labels. What is not known has no line.

use core::fmt;
use core::sync::atomic::Ordering;
use std::sync::{Arc, LazyLock};

use brickyard::Order;
use brickyard_host::blocks::BlockKind;
use brickyard_host::forecast::Way;
use brickyard_host::look::ZoneLook;
use brickyard_trace::PageUse;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, MetricEncoder, NoLabelSet, text};
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::{Registry, Unit};

use crate::board::Board;
use crate::process;
use crate::sample::{Reading, Sample, ZoneBlocks, count_of};

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
        out.total("process_cpu", process::cpu().as_secs_f64())?;
        out.one("process_resident_memory", process::resident() as f64)?;
        out.one("process_start_time", process::seconds(self.0.began))
    }
}

/// A label and its value.
type Label = (&'static str, String);

/// The families: the name of each, its unit, and what it tells. Behind a slash stands the kernel's
/// name of a counter of /proc/vmstat; of those that begin with `allocstall`, the sum.
const FAMILIES: &str = include_str!("metrics.txt");

/// Returns the parts of each line.
fn families() -> impl Iterator<Item = (&'static str, &'static str, &'static str)> {
    FAMILIES.lines().filter_map(|line| {
        let (name, rest) = line.split_once(' ')?;
        let (unit, help) = rest.split_once(' ')?;
        Some((name, unit, help))
    })
}

static RATIO: LazyLock<Unit> = LazyLock::new(|| Unit::Other("ratio".to_owned()));

/// Writes families of metrics.
struct Families<'a>(DescriptorEncoder<'a>);

impl Families<'_> {
    fn begin(&mut self, name: &str, kind: MetricType) -> Result<MetricEncoder<'_>, fmt::Error> {
        let found = families().find(|(own, ..)| *own == name);
        let (name, unit, help) = found.ok_or(fmt::Error)?;
        let unit = match unit {
            "bytes" => Some(&Unit::Bytes),
            "seconds" => Some(&Unit::Seconds),
            "ratio" => Some(&*RATIO),
            _ => None,
        };
        self.0.encode_descriptor(name, help, unit, kind)
    }

    /// Writes a gauge without labels.
    fn one(&mut self, name: &str, value: f64) -> fmt::Result {
        self.begin(name, MetricType::Gauge)?.encode_gauge(&value)
    }

    /// Writes a total without labels.
    fn total(&mut self, name: &str, value: f64) -> fmt::Result {
        let mut metric = self.begin(name, MetricType::Counter)?;
        metric.encode_counter::<NoLabelSet, _, f64>(&value, None)
    }

    /// Writes a gauge that is always 1, and what it says in its labels.
    fn info(&mut self, name: &str, labels: Vec<Label>) -> fmt::Result {
        self.begin(name, MetricType::Info)?.encode_info(&labels)
    }

    /// Writes a gauge with a line for each set of labels; nothing without any.
    fn gauges(
        &mut self,
        name: &str,
        lines: impl IntoIterator<Item = (Vec<Label>, f64)>,
    ) -> fmt::Result {
        let gauge = |metric: &mut MetricEncoder<'_>, value| metric.encode_gauge(&value);
        self.lines(name, MetricType::Gauge, lines, gauge)
    }

    fn lines(
        &mut self,
        name: &str,
        kind: MetricType,
        lines: impl IntoIterator<Item = (Vec<Label>, f64)>,
        write: impl Fn(&mut MetricEncoder<'_>, f64) -> fmt::Result,
    ) -> fmt::Result {
        let mut lines = lines.into_iter().peekable();
        if lines.peek().is_none() {
            return Ok(());
        }
        let mut family = self.begin(name, kind)?;
        for (labels, value) in lines {
            write(&mut family.encode_family(&labels)?, value)?;
        }
        Ok(())
    }
}

fn service(out: &mut Families<'_>, board: &Board) -> fmt::Result {
    let version = vec![("version", env!("CARGO_PKG_VERSION").to_owned())];
    out.info("build", version)?;
    if board.history.is_some() {
        let bytes = board.history_bytes.load(Ordering::Relaxed) as f64;
        out.one("history", bytes)?;
        let errors = board.history_errors.load(Ordering::Relaxed) as f64;
        out.total("history_errors", errors)?;
    }
    let errors = board.sample_errors.load(Ordering::Relaxed) as f64;
    out.total("sample_errors", errors)?;
    let refused = board.refused.load(Ordering::Relaxed) as f64;
    out.total("http_refused", refused)
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
    out.gauges("zone_managed", each(|zone| zone.info.managed))?;
    out.gauges("zone_free", each(|zone| zone.info.free))?;
    out.gauges(
        "zone_per_cpu_idle",
        each(|zone| zone.info.idle_in_pagesets()),
    )?;
    let marks = look.zones.iter().flat_map(|zone| {
        let info = &zone.info;
        [("min", info.min), ("low", info.low), ("high", info.high)]
            .map(|(mark, frames)| (with(of_zone(zone), "mark", mark), bytes(frames)))
    });
    out.gauges("zone_watermark", marks)?;
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
        by_order(|zone, order| Some(zone.counts.by_order[order.index()] as f64)),
    )?;
    out.gauges("unusable_free", by_order(unusable))?;
    out.gauges("fragmentation_index", by_order(index))?;
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
    out.gauges("free_blocks_by_mobility", free)?;
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
    out.gauges("page_blocks_by_mobility", blocks)
}

fn whole(out: &mut Families<'_>, sample: &Sample) -> fmt::Result {
    let look = &sample.look;
    let labels = vec![("host", look.host.clone()), ("kernel", look.kernel.clone())];
    out.info("host", labels)?;
    out.one("sample_timestamp", process::seconds(look.time))?;
    if let Some(available) = sample.available {
        out.one("available", available as f64)?;
    }
    let huge = u64::from(look.frame_bytes) << look.huge_order.get();
    out.one("huge_page", huge as f64)?;
    out.one("huge_pages_free", sample.huge_free() as f64)?;
    if let Some(free) = sample.pool_free {
        out.one("huge_pages_pool_free", free as f64)?;
    }
    out.one("sampler_cpu_budget", sample.cost.budget)?;
    let sources = sample.sources.iter().map(|source| {
        let is_read = source.withheld.is_none();
        (
            vec![("source", source.name.to_owned())],
            f64::from(u8::from(is_read)),
        )
    });
    out.gauges("source_readable", sources)
}

fn counters(out: &mut Families<'_>, sample: &Sample) -> fmt::Result {
    for (name, of_kernel, _) in families() {
        let value = match of_kernel.strip_prefix('/') {
            None => continue,
            // One for each zone.
            Some("allocstall") => sample.counters_from("allocstall"),
            Some(of_kernel) => sample.counters.get(of_kernel),
        };
        if let Some(value) = value {
            out.total(name, value as f64)?;
        }
    }
    let Some(fallbacks) = &sample.fallbacks else {
        return Ok(());
    };
    out.total("fallbacks_lost", sample.fallbacks_lost as f64)?;
    let lines = fallbacks.iter().map(|row| {
        let labels = vec![
            ("process", row.process.clone()),
            ("mobility", row.mobility.clone()),
            ("from", row.from.clone()),
        ];
        (labels, row.count as f64)
    });
    out.lines("fallbacks", MetricType::Counter, lines, |metric, value| {
        metric.encode_counter::<NoLabelSet, _, f64>(&value, None)
    })
}

fn frames(out: &mut Families<'_>, sample: &Sample, reading: &Reading) -> fmt::Result {
    let bytes = |frames: u64| frames as f64 * f64::from(sample.look.frame_bytes);
    out.one("page_flags_timestamp", process::seconds(reading.time))?;
    out.one("page_flags_pass", reading.took.as_secs_f64())?;
    if let Some(forecasts) = &reading.forecasts {
        let lines = Way::ALL.into_iter().flat_map(|way| {
            let forecast = forecasts.of(way);
            [
                ("likely", forecast.likely),
                ("least", forecast.low),
                ("most", forecast.high),
            ]
            .map(|(bound, count)| {
                (
                    vec![("way", way.name().to_owned()), ("bound", bound.to_owned())],
                    count as f64,
                )
            })
        });
        out.gauges("huge_pages_forecast", lines)?;
    }
    let gigantic = [
        ("free", reading.gigantic.free),
        ("emptiable", reading.gigantic.emptiable),
    ];
    let lines = gigantic.map(|(state, count)| (vec![("state", state.to_owned())], count as f64));
    out.gauges("gigantic_regions", lines)?;
    let of_zone =
        |zone: &ZoneBlocks| vec![("node", zone.node.to_string()), ("zone", zone.zone.clone())];
    let zones = || reading.zones.iter();
    let kinds = zones().flat_map(|zone| {
        BlockKind::ALL.map(|kind| {
            (
                with(of_zone(zone), "kind", kind.name()),
                count_of(&zone.blocks, kind) as f64,
            )
        })
    });
    out.gauges("page_blocks", kinds)?;
    let few = zones().map(|zone| (of_zone(zone), zone.blocks.mixed_by_few as f64));
    out.gauges("page_blocks_mixed_by_few", few)?;
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
    out.gauges("mixed_page_blocks", mixing)?;
    let uses = reading
        .by_use
        .iter()
        .map(|&(name, frames)| (vec![("use", name.to_owned())], bytes(frames)));
    out.gauges("memory_use", uses)?;
    let Some(pinned) = reading.pinned else {
        return Ok(());
    };
    out.one("pinned", bytes(pinned))
}
