//! The memory of a recorded host before the first event: what its page states do not show.
//!
//! Free frames that lie in a CPU's list look like memory in use, and which page block has which
//! type is not shown at all. Both decide much of what happens next, and both can be inferred in
//! part:
//!
//! - A frame of unknown use that is handed out before it is freed, or that goes back to the zone
//!   without having been handed out, lay in the list of that CPU.
//! - A list is a stack. So if a CPU hands out a frame that was free in the zone, its list was empty
//!   by then, and all that had been in it is known.
//! - zoneinfo has the number of frames in all lists of a CPU. As many as are missing are drawn at
//!   random, for those of its lists of movable pages, of order 3 to 0, that were never empty: from
//!   the blocks of unknown use that no event mentions in page blocks of movable pages. There, such
//!   frames are mostly idle.
//! - A frame that comes off a list of a type, or goes back to one, lay in a page block of that
//!   type.
//! - pagetypeinfo has the number of page blocks of each type. The page blocks that look most like
//!   it, by their contents, are given the types that are missing.
//!
//! What is drawn depends on a seed, so that several draws show how much it matters.
//!
//! | file | contents |
//! |---|---|
//! | `drawing` | what is drawn, and what follows from the events at their end |
//! | `zones` | what the host's texts count in each zone, and what is not managed |
//! | `matching` | the types of page blocks that no event shows |
//! | `ticks` | when the page sets of CPUs shrink with time |

mod drawing;
mod matching;
mod ticks;
mod zones;

use std::collections::{HashMap, HashSet};

use brickyard::{MigrateType, Order};
use brickyard_trace::{Event, PageUse, Trace, What};

use crate::pages::PageId;
use crate::script::Draw;

use drawing::Drawing;
use matching::{CHUNK_ORDERS, Contents};
use ticks::Ticks;
use zones::{Zone, zones_of};

pub(crate) use ticks::{TICK, TICKS_MOST, WORKER};
pub(crate) use zones::unmanaged;

/// A CPU has lists of orders 0 to 3 (`PAGE_ALLOC_COSTLY_ORDER`). It has one of huge pages, too; for
/// that, nothing is drawn: where so many frames in a row are of unknown use, they mostly are in
/// use.
const LIST_ORDERS: usize = 4;

/// A free block in a CPU's list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Idle {
    /// Its first page.
    pub page: PageId,
    /// Its order.
    pub order: Order,
    /// The CPU.
    pub cpu: u16,
    /// The type of its page block, and so of its list.
    pub kind: MigrateType,
}

/// How much of the start is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Known {
    /// Frames in lists of CPUs that events show.
    pub idle_shown: u64,
    /// Frames in lists that were drawn.
    pub idle_drawn: u64,
    /// Frames that zoneinfo counts in lists.
    pub idle_counted: u64,
    /// Page blocks whose type events show.
    pub types_shown: u64,
    /// Page blocks that were given a type by their contents.
    pub types_drawn: u64,
}

/// The number of frames that the list of one CPU in one zone may hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limit {
    /// A frame of the zone, as a page.
    pub page: PageId,
    /// The CPU.
    pub cpu: u16,
    /// The frames.
    pub frames: u64,
}

/// What the page states do not show.
#[derive(Debug, Clone, Default)]
pub(crate) struct Inference {
    /// The free blocks in lists, in the order in which they are put there: the last is the first to
    /// be taken.
    pub(crate) idle: Vec<Idle>,
    /// Page blocks that are not movable: the number of each, counted from page 0, and its type.
    pub(crate) types: Vec<(usize, MigrateType)>,
    pub(crate) limits: Vec<Limit>,
    /// When the page sets of each CPU first shrink with time, in nanoseconds; then every second.
    pub(crate) first_ticks: Vec<u64>,
    pub(crate) known: Known,
}

/// The first event that mentions a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum First {
    /// It was handed out, as the first of a block of this order: the index of the event, and its
    /// CPU.
    Out(u32, Order, u16),
    /// It went from a list back to its zone.
    Back(u32, Order, u16),
    /// It came off the zone's lists, or it was freed.
    Other,
}

/// Infers the memory of the host before the first event, from all events in their order. What it
/// has seen serves any number of draws.
pub(crate) struct Inferring<'a> {
    trace: &'a Trace,
    base: u64,
    pages: usize,
    block_order: u8,
    zones: Vec<Zone>,
    // By page.
    usage: Vec<u8>,
    // Of pages of unknown use only.
    first: HashMap<u32, First>,
    mentioned: Vec<bool>,
    // By page block: the type that events show.
    shown: HashMap<usize, MigrateType>,
    // Page blocks that have changed their type, as far as events show.
    changed: HashSet<usize>,
    // By CPU and order: whether the list of movable blocks was empty at some time.
    emptied: Vec<[bool; LIST_ORDERS]>,
    ticks: Ticks,
}

impl<'a> Inferring<'a> {
    /// Begins with the states of `trace`, whose frames are `pages` pages from `first` on. `None` if
    /// it has none.
    pub(crate) fn new(trace: &'a Trace, first: u64, pages: usize) -> Option<Self> {
        if trace.start.is_empty() {
            return None;
        }
        let cpus = usize::from(trace.header.cpus.max(1));
        let mut inferring = Self {
            trace,
            base: first,
            pages,
            block_order: trace.header.page_block_order.clamp(1, Order::MAX.get()),
            zones: zones_of(trace, pages as u64),
            usage: vec![PageUse::Hole as u8; pages],
            first: HashMap::new(),
            mentioned: vec![false; pages],
            shown: HashMap::new(),
            changed: HashSet::new(),
            emptied: vec![[false; LIST_ORDERS]; cpus],
            ticks: Ticks::new(cpus),
        };
        inferring.read_states();
        Some(inferring)
    }

    /// Returns what all events show, and of the rest what this `draw` makes of it.
    pub(crate) fn infer(&self, draw: &Draw<'_>) -> Inference {
        Drawing::new(self, draw).infer()
    }

    fn part(&self, frame: u64, frames: u64) -> core::ops::Range<usize> {
        let from = frame.saturating_sub(self.base).min(self.pages as u64) as usize;
        let end = frame.saturating_add(frames).saturating_sub(self.base);
        from..end.min(self.pages as u64) as usize
    }

    fn zone_of(&self, page: usize) -> Option<usize> {
        let frame = self.base + page as u64;
        self.zones
            .iter()
            .position(|zone| (zone.from..zone.to).contains(&frame))
    }

    fn is_unknown(&self, page: usize) -> bool {
        self.usage[page] == PageUse::Untold as u8
    }

    fn read_states(&mut self) {
        let left_out = unmanaged(self.trace);
        for (place, run) in self.trace.start.iter().enumerate() {
            if !left_out.contains(&place) {
                let part = self.part(run.frame, run.frames);
                self.usage[part].fill(run.state.usage as u8);
            }
        }
    }

    /// Takes the next event, the one of this index. `names` has its task's name.
    pub(crate) fn event(&mut self, place: u32, event: &Event, names: &[String]) {
        self.ticks.event(event, names);
        for zone in &mut self.zones {
            zone.event(event);
        }
        let first = match event.what {
            What::Alloc { .. } => First::Out(place, event.order, event.cpu),
            What::Free => First::Other,
            What::Fallback { from, claimed, .. } => {
                self.show(event, from);
                if claimed {
                    let block = self.part(event.frame, 1).start >> self.block_order;
                    self.changed.insert(block);
                }
                return;
            }
            What::Taken { mobility, .. } => {
                self.show(event, mobility);
                First::Other
            }
            What::Drained { mobility } => {
                self.show(event, mobility);
                First::Back(place, event.order, event.cpu)
            }
            What::Failure { .. } | What::Batched | What::Step { .. } => return,
        };
        let part = self.part(event.frame, event.order.frames() as u64);
        if part.is_empty() {
            return;
        }
        if self.mentioned[part.clone()].contains(&true) {
            // Pages of it were single at the start.
            for page in part.clone().filter(|&page| !self.mentioned[page]) {
                let alone = match first {
                    First::Out(place, _, cpu) => First::Out(place, Order::ZERO, cpu),
                    First::Back(place, _, cpu) => First::Back(place, Order::ZERO, cpu),
                    other => other,
                };
                if self.is_unknown(page) {
                    self.first.insert(page as u32, alone);
                }
            }
        } else {
            if self.is_unknown(part.start) {
                self.first.insert(part.start as u32, first);
            }
            let was_free = self.usage[part.start] == PageUse::Free as u8;
            let movable = MigrateType::Movable;
            if let What::Alloc { mobility, .. } | What::Taken { mobility, .. } = event.what
                && was_free
                && mobility == movable
                && let Some(lists) = self.emptied.get_mut(usize::from(event.cpu))
                && let Some(emptied) = lists.get_mut(event.order.index())
            {
                *emptied = true;
            }
        }
        self.mentioned[part].fill(true);
    }

    /// Notes that the page block of an event's frame is of this type, unless that may be a later
    /// one.
    fn show(&mut self, event: &Event, kind: MigrateType) {
        let part = self.part(event.frame, 1);
        let block = part.start >> self.block_order;
        if !part.is_empty() && !self.changed.contains(&block) {
            self.shown.entry(block).or_insert(kind);
        }
    }

    fn contents(&self, block: usize) -> Contents {
        let size = 1_usize << self.block_order;
        let from = block * size;
        let mut contents = Contents::default();
        for page in from..(from + size).min(self.pages) {
            let usage = PageUse::ALL[usize::from(self.usage[page])];
            match usage {
                PageUse::Anonymous | PageUse::File => contents.movable += 1,
                PageUse::Slab => contents.slab += 1,
                PageUse::PageTable => contents.other += 1,
                PageUse::Untold if !self.is_shown_idle(page) => contents.other += 1,
                PageUse::Untold
                | PageUse::Free
                | PageUse::Huge
                | PageUse::Hole
                | PageUse::Reserved => {}
            }
        }
        self.count_chunks(from, self.block_order, &mut contents.chunks);
        contents
    }

    /// Counts the free blocks in 2^`order` pages from `from` on, unless all of them are free as one
    /// page block.
    fn count_chunks(&self, from: usize, order: u8, chunks: &mut [u16; CHUNK_ORDERS]) {
        let end = (from + (1 << order)).min(self.pages);
        let pages = self.usage.get(from..end).unwrap_or_default();
        let is_free = |&usage: &u8| usage == PageUse::Free as u8;
        if pages.len() == 1 << order && pages.iter().all(is_free) {
            if order < self.block_order {
                chunks[usize::from(order)] += 1;
            }
        } else if order > 0 && pages.iter().any(is_free) {
            let half = 1 << (order - 1);
            self.count_chunks(from, order - 1, chunks);
            self.count_chunks(from + half, order - 1, chunks);
        }
    }

    /// Returns true if events show that the page lay in a CPU's list.
    fn is_shown_idle(&self, page: usize) -> bool {
        let first = self.first.get(&(page as u32));
        matches!(first, Some(First::Out(..) | First::Back(..)))
    }

    fn limits(&self) -> Vec<Limit> {
        let of_zone = |zone: &Zone| {
            let page = PageId(self.part(zone.from, 1).start as u32);
            let limit = |(cpu, &frames): (usize, &u64)| Limit {
                page,
                cpu: cpu as u16,
                frames,
            };
            zone.highs.iter().enumerate().map(limit).collect::<Vec<_>>()
        };
        self.zones.iter().flat_map(of_zone).collect()
    }
}
