//! The model kernel's record of each frame: its user, the size of its block, its links on an LRU
//! list.
//!
//! A record has sixteen bytes, like a small `struct page`; all are in one array, and lists are
//! links in it. A *page* here is a page of a trace, by its number there; a *frame* is where this
//! allocator placed it. Two arrays map one to the other.
//!
//! Invariant `both-ways`: [`Pages::location`] of a page is `At` a frame exactly if that frame's
//! record has the page, and the frame is the first of a block in use.

use brickyard::{Frame, Mobility, Order};
use brickyard_run::named;

use crate::mixing::{Mixed, Mixing};

/// A page of a trace, by its index in the trace's own span of frames (plus an offset for each
/// instance of the trace, where several run at once).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PageId(pub u32);

impl PageId {
    /// No page of any trace: the block is the model kernel's own.
    pub const NONE: Self = Self(u32::MAX);
}

named! {
    /// What a page is used for, as far as the model kernel distinguishes.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
    #[repr(u8)]
    pub enum Role {
        /// Nothing: the frame is free, or inside a block.
        #[default]
        None => "none",
        /// Memory of a process.
        Anonymous => "anonymous",
        /// A page of a file.
        File => "file",
        /// Page tables.
        PageTable => "page-table",
        /// Reclaimable kernel objects: directory entries, inodes.
        SlabReclaimable => "slab-reclaimable",
        /// Other kernel objects.
        Slab => "slab",
        /// Other kernel memory.
        Kernel => "kernel",
        /// In use before the trace began, for an unknown purpose: it never moves.
        Pinned => "pinned",
        /// A huge page that an experiment holds.
        Held => "held",
    }
}

impl Role {
    /// The mobility of requests for such pages.
    #[must_use]
    pub const fn mobility(self) -> Mobility {
        match self {
            Self::Anonymous | Self::File | Self::Held => Mobility::Movable,
            Self::SlabReclaimable => Mobility::Reclaimable,
            _ => Mobility::Unmovable,
        }
    }

    /// Returns true if blocks of this role can be moved.
    #[must_use]
    pub const fn moves(self) -> bool {
        matches!(self, Self::Anonymous | Self::File)
    }
}

/// Marks of a page, as bits.
pub mod mark {
    /// On an active list.
    pub const ACTIVE: u8 = 1;
    /// It must be written before it can be freed.
    pub const DIRTY: u8 = 2;
    /// Being written: it is freed when that ends, and is on no list until then.
    pub const WRITEBACK: u8 = 4;
    /// Locked in memory.
    pub const LOCKED: u8 = 8;
    /// Found to be used again when it was scanned.
    pub const REFERENCED: u8 = 16;
    /// Taken off its list by reclaim, which decides about it.
    pub const ISOLATED: u8 = 32;
}

/// Blocks with one of these marks are on no list.
const OFF_LISTS: u8 = mark::LOCKED | mark::WRITEBACK | mark::ISOLATED;

/// The lists of one zone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Age {
    /// Files' pages not used recently; with one LRU, those of processes too.
    InactiveFile = 0,
    /// Files' pages used recently; with one LRU, those of processes too.
    ActiveFile = 1,
    /// Processes' pages not used recently.
    InactiveAnonymous = 2,
    /// Processes' pages used recently.
    ActiveAnonymous = 3,
    /// Slabs that the shrinker may free.
    Slab = 4,
}

impl Age {
    /// The number of lists of a zone.
    pub const COUNT: usize = 5;
}

/// No frame: the end of a list.
const END: u32 = u32::MAX;

/// The record of one frame.
#[derive(Debug, Clone, Copy)]
struct Record {
    // List links; used in the record of a block's first frame only.
    next: u32,
    prev: u32,
    page: PageId,
    role: Role,
    order: u8,
    marks: u8,
    zone: u8,
}

const UNUSED: Record = Record {
    next: END,
    prev: END,
    page: PageId::NONE,
    role: Role::None,
    order: 0,
    marks: 0,
    zone: 0,
};

impl Record {
    const fn block(&self, frame: Frame) -> Block {
        Block {
            frame,
            order: Order::new(self.order),
            role: self.role,
            marks: self.marks,
            page: self.page,
            zone: self.zone as usize,
        }
    }
}

#[derive(Debug, Clone, Copy)]
struct List {
    head: u32,
    tail: u32,
    // Frames, not blocks.
    frames: u64,
}

const EMPTY: List = List {
    head: END,
    tail: END,
    frames: 0,
};

/// A block in use, from its record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Block {
    /// Its first frame.
    pub frame: Frame,
    /// Its order.
    pub order: Order,
    /// Its role.
    pub role: Role,
    /// Its marks.
    pub marks: u8,
    /// The page of the trace.
    pub page: PageId,
    /// The index of its zone.
    pub zone: usize,
}

/// The location of a page of a trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Location {
    /// Never allocated, or freed.
    Unknown,
    /// At this frame, the first of its block.
    At(Frame),
    /// It was reclaimed before the trace freed it.
    Reclaimed,
    /// Its allocation failed.
    Refused,
}

// Values of the map from pages to frames. 0 is unknown, so that a new map is just zeroed memory.
const RECLAIMED: u32 = u32::MAX;
const REFUSED: u32 = u32::MAX - 1;

/// The records of all frames.
#[derive(Debug)]
pub struct Pages {
    // The number of the first record's frame.
    base: usize,
    records: Vec<Record>,
    places: Vec<u32>,
    lists: Vec<[List; Age::COUNT]>,
    used: [u64; 9],
    mixing: Mixing,
    lru: Lru,
}

/// The lists that pages of files and of processes are on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Lru {
    /// Lists of their own.
    Split,
    /// One active and one inactive list, which are those of files.
    One,
}

impl Pages {
    /// Makes records of `frames` frames from `base` on, none in use, in `zones` zones, for traces
    /// with page numbers below `pages`.
    #[must_use]
    pub fn new(
        base: Frame,
        frames: usize,
        zones: usize,
        pages: usize,
        page_block_order: Order,
    ) -> Self {
        Self {
            base: base.number(),
            records: vec![UNUSED; frames],
            places: vec![0; pages],
            lists: vec![[EMPTY; Age::COUNT]; zones],
            used: [0; 9],
            mixing: Mixing::new(base, frames, page_block_order),
            lru: Lru::Split,
        }
    }

    /// The same with pages of processes on the lists of files' pages, as in Linux before 2.6.28.
    /// Nothing may be in use yet.
    #[must_use]
    pub fn with_one_lru(self) -> Self {
        Self {
            lru: Lru::One,
            ..self
        }
    }

    /// Returns true if the block at `frame` is on one of the lists of pages of files and processes.
    #[must_use]
    pub fn is_on_lru(&self, frame: Frame) -> bool {
        let record = &self.records[self.index(frame)];
        self.list_of(record).is_some_and(|age| age != Age::Slab)
    }

    /// The counts of mixed page blocks.
    #[must_use]
    pub const fn mixing(&self) -> &Mixing {
        &self.mixing
    }

    /// Takes the last page block that became mixed, if one has since the call before.
    pub fn take_last_mixed(&mut self) -> Option<Mixed> {
        self.mixing.take_last()
    }

    /// The number of frames in use by `role`.
    #[must_use]
    pub const fn used(&self, role: Role) -> u64 {
        self.used[role as usize]
    }

    /// The number of all frames in use.
    #[must_use]
    pub fn in_use(&self) -> u64 {
        self.used.iter().sum()
    }

    /// The number of frames on a list.
    #[must_use]
    pub fn frames_on(&self, zone: usize, age: Age) -> u64 {
        self.lists[zone][age as usize].frames
    }

    const fn index(&self, frame: Frame) -> usize {
        frame.number() - self.base
    }

    const fn frame(&self, index: u32) -> Frame {
        Frame::new(self.base + index as usize)
    }

    /// Returns the location of a page; pages inside a block are `Unknown`. O(1).
    #[must_use]
    pub fn location(&self, page: PageId) -> Location {
        match self.places.get(page.0 as usize) {
            None | Some(0) => Location::Unknown,
            Some(&RECLAIMED) => Location::Reclaimed,
            Some(&REFUSED) => Location::Refused,
            Some(&place) => Location::At(self.frame(place - 1)),
        }
    }

    /// Returns the first page of the block that contains `page`, and its [`Pages::location`].
    /// O(orders). Blocks are aligned in the trace too, since page 0 is aligned to the largest.
    #[must_use]
    pub fn location_around(&self, page: PageId) -> Option<(PageId, Location)> {
        for order in Order::ZERO.up_to(Order::MAX) {
            let first = PageId(page.0 >> order.get() << order.get());
            match self.location(first) {
                Location::At(frame) => {
                    let block = self.block(frame)?;
                    let covers = (page.0 - first.0) < block.order.frames() as u32;
                    if covers {
                        return Some((first, Location::At(frame)));
                    }
                }
                Location::Unknown => {}
                known if first == page => return Some((first, known)),
                _ => {}
            }
        }
        None
    }

    /// Records that `page` has no frame, and why.
    pub fn set_absent(&mut self, page: PageId, why: Location) {
        if let Some(place) = self.places.get_mut(page.0 as usize) {
            *place = match why {
                Location::Reclaimed => RECLAIMED,
                Location::Refused => REFUSED,
                Location::Unknown | Location::At(_) => 0,
            };
        }
    }

    /// Returns the block in use that starts at `frame`.
    #[must_use]
    pub fn block(&self, frame: Frame) -> Option<Block> {
        let record = self.records.get(frame.number().checked_sub(self.base)?)?;
        (record.role != Role::None).then(|| record.block(frame))
    }

    /// Returns all blocks in use, in rising order of their frames.
    pub fn blocks(&self) -> impl Iterator<Item = Block> + '_ {
        (0..self.records.len() as u32).filter_map(|index| self.block(self.frame(index)))
    }

    /// Records an allocated block. Movable blocks and reclaimable slabs go to the head of their
    /// list.
    pub fn insert(&mut self, block: Block) {
        let index = self.index(block.frame);
        debug_assert_eq!(self.records[index].role, Role::None, "both-ways");
        if let Some(place) = self.places.get_mut(block.page.0 as usize) {
            let other = core::mem::replace(place, index as u32 + 1);
            if other != 0 && other < REFUSED {
                // In use twice: the event of a free was lost. The earlier block loses its page.
                self.records[other as usize - 1].page = PageId::NONE;
            }
        }
        self.used[block.role as usize] += block.order.frames() as u64;
        self.mixing
            .add(block.frame, block.order, block.role.mobility());
        let record = Record {
            page: block.page,
            role: block.role,
            order: block.order.get(),
            marks: block.marks,
            zone: block.zone as u8,
            ..UNUSED
        };
        self.push(index as u32, record);
    }

    /// Removes the record of the block at `frame`. Its page becomes unknown.
    pub fn remove(&mut self, frame: Frame) -> Option<Block> {
        self.remove_if(frame, |_| true)
    }

    /// Does what [`Pages::remove`] does, if the block is of this order.
    #[inline]
    pub(crate) fn remove_of(&mut self, frame: Frame, order: Order) -> Option<Block> {
        self.remove_if(frame, |record| record.order == order.get())
    }

    #[inline]
    fn remove_if(&mut self, frame: Frame, is: impl FnOnce(&Record) -> bool) -> Option<Block> {
        let index = frame.number().checked_sub(self.base)?;
        let record = *self.records.get(index)?;
        if record.role == Role::None || !is(&record) {
            return None;
        }
        self.unlink(&record);
        self.records[index] = UNUSED;
        if let Some(place) = self.places.get_mut(record.page.0 as usize) {
            *place = 0;
        }
        let block = record.block(frame);
        self.used[block.role as usize] -= block.order.frames() as u64;
        self.mixing
            .remove(frame, block.order, block.role.mobility());
        Some(block)
    }

    /// Splits the block at `frame` in halves repeatedly, until the part of `order` at `part` is a
    /// block.
    pub fn split(&mut self, frame: Frame, part: Frame, order: Order) {
        let Some(whole) = self.remove(frame) else {
            return;
        };
        let mut rest = whole;
        while let Some(half) = rest.order.down().filter(|_| rest.order > order) {
            let step = half.frames();
            let upper = Block {
                frame: rest.frame.plus(step),
                order: half,
                page: match rest.page {
                    PageId::NONE => PageId::NONE,
                    PageId(first) => PageId(first + step as u32),
                },
                ..rest
            };
            let lower = Block {
                order: half,
                ..rest
            };
            let (keep, other) = if part >= upper.frame {
                (upper, lower)
            } else {
                (lower, upper)
            };
            self.insert(other);
            rest = keep;
        }
        self.insert(rest);
        // No page was added, so nothing has become mixed.
        self.mixing.take_last();
    }

    /// Moves the record of the block at `from` to `to`.
    pub fn relocate(&mut self, from: Frame, to: Frame) {
        if let Some(block) = self.remove(from) {
            self.insert(Block { frame: to, ..block });
            // Mixing by a move is not counted for any request.
            self.mixing.take_last();
        }
    }

    /// Sets and clears marks. If that changes the block's list, the block goes to the head of the
    /// new one.
    pub fn mark(&mut self, frame: Frame, set: u8, clear: u8) {
        let index = self.index(frame);
        let old = self.records[index].marks;
        let new = (old | set) & !clear;
        if (old ^ new) & (mark::ACTIVE | OFF_LISTS) == 0 {
            self.records[index].marks = new;
            return;
        }
        let record = self.records[index];
        self.unlink(&record);
        let record = Record {
            marks: new,
            ..record
        };
        self.push(index as u32, record);
    }

    /// Moves the block at `frame` to the head of its list.
    pub fn rotate(&mut self, frame: Frame) {
        let index = self.index(frame);
        let record = self.records[index];
        self.unlink(&record);
        self.push(index as u32, record);
    }

    /// Returns the oldest block of a list.
    #[must_use]
    pub fn oldest(&self, zone: usize, age: Age) -> Option<Block> {
        let tail = self.lists[zone][age as usize].tail;
        (tail != END)
            .then(|| self.block(self.frame(tail)))
            .flatten()
    }

    /// Returns the list on which a block with this record belongs.
    fn list_of(&self, record: &Record) -> Option<Age> {
        if record.marks & OFF_LISTS != 0 {
            return None;
        }
        let active = record.marks & mark::ACTIVE != 0;
        match (record.role, active) {
            (Role::File, false) => Some(Age::InactiveFile),
            (Role::Anonymous, false) if self.lru == Lru::One => Some(Age::InactiveFile),
            (Role::Anonymous, true) if self.lru == Lru::One => Some(Age::ActiveFile),
            (Role::File, true) => Some(Age::ActiveFile),
            (Role::Anonymous, false) => Some(Age::InactiveAnonymous),
            (Role::Anonymous, true) => Some(Age::ActiveAnonymous),
            (Role::SlabReclaimable, _) => Some(Age::Slab),
            _ => None,
        }
    }

    /// Writes the record of a frame, at the head of its list if it has one. (A record is written as
    /// a whole, once, and not read again: that would wait for the write.)
    fn push(&mut self, index: u32, record: Record) {
        let mut record = Record {
            next: END,
            prev: END,
            ..record
        };
        if let Some(age) = self.list_of(&record) {
            let list = &mut self.lists[record.zone as usize][age as usize];
            record.next = core::mem::replace(&mut list.head, index);
            list.frames += 1 << record.order;
            if record.next == END {
                list.tail = index;
            } else {
                self.records[record.next as usize].prev = index;
            }
        }
        self.records[index as usize] = record;
    }

    /// Takes the frame with this record off its list, if it is on one.
    fn unlink(&mut self, record: &Record) {
        let Some(age) = self.list_of(record) else {
            return;
        };
        let list = &mut self.lists[record.zone as usize][age as usize];
        list.frames -= 1 << record.order;
        if record.prev == END {
            list.head = record.next;
        }
        if record.next == END {
            list.tail = record.prev;
        }
        if record.prev != END {
            self.records[record.prev as usize].next = record.next;
        }
        if record.next != END {
            self.records[record.next as usize].prev = record.prev;
        }
    }
}
