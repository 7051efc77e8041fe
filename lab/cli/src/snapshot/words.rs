//! The answer in a sentence: would a request succeed now, and if not, is it lack of memory or
//! fragmentation?

use brickyard::Order;
use brickyard_host::look::{Look, ZoneLook};
use brickyard_host::outlook::Verdict;
use brickyard_host::zoneinfo::{ZoneInfo, counter};

use super::figures::{amount, block_size, named_zones};

/// A verdict as a word.
pub(crate) fn verdict_word(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Succeeds => "succeeds",
        Verdict::Lack => "lack",
        Verdict::Fragmented => "fragmentation",
    }
}

/// What a request meets in one zone, as a word.
pub(crate) fn request_word(zone: &ZoneLook, order: Order) -> &'static str {
    match zone.verdict(order) {
        Verdict::Lack if zone.counts.suitable(order) > 0 => "kept back",
        verdict => verdict_word(verdict),
    }
}

/// The whole answer, in two or three sentences.
pub(crate) fn explanation(look: &Look, order: Order) -> String {
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
                "{request} would succeed now: such free blocks are {}.",
                free.join(", ")
            )
        }
        Verdict::Fragmented => {
            let (name, zone) = largest(look, order, Verdict::Fragmented);
            let free = amount(zone.counts.free_frames() as u64, look.frame_bytes);
            let index = thousandths(zone.counts.fragmentation_index(order));
            let after = after_compaction(look, order);
            format!(
                "{request} would fail now, by fragmentation: {name} has {free} free, but in smaller blocks (index {index}, where 1 is fragmentation). {after}"
            )
        }
        Verdict::Lack => {
            let (name, zone) = largest(look, order, Verdict::Lack);
            let free = amount(zone.counts.free_frames() as u64, look.frame_bytes);
            let kept = zone.info.protection.iter().max().copied().unwrap_or(0);
            let kept = amount(zone.info.min.saturating_add(kept), look.frame_bytes);
            let cache = page_cache(look).map_or_else(String::new, |frames| {
                let cache = amount(frames, look.frame_bytes);
                format!(" The page cache holds {cache}.")
            });
            format!(
                "{request} would fail now, by lack of memory: {name}, which has most, has {free} free and keeps {kept} back. Reclaim helps, compaction does not.{cache}"
            )
        }
    }
}

/// What compaction could do about it, or who could tell.
fn after_compaction(look: &Look, order: Order) -> String {
    let of_order = |zone: &ZoneLook| zone.outlook.get(order.index()).copied();
    let outlook: Option<Vec<_>> = look.zones.iter().map(of_order).collect();
    let Some(outlook) = outlook else {
        return "Root could tell how many compaction could make.".into();
    };
    let sum =
        |of: fn(&brickyard_host::outlook::Outlook) -> u64| outlook.iter().map(of).sum::<u64>();
    let (compacted, reclaimed) = (sum(|one| one.drained), sum(|one| one.reclaimed));
    if compacted > 0 {
        format!(
            "Compaction could make up to {compacted} (`echo 1 | sudo tee /proc/sys/vm/compact_memory`), and up to {reclaimed} if the page cache were dropped too."
        )
    } else if reclaimed > 0 {
        format!("Compaction alone could make none; with the page cache dropped, up to {reclaimed}.")
    } else {
        "Neither compaction nor dropping the page cache could make one: in each block something cannot be moved.".into()
    }
}

/// The zone with the most free memory of those with this verdict. There is one, since the verdict
/// of the host is that of a zone, and no look is without zones.
fn largest(look: &Look, order: Order, verdict: Verdict) -> (String, &ZoneLook) {
    let zones = named_zones(look).into_iter();
    let zones = zones.filter(|(_, zone)| zone.verdict(order) == verdict);
    let largest = zones.max_by_key(|(_, zone)| zone.counts.free_frames());
    largest.expect("the verdict of the host is that of a zone, and no look is without zones")
}

fn page_cache(look: &Look) -> Option<u64> {
    let infos: Vec<ZoneInfo> = look.zones.iter().map(|zone| zone.info.clone()).collect();
    counter(&infos, "nr_file_pages")
}

/// `0.066`, `-1.000`, `-0.062`.
pub(crate) fn thousandths(value: i32) -> String {
    format!("{:.3}", f64::from(value) / 1000.0)
}

/// What could not be read, and the command that would.
pub(crate) fn withheld(look: &Look, command: &str) -> Vec<String> {
    let denied =
        |why: &brickyard_host::HostError| matches!(why, brickyard_host::HostError::Denied { .. });
    let mut lines = Vec::new();
    if look.withheld.iter().any(denied) {
        lines.push(format!(
            "Root would add every frame: which page blocks are mixed and by what, what compaction could give, the picture: sudo {command}"
        ));
    }
    let others = look.withheld.iter().filter(|why| !denied(why));
    lines.extend(others.map(|why| format!("Not shown: {why}.")));
    lines
}
