//! The verdict in words: whether a request would succeed now, and if not, whether by lack of memory
//! or by fragmentation.

use brickyard::Order;
use brickyard_host::look::{Look, ZoneLook};
use brickyard_host::outlook::Verdict;
use brickyard_host::zoneinfo::{ZoneInfo, counter};

use super::figures::{amount, block_size, named_zones};
use super::{View, forecast};

/// Returns a verdict as a word.
pub(crate) fn verdict_word(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Succeeds => "succeeds",
        Verdict::Lack => "lack",
        Verdict::Fragmented => "fragmentation",
    }
}

/// Returns what a request would meet in one zone, as a word.
pub(crate) fn request_word(zone: &ZoneLook, order: Order) -> &'static str {
    match zone.verdict(order) {
        Verdict::Lack if zone.counts.suitable(order) > 0 => "reserved",
        verdict => verdict_word(verdict),
    }
}

/// Returns the whole explanation, in a few sentences.
pub(crate) fn explanation(view: &View<'_>) -> String {
    let more = [forecast::of_count(view), forecast::advice(view)];
    let parts = [Some(verdict(view.look, view.order))]
        .into_iter()
        .chain(more);
    let parts: Vec<_> = parts.flatten().collect();
    parts.join(" ")
}

/// Returns whether a request would succeed, and why or why not.
fn verdict(look: &Look, order: Order) -> String {
    let size = block_size(order.get(), look.frame_bytes);
    let request = format!("A request of order {order} ({size})");
    match look.verdict(order) {
        Verdict::Succeeds => {
            let zones = named_zones(look);
            let serving = zones
                .iter()
                .rev()
                .filter(|(_, zone)| zone.verdict(order) == Verdict::Succeeds);
            let free: Vec<_> = serving
                .map(|(name, zone)| format!("{} in {name}", zone.counts.suitable(order)))
                .collect();
            format!(
                "{request} would succeed now; free blocks of this size: {}.{}",
                free.join(", "),
                in_smaller(look, order)
            )
        }
        Verdict::Fragmented => {
            let (name, zone) = largest(look, order, Verdict::Fragmented);
            let free = amount(zone.counts.free_frames() as u64, look.frame_bytes);
            let index = thousandths(zone.counts.fragmentation_index(order));
            let root = if look.runs.is_empty() {
                " Run as root to see how many compaction could make."
            } else {
                ""
            };
            format!(
                "{request} would fail now, because of fragmentation: {name} has {free} free, but in smaller blocks (index {index}, where 1 is fragmentation).{root}"
            )
        }
        Verdict::Lack => {
            let (name, zone) = largest(look, order, Verdict::Lack);
            let free = amount(zone.counts.free_frames() as u64, look.frame_bytes);
            let kept = zone.info.protection.iter().max().copied().unwrap_or(0);
            let kept = amount(zone.info.min.saturating_add(kept), look.frame_bytes);
            let cache = page_cache(look).map_or_else(String::new, |frames| {
                let cache = amount(frames, look.frame_bytes);
                format!(" The page cache has {cache}.")
            });
            format!(
                "{request} would fail now, because of lack of memory: {name}, which has the most, has {free} free and reserves {kept}. Reclaim helps, compaction does not.{cache}"
            )
        }
    }
}

/// Returns a sentence on the free memory that lies in smaller blocks, if that is more than a tenth.
fn in_smaller(look: &Look, order: Order) -> String {
    let frames = |zone: &ZoneLook| zone.counts.free_frames() as u64;
    let whole = |zone: &ZoneLook| (zone.counts.suitable(order) as u64) << order.get();
    let free: u64 = look.zones.iter().map(frames).sum();
    let whole: u64 = look.zones.iter().map(whole).sum();
    let smaller = free.saturating_sub(whole);
    if smaller <= free / 10 {
        return String::new();
    }
    format!(
        " But of {} free, {} lie in smaller blocks.",
        amount(free, look.frame_bytes),
        amount(smaller, look.frame_bytes)
    )
}

/// Returns the zone with the most free memory of those with this verdict. There is one, since the
/// verdict of the host is that of a zone, and every snapshot has zones.
fn largest(look: &Look, order: Order, verdict: Verdict) -> (String, &ZoneLook) {
    let zones = named_zones(look).into_iter();
    let zones = zones.filter(|(_, zone)| zone.verdict(order) == verdict);
    let largest = zones.max_by_key(|(_, zone)| zone.counts.free_frames());
    largest.expect("the verdict of the host is that of a zone, and every snapshot has zones")
}

fn page_cache(look: &Look) -> Option<u64> {
    let infos: Vec<ZoneInfo> = look.zones.iter().map(|zone| zone.info.clone()).collect();
    counter(&infos, "nr_file_pages")
}

/// `0.066`, `-1.000`, `-0.062`.
pub(crate) fn thousandths(value: impl Into<f64>) -> String {
    format!("{:.3}", value.into() / 1000.0)
}

/// Returns lines on what could not be read, and the command that can read it.
pub(crate) fn withheld(look: &Look, command: &str) -> Vec<String> {
    let denied =
        |why: &brickyard_host::HostError| matches!(why, brickyard_host::HostError::Denied { .. });
    let mut lines = Vec::new();
    if look.withheld.iter().any(denied) {
        lines.push(format!(
            "Run as root to read every frame: which page blocks are mixed and by what, what compaction could free, the picture: sudo {command}"
        ));
    }
    let others = look.withheld.iter().filter(|why| !denied(why));
    lines.extend(others.map(|why| format!("Not shown: {why}.")));
    lines
}
