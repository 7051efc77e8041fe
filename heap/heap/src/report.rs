//! What the heap holds, as text: for people, as JSON, for OpenMetrics, and as the C library's XML.
//!
//! Making a text allocates nothing, so it can be made for a heap that has no memory left.

use core::fmt;

use crate::statistics::{SizeStatistics, Statistics};

/// The form of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Format {
    /// A table for people.
    Text,
    /// One JSON object.
    Json,
    /// What Prometheus and others that read OpenMetrics 1.0 scrape.
    OpenMetrics,
    /// What the C library's `malloc_info` prints: its elements, as far as they exist here.
    Xml,
}

impl Format {
    /// Returns the format of a name: `text`, `json`, `openmetrics` or `xml`.
    #[must_use]
    pub fn named(name: &[u8]) -> Option<Self> {
        match name {
            b"text" => Some(Self::Text),
            b"json" => Some(Self::Json),
            b"openmetrics" => Some(Self::OpenMetrics),
            b"xml" => Some(Self::Xml),
            _ => None,
        }
    }
}

impl Statistics {
    /// Returns the text in a format, with a line's end.
    #[must_use]
    pub const fn text(&self, format: Format) -> Report<'_> {
        Report {
            statistics: self,
            format,
        }
    }

    /// Returns the sizes that have slabs.
    fn used_sizes(&self) -> impl Iterator<Item = &SizeStatistics> {
        self.sizes.iter().filter(|of| of.slabs > 0)
    }
}

/// Statistics as text; [`Statistics::text`] makes it.
#[derive(Debug, Clone, Copy)]
pub struct Report<'s> {
    statistics: &'s Statistics,
    format: Format,
}

impl fmt::Display for Report<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.format {
            Format::Text => table(self.statistics, f),
            Format::Json => json(self.statistics, f),
            Format::OpenMetrics => open_metrics(self.statistics, f),
            Format::Xml => xml(self.statistics, f),
        }
    }
}

/// The sums, each with its name in programs' formats and what it is.
fn sums(of: &Statistics) -> [(&'static str, usize, &'static str); 9] {
    [
        ("objects", of.objects(), "objects of up to 128 KiB in use"),
        ("runs", of.runs(), "runs of pages of up to 2 MiB in use"),
        ("large", of.large, "larger blocks in use"),
        ("queued", of.queued(), "free objects at hand for CPUs"),
        ("slabs", of.slabs, "slabs, objects in use among them"),
        ("idle", of.idle, "free pages that may have memory"),
        ("held", of.held(), "all that is held from the system"),
        ("usable", of.usable, "usable by slabs and runs so far"),
        ("span", of.span, "addresses for slabs and runs"),
    ]
}

/// Begins with the lines that the C library prints, for whoever looks for them.
fn table(of: &Statistics, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let lines = [
        ("system bytes", of.pages + of.idle),
        ("in use bytes", of.objects() + of.runs()),
        ("system bytes", of.held()),
        ("in use bytes", of.in_use()),
        ("max mmap regions", of.large_blocks_most),
        ("max mmap bytes", of.large_most),
    ];
    for (index, (name, number)) in lines.into_iter().enumerate() {
        match index {
            0 => f.write_str("Arena 0:\n")?,
            2 => f.write_str("Total (incl. mmap):\n")?,
            _ => {}
        }
        writeln!(f, "{name:<16} = {number:>10}")?;
    }
    f.write_str("Brickyard, in bytes:\n")?;
    for (name, bytes, what) in sums(of) {
        writeln!(f, "{bytes:>16} {name:<8} {what}")?;
    }
    writeln!(f, "{:>16} blocks   larger than 2 MiB", of.large_blocks)?;
    let titles = ["size", "in use", "queued", "objects", "slab bytes"];
    let [size, in_use, queued, objects, slabs] = titles;
    writeln!(
        f,
        "{size:>8} {in_use:>12} {queued:>10} {objects:>12} {slabs:>14} full"
    )?;
    for of in of.used_sizes() {
        let full = 100 * of.in_use / of.objects.max(1);
        let SizeStatistics {
            size,
            in_use,
            queued,
            objects,
            slabs,
        } = of;
        writeln!(
            f,
            "{size:>8} {in_use:>12} {queued:>10} {objects:>12} {slabs:>14} {full:>3}%"
        )?;
    }
    Ok(())
}

fn json(of: &Statistics, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    write!(f, "{{\"in_use\":{}", of.in_use())?;
    for (name, bytes, _) in sums(of) {
        write!(f, ",\"{name}\":{bytes}")?;
    }
    write!(f, ",\"large_blocks\":{},\"sizes\":[", of.large_blocks)?;
    for (index, of) in of.used_sizes().enumerate() {
        let comma = if index == 0 { "" } else { "," };
        write!(
            f,
            "{comma}{{\"size\":{},\"in_use\":{},\"queued\":{},\"objects\":{},\"slabs\":{}}}",
            of.size, of.in_use, of.queued, of.objects, of.slabs
        )?;
    }
    f.write_str("]}\n")
}

/// A metric of every size: its name, its unit if it has one, what it is, and its value.
type SizeMetric = (
    &'static str,
    Option<&'static str>,
    &'static str,
    fn(&SizeStatistics) -> usize,
);

const SIZE_METRICS: [SizeMetric; 4] = [
    (
        "brickyard_heap_objects",
        None,
        "Objects in use, by size.",
        |of| of.in_use,
    ),
    (
        "brickyard_heap_queued_objects",
        None,
        "Free objects at hand for CPUs, by size.",
        |of| of.queued,
    ),
    (
        "brickyard_heap_slab_objects",
        None,
        "Objects that slabs have, in use or free, by size.",
        |of| of.objects,
    ),
    (
        "brickyard_heap_slab_bytes",
        Some("bytes"),
        "Bytes of slabs, by the size of their objects.",
        |of| of.slabs,
    ),
];

fn open_metrics(of: &Statistics, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    for (name, bytes, what) in sums(of) {
        writeln!(f, "# TYPE brickyard_heap_{name}_bytes gauge")?;
        writeln!(f, "# UNIT brickyard_heap_{name}_bytes bytes")?;
        writeln!(f, "# HELP brickyard_heap_{name}_bytes Bytes: {what}.")?;
        writeln!(f, "brickyard_heap_{name}_bytes {bytes}")?;
    }
    writeln!(f, "# TYPE brickyard_heap_large_blocks gauge")?;
    writeln!(f, "# HELP brickyard_heap_large_blocks Blocks above 2 MiB.")?;
    writeln!(f, "brickyard_heap_large_blocks {}", of.large_blocks)?;
    for (name, unit, what, value) in SIZE_METRICS {
        writeln!(f, "# TYPE {name} gauge")?;
        if let Some(unit) = unit {
            writeln!(f, "# UNIT {name} {unit}")?;
        }
        writeln!(f, "# HELP {name} {what}")?;
        for of in of.used_sizes() {
            writeln!(f, "{name}{{size=\"{}\"}} {}", of.size, value(of))?;
        }
    }
    f.write_str("# EOF\n")
}

/// The C library prints one element `heap` for each of its arenas; here is one heap. `fast` is what
/// lies in queues, `rest` what is free in slabs and idle pages.
fn xml(of: &Statistics, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    f.write_str("<malloc version=\"1\">\n<heap nr=\"0\">\n<sizes>\n")?;
    for of in of.used_sizes().filter(|of| of.objects > of.in_use) {
        let free = of.objects - of.in_use;
        writeln!(
            f,
            "  <size from=\"{size}\" to=\"{size}\" total=\"{}\" count=\"{free}\"/>",
            free * of.size,
            size = of.size
        )?;
    }
    f.write_str("</sizes>\n")?;
    totals(of, f)?;
    f.write_str("</heap>\n")?;
    totals(of, f)?;
    writeln!(
        f,
        "<total type=\"mmap\" count=\"{}\" size=\"{}\"/>\n</malloc>",
        of.large_blocks, of.large
    )
}

fn totals(of: &Statistics, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let queued: usize = of.sizes.iter().map(|of| of.queued).sum();
    let free: usize = of.sizes.iter().map(|of| of.objects - of.in_use).sum();
    let system = of.pages + of.idle;
    let rest = system
        .saturating_sub(of.objects() + of.runs())
        .saturating_sub(of.queued());
    writeln!(
        f,
        "<total type=\"fast\" count=\"{queued}\" size=\"{}\"/>\n\
         <total type=\"rest\" count=\"{}\" size=\"{rest}\"/>\n\
         <system type=\"current\" size=\"{system}\"/>\n\
         <system type=\"max\" size=\"{}\"/>\n\
         <aspace type=\"total\" size=\"{}\"/>\n\
         <aspace type=\"mprotect\" size=\"{}\"/>",
        of.queued(),
        free.saturating_sub(queued),
        of.usable,
        of.span,
        of.usable
    )
}
