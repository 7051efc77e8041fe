//! The page blocks that a CPU fetches single frames from first: those that it has, or had, on loan.

use brickyard_sync::GuardedU32;

use crate::MigrateType;
use crate::bitmap::{Bitmap, Borrower, Borrows, Loan};

/// The number of page blocks. With page blocks of 2 MiB, they are 32 MiB for each mobility.
const MOST: usize = 8;

/// No page block. The others are counted from 1, so that no block at all is all zeros, and a stash
/// is made by zeroing its memory.
const NONE: u32 = 0;

/// Returns the entry that stands for a page block.
const fn entry_of(block: usize) -> u32 {
    block as u32 + 1
}

/// Returns the page block that an entry stands for; no store has it, if it stands for none.
const fn block_of(entry: u32) -> usize {
    entry.wrapping_sub(1) as usize
}

/// Page blocks by number, those added last first. Read and written by whichever CPU is inside the
/// stash.
#[derive(Debug)]
pub(super) struct Blocks([GuardedU32; MOST]);

impl Blocks {
    pub(super) const fn new() -> Self {
        Self([const { GuardedU32::new(NONE) }; MOST])
    }

    /// Returns the fullest of the blocks that have free frames. Drops those that no longer serve
    /// this purpose.
    #[inline(never)]
    pub(super) fn fullest(&self, store: &Bitmap<'_>, kind: MigrateType) -> Option<usize> {
        let mut best = None;
        for entry in &self.0 {
            let found = entry.get();
            if found == NONE {
                continue;
            }
            let block = block_of(found);
            match store.at_hand(block, kind) {
                None => {
                    store.end_loan(block);
                    entry.set(NONE);
                }
                Some(0) => {}
                Some(free) if best.is_some_and(|(least, _)| least <= free) => {}
                Some(free) => best = Some((free, block)),
            }
        }
        best.map(|(_, block)| block)
    }

    /// Adds a block. It replaces one that is used up, or the one that was added longest ago.
    #[inline(never)]
    pub(super) fn adopt(&self, store: &Bitmap<'_>, kind: MigrateType, block: usize) {
        let mut goes = MOST - 1;
        for (place, entry) in self.0.iter().enumerate() {
            if entry.get() == entry_of(block) {
                return;
            }
            if Self::is_room(store, kind, entry) {
                goes = place;
                break;
            }
        }
        store.end_loan(block_of(self.0[goes].get()));
        for place in (0..goes).rev() {
            self.0[place + 1].set(self.0[place].get());
        }
        self.0[0].set(entry_of(block));
    }

    fn is_room(store: &Bitmap<'_>, kind: MigrateType, entry: &GuardedU32) -> bool {
        let found = entry.get();
        found == NONE || store.at_hand(block_of(found), kind) == Some(0)
    }

    /// Returns how to get the next block: one that no other CPU writes, while such blocks exist.
    pub(super) fn loan(&self, store: &Bitmap<'_>, kind: MigrateType, cpus: usize) -> Loan {
        if !store.may_lend() {
            return Loan::None;
        }
        // Unmovable and reclaimable blocks stay at their end of the zone.
        if cpus == 1 || kind != MigrateType::Movable {
            return Loan::Any;
        }
        Loan::Near(block_of(self.0[0].get()))
    }

    /// Returns true if `block` is one of them.
    pub(super) fn contains(&self, block: usize) -> bool {
        self.0.iter().any(|entry| entry.get() == entry_of(block))
    }

    /// Ends all loans.
    pub(super) fn let_go(&self, store: &Bitmap<'_>) {
        for entry in &self.0 {
            if entry.get() != NONE {
                store.end_loan(block_of(entry.get()));
                entry.set(NONE);
            }
        }
    }

    /// Returns these blocks as the borrower for frames given back: blocks come on loan as far as
    /// there is room.
    pub(super) fn borrowing<'s, 'm>(
        &'s self,
        store: &'s Bitmap<'m>,
        kind: MigrateType,
    ) -> Borrowing<'s, 'm> {
        let room = |entry: &&GuardedU32| Self::is_room(store, kind, entry);
        Borrowing {
            blocks: self,
            store,
            kind,
            room: match store.may_lend() {
                true => self.0.iter().filter(room).count(),
                false => 0,
            },
        }
    }
}

/// A CPU's blocks while the CPU gives frames back.
#[derive(Debug)]
pub(super) struct Borrowing<'s, 'm> {
    blocks: &'s Blocks,
    store: &'s Bitmap<'m>,
    kind: MigrateType,
    room: usize,
}

impl Borrows for Borrowing<'_, '_> {
    fn borrower(&self) -> Borrower {
        match self.room {
            0 => Borrower::Nobody,
            _ => Borrower::Cpu(self.kind),
        }
    }

    fn lent(&mut self, block: usize) {
        self.blocks.adopt(self.store, self.kind, block);
        self.room -= 1;
    }
}
