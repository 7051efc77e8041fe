//! The stash of one CPU: its arrays, by order and mobility, and the page blocks that it fetches
//! from.

use brickyard_sync::{AtomicU32, Blank, Ordering};

use super::blocks::Blocks;
use super::stack::Stack;
use crate::bitmap::Sorter;
use crate::{MigrateType, Mobility, Order};

/// The most entries of an array: of single frames, of blocks of a small order, and of page blocks.
pub(super) const SINGLES: usize = 1024;
pub(super) const SMALL: usize = 16;
pub(super) const HUGE: usize = 8;

/// Orders 1 to 5 each have arrays of their own.
pub(super) const SMALL_ORDERS: usize = 5;

pub(super) const KINDS: usize = Mobility::ALL.len();

/// The stash of one CPU: 15 KiB.
#[derive(Debug)]
pub struct CpuStash {
    // How many CPUs used their stashes when the arrays were last held against their share; 0 if
    // this CPU does not count as one of them.
    // Written by the CPU that is inside; a hint for others.
    pub(super) users: AtomicU32,
    // For each mobility, the page blocks that single frames are fetched from first.
    pub(super) blocks: [Blocks; KINDS],
    pub(super) singles: [Stack<SINGLES>; KINDS],
    pub(super) small: [[Stack<SMALL>; KINDS]; SMALL_ORDERS],
    pub(super) huge: [Stack<HUGE>; KINDS],
    // For a flush.
    pub(super) sorter: Sorter,
    // Where there would be padding, which no stash that is all zeros may have.
    _filler: AtomicU32,
}

impl CpuStash {
    /// Returns an empty stash.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            users: AtomicU32::new(0),
            blocks: [const { Blocks::new() }; KINDS],
            singles: [const { Stack::new() }; KINDS],
            small: [const { [const { Stack::new() }; KINDS] }; SMALL_ORDERS],
            huge: [const { Stack::new() }; KINDS],
            sorter: Sorter::new(),
            _filler: AtomicU32::new(0),
        }
    }

    /// Returns the number of blocks ever freed to the stash, modulo 2^32. It is unchanged if no
    /// block was freed meanwhile.
    pub(super) fn freed(&self) -> u32 {
        let mut freed = 0_u32;
        self.each_peek(|(_, ever_freed), _| freed = freed.wrapping_add(ever_freed));
        freed
    }

    /// Returns true if the stash counts as one that is used, see `share.rs`. A hint.
    pub(super) fn counts(&self) -> bool {
        self.users.load(Ordering::Relaxed) > 0
    }

    /// Returns the number of frames in the stash. A hint.
    #[inline(never)]
    pub(super) fn frames(&self, huge: Order) -> usize {
        let mut frames = 0;
        self.each_peek(|(len, _), order| frames += (len as usize) << order.unwrap_or(huge.get()));
        frames
    }

    /// Peeks into each array. Passes what it says, and the order of its blocks, which is `None` for
    /// page blocks. Plain loops: this is a part of each request that finds nothing at once.
    #[inline(always)]
    fn each_peek(&self, mut see: impl FnMut((u32, u32), Option<u8>)) {
        for stack in &self.singles {
            see(stack.peek(), Some(0));
        }
        for (stacks, order) in self.small.iter().zip(1..) {
            for stack in stacks {
                see(stack.peek(), Some(order));
            }
        }
        for stack in &self.huge {
            see(stack.peek(), None);
        }
    }

    /// Returns every block in the stash, with its order.
    pub(super) fn blocks(&self, huge: Order) -> impl Iterator<Item = (u32, Order)> + '_ {
        let small = self.small.iter().zip(1..).flat_map(|(stacks, order)| {
            let entries = stacks.iter().flat_map(Stack::entries);
            entries.map(move |entry| (entry, Order::new(order)))
        });
        let singles = self.singles.iter().flat_map(Stack::entries);
        let singles = singles.map(|entry| (entry, Order::ZERO));
        let wide = self.huge.iter().flat_map(Stack::entries);
        singles
            .chain(small)
            .chain(wide.map(move |entry| (entry, huge)))
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
