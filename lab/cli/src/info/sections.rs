//! The summary of a trace, section by section.

use core::time::Duration;
use std::time::SystemTime;

use brickyard::{MigrateType, Order};
use brickyard_host::buddyinfo::{self, BuddyZone};
use brickyard_host::zoneinfo;
use brickyard_results::counted;
use brickyard_trace::summary::{Kinds, Process, Summary};
use brickyard_trace::{Reading, Trace};

use super::tables::{Field, Section, time};

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
        !section.rows.is_empty() || !matches!(section.key, "steps" | "page_states")
    };
    all.into_iter().filter(is_shown).collect()
}

fn steps(summary: &Summary) -> Section {
    let title = "Steps of compaction and reclaim, with the sums of their numbers";
    let mut section = Section::new("steps", title, "step events sums");
    for steps in &summary.steps {
        let names = steps.step.numbers().into_iter().zip(steps.sums);
        // The others are no amounts.
        let sums = names.filter(|(name, _)| {
            matches!(*name, "taken" | "scanned" | "moved" | "failed" | "freed")
        });
        let sums: Vec<String> = sums.map(|(name, sum)| format!("{name} {sum}")).collect();
        section.rows.push(vec![
            name(steps.step.name()),
            Field::Count(steps.events),
            Field::Words(sums.join(", ")),
        ]);
    }
    section
}

fn page_states(trace: &Trace) -> Section {
    let title = "Page states: how long they took to read, and the events of meanwhile";
    let columns = "states read_ns left_out unsure";
    let mut section = Section::new("page_states", title, columns);
    let header = &trace.header;
    for (when, states) in [("start", header.start_states), ("end", header.end_states)] {
        if states != Reading::default() {
            section.rows.push(vec![
                name(when),
                Field::Nanos(states.ended.saturating_sub(states.began)),
                Field::Count(states.left_out),
                Field::Count(states.unsure),
            ]);
        }
    }
    section
}

fn name(text: impl Into<String>) -> Field {
    Field::Name(text.into())
}

fn order_name(order: Order) -> Field {
    Field::Name(format!("{order}"))
}

fn mobility_name(mobility: MigrateType) -> Field {
    Field::Name(mobility.name().to_lowercase())
}

fn mib(frames: u64, trace: &Trace) -> Field {
    let bytes = u128::from(frames) * u128::from(trace.header.frame_bytes);
    Field::Count(u64::try_from(bytes >> 20).unwrap_or(u64::MAX))
}

fn host(trace: &Trace) -> Section {
    let header = &trace.header;
    let mut section = Section::new("host", "Host", "what value");
    let mut put = |what: &str, value: String| {
        if !value.is_empty() {
            section.rows.push(vec![name(what), Field::Words(value)]);
        }
    };
    put("source", header.source.clone());
    put("kernel", header.kernel.clone());
    put("machine", header.machine.clone());
    put("command", header.command.clone());
    put(
        "began",
        if header.began == 0 {
            String::new()
        } else {
            date(header.began)
        },
    );
    let numbers = [
        ("cpus", u64::from(header.cpus)),
        ("frame_bytes", u64::from(header.frame_bytes)),
        ("page_block_order", u64::from(header.page_block_order)),
    ];
    let numbers = numbers.into_iter();
    let numbers = numbers.map(|(what, number)| vec![name(what), Field::Count(number)]);
    section.rows.extend(numbers);
    section
}

/// Returns seconds since 1970 as a date, UTC. Those after the year 9999 count as its end.
fn date(seconds: u64) -> String {
    let time = SystemTime::UNIX_EPOCH + Duration::from_secs(seconds.min(253_402_300_799));
    let text = humantime::format_rfc3339_seconds(time).to_string();
    text.replace('T', " ").replace('Z', " UTC")
}

fn zones(trace: &Trace) -> Section {
    let columns = "zone first_frame spanned_frames present_frames managed_frames managed_mib";
    let mut section = Section::new("zones", "Memory by zone", columns);
    let text = &trace.header.start.zoneinfo;
    if text.is_empty() {
        return section;
    }
    match zoneinfo::parse(text) {
        Ok(zones) => {
            for zone in zones.iter().filter(|zone| zone.is_populated()) {
                section.rows.push(vec![
                    name(format!("{} {}", zone.node, zone.name)),
                    Field::Count(zone.start_pfn),
                    Field::Count(zone.spanned),
                    Field::Count(zone.present),
                    Field::Count(zone.managed),
                    mib(zone.managed, trace),
                ]);
            }
        }
        Err(error) => section
            .notes
            .push(format!("zoneinfo cannot be read: {error}")),
    }
    section
}

fn events(trace: &Trace, summary: &Summary) -> Section {
    let kinds = &summary.kinds;
    let title = format!("Events in {}", time(summary.duration));
    let mut section = Section::new("events", title, "kind events events_per_second");
    let lost = trace
        .header
        .lost
        .iter()
        .fold(0u64, |sum, lost| sum.saturating_add(lost.events));
    let rows = [
        ("all", kinds.all()),
        ("allocations", kinds.allocs),
        ("frees", kinds.frees),
        ("failures", kinds.failures),
        ("fallbacks", kinds.fallbacks),
        ("lost", lost),
    ];
    // What only some recordings have.
    let more = [
        ("taken from zones", kinds.taken),
        ("drained to zones", kinds.drained),
        ("repeated frees", kinds.repeats),
        ("steps of compaction and reclaim", kinds.steps),
    ];
    let more = more.into_iter().filter(|&(_, count)| count > 0);
    for (kind, count) in rows.into_iter().chain(more) {
        let rate = per_second(count, summary.duration);
        section.rows.push(vec![
            name(kind),
            Field::Count(count),
            rate.map_or(Field::Nothing, Field::Count),
        ]);
    }
    section
}

fn per_second(count: u64, nanos: u64) -> Option<u64> {
    let rate = (u128::from(count) * 1_000_000_000).checked_div(u128::from(nanos))?;
    u64::try_from(rate).ok()
}

fn requests(trace: &Trace, summary: &Summary) -> Section {
    let columns =
        "order mobility allocations frames mib failures held_frames freed p50 p90 p99 max";
    let title = "Requests by order and mobility, with the lifetimes of freed blocks";
    let mut section = Section::new("requests", title, columns);
    for class in &summary.classes {
        let lives = &class.lifetimes;
        let life = |nanos: Option<u64>| nanos.map_or(Field::Nothing, Field::Nanos);
        section.rows.push(vec![
            order_name(class.order),
            mobility_name(class.mobility),
            Field::Count(class.allocs),
            Field::Count(class.frames()),
            mib(class.frames(), trace),
            Field::Count(class.failures),
            Field::Count(class.held_frames),
            Field::Count(lives.count() as u64),
            life(lives.percentile(50)),
            life(lives.percentile(90)),
            life(lives.percentile(99)),
            life(lives.max()),
        ]);
    }
    section
}

fn processes(trace: &Trace, summary: &Summary) -> Section {
    let title = format!(
        "Processes with the most frames ({} of {})",
        summary.processes.len(),
        summary.process_names
    );
    let columns = "process allocations frames mib freed_frames held_frames failures";
    let mut section = Section::new("processes", title, columns);
    for process in &summary.processes {
        section.rows.push(vec![
            name(&process.name),
            Field::Count(process.allocs),
            Field::Count(process.frames),
            mib(process.frames, trace),
            Field::Count(process.freed_frames),
            Field::Count(process.held_frames),
            Field::Count(process.failures),
        ]);
    }
    section
}

fn rates(summary: &Summary) -> Section {
    let spans = summary.spans.len() as u64;
    let begin = |span: u64| {
        let begin = u128::from(summary.duration) * u128::from(span) / u128::from(spans.max(1));
        u64::try_from(begin).unwrap_or(u64::MAX)
    };
    let title = format!(
        "Rates over time, {} of {}",
        counted(spans, "span", "spans"),
        time(begin(1))
    );
    let columns = "span from_ns allocations frees failures fallbacks events_per_second";
    let mut section = Section::new("rates", title, columns);
    let length = begin(1);
    for (span, kinds) in (0..).zip(&summary.spans) {
        section.rows.push(vec![
            name(format!("{span}")),
            Field::Count(begin(span)),
            Field::Count(kinds.allocs),
            Field::Count(kinds.frees),
            Field::Count(kinds.failures),
            Field::Count(kinds.fallbacks),
            per_second(kinds.all(), length).map_or(Field::Nothing, Field::Count),
        ]);
    }
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
    let title = "Fallbacks: blocks of another mobility that were split";
    let mut section = Section::new("fallbacks", title, "asked from claimed mixed");
    for pair in &summary.fallbacks {
        section.rows.push(vec![
            mobility_name(pair.mobility),
            mobility_name(pair.from),
            Field::Count(pair.claimed),
            Field::Count(pair.mixed),
        ]);
    }
    section
}

fn mixers(summary: &Summary) -> Section {
    let title = "Processes that mixed page blocks";
    let mut section = Section::new("mixers", title, "process mixed claimed");
    for Process {
        name: process,
        mixed,
        claimed,
        ..
    } in &summary.mixers
    {
        section.rows.push(vec![
            name(process),
            Field::Count(*mixed),
            Field::Count(*claimed),
        ]);
    }
    section
}

fn lost(trace: &Trace) -> Section {
    let title = "Lost events: the buffers were too small";
    let mut section = Section::new("lost", title, "cpu events");
    for lost in &trace.header.lost {
        section
            .rows
            .push(vec![name(lost.cpu.to_string()), Field::Count(lost.events)]);
    }
    section
}

fn oddities(trace: &Trace, summary: &Summary) -> Section {
    let odd = &summary.oddities;
    let mut section = Section::new("oddities", "Inconsistencies", "what events");
    let rows = [
        (
            "frees of frames allocated before the trace (expected)",
            odd.frees_of_before,
        ),
        ("frees of part of a block (expected)", odd.frees_in_part),
        ("frees of frames that were not allocated", odd.unknown_frees),
        ("allocations of frames already allocated", odd.double_allocs),
    ];
    for (what, count) in rows {
        section.rows.push(vec![name(what), Field::Count(count)]);
    }
    if trace.start.is_empty() {
        let note = "the trace has no page states: the first free of any frame may be of one allocated before the trace";
        section.notes.push(note.to_owned());
    } else if odd.unknown_frees + odd.double_allocs > 0 && trace.header.lost.is_empty() {
        section.notes.push(
            "no event was lost: pages were allocated or freed in a way that emits no event"
                .to_owned(),
        );
    }
    section
}

/// Returns the host's zones at the start and the end. Adds a note to the section where a text
/// cannot be parsed.
fn buddies(trace: &Trace, section: &mut Section) -> Vec<(&'static str, Vec<BuddyZone>)> {
    let mut sides = Vec::new();
    for (when, texts) in [("start", &trace.header.start), ("end", &trace.header.end)] {
        if texts.buddyinfo.is_empty() {
            continue;
        }
        match buddyinfo::parse(&texts.buddyinfo) {
            Ok(zones) if !zones.iter().all(is_possible) => {
                section.notes.push(format!(
                    "buddyinfo at the {when} has an impossible amount of memory"
                ));
            }
            Ok(zones) => sides.push((when, zones)),
            Err(error) => section
                .notes
                .push(format!("buddyinfo at the {when} cannot be read: {error}")),
        }
    }
    sides
}

/// Returns true if there can be so many free frames. The file may come from anywhere, and the
/// indices multiply.
fn is_possible(zone: &BuddyZone) -> bool {
    zone.free.iter().all(|&free| free < 1 << 32)
}

fn indices(trace: &Trace) -> Section {
    let title = "Free blocks by order; unusable: the share of free memory in smaller blocks; fragmentation: 0 lack of memory, 1 fragmentation, -1 a request would succeed";
    let mut section = Section::new("indices", title, "zone when measure");
    let sides = buddies(trace, &mut section);
    let zones = sides.iter().flat_map(|(_, zones)| zones);
    let Some(max) = zones.map(BuddyZone::max_order).max() else {
        return section;
    };
    section
        .columns
        .extend(Order::ZERO.up_to(max).map(|order| order.to_string()));
    for place in 0..sides
        .iter()
        .map(|(_, zones)| zones.len())
        .max()
        .unwrap_or(0)
    {
        for (when, zones) in &sides {
            let Some(zone) = zones.get(place) else {
                continue;
            };
            let counts = zone.counts();
            let mut row = |measure: &str, of: &dyn Fn(Order) -> Field| {
                let names = [
                    format!("{} {}", zone.node, zone.zone),
                    (*when).to_owned(),
                    measure.to_owned(),
                ];
                let orders = Order::ZERO.up_to(max).map(of);
                section
                    .rows
                    .push(names.into_iter().map(name).chain(orders).collect());
            };
            row("blocks", &|order| {
                Field::Count(counts.by_order[order.index()] as u64)
            });
            row("unusable", &|order| {
                Field::Thousandths(i32::try_from(counts.unusable_index(order)).unwrap_or(i32::MAX))
            });
            row("fragmentation", &|order| {
                Field::Thousandths(counts.fragmentation_index(order))
            });
        }
    }
    section
}

fn huge_pages(trace: &Trace) -> Section {
    let mut section = Section::new("huge_pages", "", "zone when huge_pages_free free_frames");
    let order = Order::try_new(trace.header.page_block_order).unwrap_or(Order::HUGE);
    section.title = format!("Huge pages free (order {order})");
    for (when, zones) in buddies(trace, &mut section) {
        for zone in zones {
            let counts = zone.counts();
            section.rows.push(vec![
                name(format!("{} {}", zone.node, zone.zone)),
                name(when),
                Field::Count(counts.suitable(order) as u64),
                Field::Count(counts.free_frames() as u64),
            ]);
        }
    }
    // The section of indices has the same notes.
    section.notes.clear();
    section
}

fn usage(trace: &Trace, summary: &Summary) -> Section {
    let columns = "use start_frames start_mib end_frames end_mib";
    let mut section = Section::new("usage", "Frames by use", columns);
    for usage in &summary.usage {
        section.rows.push(vec![
            name(usage.usage.name()),
            Field::Count(usage.start),
            mib(usage.start, trace),
            Field::Count(usage.end),
            mib(usage.end, trace),
        ]);
    }
    section
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
