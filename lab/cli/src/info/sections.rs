//! The summary of a trace, section by section.

use core::time::Duration;
use std::time::SystemTime;

use brickyard::{MigrateType, Order};
use brickyard_host::buddyinfo::{self, BuddyZone};
use brickyard_host::zoneinfo;
use brickyard_results::{Cell, cells, counted};
use brickyard_trace::summary::{Kinds, Summary};
use brickyard_trace::{Reading, Trace};
use serde_json::Value;

use super::tables::{Section, time};
use crate::snapshot::words::thousandths;

/// Returns all sections, in the order in which they are printed.
pub(crate) fn all(trace: &Trace, summary: &Summary) -> Vec<Section> {
    let all = vec![
        host(trace),
        zones(trace),
        events(trace, summary),
        steps(summary),
        requests(trace, summary),
        processes(trace, summary),
        rates(summary),
        fallbacks(summary),
        mixers(summary),
        lost(trace),
        page_states(trace),
        oddities(trace, summary),
        indices(trace),
        huge_pages(trace),
        usage(trace, summary),
    ];
    // What only some recordings have.
    let is_shown = |section: &Section| {
        !section.listing.rows.is_empty() || !matches!(section.key, "steps" | "page_states")
    };
    all.into_iter().filter(is_shown).collect()
}

fn steps(summary: &Summary) -> Section {
    let rows = summary.steps.iter().map(|steps| {
        let names = steps.step.numbers().into_iter().zip(steps.sums);
        // The others are no amounts.
        let sums = names.filter(|(name, _)| {
            matches!(*name, "taken" | "scanned" | "moved" | "failed" | "freed")
        });
        let sums: Vec<String> = sums.map(|(name, sum)| format!("{name} {sum}")).collect();
        cells![steps.step.name(), steps.events, sums.join(", ")]
    });
    let title = "Steps of compaction and reclaim, with the sums of their numbers";
    Section::new("steps", title, "step", "events sums", rows)
}

fn page_states(trace: &Trace) -> Section {
    let header = &trace.header;
    let sides = [("start", header.start_states), ("end", header.end_states)];
    let sides = sides
        .into_iter()
        .filter(|(_, of)| *of != Reading::default());
    let rows = sides.map(|(when, of)| {
        let took = nanos(of.ended.saturating_sub(of.began));
        cells![when, took, of.left_out, of.unsure]
    });
    let title = "Page states: how long they took to read, and the events of meanwhile";
    let columns = "read_ns left_out unsure";
    Section::new("page_states", title, "states", columns, rows)
}

/// Returns a time in nanoseconds, which people read in a larger unit.
fn nanos(nanos: u64) -> Cell {
    Cell::shown(nanos, time(nanos))
}

fn mobility(mobility: MigrateType) -> String {
    mobility.name().to_lowercase()
}

fn mib(frames: u64, trace: &Trace) -> u64 {
    let bytes = u128::from(frames) * u128::from(trace.header.frame_bytes);
    u64::try_from(bytes >> 20).unwrap_or(u64::MAX)
}

fn host(trace: &Trace) -> Section {
    let header = &trace.header;
    let began = (header.began != 0).then(|| date(header.began));
    let words = [
        ("source", &header.source),
        ("kernel", &header.kernel),
        ("machine", &header.machine),
        ("command", &header.command),
        ("began", &began.unwrap_or_default()),
    ];
    let words = words.into_iter().filter(|(_, text)| !text.is_empty());
    let words = words.map(|(what, text)| cells![what, text.as_str()]);
    let numbers = [
        cells!["cpus", header.cpus],
        cells!["frame_bytes", header.frame_bytes],
        cells!["page_block_order", header.page_block_order],
    ];
    Section::new("host", "Host", "what", "value", words.chain(numbers))
}

/// Returns seconds since 1970 as a date, UTC. Those after the year 9999 count as its end.
fn date(seconds: u64) -> String {
    let time = SystemTime::UNIX_EPOCH + Duration::from_secs(seconds.min(253_402_300_799));
    let text = humantime::format_rfc3339_seconds(time).to_string();
    text.replace('T', " ").replace('Z', " UTC")
}

fn zones(trace: &Trace) -> Section {
    let text = &trace.header.start.zoneinfo;
    let parsed = match text.is_empty() {
        true => Ok(Vec::new()),
        false => zoneinfo::parse(text),
    };
    let zones = parsed.as_deref().unwrap_or_default().iter();
    let rows = zones.filter(|zone| zone.is_populated()).map(|zone| {
        let name = format!("{} {}", zone.node, zone.name);
        let mib = mib(zone.managed, trace);
        cells![
            name,
            zone.start_pfn,
            zone.spanned,
            zone.present,
            zone.managed,
            mib
        ]
    });
    let columns = "first_frame spanned_frames present_frames managed_frames managed_mib";
    let mut section = Section::new("zones", "Memory by zone", "zone", columns, rows);
    let notes = parsed.as_ref().err().into_iter();
    section.notes = notes
        .map(|error| format!("zoneinfo cannot be read: {error}"))
        .collect();
    section
}

fn events(trace: &Trace, summary: &Summary) -> Section {
    let kinds = &summary.kinds;
    let lost = trace.header.lost.iter().map(|lost| lost.events);
    let rows = [
        ("all", kinds.all()),
        ("allocations", kinds.allocs),
        ("frees", kinds.frees),
        ("failures", kinds.failures),
        ("fallbacks", kinds.fallbacks),
        ("lost", lost.fold(0, u64::saturating_add)),
    ];
    // What only some recordings have.
    let more = [
        ("taken from zones", kinds.taken),
        ("drained to zones", kinds.drained),
        ("repeated frees", kinds.repeats),
        ("steps of compaction and reclaim", kinds.steps),
    ];
    let more = more.into_iter().filter(|&(_, count)| count > 0);
    let rows = rows.into_iter().chain(more);
    let rows = rows.map(|(kind, count)| cells![kind, count, per_second(count, summary.duration)]);
    let title = format!("Events in {}", time(summary.duration));
    Section::new("events", title, "kind", "events events_per_second", rows)
}

fn per_second(count: u64, nanos: u64) -> Option<u64> {
    let rate = (u128::from(count) * 1_000_000_000).checked_div(u128::from(nanos))?;
    u64::try_from(rate).ok()
}

fn requests(trace: &Trace, summary: &Summary) -> Section {
    let rows = summary.classes.iter().map(|class| {
        let lives = &class.lifetimes;
        let life = |of: Option<u64>| of.map_or_else(|| Cell::from(Value::Null), nanos);
        cells![
            class.order.to_string(),
            mobility(class.mobility),
            class.allocs,
            class.frames(),
            mib(class.frames(), trace),
            class.failures,
            class.held_frames,
            lives.count(),
            life(lives.percentile(50)),
            life(lives.percentile(90)),
            life(lives.percentile(99)),
            life(lives.max()),
        ]
    });
    let columns = "allocations frames mib failures held_frames freed p50 p90 p99 max";
    let title = "Requests by order and mobility, with the lifetimes of freed blocks";
    Section::new("requests", title, "order mobility", columns, rows)
}

fn processes(trace: &Trace, summary: &Summary) -> Section {
    let rows = summary.processes.iter().map(|of| {
        cells![
            of.name.as_str(),
            of.allocs,
            of.frames,
            mib(of.frames, trace),
            of.freed_frames,
            of.held_frames,
            of.failures,
        ]
    });
    let title = format!(
        "Processes with the most frames ({} of {})",
        summary.processes.len(),
        summary.process_names
    );
    let columns = "allocations frames mib freed_frames held_frames failures";
    Section::new("processes", title, "process", columns, rows)
}

fn rates(summary: &Summary) -> Section {
    let spans = summary.spans.len() as u64;
    let begin = |span: u64| {
        let begin = u128::from(summary.duration) * u128::from(span) / u128::from(spans.max(1));
        u64::try_from(begin).unwrap_or(u64::MAX)
    };
    let length = begin(1);
    let rows = (0..).zip(&summary.spans).map(|(span, kinds)| {
        cells![
            span.to_string(),
            begin(span),
            kinds.allocs,
            kinds.frees,
            kinds.failures,
            kinds.fallbacks,
            per_second(kinds.all(), length),
        ]
    });
    let title = format!(
        "Rates over time, {} of {}",
        counted(spans, "span", "spans"),
        time(length)
    );
    let columns = "from_ns allocations frees failures fallbacks events_per_second";
    let mut section = Section::new("rates", title, "span", columns, rows);
    let measures: [(&str, Measure); 4] = [
        ("allocations", |kinds| kinds.allocs),
        ("frees", |kinds| kinds.frees),
        ("failures", |kinds| kinds.failures),
        ("fallbacks", |kinds| kinds.fallbacks),
    ];
    for (what, of) in measures {
        let counts: Vec<u64> = summary.spans.iter().map(of).collect();
        let most = counts.iter().max().copied().unwrap_or(0);
        if most > 0 {
            let rate = per_second(most, length).unwrap_or(0);
            let line = sparkline(&counts, most);
            let line = format!("{what:<11}  {line}  at most {most} a span, {rate}/s");
            section.instead.push(line);
        }
    }
    if section.instead.is_empty() {
        section.instead.push("none".to_owned());
    }
    section
}

/// Selects one of the counts.
type Measure = fn(&Kinds) -> u64;

/// Draws a bar per span: none is a space, the most is a full block.
fn sparkline(counts: &[u64], most: u64) -> String {
    const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let bar = |&count: &u64| match count {
        0 => ' ',
        _ => BARS[(u128::from(count) * 8).div_ceil(u128::from(most)) as usize - 1],
    };
    counts.iter().map(bar).collect()
}

fn fallbacks(summary: &Summary) -> Section {
    let rows = summary.fallbacks.iter().map(|pair| {
        let (asked, from) = (mobility(pair.mobility), mobility(pair.from));
        cells![asked, from, pair.claimed, pair.mixed]
    });
    let title = "Fallbacks: blocks of another mobility that were split";
    Section::new("fallbacks", title, "asked from", "claimed mixed", rows)
}

fn mixers(summary: &Summary) -> Section {
    let rows = summary.mixers.iter();
    let rows = rows.map(|of| cells![of.name.as_str(), of.mixed, of.claimed]);
    let title = "Processes that mixed page blocks";
    Section::new("mixers", title, "process", "mixed claimed", rows)
}

fn lost(trace: &Trace) -> Section {
    let rows = trace.header.lost.iter();
    let rows = rows.map(|lost| cells![lost.cpu.to_string(), lost.events]);
    let title = "Lost events: the buffers were too small";
    Section::new("lost", title, "cpu", "events", rows)
}

fn oddities(trace: &Trace, summary: &Summary) -> Section {
    let odd = &summary.oddities;
    let rows = [
        cells![
            "frees of frames allocated before the trace (expected)",
            odd.frees_of_before
        ],
        cells!["frees of part of a block (expected)", odd.frees_in_part],
        cells!["frees of frames that were not allocated", odd.unknown_frees],
        cells!["allocations of frames already allocated", odd.double_allocs],
    ];
    let mut section = Section::new("oddities", "Inconsistencies", "what", "events", rows);
    if trace.start.is_empty() {
        let note = "the trace has no page states: the first free of any frame may be of one allocated before the trace";
        section.notes.push(note.to_owned());
    } else if odd.unknown_frees + odd.double_allocs > 0 && trace.header.lost.is_empty() {
        let note = "no event was lost: pages were allocated or freed in a way that emits no event";
        section.notes.push(note.to_owned());
    }
    section
}

/// Returns the host's zones at the start and the end, and a note where a text cannot be parsed.
fn buddies(trace: &Trace) -> (Vec<(&'static str, Vec<BuddyZone>)>, Vec<String>) {
    let (mut sides, mut notes) = (Vec::new(), Vec::new());
    for (when, texts) in [("start", &trace.header.start), ("end", &trace.header.end)] {
        if texts.buddyinfo.is_empty() {
            continue;
        }
        match buddyinfo::parse(&texts.buddyinfo) {
            Ok(zones) if zones.iter().all(is_possible) => sides.push((when, zones)),
            Ok(_) => notes.push(format!(
                "buddyinfo at the {when} has an impossible amount of memory"
            )),
            Err(error) => notes.push(format!("buddyinfo at the {when} cannot be read: {error}")),
        }
    }
    (sides, notes)
}

/// Returns true if there can be so many free frames. The file may come from anywhere, and the
/// indices multiply.
fn is_possible(zone: &BuddyZone) -> bool {
    zone.free.iter().all(|&free| free < 1 << 32)
}

fn indices(trace: &Trace) -> Section {
    let (sides, notes) = buddies(trace);
    let zones = sides.iter().flat_map(|(_, zones)| zones);
    let max = zones.map(BuddyZone::max_order).max();
    let orders = || max.into_iter().flat_map(|max| Order::ZERO.up_to(max));
    let places = sides.iter().map(|(_, zones)| zones.len()).max();
    let mut rows = Vec::new();
    for place in 0..places.unwrap_or(0) {
        for (when, zones) in &sides {
            let Some(zone) = zones.get(place) else {
                continue;
            };
            let counts = zone.counts();
            let mut add = |measure: &str, of: &dyn Fn(Order) -> Cell| {
                let names = cells![format!("{} {}", zone.node, zone.zone), *when, measure];
                rows.push(
                    names
                        .into_iter()
                        .chain(orders().map(of))
                        .collect::<Vec<_>>(),
                );
            };
            let index = |index: f64| Cell::shown(index / 1000.0, thousandths(index));
            add("blocks", &|order| counts.by_order[order.index()].into());
            add("unusable", &|order| {
                index(counts.unusable_index(order).into())
            });
            add("fragmentation", &|order| {
                index(counts.fragmentation_index(order).into())
            });
        }
    }
    let title = "Free blocks by order; unusable: the share of free memory in smaller blocks; fragmentation: 0 lack of memory, 1 fragmentation, -1 a request would succeed";
    let columns: Vec<String> = orders().map(|order| order.to_string()).collect();
    let mut section = Section::new(
        "indices",
        title,
        "zone when measure",
        &columns.join(" "),
        rows,
    );
    section.notes = notes;
    section
}

fn huge_pages(trace: &Trace) -> Section {
    let order = Order::try_new(trace.header.page_block_order).unwrap_or(Order::HUGE);
    // The section of indices has the notes.
    let (sides, _) = buddies(trace);
    let sides = sides.iter();
    let zones = sides.flat_map(|(when, zones)| zones.iter().map(move |zone| (*when, zone)));
    let rows = zones.map(|(when, zone)| {
        let (name, counts) = (format!("{} {}", zone.node, zone.zone), zone.counts());
        cells![name, when, counts.suitable(order), counts.free_frames()]
    });
    let title = format!("Huge pages free (order {order})");
    let columns = "huge_pages_free free_frames";
    Section::new("huge_pages", title, "zone when", columns, rows)
}

fn usage(trace: &Trace, summary: &Summary) -> Section {
    let rows = summary.usage.iter().map(|of| {
        let (start, end) = (mib(of.start, trace), mib(of.end, trace));
        cells![of.usage.name(), of.start, start, of.end, end]
    });
    let columns = "start_frames start_mib end_frames end_mib";
    Section::new("usage", "Frames by use", "use", columns, rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_those_of_the_calendar() {
        assert_eq!(date(0), "1970-01-01 00:00:00 UTC");
        assert_eq!(date(951_782_399), "2000-02-28 23:59:59 UTC");
        assert_eq!(date(951_782_400), "2000-02-29 00:00:00 UTC");
        assert_eq!(date(1_735_689_599), "2024-12-31 23:59:59 UTC");
        assert!(date(u64::MAX).ends_with("UTC"));
    }

    #[test]
    fn a_sparkline_has_a_bar_a_span() {
        assert_eq!(sparkline(&[0, 1, 4, 8], 8), " ▁▄█");
    }
}
