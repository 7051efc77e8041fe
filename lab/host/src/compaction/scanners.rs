//! The two scanners: one takes pages from the bottom of a zone, the other free chunks from its top.

use std::collections::VecDeque;

use super::{End, Frames, Pass, Request, byte, mixed};

/// Pages that the scanner takes before they are moved (`COMPACT_CLUSTER_MAX`).
const BATCH: u32 = 32;
/// The highest order of pages in per-CPU lists (`PAGE_ALLOC_COSTLY_ORDER`), huge pages left aside.
const LISTED_ORDER: usize = 3;
/// Sweeps over the zone for one request, at most.
const SWEEPS: u32 = 8;
/// Frames that are reclaimed together: files lie in memory in stretches.
const RECLAIMED: usize = 32;
/// The highest order of the kernel's free lists.
const MOST_ORDERS: usize = 16;

/// Both scanners, and the free chunks that they hold.
pub(super) struct Scanners<'a> {
    frames: &'a mut Frames,
    /// Frames of a page block.
    size: usize,
    /// Where the next pages are taken from.
    source: usize,
    /// The block that targets are taken from, and where in it.
    target: usize,
    within: usize,
    held: [VecDeque<usize>; MOST_ORDERS],
    held_frames: u64,
    moved: u64,
    /// The last frames that were freed, as many as the lists of one CPU hold.
    freed: VecDeque<usize>,
    pub(super) listed: usize,
    /// Pages of this order and above are left alone: the kernel's passes skip those that are as
    /// large as a page block, or as what is asked for.
    skipped: u8,
}

/// Why a batch was not moved.
enum Stop {
    Met,
    GaveUp(usize),
}

/// Reclaim of clean pages of files, in an order that is as good as any: flags do not tell which
/// were used last.
#[derive(Default)]
struct Reclaim {
    /// Where the pages are that may be reclaimed, the next ones last; made when first needed.
    places: Option<Vec<u32>>,
    freed: u64,
}

impl Reclaim {
    /// Frees so many frames, or a few more. False if there were none.
    fn some(&mut self, frames: &mut Frames, wanted: u64) -> bool {
        let groups = frames.bytes.len() / RECLAIMED;
        let places = self.places.get_or_insert_with(|| {
            let mut places: Vec<u32> = (0..u32::try_from(groups).unwrap_or(u32::MAX)).collect();
            places.sort_by_key(|&group| mixed(group.into()));
            places
        });
        let before = self.freed;
        while self.freed - before < wanted {
            let Some(group) = places.pop() else { break };
            let start = group as usize * RECLAIMED;
            self.freed += frames.drop_clean_in(start..start + RECLAIMED);
        }
        self.freed > before
    }
}

impl<'a> Scanners<'a> {
    pub(super) fn over(frames: &'a mut Frames) -> Self {
        let size = 1 << frames.block_order;
        let last = (frames.bytes.len() / size).saturating_sub(1) * size;
        let skipped = frames.block_order;
        Self {
            frames,
            size,
            source: 0,
            target: last,
            within: 0,
            held: Default::default(),
            held_frames: 0,
            moved: 0,
            freed: VecDeque::new(),
            listed: 0,
            skipped,
        }
    }

    fn have_met(&self) -> bool {
        self.target <= self.source / self.size * self.size
    }

    pub(super) fn whole(mut self) -> (Pass, VecDeque<usize>) {
        let end = loop {
            if self.have_met() {
                break End::Met;
            }
            match self.block() {
                Ok(()) => {}
                Err(Stop::Met) => break End::Met,
                Err(Stop::GaveUp(index)) => {
                    break End::GaveUp {
                        frame: self.frames.first + index as u64,
                    };
                }
            }
        };
        self.release();
        let pass = Pass {
            moved: self.moved,
            taken: 0,
            reclaimed: 0,
            end,
        };
        (pass, self.freed)
    }

    /// The first sweep leaves blocks alone in which something cannot be moved, as passes do that do
    /// not wait.
    pub(super) fn requested(mut self, request: &Request, free: u64) -> Pass {
        self.skipped = request.order.min(self.frames.block_order);
        let unit = 1 << self.skipped;
        let (mut taken, mut failed, mut sweeps, mut taken_before) = (0, 0, 1, 0);
        let mut reclaim = Reclaim::default();
        let end = loop {
            if taken >= request.blocks {
                break End::Enough;
            }
            // Compaction begins only with room for two blocks beside the reserve.
            let left = (free + reclaim.freed).saturating_sub(taken * unit as u64);
            if left < request.reserve.saturating_add(2 * unit as u64) {
                if !reclaim.some(self.frames, 2 * unit as u64) {
                    break End::Short;
                }
                continue;
            }
            if self.have_met() {
                let goes_on = sweeps == 1 || taken > taken_before && sweeps < SWEEPS;
                if !goes_on {
                    break End::Met;
                }
                (sweeps, taken_before) = (sweeps + 1, taken);
                self.begin_again();
                continue;
            }
            let block = self.source;
            if sweeps == 1 && self.cannot_come_free(block) {
                self.source = block + self.size;
                continue;
            }
            match self.block() {
                Ok(()) => {
                    let made = &mut self.frames.bytes[block..block + self.size];
                    for made in made.chunks_exact_mut(unit) {
                        if made.iter().all(|&value| value == byte::FREE) {
                            made.fill(byte::STUCK);
                            taken += 1;
                            failed = 0;
                        }
                    }
                }
                Err(Stop::Met) => self.source = self.frames.bytes.len(),
                Err(Stop::GaveUp(index)) => {
                    failed += 1;
                    if failed == request.attempts {
                        break End::GaveUp {
                            frame: self.frames.first + index as u64,
                        };
                    }
                    self.source = block + self.size;
                }
            }
        };
        self.release();
        Pass {
            moved: self.moved,
            taken,
            reclaimed: reclaim.freed,
            end,
        }
    }

    /// Returns true if something in a block cannot be moved.
    fn cannot_come_free(&self, block: usize) -> bool {
        let mut values = self.frames.bytes[block..block + self.size].iter();
        values.any(|&value| matches!(byte::kind(value), byte::STUCK | byte::IDLE | byte::PINNED))
    }

    /// Begins at both ends once more.
    fn begin_again(&mut self) {
        self.release();
        self.held = Default::default();
        self.held_frames = 0;
        self.source = 0;
        self.target = (self.frames.bytes.len() / self.size).saturating_sub(1) * self.size;
        self.within = 0;
    }

    /// Moves the pages of the next block, in two batches: a full one, and the rest.
    fn block(&mut self) -> Result<(), Stop> {
        let end = self.source / self.size * self.size + self.size;
        let mut most = BATCH;
        while self.source < end {
            let mut batch = VecDeque::new();
            let mut pages = 0;
            while self.source < end && pages < most {
                let value = self.frames.bytes[self.source];
                let frames = self.frames.length(self.source);
                if byte::is_movable(value) && value >> 4 < self.skipped {
                    // The kernel puts each page before the others.
                    batch.push_front((self.source, frames));
                    pages += frames as u32;
                }
                self.source += frames;
            }
            most = u32::MAX;
            // Targets come from behind the block that is scanned next.
            let low = if self.source == end {
                end + self.size
            } else {
                end
            };
            self.migrate(batch, u64::from(pages), low)?;
        }
        self.source = end;
        Ok(())
    }

    /// Moves a batch of pages, splitting large ones where no target is large enough.
    fn migrate(
        &mut self,
        mut batch: VecDeque<(usize, usize)>,
        mut pages: u64,
        low: usize,
    ) -> Result<(), Stop> {
        while let Some((index, frames)) = batch.pop_front() {
            let order = frames.next_power_of_two().trailing_zeros() as usize;
            if self.held_from(order).is_none() {
                self.isolate(pages, low);
            }
            let Some(from) = self.held_from(order) else {
                if frames == 1 {
                    return Err(Stop::Met);
                }
                let value = self.frames.bytes[index];
                if byte::is_modified(value) {
                    return Err(Stop::GaveUp(index));
                }
                for single in index..index + frames {
                    self.frames.bytes[single] = byte::kind(value);
                    batch.push_back((single, 1));
                }
                continue;
            };
            let to = self.take(from, order);
            for offset in 0..frames {
                self.frames.bytes[to + offset] = self.frames.bytes[index + offset];
            }
            self.frames.bytes[to + frames..to + (1 << order)].fill(byte::FREE);
            self.frames.bytes[index..index + frames].fill(byte::FREE);
            self.moved += frames as u64;
            // Larger ones go to the zone at once.
            let listed = if order <= LISTED_ORDER { frames } else { 0 };
            for index in index..index + listed {
                if self.freed.len() == self.listed && self.freed.pop_front().is_none() {
                    break;
                }
                self.freed.push_back(index);
            }
            pages = pages.saturating_sub(frames as u64);
        }
        Ok(())
    }

    /// Returns the lowest order from `order` up of which a chunk is held.
    fn held_from(&self, order: usize) -> Option<usize> {
        (order..MOST_ORDERS).find(|&from| !self.held[from].is_empty())
    }

    /// Takes a chunk of order `from`, of which one is held, and gives back what is above `order`.
    fn take(&mut self, from: usize, order: usize) -> usize {
        let chunk = self.held[from].pop_front().unwrap_or_default();
        for half in (order..from).rev() {
            self.held[half].push_front(chunk + (1 << half));
        }
        self.held_frames -= 1 << order;
        chunk
    }

    /// Takes free chunks from the top until `pages` frames are held, or the block `low` is reached.
    fn isolate(&mut self, pages: u64, low: usize) {
        while self.target >= low {
            if self.accepts() {
                let end = self.target + self.size;
                let mut at = self.target + self.within;
                while at < end {
                    if self.frames.bytes[at] != byte::FREE {
                        at += 1;
                        continue;
                    }
                    let order = self.chunk(at, end);
                    self.frames.bytes[at..at + (1 << order)].fill(byte::TARGET);
                    self.held[order].push_back(at);
                    self.held_frames += 1 << order;
                    at += 1 << order;
                    if self.held_frames >= pages {
                        self.within = at - self.target;
                        return;
                    }
                }
            }
            self.within = 0;
            if self.target == 0 {
                return;
            }
            self.target -= self.size;
        }
    }

    /// Returns the order of the free chunk at an index: merged as far as alignment allows.
    fn chunk(&self, at: usize, end: usize) -> usize {
        let free = self.frames.bytes[at..end]
            .iter()
            .take_while(|&&value| value == byte::FREE);
        let free = free.count();
        let aligned = (self.frames.first + at as u64).trailing_zeros() as usize;
        aligned.min(free.ilog2() as usize).min(MOST_ORDERS - 1)
    }

    /// Returns true if the kernel takes targets from this block: it is not free as a whole, and by
    /// its contents it is one for movable pages.
    fn accepts(&self) -> bool {
        let block = &self.frames.bytes[self.target..self.target + self.size];
        if self.within > 0 {
            return true;
        }
        let (mut free, mut movable, mut stuck) = (0, 0, 0);
        for &value in block {
            match byte::kind(value) {
                byte::FREE => free += 1,
                byte::KEPT
                | byte::CLEAN
                | byte::MODIFIED
                | byte::MAPPED
                | byte::PINNED
                | byte::TAIL => movable += 1,
                byte::STUCK => stuck += 1,
                _ => {}
            }
        }
        free > 0 && free < self.size && (stuck <= movable || self.frames.all_movable)
    }

    /// Frees the chunks that are still held.
    fn release(&mut self) {
        for value in &mut self.frames.bytes {
            if *value == byte::TARGET {
                *value = byte::FREE;
            }
        }
    }
}
