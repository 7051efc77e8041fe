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
//! **Direct reclaim** passes over all zones of the request with priorities from 12 down to 0, until
//! 32 pages are free. Below priority 10 it sleeps 0.1 s after each pass, in which writes end.
//!
//! **Lumpy**: in a direct reclaim above order 0, each page taken from a list brings along all pages
//! of the aligned block of that order that are on a list of the same kind (active or inactive) in
//! that zone. Every frame of the block counts as scanned, so a batch is one such block. It ends as
//! soon as 32 pages are free, as without it, and background reclaim does not know it.
//!
//! **Background reclaim** is told the order of the request that woke it. It passes over all zones
//! up to the highest that is not balanced, with the same priorities, and begins again at 12 once it
//! has freed 32 pages or come to 0. It ends only when every zone could serve that order above its high
//! mark (see [`serves_above`]): in 2.6.20 that was without end if no such block comes free.
//!
//! Assumed: a page of an inactive list that is scanned takes [`SCAN_NANOSECONDS`] of background
//! reclaim's time. Which pages were used again, and which slabs are empty, is decided as in the
//! other scheme.
//!
//! Not modelled: that a zone in which nothing is freed for long is left out (`all_unreclaimable`);
//! that a written page first goes back to the end of its list (here it is freed, and counts as
//! freed by who waits); and that background reclaim also sleeps after a pass below priority 10 that
//! has freed enough, or that was the last.

use brickyard::node::Lumpy;
use brickyard::pressure::Need;
use brickyard::{AnyZone, FrameRange, Mobility, Order, Request, ZoneKind};
use brickyard_classics::LabZone;

use super::reclaim::{CLUSTER, MOST_WRITES, Reclaimer, was_reused};
use super::{Kernel, Of2007, Swap};
use crate::pages::{Age, Block, Role, mark};

/// The time in which background reclaim scans a page: half a microsecond today, and the CPUs of
/// 2007 took four times as long.
const SCAN_NANOSECONDS: u64 = 2_000;

/// The priority at which reclaim begins (Linux's `DEF_PRIORITY`).
const FIRST_PRIORITY: u32 = 12;

/// Above this priority, reclaim does not sleep between passes.
const HASTY: u32 = FIRST_PRIORITY - 2;

/// The time that reclaim sleeps between passes.
const NAP: u64 = 100_000_000;

/// The frames that background reclaim frees between two looks for a block above order 0. Linux
/// looks after each pass.
const LOOKS_AGAIN: usize = 512;

/// Linux's default of `swappiness`.
const SWAPPINESS: u64 = 60;

/// What reclaim remembers.
#[derive(Debug)]
pub(super) struct Memory {
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
}

impl Memory {
    pub(super) fn new(zones: usize) -> Self {
        let saved = Saved {
            active: 0,
            inactive: 0,
            priority: FIRST_PRIORITY,
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

/// One pass: for whom, at which order (0 unless lumpy) and priority.
#[derive(Debug, Clone, Copy)]
struct Pass {
    by: Reclaimer,
    order: Order,
    priority: u32,
}

/// The frames that a pass freed and scanned.
#[derive(Debug, Clone, Copy, Default)]
struct Done {
    freed: usize,
    scanned: usize,
}

impl<Z: LabZone> Kernel<'_, Z> {
    /// Frees pages for a request that found none. Returns the number of frames.
    pub(super) fn try_to_free(&self, rules: &Of2007, need: &Need) -> usize {
        self.state.borrow_mut().pressure.direct_calls += 1;
        let order = match rules.lumpy {
            Lumpy::On => need.order,
            Lumpy::Off => Order::ZERO,
        };
        let of_request = |kind: ZoneKind| kind <= need.highest;
        let places: Vec<usize> = (0..self.zones.len())
            .rev()
            .filter(|&place| of_request(self.zones[place].1))
            .collect();
        let mut now = self.now.get();
        let mut freed = 0;
        let mut reached = FIRST_PRIORITY;
        for priority in (0..=FIRST_PRIORITY).rev() {
            reached = priority;
            let by = match order {
                Order::ZERO => Reclaimer::Direct,
                _ => Reclaimer::Lump,
            };
            let pass = Pass {
                by,
                order,
                priority,
            };
            let mut scanned = 0;
            for &place in &places {
                let done = self.pass_over(place, pass);
                freed += done.freed + self.shrink_slabs(place, Reclaimer::Direct);
                scanned += done.scanned;
            }
            if freed >= CLUSTER {
                break;
            }
            if scanned > 0 && priority < HASTY {
                now += NAP;
                freed += self.wait_for_writes(now);
            }
        }
        let mut memory = self.of_2007.borrow_mut();
        places
            .iter()
            .for_each(|&place| memory.zones[place].priority = reached);
        freed
    }

    /// Sleeps until `until`: frees what is written by then. Returns the number of frames.
    pub(super) fn wait_for_writes(&self, until: u64) -> usize {
        let mut freed = 0;
        let due = || {
            let state = self.state.borrow();
            state
                .writing
                .front()
                .is_some_and(|&(done, ..)| done <= until)
        };
        while due() {
            freed += self.finish_write(Reclaimer::Direct);
        }
        let slept = until.saturating_sub(self.now.get()).min(NAP);
        self.state.borrow_mut().pressure.waited += slept;
        freed
    }

    /// Lets background reclaim do one pass, unless it sleeps.
    pub(super) fn pass_in_background(&self, rules: &Of2007) {
        let order = self.asked.get().map_or(Order::ZERO, |need| need.order);
        let now = self.now.get();
        let behind = self.state.borrow().writing.len() >= MOST_WRITES;
        if now < self.of_2007.borrow().rests_until || behind {
            return;
        }
        let known = self.of_2007.borrow().highest;
        let Some(highest) = known.or_else(|| self.highest_unbalanced(rules, order)) else {
            self.end_background();
            self.of_2007.borrow_mut().begin_again();
            return;
        };
        let priority = self.of_2007.borrow().priority;
        let pass = Pass {
            by: Reclaimer::Background,
            order: Order::ZERO,
            priority,
        };
        let mut done = Done::default();
        for place in 0..=highest {
            let one = self.pass_over(place, pass);
            done.freed += one.freed + self.shrink_slabs(place, Reclaimer::Background);
            done.scanned += one.scanned;
        }
        self.of_2007.borrow_mut().go_on(now, order, highest, done);
    }

    /// Returns the highest zone that could not serve this order above its high mark.
    fn highest_unbalanced(&self, rules: &Of2007, order: Order) -> Option<usize> {
        let unbalanced = |zone: &Z| !serves_above(rules, zone, order, zone.high_mark(), 0);
        let places = self.nodes.zones().map(unbalanced).enumerate();
        places.filter(|&(_, is)| is).map(|(place, _)| place).last()
    }

    /// The time at which background reclaim goes on.
    pub(super) fn rests_until(&self) -> u64 {
        self.of_2007.borrow().rests_until
    }

    /// Scans both lists of a zone once.
    fn pass_over(&self, place: usize, pass: Pass) -> Done {
        let frames_on = |age| self.look(|pages| pages.frames_on(place, age)) as usize;
        let (mut active, mut inactive) = {
            let share = |frames: usize| (frames >> pass.priority) + 1;
            let (active, inactive) = (frames_on(Age::ActiveFile), frames_on(Age::InactiveFile));
            let saved = &mut self.of_2007.borrow_mut().zones[place];
            saved.active += share(active);
            saved.inactive += share(inactive);
            let all_of = |saved: &mut usize| match *saved >= CLUSTER {
                true => core::mem::take(saved),
                false => 0,
            };
            (all_of(&mut saved.active), all_of(&mut saved.inactive))
        };
        let mut done = Done::default();
        while active > 0 || inactive > 0 {
            if active > 0 {
                let batch = active.min(CLUSTER);
                active -= batch;
                self.age(place, batch, pass);
            }
            if inactive > 0 {
                let batch = inactive.min(CLUSTER);
                inactive -= batch;
                let one = self.free_inactive(place, batch, pass);
                done.freed += one.freed;
                done.scanned += one.scanned;
            }
        }
        done
    }

    /// Scans a batch of the active list.
    fn age(&self, place: usize, batch: usize, pass: Pass) {
        let of_processes = self.are_processes_reclaimed(place, pass.priority);
        let (blocks, _) = self.isolate(place, batch, Age::ActiveFile, pass.order);
        for block in blocks {
            let used = block.marks & mark::REFERENCED == 0 && was_reused(&block);
            let stays = block.role == Role::Anonymous && (!of_processes || used);
            self.change(|pages| match stays {
                true if of_processes => {
                    pages.mark(block.frame, mark::REFERENCED, mark::ISOLATED);
                }
                true => pages.mark(block.frame, 0, mark::ISOLATED),
                false => pages.mark(block.frame, 0, mark::ISOLATED | mark::ACTIVE),
            });
        }
    }

    /// Returns true if the pages of processes leave the active list too.
    fn are_processes_reclaimed(&self, place: usize, priority: u32) -> bool {
        if self.rules.swap == Swap::Off {
            return false;
        }
        let before = self.of_2007.borrow().zones[place].priority;
        let distress = 100 >> priority.min(before);
        let all: usize = self.zones.iter().map(|(span, _)| span.len()).sum();
        let mapped = self.look(|pages| pages.used(Role::Anonymous)) * 100 / all.max(1) as u64;
        mapped / 2 + distress + SWAPPINESS >= 100
    }

    /// Scans a batch of the inactive list.
    fn free_inactive(&self, place: usize, batch: usize, pass: Pass) -> Done {
        let mut done = Done::default();
        while done.scanned < batch {
            let (blocks, scanned) = self.isolate(place, CLUSTER, Age::InactiveFile, pass.order);
            if scanned == 0 {
                break;
            }
            done.scanned += scanned;
            self.state.borrow_mut().scanned += blocks.len() as u64;
            let freed = blocks.iter().map(|block| self.free_page(block, pass.by));
            done.freed += freed.sum::<usize>();
        }
        done
    }

    /// Takes pages off the old end of a list, and with `order` what is around them. Returns them,
    /// and the number of frames scanned.
    fn isolate(&self, place: usize, batch: usize, age: Age, order: Order) -> (Vec<Block>, usize) {
        let (mut taken, mut scanned) = (Vec::new(), 0);
        let mut state = self.state.borrow_mut();
        let active = if age == Age::ActiveFile {
            mark::ACTIVE
        } else {
            0
        };
        while scanned < batch {
            let Some(tag) = state.pages.oldest(place, age) else {
                break;
            };
            state.pages.mark(tag.frame, mark::ISOLATED, 0);
            taken.push(tag);
            scanned += tag.order.frames();
            if order == Order::ZERO {
                continue;
            }
            let zone = self.zones[place].0;
            let lump = FrameRange::of_block(tag.frame.align_down(order), order);
            for frame in lump
                .intersection(zone)
                .frames()
                .filter(|&at| at != tag.frame)
            {
                scanned += 1;
                let block = state.pages.block(frame);
                let fits = |block: &Block| {
                    state.pages.is_on_lru(block.frame) && block.marks & mark::ACTIVE == active
                };
                if let Some(block) = block.filter(fits) {
                    state.pages.mark(frame, mark::ISOLATED, 0);
                    taken.push(block);
                }
            }
        }
        (taken, scanned)
    }

    /// Frees an isolated inactive page, if that is possible now. Returns the frames freed.
    fn free_page(&self, block: &Block, by: Reclaimer) -> usize {
        let frame = block.frame;
        let of_process = block.role == Role::Anonymous;
        let used = block.marks & mark::REFERENCED == 0 && was_reused(block);
        if used || of_process && self.rules.swap == Swap::Off {
            let set = mark::ACTIVE | mark::REFERENCED;
            self.change(|pages| pages.mark(frame, set, mark::ISOLATED));
            return 0;
        }
        if of_process || block.marks & mark::DIRTY != 0 {
            let mut state = self.state.borrow_mut();
            if state.writing.len() >= MOST_WRITES {
                state.pages.mark(frame, 0, mark::ISOLATED);
            } else {
                let free_from = self.now.get().max(self.flushed_until());
                state.begin_write(block, free_from);
            }
            return 0;
        }
        self.take_away(frame, by)
    }
}

impl Memory {
    fn begin_again(&mut self) {
        (self.priority, self.reclaimed, self.scanned) = (FIRST_PRIORITY, 0, 0);
    }

    /// Decides how background reclaim goes on after a pass.
    fn go_on(&mut self, now: u64, order: Order, highest: usize, done: Done) {
        self.since += done.freed;
        let look = order == Order::ZERO || done.freed == 0 || self.since >= LOOKS_AGAIN;
        (self.highest, self.since) = match look {
            true => (None, 0),
            false => (Some(highest), self.since),
        };
        let priority = self.priority;
        self.zones[..=highest]
            .iter_mut()
            .for_each(|zone| zone.priority = priority);
        self.reclaimed += done.freed;
        self.scanned += done.scanned;
        self.rests_until = now + done.scanned as u64 * SCAN_NANOSECONDS;
        if self.reclaimed >= CLUSTER || priority == 0 {
            self.begin_again();
            return;
        }
        if self.scanned > 0 && priority < HASTY {
            self.rests_until = now + NAP;
        }
        self.priority -= 1;
    }
}

/// Returns true if `zone` could serve a request of this order with more than `min` frames, and what
/// is reserved against it, left.
///
/// There must be a block of that order. Linux's test until 4.3 also asks
/// ([`Of2007::tests_each_order`]): of the frames left, those in blocks of order k and above must be
/// more than a 2^k-th of `min`, for every k up to the order; the frames of the block but one count
/// as gone. So with a large `min` the last block of an order is kept.
pub(super) fn serves_above<Z: AnyZone>(
    rules: &Of2007,
    zone: &Z,
    order: Order,
    min: usize,
    reserve: usize,
) -> bool {
    let gone = order.frames() - 1;
    let Some(mut left) = zone.free_frames().checked_sub(gone) else {
        return false;
    };
    if left <= min + reserve {
        return false;
    }
    if order == Order::ZERO {
        return true;
    }
    let request = Request::new(order, Mobility::Movable).from_zones_up_to(zone.kind());
    if !zone.may_serve(&request) {
        return false;
    }
    if !rules.tests_each_order {
        return true;
    }
    let counts = zone.free_counts().by_order;
    for below in 0..order.get() {
        let unusable = counts[usize::from(below)] << below;
        left = match left.checked_sub(unusable) {
            Some(left) => left,
            None => return false,
        };
        if left <= min >> (below + 1) {
            return false;
        }
    }
    true
}
