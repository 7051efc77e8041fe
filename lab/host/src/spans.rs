//! Which zone a frame belongs to, where the spans of zones overlap: of NUMA nodes whose memory is
//! interleaved, or zones of memory that was plugged in.

use std::borrow::Cow;

use brickyard_trace::StateRun;

use crate::zoneinfo::ZoneInfo;

/// Returns the runs without the frames that belong to another of `zones`: a frame in the spans of
/// several belongs to the one with the shortest span, and of two with the same span to the first.
/// `zone` is one of `zones`.
///
/// ```
/// use brickyard_host::{spans::own_runs, zoneinfo::ZoneInfo};
/// use brickyard_trace::{PageState, PageUse, StateRun};
/// let zone = |start_pfn, spanned| ZoneInfo { start_pfn, spanned, present: spanned, ..ZoneInfo::default() };
/// let zones = [zone(0, 100), zone(40, 10)];
/// let runs = [StateRun { time: 0, frame: 0, frames: 100, order: 0, state: PageState::of(PageUse::Free) }];
/// let own = own_runs(&runs, &zones[0], &zones);
/// assert_eq!(own.iter().map(|run| (run.frame, run.frames)).collect::<Vec<_>>(), [(0, 40), (50, 50)]);
/// assert_eq!(own_runs(&runs, &zones[1], &zones).len(), 1);
/// ```
#[must_use]
pub fn own_runs<'r>(
    runs: &'r [StateRun],
    zone: &ZoneInfo,
    zones: &[ZoneInfo],
) -> Cow<'r, [StateRun]> {
    let span = |zone: &ZoneInfo| (zone.start_pfn, zone.end_pfn());
    let mut before = true;
    let mut others: Vec<_> = zones
        .iter()
        .filter(|other| {
            if core::ptr::eq(*other, zone) || *other == zone {
                before = false;
                return false;
            }
            let overlaps = other.start_pfn < zone.end_pfn() && zone.start_pfn < other.end_pfn();
            let wins = other.spanned < zone.spanned || other.spanned == zone.spanned && before;
            other.is_populated() && overlaps && wins
        })
        .map(span)
        .collect();
    if others.is_empty() {
        return Cow::Borrowed(runs);
    }
    others.sort_unstable();
    // Merged, so that their ends ascend too.
    others.dedup_by(|next, last| {
        let joins = next.0 <= last.1;
        if joins {
            last.1 = last.1.max(next.1);
        }
        joins
    });
    let mut own = Vec::with_capacity(runs.len());
    for run in runs {
        let end = run.frame.saturating_add(run.frames);
        let mut at = run.frame;
        let first = others.partition_point(|&(_, other_end)| other_end <= at);
        for &(start, other_end) in &others[first..] {
            if start >= end {
                break;
            }
            push(&mut own, run, at, start.min(end));
            at = at.max(other_end);
        }
        push(&mut own, run, at, end);
    }
    Cow::Owned(own)
}

/// Adds a part of a run. What is cut out of a large page counts as single pages.
fn push(own: &mut Vec<StateRun>, run: &StateRun, from: u64, to: u64) {
    if from >= to {
        return;
    }
    let size = 1_u64 << run.order.min(63);
    let is_whole = (from - run.frame).is_multiple_of(size) && (to - from).is_multiple_of(size);
    own.push(StateRun {
        frame: from,
        frames: to - from,
        order: if is_whole { run.order } else { 0 },
        ..*run
    });
}

#[cfg(test)]
mod tests {
    use brickyard_trace::{PageState, PageUse};

    use super::*;

    #[test]
    fn every_frame_belongs_to_one_zone() {
        let mut state = 5_u64;
        let mut draw = |below: u64| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(99);
            (state >> 33) % below
        };
        for _ in 0..500 {
            let zones: Vec<_> = (0..4)
                .map(|node| ZoneInfo {
                    node,
                    start_pfn: draw(60),
                    spanned: 1 + draw(40),
                    present: draw(3),
                    ..ZoneInfo::default()
                })
                .collect();
            let mut runs = Vec::new();
            let mut at = 0;
            while at < 100 {
                let (order, blocks) = (draw(3), 1 + draw(4));
                runs.push(StateRun {
                    time: 0,
                    frame: at,
                    frames: blocks << order,
                    order: order as u8,
                    state: PageState::of(PageUse::Anonymous),
                });
                at += blocks << order;
            }
            for frame in 0..100 {
                let holds = |zone: &ZoneInfo| (zone.start_pfn..zone.end_pfn()).contains(&frame);
                let has = |zone: &&ZoneInfo| {
                    let own = own_runs(&runs, zone, &zones);
                    let ordered = own.is_sorted_by(|a, b| a.frame + a.frames <= b.frame);
                    assert!(ordered, "{own:?}");
                    holds(zone)
                        && own
                            .iter()
                            .any(|run| (run.frame..run.frame + run.frames).contains(&frame))
                };
                let expected = zones
                    .iter()
                    .filter(|zone| holds(zone) && zone.is_populated())
                    .min_by_key(|zone| zone.spanned);
                let owners: Vec<_> = zones
                    .iter()
                    .filter(|zone| zone.is_populated())
                    .filter(has)
                    .collect();
                assert_eq!(
                    owners,
                    expected.into_iter().collect::<Vec<_>>(),
                    "{frame}: {zones:?}"
                );
            }
        }
    }
}
