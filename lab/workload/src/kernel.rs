//! The model kernel: who uses which page, and what happens when memory is short.
//!
//! It is a client of the library like any embedder. It keeps a record of every allocated block,
//! frees pages under pressure through [`brickyard::pressure::Reclaim`], and moves them through
//! [`Migrate`]. Processes have anonymous memory and page tables, files have a page cache on LRU
//! lists, kernel objects have slabs with a shrinker.
//!
//! What no trace records is assumed, and the same for every design:
//!
//! - A page of a file is inactive at first. Of those that reclaim scans, one in four has been used
//!   again and becomes active; of the pages of processes, one in two. Which ones depends on the
//!   page's number.
//! - A dirty page, and a page of a process (where there is swap), is written before it is freed:
//!   that takes [`WRITE_NANOSECONDS`] each, one after another.
//! - A slab can be freed only when no object in it is used: one in four of those that the shrinker
//!   scans.
//! - Where a design compacts in the background, it does so between two steps, when background
//!   reclaim ends.
//! - Reclaim is that of today as far as described here (`kernel/reclaim.rs`), or that of Linux
//!   2.6.20 ([`Scheme`]): then see `kernel/of_2007.rs` for the lists, `kernel/request.rs` for a
//!   request's way.
//! - Background reclaim frees 32 pages of each zone between two steps of the trace, until every
//!   zone is above its high mark or no more pages can be freed.

mod counts;
mod flusher;
mod frees;
mod of_2007;
mod reclaim;
mod request;
mod rules;
mod writes;

use core::cell::{Cell, RefCell};

use brickyard::node::Nodes;
use brickyard::pressure::{Migrate, Migration, Need};
use brickyard::watermark::Mark;
use brickyard::{AllocError, Frame, FrameRange, Order, Request, ZoneKind};
use brickyard_designs::classics::{GfpFlags, LabZone};

use crate::pages::{Block, Location, PageId, Pages, Role, mark};
use crate::stopwatch::Stopwatch;

pub use counts::{Became, Freed, Logged, Pressure};
pub use of_2007::NAP;
use reclaim::Reclaimer;
pub use rules::{Flusher, Of2007, Rules, Scheme, Swap};
use writes::Writes;

/// The time to write a page: 4 KiB at 80 MB/s, a disk's sequential rate.
pub const WRITE_NANOSECONDS: u64 = 50_000;

#[derive(Debug)]
struct State {
    pages: Pages,
    writes: Writes,
    pressure: Pressure,
    // Frames scanned since the shrinker ran last.
    scanned: u64,
}

/// The model kernel on the zones of some design.
#[derive(Debug)]
pub struct Kernel<'z, Z: LabZone> {
    // Without hooks: for frees.
    nodes: Nodes<'z, Z>,
    zones: Vec<(FrameRange, ZoneKind)>,
    // Of all zones.
    frames: usize,
    state: RefCell<State>,
    now: Cell<u64>,
    woken: Cell<bool>,
    // The most that it was woken for, until it ends.
    asked: Cell<Option<Need>>,
    background: Background,
    rules: Rules,
    of_2007: RefCell<of_2007::ReclaimState>,
    dirty: RefCell<flusher::Dirty>,
    stopwatch: Stopwatch,
    // What became of blocks since it was taken last, if anyone wants to know.
    log: Option<RefCell<Vec<Logged>>>,
}

/// What background reclaim does once it is woken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Background {
    /// It frees pages until every zone is above its high mark.
    Frees,
    /// It frees and moves nothing, and ends when every zone is above its high mark: the trace has
    /// the frees of the host's own.
    IsRecorded,
    /// The same, and the trace also shows when it begins and ends.
    IsShown,
}

impl<'z, Z: LabZone> Kernel<'z, Z> {
    /// Makes a kernel with no memory in use. `pages` holds its records.
    #[must_use]
    pub fn new(nodes: Nodes<'z, Z>, pages: Pages, rules: Rules) -> Self {
        let zones: Vec<_> = nodes
            .zones()
            .map(|zone| (zone.span(), zone.kind()))
            .collect();
        let pages = match rules.scheme {
            Scheme::Today => pages,
            Scheme::Of2007(_) => pages.with_one_lru(),
        };
        let of_2007 = RefCell::new(of_2007::ReclaimState::new(zones.len()));
        Self {
            of_2007,
            dirty: RefCell::default(),
            nodes,
            frames: zones.iter().map(|(span, _)| span.len()).sum(),
            zones,
            state: RefCell::new(State {
                pages,
                writes: Writes::default(),
                pressure: Pressure::default(),
                scanned: 0,
            }),
            now: Cell::new(0),
            woken: Cell::new(false),
            asked: Cell::new(None),
            background: Background::Frees,
            rules,
            stopwatch: Stopwatch::new(),
            log: None,
        }
    }

    /// Lets the kernel log what becomes of blocks.
    #[must_use]
    pub(crate) fn with_log(mut self) -> Self {
        self.log = Some(RefCell::default());
        self
    }

    /// Calls `look` with the log, and empties it. Does nothing if there is none.
    pub(crate) fn take_log(&self, look: impl FnOnce(&[Logged])) {
        if let Some(log) = &self.log {
            look(&log.borrow());
            log.borrow_mut().clear();
        }
    }

    #[inline]
    fn log(&self, frame: Frame, order: Order, became: Became) {
        if let Some(log) = &self.log {
            log.borrow_mut().push(Logged {
                frame,
                order,
                became,
            });
        }
    }

    /// Sets what background reclaim does once it is woken.
    #[must_use]
    pub const fn with_background(mut self, background: Background) -> Self {
        self.background = background;
        self
    }

    /// How it handles memory pressure.
    #[must_use]
    pub const fn rules(&self) -> Rules {
        self.rules
    }

    /// The times of the allocator's own calls so far.
    #[must_use]
    pub const fn stopwatch(&self) -> &Stopwatch {
        &self.stopwatch
    }

    /// The counts of reclaim and compaction so far.
    #[must_use]
    pub fn pressure(&self) -> Pressure {
        self.state.borrow().pressure
    }

    /// Calls `look` with the records.
    ///
    /// # Panics
    /// If `look` calls the allocator, and that calls back into the kernel.
    pub fn look<T>(&self, look: impl FnOnce(&Pages) -> T) -> T {
        look(&self.state.borrow().pages)
    }

    pub(crate) fn change<T>(&self, change: impl FnOnce(&mut Pages) -> T) -> T {
        change(&mut self.state.borrow_mut().pages)
    }

    /// The number of frames of all zones.
    fn frames(&self) -> usize {
        self.frames
    }

    /// Returns the index of the zone of `frame` among all zones.
    #[inline]
    fn zone_of(&self, frame: Frame) -> usize {
        let inside = |(span, _): &(FrameRange, ZoneKind)| span.contains(frame);
        self.zones.iter().position(inside).unwrap_or(0)
    }

    /// Records a block that the allocator has handed out.
    #[inline]
    pub fn own(&self, frame: Frame, order: Order, role: Role, marks: u8, page: PageId) {
        let zone = self.zone_of(frame);
        let marks = match (self.rules.scheme, role) {
            (Scheme::Of2007(_), Role::Anonymous) => marks | mark::ACTIVE,
            _ => marks,
        };
        self.state.borrow_mut().pages.insert(Block {
            frame,
            order,
            role,
            marks,
            page,
            zone,
        });
        let dirty = role == Role::File && marks & mark::DIRTY != 0;
        if dirty {
            self.note_dirty(frame);
        }
    }

    /// Allocates a block for `page`.
    ///
    /// # Errors
    /// That of the allocator; the page is recorded as refused then.
    #[inline]
    pub fn take<'k>(
        &'k self,
        nodes: &Nodes<'z, Z, &'k Self>,
        from: usize,
        request: &Request,
        role: Role,
        marks: u8,
        page: PageId,
    ) -> Result<Frame, AllocError> {
        let flags = GfpFlags::of(request);
        let alloc = || match &self.rules.scheme {
            Scheme::Today => Z::alloc_from(nodes, from, request, flags),
            Scheme::Of2007(rules) => self.alloc_as_2007(rules, nodes, from, request),
        };
        let taken = self.stopwatch.allocs.time(alloc);
        match taken {
            Ok(frame) => {
                self.own(frame, request.order, role, marks, page);
                self.log(frame, request.order, Became::Taken);
            }
            Err(_) => self.change(|pages| pages.set_absent(page, Location::Refused)),
        }
        taken
    }

    /// Takes a block only if one is free above the min mark: nothing is woken, reclaimed or
    /// drained. For an experiment that must not disturb what it looks at.
    pub fn take_if_free<'k>(
        &'k self,
        nodes: &Nodes<'z, Z, &'k Self>,
        request: &Request,
        role: Role,
    ) -> Option<Frame> {
        let mut zones = nodes.zonelist(0, request);
        let frame = zones.find_map(|zone| {
            let above = match &self.rules.scheme {
                Scheme::Of2007(rules) => request::is_above(rules, zone, request, Mark::Min),
                Scheme::Today => true,
            };
            above
                .then(|| zone.alloc_above(request, Mark::Min))
                .flatten()
        })?;
        self.own(frame, request.order, role, 0, PageId::NONE);
        Some(frame)
    }

    // ---- time ----

    /// Sets the time to `now` nanoseconds of the trace, and frees blocks written by then.
    #[inline]
    pub fn set_time(&self, now: u64) {
        self.now.set(now);
        self.finish_writes(now, Reclaimer::Background);
        if self.rules.flusher == Flusher::On {
            self.flush(now);
        }
    }

    /// Lets time pass up to `until` nanoseconds of the trace, with background reclaim and nothing
    /// else.
    pub fn idle_until(&self, until: u64) {
        while self.is_woken() && self.now.get() < until {
            self.run_background();
            let next = match self.rules.scheme {
                Scheme::Of2007(_) => self.rests_until(),
                Scheme::Today => 0,
            };
            // At least a millisecond, so that it ends.
            self.set_time(next.max(self.now.get() + 1_000_000).min(until));
        }
        self.set_time(until);
    }

    /// Whether background reclaim has been woken.
    #[must_use]
    #[inline]
    pub const fn is_woken(&self) -> bool {
        self.woken.get()
    }
}

impl<Z: LabZone> Migrate for Kernel<'_, Z> {
    fn can_move(&self, frame: Frame, _order: Order) -> bool {
        // Frames without a record are free in a cache.
        self.look(|pages| pages.block(frame))
            .is_none_or(|block| block.role.moves())
    }

    fn migrate(&self, from: Frame, order: Order, to: Frame) -> Migration {
        let mut state = self.state.borrow_mut();
        let Some(block) = state.pages.block(from) else {
            return Migration::Unknown;
        };
        if block.order != order {
            return Migration::Unknown;
        }
        if !block.role.moves() {
            return Migration::Never;
        }
        if block.marks & mark::WRITEBACK != 0 {
            return Migration::Later;
        }
        state.pages.relocate(from, to);
        state.pressure.moved += order.frames() as u64;
        drop(state);
        self.move_dirty(from, to);
        self.log(from, order, Became::Moved);
        Migration::Moved
    }
}
