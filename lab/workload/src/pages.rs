//! What the model kernel knows of each frame: who has it, how large its block is, its place on a
//! list of ages.
//!
//! Sixteen bytes a frame, like a small `struct page`, in one array; lists are links in it. A *page*
//! here is what a trace talks of, by its number there; a *frame* is where this allocator put it.
//! Two arrays map one to the other.
//!
//! Invariant `both-ways`: `frame_of(page)` is `frame` exactly if the record of `frame` says `page`,
//! and is the first of a block in use.

use brickyard::{Frame, Mobility, Order};
use brickyard_trace::named;

use crate::mixing::{Mixed, Mixing};

/// A page of a trace, by its place in the trace's own span of frames (and the instance of the
/// trace, where several run at once).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PageId(pub u32);

impl PageId {
    /// No page of any trace: the model kernel's own.
    pub const NONE: Self = Self(u32::MAX);
}

named! {
    /// What a page is used for, as the model kernel cares.
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
        /// Kernel objects that can be given back: directory entries, inodes.
        SlabReclaimable => "slab-reclaimable",
        /// Kernel objects that cannot.
        Slab => "slab",
        /// Kernel memory of its own.
        Kernel => "kernel",
        /// In use before the trace began, and nothing more known: it never moves.
        Pinned => "pinned",
        /// A huge page that an experiment holds.
        Held => "held",
    }
}

impl Role {
    /// What can be done with such a page.
    #[must_use]
    pub const fn mobility(self) -> Mobility {
        match self {
            Self::Anonymous | Self::File | Self::Held => Mobility::Movable,
            Self::SlabReclaimable => Mobility::Reclaimable,
            _ => Mobility::Unmovable,
        }
    }

    /// Can the block be moved to another place?
    #[must_use]
    pub const fn moves(self) -> bool {
        matches!(self, Self::Anonymous | Self::File)
    }
}

/// Marks of a page, as bits.
pub mod mark {
    /// On an active list.
    pub const ACTIVE: u8 = 1;
    /// To be written before it can be freed.
    pub const DIRTY: u8 = 2;
    /// Being written: it is freed when that ends, and on no list until then.
    pub const WRITEBACK: u8 = 4;
    /// Locked in memory.
    pub const LOCKED: u8 = 8;
    /// Used again since it was looked at last.
    pub const REFERENCED: u8 = 16;
}

/// With one of these marks a block is on no list.
const OFF_LISTS: u8 = mark::LOCKED | mark::WRITEBACK;

/// The lists of one zone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Age {
    /// Files' pages not used lately.
    InactiveFile = 0,
    /// Files' pages in use.
    ActiveFile = 1,
    /// Processes' pages not used lately.
    InactiveAnonymous = 2,
    /// Processes' pages in use.
    ActiveAnonymous = 3,
    /// Slabs that the shrinker may give back, oldest last.
    Slab = 4,
}

impl Age {
    /// How many lists a zone has.
    pub const COUNT: usize = 5;
}

/// No frame: the end of a list.
const END: u32 = u32::MAX;

/// What is known of one frame.
#[derive(Debug, Clone, Copy)]
struct Record {
    // Links of the list that it is on; of a block's first frame only.
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

/// A block in use, as its record says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Block {
    /// Its first frame.
    pub frame: Frame,
    /// Its size.
    pub order: Order,
    /// Who has it.
    pub role: Role,
    /// Its marks.
    pub marks: u8,
    /// The page of the trace.
    pub page: PageId,
    /// The zone it lies in.
    pub zone: usize,
}

/// Where a page of a trace is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Whereabouts {
    /// Never heard of, or freed.
    Unknown,
    /// At this frame, the first of its block.
    At(Frame),
    /// It was reclaimed before the trace freed it.
    Reclaimed,
    /// It was never served.
    Refused,
}

// Values of the map from pages to frames: 0 is unknown, so that a fresh map needs no writing.
const RECLAIMED: u32 = u32::MAX;
const REFUSED: u32 = u32::MAX - 1;

/// All pages.
#[derive(Debug)]
pub struct Pages {
    // The frame that the first record is of.
    base: usize,
    records: Vec<Record>,
    places: Vec<u32>,
    lists: Vec<[List; Age::COUNT]>,
    used: [u64; 9],
    mixing: Mixing,
}

impl Pages {
    /// Records of `frames` frames from `base` on, none in use, in `zones` zones, for traces with
    /// page numbers below `pages`.
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
        }
    }

    /// How blocks are mixed.
    #[must_use]
    pub const fn mixing(&self) -> &Mixing {
        &self.mixing
    }

    /// The page block that the last insertion has mixed, if it has.
    pub fn take_last_mixed(&mut self) -> Option<Mixed> {
        self.mixing.take_last()
    }

    /// Frames in use by `role`.
    #[must_use]
    pub const fn used(&self, role: Role) -> u64 {
        self.used[role as usize]
    }

    /// Frames in use in all.
    #[must_use]
    pub fn in_use(&self) -> u64 {
        self.used.iter().sum()
    }

    /// Frames on a list.
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

    /// Where a page is. O(1) for the first page of a block, O(orders) inside one.
    #[must_use]
    pub fn place(&self, page: PageId) -> Whereabouts {
        match self.places.get(page.0 as usize) {
            None | Some(0) => Whereabouts::Unknown,
            Some(&RECLAIMED) => Whereabouts::Reclaimed,
            Some(&REFUSED) => Whereabouts::Refused,
            Some(&place) => Whereabouts::At(self.frame(place - 1)),
        }
    }

    /// The block that `page` lies in: its first page, and what [`Pages::place`] says of that one.
    /// Blocks are aligned in the trace too, and page 0 to the largest.
    #[must_use]
    pub fn place_around(&self, page: PageId) -> Option<(PageId, Whereabouts)> {
        for order in Order::ZERO.up_to(Order::MAX) {
            let first = PageId(page.0 >> order.get() << order.get());
            match self.place(first) {
                Whereabouts::At(frame) => {
                    let block = self.block(frame)?;
                    let covers = (page.0 - first.0) < block.order.frames() as u32;
                    if covers {
                        return Some((first, Whereabouts::At(frame)));
                    }
                }
                Whereabouts::Unknown => {}
                known if first == page => return Some((first, known)),
                _ => {}
            }
        }
        None
    }

    /// Notes that `page` is not there, and why.
    pub fn set_absent(&mut self, page: PageId, why: Whereabouts) {
        if let Some(place) = self.places.get_mut(page.0 as usize) {
            *place = match why {
                Whereabouts::Reclaimed => RECLAIMED,
                Whereabouts::Refused => REFUSED,
                Whereabouts::Unknown | Whereabouts::At(_) => 0,
            };
        }
    }

    /// The block in use that starts at `frame`.
    #[must_use]
    pub fn block(&self, frame: Frame) -> Option<Block> {
        let record = self.records.get(frame.number().checked_sub(self.base)?)?;
        (record.role != Role::None).then(|| Block {
            frame,
            order: Order::new(record.order),
            role: record.role,
            marks: record.marks,
            page: record.page,
            zone: record.zone as usize,
        })
    }

    /// The first frame of every block in use, rising.
    pub fn blocks(&self) -> impl Iterator<Item = Block> + '_ {
        (0..self.records.len() as u32).filter_map(|index| self.block(self.frame(index)))
    }

    /// Notes a block that was handed out. Movable ones and slabs that can be given back go to the
    /// head of their list.
    pub fn insert(&mut self, block: Block) {
        let index = self.index(block.frame);
        debug_assert_eq!(self.records[index].role, Role::None, "both-ways");
        self.records[index] = Record {
            next: END,
            prev: END,
            page: block.page,
            role: block.role,
            order: block.order.get(),
            marks: block.marks,
            zone: block.zone as u8,
        };
        if let Some(place) = self.places.get_mut(block.page.0 as usize) {
            let other = core::mem::replace(place, index as u32 + 1);
            if other != 0 && other < REFUSED {
                // In use twice: a free was lost. Whoever had it first is nobody's now.
                self.records[other as usize - 1].page = PageId::NONE;
            }
        }
        self.used[block.role as usize] += block.order.frames() as u64;
        self.mixing
            .add(block.frame, block.order, block.role.mobility());
        self.push(index as u32);
    }

    /// Forgets the block at `frame`. Its page is unknown from now on.
    pub fn remove(&mut self, frame: Frame) -> Option<Block> {
        let block = self.block(frame)?;
        let index = self.index(frame);
        self.unlink(index as u32);
        self.records[index] = UNUSED;
        if let Some(place) = self.places.get_mut(block.page.0 as usize) {
            *place = 0;
        }
        self.used[block.role as usize] -= block.order.frames() as u64;
        self.mixing
            .remove(frame, block.order, block.role.mobility());
        Some(block)
    }

    /// Makes blocks of half the size, again and again, of the block at `frame`, until the part of
    /// `order` at `part` is one of its own.
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
        // Nothing came that was not there.
        self.mixing.take_last();
    }

    /// The block at `from` is at `to` now.
    pub fn relocate(&mut self, from: Frame, to: Frame) {
        if let Some(block) = self.remove(from) {
            self.insert(Block { frame: to, ..block });
            // Nobody asked for this.
            self.mixing.take_last();
        }
    }

    /// Sets and clears marks; a change of [`mark::ACTIVE`] moves the block to the head of the other
    /// list.
    pub fn mark(&mut self, frame: Frame, set: u8, clear: u8) {
        let index = self.index(frame);
        let old = self.records[index].marks;
        let new = (old | set) & !clear;
        if (old ^ new) & (mark::ACTIVE | OFF_LISTS) == 0 {
            self.records[index].marks = new;
            return;
        }
        self.unlink(index as u32);
        self.records[index].marks = new;
        self.push(index as u32);
    }

    /// Moves the block at `frame` to the head of its list.
    pub fn rotate(&mut self, frame: Frame) {
        let index = self.index(frame) as u32;
        self.unlink(index);
        self.push(index);
    }

    /// The oldest block of a list.
    #[must_use]
    pub fn oldest(&self, zone: usize, age: Age) -> Option<Block> {
        let tail = self.lists[zone][age as usize].tail;
        (tail != END)
            .then(|| self.block(self.frame(tail)))
            .flatten()
    }

    /// The list that a block with this record belongs on.
    fn list_of(record: &Record) -> Option<Age> {
        if record.marks & OFF_LISTS != 0 {
            return None;
        }
        let active = record.marks & mark::ACTIVE != 0;
        match (record.role, active) {
            (Role::File, false) => Some(Age::InactiveFile),
            (Role::File, true) => Some(Age::ActiveFile),
            (Role::Anonymous, false) => Some(Age::InactiveAnonymous),
            (Role::Anonymous, true) => Some(Age::ActiveAnonymous),
            (Role::SlabReclaimable, _) => Some(Age::Slab),
            _ => None,
        }
    }

    fn push(&mut self, index: u32) {
        let record = self.records[index as usize];
        let Some(age) = Self::list_of(&record) else {
            return;
        };
        let list = &mut self.lists[record.zone as usize][age as usize];
        let head = list.head;
        list.head = index;
        list.frames += 1 << record.order;
        if head == END {
            list.tail = index;
        } else {
            self.records[head as usize].prev = index;
        }
        let record = &mut self.records[index as usize];
        record.next = head;
        record.prev = END;
    }

    fn unlink(&mut self, index: u32) {
        let record = self.records[index as usize];
        let Some(age) = Self::list_of(&record) else {
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
