//! `/proc/zoneinfo`: where each zone lies, its watermarks, counters and per-CPU lists. Everyone may
//! read it.
//!
//! The text has grown over twenty years; what a kernel does not tell is 0 or empty, and what is not
//! known here is passed over. The counters (`nr_slab_reclaimable` and the like) belong to the zone
//! in old kernels and to the node since 4.8: see [`counter`].

use crate::ParseError;
use crate::lines::{Lines, node_and_zone};

/// The per-CPU list of one CPU in one zone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PageSet {
    /// The CPU.
    pub cpu: u32,
    /// Pages that lie idle in it.
    pub count: u64,
    /// Above so many, some are given back.
    pub high: u64,
    /// How many go to or from the zone at once.
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
    /// Frames that the allocator has; those present where the kernel does not say (before 3.9).
    pub managed: u64,
    /// Free pages, those in per-CPU lists not included.
    pub free: u64,
    /// The watermark that only emergencies go below.
    pub min: u64,
    /// The watermark that wakes kswapd.
    pub low: u64,
    /// The watermark at which kswapd rests.
    pub high: u64,
    /// Pages kept back from requests that a higher zone could have served, by the number of that
    /// zone.
    pub protection: Vec<u64>,
    /// Pages set aside for contiguous ranges (CMA).
    pub cma: u64,
    /// The per-CPU lists.
    pub pagesets: Vec<PageSet>,
    /// The zone's counters.
    pub stats: Vec<(String, u64)>,
    /// The node's counters; only at the first zone of a node, and not before Linux 4.8.
    pub node_stats: Vec<(String, u64)>,
}

impl ZoneInfo {
    /// Is there anything in it? Linux lists empty zones too.
    #[must_use]
    pub fn is_populated(&self) -> bool {
        self.present > 0
    }

    /// The frame after its last one. Saturates.
    #[must_use]
    pub fn end_pfn(&self) -> u64 {
        self.start_pfn.saturating_add(self.spanned)
    }

    /// Pages idle in all per-CPU lists.
    #[must_use]
    pub fn idle_in_pagesets(&self) -> u64 {
        let counts = self.pagesets.iter().map(|set| set.count);
        counts.fold(0, u64::saturating_add)
    }
}

/// The counter of this name over all zones and nodes; `None` where the kernel does not have it.
/// Saturates.
#[must_use]
pub fn counter(zones: &[ZoneInfo], name: &str) -> Option<u64> {
    let of_zone = zones.iter().flat_map(|zone| &zone.stats);
    let of_node = zones.iter().flat_map(|zone| &zone.node_stats);
    let mut found = of_zone.chain(of_node).filter(|(own, _)| own == name);
    let first = found.next()?.1;
    Some(found.fold(first, |sum, (_, value)| sum.saturating_add(*value)))
}

/// What the lines belong to.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    Zone,
    Node,
    PageSets,
}

/// Reads the text. Zones come in the order of the text.
///
/// # Errors
/// A field whose number is none, or a field before the first zone.
pub fn parse(text: &str) -> Result<Vec<ZoneInfo>, ParseError> {
    let mut lines = Lines::new("zoneinfo", text);
    let mut zones: Vec<ZoneInfo> = Vec::new();
    let mut part = Part::Zone;
    let mut managed = Managed::Untold;
    while let Some(line) = lines.next() {
        if let Some((node, name, _)) = node_and_zone(line) {
            zones.push(ZoneInfo {
                node,
                name: name.into(),
                ..ZoneInfo::default()
            });
            part = Part::Zone;
            managed = Managed::Untold;
            continue;
        }
        let words = Words::of(line);
        if words.first.is_empty() {
            continue;
        }
        let Some(zone) = zones.last_mut() else {
            return Err(lines.wrong("`Node 0, zone ...` expected before anything else"));
        };
        part = part_after(part, &words);
        match part {
            Part::Node => push_stat(&lines, &mut zone.node_stats, &words)?,
            Part::PageSets => pageset(&lines, zone, &words)?,
            Part::Zone => field(&lines, zone, &words, &mut managed)?,
        }
    }
    Ok(zones)
}

/// Has the zone said how many of its frames are managed?
#[derive(PartialEq, Eq)]
enum Managed {
    Untold,
    Told,
}

/// The first words of a line, without a colon.
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

fn part_after(part: Part, words: &Words<'_>) -> Part {
    match words.first {
        "per-node" => Part::Node,
        "pages" => Part::Zone,
        "pagesets" => Part::PageSets,
        // What comes after the pagesets, in all versions of the text.
        "node_unreclaimable" | "all_unreclaimable" | "start_pfn" | "prev_priority"
        | "temp_priority" | "inactive_ratio" => Part::Zone,
        _ => part,
    }
}

/// A line of the zone itself.
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
            if *managed == Managed::Untold {
                zone.managed = zone.present;
            }
        }
        "managed" => {
            zone.managed = number()?;
            *managed = Managed::Told;
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

/// `protection: (0, 3019, 10571)`.
fn protection(lines: &Lines<'_>, line: &str) -> Result<Vec<u64>, ParseError> {
    let inside = line
        .split_once('(')
        .and_then(|(_, rest)| rest.split_once(')'));
    let (inside, _) = inside.ok_or_else(|| lines.wrong("numbers in brackets expected"))?;
    inside
        .split(',')
        .map(|text| lines.number(text.trim()))
        .collect()
}

/// A line of the per-CPU lists: `cpu: 0`, `count: 7`; once `cpu: 0 pcp: 0` with a hot and a cold
/// list, which are added up.
fn pageset(lines: &Lines<'_>, zone: &mut ZoneInfo, words: &Words<'_>) -> Result<(), ParseError> {
    let number = || lines.number(words.second);
    if words.first == "cpu" {
        let cpu = u32::try_from(number()?);
        let cpu = cpu.map_err(|_| lines.wrong("no number of a CPU"))?;
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
