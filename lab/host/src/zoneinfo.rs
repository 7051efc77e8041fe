//! `/proc/zoneinfo`: the frames of each zone, its watermarks, counters and per-CPU lists. Readable
//! by all users.
//!
//! The text has grown over twenty years: fields that a kernel lacks are 0 or empty, and unknown
//! fields are skipped. The counters (`nr_slab_reclaimable` and the like) belong to the zone in old
//! kernels and to the node since 4.8: see [`counter`].

use crate::ParseError;
use crate::lines::{Lines, node_and_zone};

/// The per-CPU list of one CPU in one zone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PageSet {
    /// The CPU.
    pub cpu: u32,
    /// Free pages in it.
    pub count: u64,
    /// Above this count, pages are returned to the zone.
    pub high: u64,
    /// How many pages are moved to or from the zone at a time.
    pub batch: u64,
}

/// One zone. Sizes are in pages.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ZoneInfo {
    /// Its node.
    pub node: u32,
    /// Its name, such as `Normal`.
    pub name: String,
    /// Its first frame.
    pub start_pfn: u64,
    /// Frames from its first to its last, holes included.
    pub spanned: u64,
    /// Frames that exist.
    pub present: u64,
    /// Frames that the allocator manages; those present if the kernel lists none (before 3.9).
    pub managed: u64,
    /// Free pages, those in per-CPU lists not included.
    pub free: u64,
    /// The watermark that only emergency requests may go below.
    pub min: u64,
    /// The watermark that wakes kswapd.
    pub low: u64,
    /// The watermark at which kswapd goes back to sleep.
    pub high: u64,
    /// Pages withheld from requests that a higher zone could have served, by the number of that
    /// zone.
    pub protection: Vec<u64>,
    /// Pages reserved for contiguous ranges (CMA).
    pub cma: u64,
    /// The per-CPU lists.
    pub pagesets: Vec<PageSet>,
    /// The zone's counters.
    pub stats: Vec<(String, u64)>,
    /// The node's counters; only at the first zone of a node, and not before Linux 4.8.
    pub node_stats: Vec<(String, u64)>,
}

impl ZoneInfo {
    /// Returns true if the zone has memory. Linux lists empty zones too.
    #[must_use]
    pub fn is_populated(&self) -> bool {
        self.present > 0
    }

    /// Returns the frame after its last one. Saturates.
    #[must_use]
    pub fn end_pfn(&self) -> u64 {
        self.start_pfn.saturating_add(self.spanned)
    }

    /// Returns the number of free pages in all per-CPU lists.
    #[must_use]
    pub fn idle_in_pagesets(&self) -> u64 {
        let counts = self.pagesets.iter().map(|set| set.count);
        counts.fold(0, u64::saturating_add)
    }
}

/// Returns the sum of the counter of this name over all zones and nodes; `None` if the kernel does
/// not have it. Saturates.
#[must_use]
pub fn counter(zones: &[ZoneInfo], name: &str) -> Option<u64> {
    let of_zone = zones.iter().flat_map(|zone| &zone.stats);
    let of_node = zones.iter().flat_map(|zone| &zone.node_stats);
    let mut found = of_zone.chain(of_node).filter(|(own, _)| own == name);
    let first = found.next()?.1;
    Some(found.fold(first, |sum, (_, value)| sum.saturating_add(*value)))
}

/// The section that lines belong to.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Section {
    Zone,
    Node,
    PageSets,
}

/// Parses the text. Zones are in the order of the text.
///
/// # Errors
/// If the value of a known field is not a number, or a field precedes the first zone.
pub fn parse(text: &str) -> Result<Vec<ZoneInfo>, ParseError> {
    let mut lines = Lines::new("zoneinfo", text);
    let mut zones: Vec<ZoneInfo> = Vec::new();
    let mut section = Section::Zone;
    let mut managed = Managed::Missing;
    while let Some(line) = lines.next() {
        if let Some((node, name, _)) = node_and_zone(line) {
            zones.push(ZoneInfo {
                node,
                name: name.into(),
                ..ZoneInfo::default()
            });
            section = Section::Zone;
            managed = Managed::Missing;
            continue;
        }
        let words = Words::of(line);
        if words.first.is_empty() {
            continue;
        }
        let Some(zone) = zones.last_mut() else {
            return Err(lines.error("expected `Node 0, zone ...` before anything else"));
        };
        section = section_after(section, &words);
        match section {
            Section::Node => push_stat(&lines, &mut zone.node_stats, &words)?,
            Section::PageSets => pageset(&lines, zone, &words)?,
            Section::Zone => field(&lines, zone, &words, &mut managed)?,
        }
    }
    Ok(zones)
}

/// Whether the zone's number of managed frames was in the text so far.
#[derive(PartialEq, Eq)]
enum Managed {
    Missing,
    Given,
}

/// The first words of a line, the first without its colon.
struct Words<'a> {
    line: &'a str,
    first: &'a str,
    second: &'a str,
    third: &'a str,
}

impl<'a> Words<'a> {
    fn of(line: &'a str) -> Self {
        let mut words = line.split_whitespace();
        let mut next = || words.next().unwrap_or_default();
        let (first, second, third) = (next(), next(), next());
        Self {
            line,
            first: first.trim_end_matches(':'),
            second,
            third,
        }
    }
}

fn section_after(section: Section, words: &Words<'_>) -> Section {
    match words.first {
        "per-node" => Section::Node,
        "pages" => Section::Zone,
        "pagesets" => Section::PageSets,
        // The fields that may follow the pagesets, in all versions of the text.
        "node_unreclaimable" | "all_unreclaimable" | "start_pfn" | "prev_priority"
        | "temp_priority" | "inactive_ratio" => Section::Zone,
        _ => section,
    }
}

/// Reads a line of the zone itself.
fn field(
    lines: &Lines<'_>,
    zone: &mut ZoneInfo,
    words: &Words<'_>,
    managed: &mut Managed,
) -> Result<(), ParseError> {
    let number = || lines.number(words.second);
    match words.first {
        "pages" if words.second == "free" => zone.free = lines.number(words.third)?,
        "min" => zone.min = number()?,
        "low" => zone.low = number()?,
        "high" => zone.high = number()?,
        "spanned" => zone.spanned = number()?,
        "present" => {
            zone.present = number()?;
            if *managed == Managed::Missing {
                zone.managed = zone.present;
            }
        }
        "managed" => {
            zone.managed = number()?;
            *managed = Managed::Given;
        }
        "cma" => zone.cma = number()?,
        "start_pfn" => zone.start_pfn = number()?,
        "protection" => zone.protection = protection(lines, words.line)?,
        name if is_counter(name) => push_stat(lines, &mut zone.stats, words)?,
        _ => {}
    }
    Ok(())
}

fn is_counter(name: &str) -> bool {
    ["nr_", "numa_", "workingset_", "pgpromote", "pgdemote"]
        .iter()
        .any(|start| name.starts_with(start))
}

/// Parses `protection: (0, 3019, 10571)`.
fn protection(lines: &Lines<'_>, line: &str) -> Result<Vec<u64>, ParseError> {
    let inside = line
        .split_once('(')
        .and_then(|(_, rest)| rest.split_once(')'));
    let (inside, _) = inside.ok_or_else(|| lines.error("expected numbers in parentheses"))?;
    inside
        .split(',')
        .map(|text| lines.number(text.trim()))
        .collect()
}

/// Reads a line of the per-CPU lists: `cpu: 0`, `count: 7`. Old kernels have `cpu: 0 pcp: 0` and
/// `pcp: 1`, a hot and a cold list, whose counts are added.
fn pageset(lines: &Lines<'_>, zone: &mut ZoneInfo, words: &Words<'_>) -> Result<(), ParseError> {
    let number = || lines.number(words.second);
    if words.first == "cpu" {
        let cpu = u32::try_from(number()?);
        let cpu = cpu.map_err(|_| lines.error("the number of a CPU is too large"))?;
        if zone.pagesets.last().is_none_or(|last| last.cpu != cpu) {
            zone.pagesets.push(PageSet {
                cpu,
                ..PageSet::default()
            });
        }
        return Ok(());
    }
    let Some(set) = zone.pagesets.last_mut() else {
        return Ok(());
    };
    match words.first {
        "count" => set.count = set.count.saturating_add(number()?),
        "high" => set.high = number()?,
        "batch" => set.batch = number()?,
        _ => {}
    }
    Ok(())
}

fn push_stat(
    lines: &Lines<'_>,
    stats: &mut Vec<(String, u64)>,
    words: &Words<'_>,
) -> Result<(), ParseError> {
    if words.second.is_empty() || words.first == "per-node" {
        return Ok(());
    }
    stats.push((words.first.into(), lines.number(words.second)?));
    Ok(())
}
