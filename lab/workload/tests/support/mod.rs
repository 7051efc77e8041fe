//! Small handmade traces: a host of one zone, and single events.

#![allow(dead_code, reason = "each test file uses a part of it")]

use brickyard::{MigrateType, Order};
use brickyard_trace::{
    Event, Flags, Header, HostTexts, NameId, PageState, PageUse, StateRun, Trace, What,
};

/// The first frame of the host's memory.
pub(crate) const BASE: u64 = 1 << 20;

/// The number of frames of the host: 128 MiB.
pub(crate) const FRAMES: u64 = 1 << 15;

/// The host's zoneinfo: one zone of `frames` frames from `BASE` on.
pub(crate) fn zoneinfo(frames: u64) -> String {
    format!(
        "Node 0, zone   Normal\n  pages free     {frames}\n        min      64\n        low      80\n        high     96\n        spanned  {frames}\n        present  {frames}\n        managed  {frames}\n  start_pfn:           {BASE}\n"
    )
}

/// Makes a trace of that host without events.
pub(crate) fn host(start: Vec<StateRun>) -> Trace {
    Trace {
        header: Header {
            cpus: 3,
            frame_bytes: 4096,
            page_block_order: 9,
            flags: Flags::canonical(),
            start: HostTexts {
                zoneinfo: zoneinfo(FRAMES),
                buddyinfo: "Node 0, zone   Normal 0 0 0 0 0 0 0 0 0 0 32\n".into(),
                ..HostTexts::default()
            },
            ..Header::default()
        },
        names: vec!["sh".into(), "cc1".into()],
        start,
        ..Trace::default()
    }
}

/// Makes a run of `frames` frames from `page` (counted from `BASE`) on, in blocks of this order.
pub(crate) fn run(page: u64, frames: u64, order: u8, usage: PageUse) -> StateRun {
    StateRun {
        time: 0,
        frame: BASE + page,
        frames,
        order,
        state: PageState::of(usage),
    }
}

/// Returns typical flags of a request of this mobility.
pub(crate) fn flags_of(mobility: MigrateType) -> &'static str {
    match mobility {
        MigrateType::Movable => "GFP_HIGHUSER_MOVABLE|__GFP_ZERO",
        MigrateType::Reclaimable => "GFP_KERNEL|__GFP_RECLAIMABLE",
        _ => "GFP_KERNEL",
    }
}

/// Makes an event, at time 0 on CPU 0.
pub(crate) fn event(page: u64, order: u8, what: What) -> Event {
    Event {
        time: 0,
        frame: BASE + page,
        what,
        pid: 7,
        name: NameId(0),
        cpu: 0,
        order: Order::new(order),
    }
}

/// Makes the allocation of a block with these flags.
pub(crate) fn taken_with(page: u64, order: u8, mobility: MigrateType, flags: &str) -> Event {
    let flags = Flags::canonical().parse_names(flags);
    event(page, order, What::Alloc { mobility, flags })
}

/// Makes the allocation of a block.
pub(crate) fn taken(page: u64, order: u8, mobility: MigrateType) -> Event {
    taken_with(page, order, mobility, flags_of(mobility))
}

/// Makes the free of a page, block or range.
pub(crate) fn freed(page: u64, order: u8) -> Event {
    event(page, order, What::Free)
}

/// Makes a request that failed on the host.
pub(crate) fn failed(order: u8, mobility: MigrateType) -> Event {
    let flags = Flags::canonical().parse_names(flags_of(mobility));
    let mut event = event(0, order, What::Failure { mobility, flags });
    event.frame = 0;
    event
}
