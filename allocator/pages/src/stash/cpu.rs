//! The stash of one CPU: its arrays, by order and mobility, and the page blocks that it fetches
//! from.

use brickyard_sync::Blank;

use super::blocks::Blocks;
use super::stack::{Stack, StackOf};
use crate::bitmap::{SPARSE, Sorter};
use crate::{MigrateType, Mobility, Order};

/// The most entries of an array: of single frames, of blocks of a small order, and of page blocks.
pub(super) const SINGLES: usize = 1024;
pub(super) const SMALL: usize = 16;
pub(super) const HUGE: usize = 8;

/// The most single frames of sparse page blocks: few, since each may keep a page block from being
/// whole.
pub(super) const SPARSES: usize = 32;

/// Orders 1 to 5 each have arrays of their own.
pub(super) const SMALL_ORDERS: usize = 5;

pub(super) const KINDS: usize = Mobility::ALL.len();

const _: () = assert!(SPARSE == KINDS);

/// The stash of one CPU: 15 KiB.
#[derive(Debug)]
pub struct CpuStash {
    // For each mobility, the page blocks that single frames are fetched from first.
    pub(super) blocks: [Blocks; KINDS],
    pub(super) singles: [StackOf<SINGLES>; KINDS],
    // What is freed in sparse page blocks, of any mobility: it goes back before others are fetched,
    // and serves only where nothing more may leave the store, or the store has nothing.
    pub(super) sparse: StackOf<SPARSES>,
    pub(super) small: [[StackOf<SMALL>; KINDS]; SMALL_ORDERS],
    pub(super) huge: [StackOf<HUGE>; KINDS],
    // For a flush.
    pub(super) sorter: Sorter,
}

impl CpuStash {
    /// Returns an empty stash.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            blocks: [const { Blocks::new() }; KINDS],
            singles: [const { StackOf::new() }; KINDS],
            sparse: StackOf::new(),
            small: [const { [const { StackOf::new() }; KINDS] }; SMALL_ORDERS],
            huge: [const { StackOf::new() }; KINDS],
            sorter: Sorter::new(),
        }
    }

    /// Returns the array of blocks of `order`, if blocks of that order are kept. `huge` is the
    /// order of a page block. `place` is the number of a mobility, or that of sparse page blocks.
    #[inline]
    pub(super) fn array(&self, order: Order, huge: Order, place: usize) -> Option<Array<'_>> {
        let stack: &Stack = if order == Order::ZERO {
            match self.singles.get(place) {
                Some(stack) => stack,
                None => &self.sparse,
            }
        } else if order == huge {
            &self.huge[place]
        } else {
            &self.small.get(order.index() - 1)?[place]
        };
        Some(Array {
            order,
            place,
            stack,
        })
    }

    /// Returns true if this single frame is the one at the end of an array. Its page block may have
    /// become sparse, or ceased to be, since it was freed.
    pub(super) fn ends_with(&self, entry: u32) -> bool {
        self.singles.iter().any(|stack| stack.ends_with(entry)) || self.sparse.ends_with(entry)
    }

    /// Passes each array to `see`. Plain loops: this is a part of each request that finds nothing
    /// at once.
    #[inline(always)]
    pub(super) fn each<'s>(&'s self, huge: Order, mut see: impl FnMut(Array<'s>)) {
        let mut see = |order, place, stack: &'s Stack| {
            see(Array {
                order,
                place,
                stack,
            });
        };
        for (place, stack) in self.singles.iter().enumerate() {
            see(Order::ZERO, place, stack);
        }
        see(Order::ZERO, SPARSE, &self.sparse);
        for (stacks, order) in self.small.iter().zip(1..) {
            for (place, stack) in stacks.iter().enumerate() {
                see(Order::new(order), place, stack);
            }
        }
        for (place, stack) in self.huge.iter().enumerate() {
            see(huge, place, stack);
        }
    }

    /// Returns the number of blocks ever freed to the stash, modulo 2^32. It is unchanged if no
    /// block was freed meanwhile.
    pub(super) fn freed(&self) -> u32 {
        let mut freed = 0_u32;
        self.each(Order::ZERO, |Array { stack, .. }| {
            freed = freed.wrapping_add(stack.peek().1)
        });
        freed
    }

    /// Returns the number of frames in the stash. A hint.
    #[inline(never)]
    pub(super) fn frames(&self, huge: Order) -> usize {
        let mut frames = 0;
        self.each(huge, |array| {
            frames += (array.stack.peek().0 as usize) << array.order.get();
        });
        frames
    }
}

/// An array of a stash: of blocks of one order and one mobility.
#[derive(Debug, Clone, Copy)]
pub(super) struct Array<'s> {
    pub(super) order: Order,
    /// The number of the mobility, or that of sparse page blocks.
    pub(super) place: usize,
    pub(super) stack: &'s Stack,
}

impl Array<'_> {
    /// Returns how many frames it may hold.
    pub(super) fn frames_at_most(&self) -> usize {
        (self.stack.limit() as usize) << self.order.get()
    }
}

impl Blank for CpuStash {
    const BLANK: Self = Self::new();
}

impl Default for CpuStash {
    fn default() -> Self {
        Self::new()
    }
}

/// Returns the array for a mobility.
#[inline]
pub(super) const fn place_of(kind: MigrateType) -> usize {
    match kind {
        MigrateType::Movable => 1,
        MigrateType::Reclaimable => 2,
        MigrateType::Unmovable | MigrateType::HighAtomic | MigrateType::Isolate => 0,
    }
}
