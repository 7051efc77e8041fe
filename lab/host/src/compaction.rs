//! The kernel's compaction, run on a copy of what was read of a zone's frames.
//!
//! Two scanners walk towards each other by page blocks: one takes movable pages from the bottom,
//! the other takes free chunks from the top as their targets. Where they meet, the pass is done.
//! By the rules of Linux 6.9 and later a target chunk must be as large as the page that is moved. A
//! large page for which none is at hand is split; one of a file that is modified cannot be split
//! while its file system holds on to it, and then the whole pass is given up, however much lies
//! ahead. That is why `compact_memory` often does little on a host that writes files, and why
//! `sync` helps.
//!
//! What is known of a frame fits in a byte, so a copy of a zone of 1 TiB takes 256 MiB, and a pass
//! looks at each frame at most three times. Not modelled are the shortcuts by which a pass for a
//! request finds its first block.

mod scanners;

use core::ops::Range;

use brickyard_trace::{PageUse, StateRun};

use scanners::Scanners;

use crate::movability::{Judge, Movability};
use crate::zoneinfo::ZoneInfo;

/// A frame in a byte: the kind below, the order above.
mod byte {
    pub(super) const ABSENT: u8 = 0;
    pub(super) const FREE: u8 = 1;
    pub(super) const IDLE: u8 = 2;
    pub(super) const STUCK: u8 = 3;
    pub(super) const KEPT: u8 = 4;
    pub(super) const CLEAN: u8 = 5;
    pub(super) const MODIFIED: u8 = 6;
    pub(super) const TAIL: u8 = 7;
    /// Taken by the free scanner, as a target.
    pub(super) const TARGET: u8 = 8;
    /// Modified and mapped: once it is written it is kept.
    pub(super) const MAPPED: u8 = 9;
    /// It is pinned or locked: it stays, but its page block is one for movable pages.
    pub(super) const PINNED: u8 = 10;

    pub(super) const fn kind(byte: u8) -> u8 {
        byte & 15
    }

    pub(super) const fn is_movable(byte: u8) -> bool {
        matches!(kind(byte), KEPT | CLEAN | MODIFIED | MAPPED)
    }

    pub(super) const fn is_modified(byte: u8) -> bool {
        matches!(kind(byte), MODIFIED | MAPPED)
    }
}

/// The frames of one zone, whole page blocks of them.
#[derive(Debug, Clone)]
pub struct Frames {
    first: u64,
    block_order: u8,
    /// Everything in the zone can be moved, by its kind.
    all_movable: bool,
    bytes: Vec<u8>,
}

/// How a pass ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// The scanners met.
    Met,
    /// A large page of a modified file could neither be moved nor split.
    GaveUp {
        /// Its first frame.
        frame: u64,
    },
    /// There was no more memory to move pages to, and none to reclaim.
    Short,
    /// All the blocks that were wanted are made.
    Enough,
}

/// What a pass did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pass {
    /// Pages that were moved.
    pub moved: u64,
    /// Blocks that were taken, by a pass for a request.
    pub taken: u64,
    /// Pages of the page cache that were reclaimed, by a pass for a request.
    pub reclaimed: u64,
    /// How it ended.
    pub end: End,
}

/// The list of the CPU that compacts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CpuList {
    /// Pages in it.
    pub count: u64,
    /// Pages that it can hold.
    pub high: u64,
}

/// What a request for blocks meets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Request {
    /// Their order, at most that of a page block.
    pub order: u8,
    /// Blocks that are wanted.
    pub blocks: u64,
    /// Free pages without which compaction does not begin, by the watermark and what the zone
    /// keeps.
    pub reserve: u64,
    /// Passes given up one after the other until the request fails.
    pub attempts: u32,
}

impl Frames {
    /// Takes over the frames of `zone`, in page blocks of 2^`block_order`. `runs` must be in order
    /// of frames, and `judge` be made of them. Frames of the first and the last block that are not
    /// the zone's are absent.
    #[must_use]
    pub fn of_zone(runs: &[StateRun], zone: &ZoneInfo, block_order: u8, judge: &Judge) -> Self {
        let block_order = block_order.clamp(1, 15);
        let size = 1_u64 << block_order;
        let first = zone.start_pfn / size * size;
        let end = zone.end_pfn().div_ceil(size).saturating_mul(size);
        // Frames beyond the last run are absent; a zone may claim to be of any size.
        let known = runs
            .last()
            .map_or(0, |run| run.frame.saturating_add(run.frames));
        let end = end
            .min(known.div_ceil(size).saturating_mul(size))
            .max(first);
        let frames = usize::try_from(end - first).unwrap_or(0);
        let mut bytes = vec![byte::ABSENT; frames];
        let from =
            runs.partition_point(|run| run.frame.saturating_add(run.frames) <= zone.start_pfn);
        for run in runs[from..]
            .iter()
            .take_while(|run| run.frame < zone.end_pfn())
        {
            let start = run.frame.max(zone.start_pfn);
            let until = run
                .frame
                .saturating_add(run.frames)
                .min(zone.end_pfn())
                .min(end);
            let (head, tail) = bytes_of(run, judge);
            let order = run.order.min(15);
            for frame in start..until {
                let is_head = (frame - run.frame) & ((1 << order) - 1) == 0;
                bytes[(frame - first) as usize] = if is_head { head } else { tail };
            }
        }
        Self {
            first,
            block_order,
            all_movable: zone.name == "Movable",
            bytes,
        }
    }

    /// Returns the order of a page block.
    #[must_use]
    pub fn block_order(&self) -> u8 {
        self.block_order
    }

    /// Returns a letter for what is at a frame: `_` no memory, `.` free, `?` in a per-CPU list or the
    /// kernel's own, `s` what stays. Of pages that can be moved, `f` are clean and `d` modified pages
    /// of files, `a` all others; large ones have a capital, and a space for each later frame.
    #[must_use]
    pub fn letter(&self, frame: u64) -> char {
        let index = frame.checked_sub(self.first);
        let index = index.and_then(|index| usize::try_from(index).ok());
        let value = index.and_then(|index| self.bytes.get(index)).copied();
        let value = value.unwrap_or(byte::ABSENT);
        let letter = match byte::kind(value) {
            byte::FREE | byte::TARGET => '.',
            byte::IDLE => '?',
            byte::STUCK | byte::PINNED => 's',
            byte::KEPT => 'a',
            byte::CLEAN => 'f',
            byte::MODIFIED | byte::MAPPED => 'd',
            byte::TAIL => ' ',
            _ => '_',
        };
        match value >> 4 {
            0 => letter,
            _ => letter.to_ascii_uppercase(),
        }
    }

    /// Returns the number of free frames.
    #[must_use]
    pub fn free(&self) -> u64 {
        self.bytes
            .iter()
            .filter(|&&value| value == byte::FREE)
            .count() as u64
    }

    /// Returns the number of frames that are idle or the kernel's own.
    #[must_use]
    pub fn idle(&self) -> u64 {
        self.bytes
            .iter()
            .filter(|&&value| value == byte::IDLE)
            .count() as u64
    }

    /// Returns the number of large pages of modified files that a pass would have to move.
    #[must_use]
    pub fn modified_large(&self) -> u64 {
        let is_one =
            |value: u8| byte::is_modified(value) && (1..self.block_order).contains(&(value >> 4));
        self.bytes.iter().filter(|&&value| is_one(value)).count() as u64
    }

    /// Returns the number of free blocks of 2^`order` frames.
    #[must_use]
    pub fn free_blocks(&self, order: u8) -> u64 {
        let size = 1_usize << order.min(30);
        // The first frame is aligned to a page block, so larger ones begin later.
        let aligned = self.first.checked_next_multiple_of(size as u64);
        let skip = aligned.map_or(usize::MAX, |aligned| (aligned - self.first) as usize);
        let whole = self
            .bytes
            .get(skip..)
            .unwrap_or_default()
            .chunks_exact(size);
        whole
            .filter(|block| block.iter().all(|&value| value == byte::FREE))
            .count() as u64
    }

    /// Frees `listed` of the idle frames, the number that the zone's per-CPU lists have, as
    /// draining them does. Which ones they are is not known, so they are chosen by whole page
    /// blocks.
    pub fn drain(&mut self, listed: u64) {
        let (idle, order) = (self.idle(), self.block_order);
        self.drain_some(|frame| picks(frame >> order, listed, idle));
    }

    fn drain_some(&mut self, chosen: impl Fn(u64) -> bool) {
        for (frame, value) in (self.first..).zip(&mut self.bytes) {
            if *value == byte::IDLE && chosen(frame) {
                *value = byte::FREE;
            }
        }
    }

    /// Makes the pages that these frames are of stay: they are pinned.
    pub fn pin(&mut self, frames: impl IntoIterator<Item = u64>) {
        for frame in frames {
            let index = frame
                .checked_sub(self.first)
                .and_then(|index| usize::try_from(index).ok());
            let Some(mut index) = index.filter(|&index| index < self.bytes.len()) else {
                continue;
            };
            while index > 0 && self.bytes[index] == byte::TAIL {
                index -= 1;
            }
            if byte::is_movable(self.bytes[index]) {
                let end = index + self.length(index);
                self.bytes[index..end].fill(byte::PINNED);
            }
        }
    }

    /// Writes modified files, as `sync` does.
    pub fn sync(&mut self) {
        for value in &mut self.bytes {
            let written = match byte::kind(*value) {
                byte::MODIFIED => byte::CLEAN,
                byte::MAPPED => byte::KEPT,
                _ => continue,
            };
            *value = written | *value & !15;
        }
    }

    /// Frees clean pages of files that no process has mapped, as `drop_caches` does.
    pub fn drop_clean(&mut self) {
        let all = self.bytes.len();
        self.drop_clean_in(0..all);
    }

    /// Frees such pages that begin in these places; returns how many frames.
    fn drop_clean_in(&mut self, places: Range<usize>) -> u64 {
        let (mut at, mut freed) = (places.start, 0);
        while at < places.end {
            let frames = self.length(at);
            if byte::kind(self.bytes[at]) == byte::CLEAN {
                self.bytes[at..at + frames].fill(byte::FREE);
                freed += frames as u64;
            }
            at += frames;
        }
        freed
    }

    /// Takes up to `blocks` free blocks of 2^`order` frames, as pages that stay; returns how many.
    pub fn take_free(&mut self, blocks: u64, order: u8) -> u64 {
        let mut taken = 0;
        for block in self
            .bytes
            .chunks_exact_mut(1 << order.min(self.block_order))
        {
            if taken == blocks {
                break;
            }
            if block.iter().all(|&value| value == byte::FREE) {
                block.fill(byte::STUCK);
                taken += 1;
            }
        }
        taken
    }

    /// Compacts the whole zone, as writing to `compact_memory` does. The pages that are moved are
    /// freed into the list of one CPU, which keeps the last ones that fit; what it held before goes
    /// back to the zone as far as there is no room for both.
    pub fn compact(&mut self, list: CpuList) -> Pass {
        let idle = self.idle();
        let mut scanners = Scanners::over(self);
        scanners.listed = usize::try_from(list.high).unwrap_or(usize::MAX);
        let (pass, freed) = scanners.whole();
        let in_all = list.count.saturating_add(freed.len() as u64);
        let returned = in_all.saturating_sub(list.high).min(list.count);
        let order = self.block_order;
        self.drain_some(|frame| picks(frame >> order, returned, idle));
        for index in freed {
            if self.bytes[index] == byte::FREE {
                self.bytes[index] = byte::IDLE;
            }
        }
        pass
    }

    /// Compacts for a request: each page block that comes free is taken, until there are enough or
    /// the kernel gives up. Where there is no room to begin, clean pages of files are reclaimed.
    /// Such passes drain the lists that they free to.
    pub fn compact_for(&mut self, request: &Request) -> Pass {
        let free = self.free();
        Scanners::over(self).requested(request, free)
    }

    /// Returns the number of frames of the block that begins at an index: 1 unless it is a large
    /// page.
    fn length(&self, index: usize) -> usize {
        let value = self.bytes[index];
        let order = if byte::is_movable(value) {
            value >> 4
        } else {
            0
        };
        let tails = self.bytes[index + 1..].iter().take((1 << order) - 1);
        1 + tails.take_while(|&&value| value == byte::TAIL).count()
    }
}

/// Returns the bytes of the first frame and of the others of each page of a run.
fn bytes_of(run: &StateRun, judge: &Judge) -> (u8, u8) {
    let movable = |content: u8| (content | run.order.min(15) << 4, byte::TAIL);
    match judge.of(run) {
        Movability::Absent => (byte::ABSENT, byte::ABSENT),
        Movability::Free => (byte::FREE, byte::FREE),
        Movability::Perhaps => (byte::IDLE, byte::IDLE),
        Movability::Stuck if run.state.unevictable => (byte::PINNED, byte::PINNED),
        Movability::Stuck | Movability::Huge => (byte::STUCK, byte::STUCK),
        Movability::Movable if run.state.usage == PageUse::File => {
            let state = run.state;
            // Shared memory can be split whatever it is, and dropping keeps it.
            if state.unevictable || state.shared {
                movable(byte::KEPT)
            } else if state.dirty || state.writeback {
                movable(if state.mapped {
                    byte::MAPPED
                } else {
                    byte::MODIFIED
                })
            } else if state.mapped {
                movable(byte::KEPT)
            } else {
                movable(byte::CLEAN)
            }
        }
        Movability::Movable => movable(byte::KEPT),
    }
}

/// Returns true for `some` of `all` keys, spread evenly and always the same ones.
fn picks(key: u64, some: u64, all: u64) -> bool {
    u128::from(mixed(key)) * u128::from(all) < u128::from(some) << 64
}

/// The finalizer of splitmix64.
fn mixed(key: u64) -> u64 {
    let mut mixed = key.wrapping_add(0x9e37_79b9_7f4a_7c15);
    mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ mixed >> 31
}
