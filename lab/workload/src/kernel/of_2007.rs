//! Reclaim as in Linux 2.6.20, without and with Whitcroft's lumpy reclaim (version 3, February
//! 2007, the one of the mail of March 2007). Linux 2.6.15 had the same rules but for names.
//!
//! **Two lists.** A zone has one active and one inactive list for the pages of files and processes
//! together. A process's page begins on the active list, a file's on the inactive one.
//!
//! **A pass over a zone** at priority p scans a 2^p-th of both lists, in batches of 32 pages; a
//! share below 32 is saved up. From the active list, pages of files go to the inactive one. A
//! process's page goes there too if it was not used again, and if processes' pages are to be
//! reclaimed at all: if half their percentage of memory, plus 100 shifted right by the priority,
//! plus 60 (`swappiness`) is at least 100. From the inactive list, a page used again goes back to
//! the active one, a clean one is freed, and of any other a write begins.
//!
//! **Direct reclaim** passes over all zones of the request with priorities from 12 down to 0. After
//! each pass it looks whether 32 pages are free, and ends if so. If not, and more than 48 pages
//! were scanned so far, it wakes the flusher to write as many. Then, below priority 10, it sleeps
//! 0.1 s, in which writes end.
//!
//! **Lumpy**: in a direct reclaim above order 0, each page taken from a list brings along all pages
//! of the aligned block of that order that are on a list of the same kind (active or inactive) in
//! that zone. Every frame of the block counts as scanned, so a batch is one such block. It ends as
//! soon as 32 pages are free, as without it, and background reclaim does not know it.
//!
//! **Background reclaim** is told the order of the request that woke it. It passes over all zones
//! up to the highest that is not balanced, with the same priorities and sleep (or a shorter one:
//! [`Of2007::nap`](super::Of2007::nap)), and begins again at 12 once it has freed 32 pages or come
//! to 0. It ends only when every zone that it does not leave out could serve that order above its
//! high mark (see [`serves_above`]): in 2.6.20 that was without end if no such block comes free.
//!
//! **A zone is left out** below priority 12 once background reclaim, since the last frame came free
//! there, has scanned four times the pages of its lists and freed no slab (`all_unreclaimable`).
//!
//! Assumed: the time in which background reclaim scans a page (`background.rs`). Which pages were
//! used again, and which slabs are empty, is decided as in the other scheme.
//!
//! Not modelled: that a written page first goes back to the end of its list (here it is freed, and
//! counts as freed by who waits); that a frame freed to a per-CPU list does not bring a zone back
//! until that list is full; that a sleep ends early when the disk's queue gets short; and that
//! background reclaim runs while a request sleeps. The load's time stands still then too, so writes
//! that the request began end later by its sleep, as the load sees it.

mod background;
mod direct;
mod lists;
mod marks;

use brickyard::{Frame, Order};
use brickyard_designs::classics::LabZone;

use super::reclaim::Reclaimer;
use super::{Kernel, Scheme};

pub(super) use marks::serves_above;

/// The priority at which reclaim begins (Linux's `DEF_PRIORITY`).
const FIRST_PRIORITY: u32 = 12;

/// Above this priority, reclaim does not sleep between passes.
const HASTY: u32 = FIRST_PRIORITY - 2;

/// The time that reclaim of Linux 2.6.20 sleeps between passes, in nanoseconds.
pub const NAP: u64 = 100_000_000;

/// What reclaim remembers.
#[derive(Debug)]
pub(super) struct ReclaimState {
    zones: Vec<Saved>,
    priority: u32,
    reclaimed: usize,
    scanned: usize,
    rests_until: u64,
    // The highest zone that was not balanced at the last look, and the frames freed since.
    highest: Option<usize>,
    since: usize,
}

/// What it remembers of a zone.
#[derive(Debug, Clone, Copy)]
struct Saved {
    // Shares of the lists too small for a batch.
    active: usize,
    inactive: usize,
    // The priority that the last reclaim came down to.
    priority: u32,
    // Frames scanned since one came free in the zone.
    in_vain: usize,
    // Whether so many were that it is left out (Linux's `all_unreclaimable`).
    unreclaimable: bool,
}

impl Saved {
    /// Returns true if a pass at this priority leaves the zone out.
    const fn is_left_out(&self, priority: u32) -> bool {
        self.unreclaimable && priority != FIRST_PRIORITY
    }
}

impl ReclaimState {
    pub(super) fn new(zones: usize) -> Self {
        let saved = Saved {
            active: 0,
            inactive: 0,
            priority: FIRST_PRIORITY,
            in_vain: 0,
            unreclaimable: false,
        };
        Self {
            zones: vec![saved; zones],
            priority: FIRST_PRIORITY,
            reclaimed: 0,
            scanned: 0,
            rests_until: 0,
            highest: None,
            since: 0,
        }
    }
}

/// One pass: for whom, at which order (0 unless lumpy) and priority, and when.
#[derive(Debug, Clone, Copy)]
struct Pass {
    by: Reclaimer,
    order: Order,
    priority: u32,
    now: u64,
}

/// The frames that a pass freed and scanned.
#[derive(Debug, Clone, Copy, Default)]
struct Done {
    freed: usize,
    scanned: usize,
}

impl<Z: LabZone> Kernel<'_, Z> {
    /// Notes that frames of the zone of `frame` came free: it can be reclaimed again.
    #[inline]
    pub(super) fn note_freed(&self, frame: Frame) {
        if matches!(self.rules.scheme, Scheme::Of2007(_)) {
            let place = self.zone_of(frame);
            let zone = &mut self.of_2007.borrow_mut().zones[place];
            (zone.in_vain, zone.unreclaimable) = (0, false);
        }
    }

    /// Returns true if a pass at this priority leaves the zone out.
    fn is_left_out(&self, place: usize, priority: u32) -> bool {
        self.of_2007.borrow().zones[place].is_left_out(priority)
    }
}
