//! What happens when memory is short: background reclaim, the lists, slabs, and the hook by which
//! the library asks for frames. The scheme is today's; that of Linux 2.6.20 is in `of_2007.rs` and
//! begins from here. What becomes of writes is in `writes.rs`.

use brickyard::node::Compaction;
use brickyard::pressure::{Activity, Eviction, Need, Reclaim};
use brickyard::{Frame, FrameRange, Order};
use brickyard_designs::classics::LabZone;

use super::{Background, Kernel, Scheme, Swap, WRITE_NANOSECONDS};
use crate::pages::{Age, Block, Location, PageId, Pages, Role, mark};

/// The frames that reclaim frees at a time (Linux's `SWAP_CLUSTER_MAX`).
pub(super) const CLUSTER: usize = 32;

/// Background reclaim pauses while this many blocks are being written.
pub(super) const MOST_WRITES: usize = 1024;

/// Of the pages that reclaim scans, one in so many was used again.
const REUSED_FILES: u32 = 4;
const REUSED_ANONYMOUS: u32 = 2;

/// Of the slabs that the shrinker scans, one in so many is empty.
const EMPTY_SLABS: u32 = 4;

/// The kind of reclaim that frees pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reclaimer {
    Direct,
    Background,
    Lump,
}

/// The outcome of scanning an old page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Scanned {
    /// Freed: this many frames.
    Freed(usize),
    /// To be freed when written: this many frames.
    Writing(usize),
    /// Kept: it was used again.
    Kept,
}

impl<Z: LabZone> Kernel<'_, Z> {
    /// Runs background reclaim once over all zones.
    pub fn run_background(&self) {
        if let Scheme::Of2007(rules) = &self.rules.scheme {
            return self.pass_in_background(rules);
        }
        let mut short = false;
        if self.state.borrow().writes.len() >= MOST_WRITES {
            // The disk is behind; the pages being written suffice.
            return;
        }
        for (place, zone) in self.nodes.zones().enumerate() {
            if zone.free_frames() < zone.high_mark() {
                if self.background == Background::IsRecorded {
                    return;
                }
                let freed = self.shrink_zone(place, CLUSTER, Reclaimer::Background);
                short |= freed > 0 || self.is_writing();
            }
        }
        if !short {
            self.end_background();
        }
    }

    /// Ends background reclaim, until it is woken again.
    pub(super) fn end_background(&self) {
        self.nodes
            .zones()
            .for_each(|zone| zone.set_reclaiming(false));
        self.woken.set(false);
        self.compact_behind();
    }

    /// Lets the zones compact in the background, for the most that background reclaim was woken
    /// for.
    fn compact_behind(&self) {
        let Some(need) = self.asked.take() else {
            return;
        };
        let off = self.rules.slow_path.compaction == Compaction::Off;
        if off || self.background != Background::Frees {
            return;
        }
        let moved: usize = self
            .nodes
            .zones()
            .filter(|zone| zone.kind() <= need.highest)
            .map(|zone| zone.compact_behind(&need, self))
            .sum();
        self.state.borrow_mut().pressure.moved_behind += moved as u64;
    }

    // ---- reclaim ----

    /// Frees about `want` frames of the zone at `place`. Returns how many are free already; others
    /// are being written.
    fn shrink_zone(&self, place: usize, want: usize, reclaimer: Reclaimer) -> usize {
        let mut freed = 0;
        // Scan each page of the file lists about once, and a few more.
        let mut scans = self
            .state
            .borrow()
            .pages
            .frames_on(place, Age::InactiveFile) as usize
            + self.state.borrow().pages.frames_on(place, Age::ActiveFile) as usize
            + CLUSTER * 4;
        scans = scans.min(want * 64);
        let mut begun = 0;
        while freed + begun < want && scans > 0 {
            scans -= 1;
            self.balance(place);
            match self.scan_oldest(place, reclaimer) {
                Some(Scanned::Freed(frames)) => freed += frames,
                Some(Scanned::Writing(frames)) => begun += frames,
                Some(Scanned::Kept) => {}
                None => break,
            }
            freed += self.shrink_slabs(place, reclaimer);
        }
        if freed + begun == 0 {
            freed += self.shrink_slabs_of(place, CLUSTER, reclaimer);
        }
        freed
    }

    /// Moves the oldest active pages to the inactive lists while those are the shorter ones.
    fn balance(&self, place: usize) {
        let mut state = self.state.borrow_mut();
        for (inactive, active) in [
            (Age::InactiveFile, Age::ActiveFile),
            (Age::InactiveAnonymous, Age::ActiveAnonymous),
        ] {
            if state.pages.frames_on(place, inactive) < state.pages.frames_on(place, active)
                && let Some(block) = state.pages.oldest(place, active)
            {
                state.pages.mark(block.frame, 0, mark::ACTIVE);
            }
        }
    }

    /// Returns the oldest inactive page of a zone: a file's, else, with swap, one of a process.
    fn oldest_inactive(&self, pages: &Pages, place: usize) -> Option<Block> {
        let anonymous = || match self.rules.swap {
            Swap::On => pages.oldest(place, Age::InactiveAnonymous),
            Swap::Off => None,
        };
        let files = pages.oldest(place, Age::InactiveFile);
        files.or_else(anonymous)
    }

    /// Scans the oldest inactive page. `None` if there is none.
    fn scan_oldest(&self, place: usize, reclaimer: Reclaimer) -> Option<Scanned> {
        let mut state = self.state.borrow_mut();
        let block = self.oldest_inactive(&state.pages, place)?;
        state.scanned += block.order.frames() as u64;
        let marks = block.marks;
        if marks & mark::REFERENCED == 0 && was_reused(&block) {
            state
                .pages
                .mark(block.frame, mark::ACTIVE | mark::REFERENCED, 0);
            return Some(Scanned::Kept);
        }
        if marks & mark::DIRTY != 0 || block.role == Role::Anonymous {
            drop(state);
            self.begin_write(&block, self.now.get());
            return Some(Scanned::Writing(block.order.frames()));
        }
        drop(state);
        Some(Scanned::Freed(self.take_away(block.frame, reclaimer)))
    }

    /// Reclaims the block at `frame`. Returns its frames.
    pub(super) fn take_away(&self, frame: Frame, reclaimer: Reclaimer) -> usize {
        let mut state = self.state.borrow_mut();
        let Some(block) = state.pages.remove(frame) else {
            return 0;
        };
        state.pages.set_absent(block.page, Location::Reclaimed);
        let frames = block.order.frames() as u64;
        let pressure = &mut state.pressure;
        match reclaimer {
            Reclaimer::Direct => pressure.direct += frames,
            Reclaimer::Background => pressure.background += frames,
            Reclaimer::Lump => pressure.lumpy += frames,
        }
        match block.role {
            Role::Anonymous => pressure.anonymous += frames,
            Role::SlabReclaimable => pressure.slabs += frames,
            _ => pressure.files += frames,
        }
        drop(state);
        self.give_back(frame, block.order);
        frames as usize
    }

    /// Runs the shrinker: it scans the same share of slabs as was scanned of pages.
    pub(super) fn shrink_slabs(&self, place: usize, reclaimer: Reclaimer) -> usize {
        let wanted = {
            let mut state = self.state.borrow_mut();
            let pages = &state.pages;
            let lists = pages.frames_on(place, Age::InactiveFile)
                + pages.frames_on(place, Age::ActiveFile)
                + pages.frames_on(place, Age::InactiveAnonymous);
            let slabs = pages.frames_on(place, Age::Slab);
            if lists == 0 || state.scanned * slabs < lists {
                return 0;
            }
            let wanted = state.scanned * slabs / lists;
            state.scanned = 0;
            wanted
        };
        self.shrink_slabs_of(place, wanted.min(1024) as usize, reclaimer)
    }

    fn shrink_slabs_of(&self, place: usize, wanted: usize, reclaimer: Reclaimer) -> usize {
        let mut freed = 0;
        for _ in 0..wanted {
            let Some(block) = self.look(|pages| pages.oldest(place, Age::Slab)) else {
                break;
            };
            if hashed(&block).is_multiple_of(EMPTY_SLABS) {
                freed += self.take_away(block.frame, reclaimer);
            } else {
                self.change(|pages| pages.rotate(block.frame));
            }
        }
        freed
    }

    /// Frees all pages of files that are not locked, after writing dirty ones, and all empty slabs
    /// (`sync`, then `drop_caches` 3). Returns the frames freed.
    pub fn drop_caches(&self) -> usize {
        let mut going = Vec::new();
        let mut freed = 0;
        while self.is_writing() {
            freed += self.finish_write(Reclaimer::Direct);
        }
        self.look(|pages| {
            let goes = |block: &Block| match block.role {
                Role::File => block.marks & mark::LOCKED == 0,
                Role::SlabReclaimable => hashed(block).is_multiple_of(EMPTY_SLABS),
                _ => false,
            };
            going.extend(pages.blocks().filter(goes));
        });
        for block in going {
            if block.marks & mark::DIRTY != 0 {
                self.state.borrow_mut().pressure.written += block.order.frames() as u64;
            }
            freed += self.take_away(block.frame, Reclaimer::Direct);
        }
        freed
    }
}

/// Returns true if the block was used again since it was put on its list: half of the processes'
/// pages, a quarter of the others.
pub(super) fn was_reused(block: &Block) -> bool {
    let one_in = match block.role {
        Role::Anonymous => REUSED_ANONYMOUS,
        _ => REUSED_FILES,
    };
    hashed(block).is_multiple_of(one_in)
}

/// Returns a pseudo-random number that is the same in every design: it depends on the page, and on
/// the frame only for blocks without a page.
fn hashed(block: &Block) -> u32 {
    let page = match block.page {
        PageId::NONE => block.frame.number() as u32,
        PageId(page) => page,
    };
    page.wrapping_mul(0x9E37_79B1) >> 7
}

impl<Z: LabZone> Reclaim for Kernel<'_, Z> {
    fn reclaim(&self, need: &Need) -> usize {
        if let Scheme::Of2007(rules) = &self.rules.scheme {
            return self.try_to_free(rules, need, self.now.get()).0;
        }
        self.state.borrow_mut().pressure.direct_calls += 1;
        let want = need.frames.max(CLUSTER);
        let mut freed = 0;
        for (place, &(_, kind)) in self.zones.iter().enumerate().rev() {
            if kind <= need.highest {
                freed += self.shrink_zone(place, want, Reclaimer::Direct);
            }
        }
        // Too little is clean: wait for writes.
        while freed < want && self.is_writing() {
            let done = self.state.borrow().writes.next_done().unwrap_or(0);
            let frames = self.finish_write(Reclaimer::Direct);
            // Writes are sequential: each adds at most its own time to the wait.
            let waited = done.saturating_sub(self.now.get());
            let own = WRITE_NANOSECONDS * frames as u64;
            self.state.borrow_mut().pressure.waited += waited.min(own);
            freed += frames;
        }
        freed
    }

    fn oldest(&self, zone: FrameRange) -> Option<(Frame, Activity)> {
        let place = self.zones.iter().position(|&(span, _)| span == zone)?;
        self.balance(place);
        let state = self.state.borrow();
        let block = self.oldest_inactive(&state.pages, place)?;
        Some((block.frame, Activity::Inactive))
    }

    fn evict(&self, frame: Frame, activity: Activity) -> Eviction {
        let Some(block) = self.look(|pages| pages.block(frame)) else {
            return Eviction::Unsuitable;
        };
        let on_lists = match block.role {
            Role::File => true,
            Role::Anonymous => self.rules.swap == Swap::On,
            _ => false,
        };
        let active = block.marks & mark::ACTIVE != 0;
        let locked = block.marks & mark::LOCKED != 0;
        if !on_lists
            || locked
            || block.order > Order::ZERO
            || active != (activity == Activity::Active)
        {
            return Eviction::Unsuitable;
        }
        if block.marks & mark::WRITEBACK != 0 {
            return Eviction::Busy;
        }
        if active {
            self.change(|pages| pages.mark(frame, 0, mark::ACTIVE));
            return Eviction::Deactivated;
        }
        if block.marks & mark::DIRTY != 0 || block.role == Role::Anonymous {
            // Lumpy reclaim waits for the write.
            let mut state = self.state.borrow_mut();
            state.pressure.waited += WRITE_NANOSECONDS;
            state.pressure.written += 1;
        }
        self.take_away(frame, Reclaimer::Lump);
        Eviction::Freed
    }

    fn wake(&self, need: &Need) {
        let most = self.asked.get().map_or(*need, |asked| Need {
            frames: asked.frames.max(need.frames),
            order: asked.order.max(need.order),
            highest: asked.highest.max(need.highest),
        });
        self.asked.set(Some(most));
        if self.background != Background::IsShown && !self.woken.replace(true) {
            self.nodes
                .zones()
                .for_each(|zone| zone.set_reclaiming(true));
        }
    }
}
