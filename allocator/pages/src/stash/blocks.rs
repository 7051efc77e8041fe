//! The page blocks that a CPU fetches single frames from first: those that it has, or had, on loan.

use brickyard_sync::GuardedU32;

use crate::MigrateType;
use crate::bitmap::{Bitmap, Borrower, Borrows, Loan};

/// The number of page blocks. With page blocks of 2 MiB, they are 32 MiB for each mobility.
const MOST: usize = 8;

/// No page block.
const NONE: u32 = u32::MAX;

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
    pub(super) fn fullest(&self, store: &Bitmap<'_>, kind: MigrateType) -> Option<usize> {
        let mut best = None;
        for entry in &self.0 {
            let block = entry.get();
            if block == NONE {
                continue;
            }
            match store.at_hand(block as usize, kind) {
                None => {
                    store.end_loan(block as usize);
                    entry.set(NONE);
                }
                Some(0) => {}
                Some(free) if best.is_some_and(|(least, _)| least <= free) => {}
                Some(free) => best = Some((free, block as usize)),
            }
        }
        best.map(|(_, block)| block)
    }

    /// Adds a block. It replaces one that is used up, or the one that was added longest ago.
    pub(super) fn adopt(&self, store: &Bitmap<'_>, kind: MigrateType, block: usize) {
        let mut goes = MOST - 1;
        for (place, entry) in self.0.iter().enumerate() {
            if entry.get() == block as u32 {
                return;
            }
            if Self::is_room(store, kind, entry) {
                goes = place;
                break;
            }
        }
        store.end_loan(self.0[goes].get() as usize);
        for place in (0..goes).rev() {
            self.0[place + 1].set(self.0[place].get());
        }
        self.0[0].set(block as u32);
    }

    fn is_room(store: &Bitmap<'_>, kind: MigrateType, entry: &GuardedU32) -> bool {
        let block = entry.get();
        block == NONE || store.at_hand(block as usize, kind) == Some(0)
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
        Loan::Near(self.0[0].get() as usize)
    }

    /// Returns true if `block` is one of them.
    pub(super) fn contains(&self, block: usize) -> bool {
        self.0.iter().any(|entry| entry.get() == block as u32)
    }

    /// Ends all loans.
    pub(super) fn let_go(&self, store: &Bitmap<'_>) {
        for entry in &self.0 {
            if entry.get() != NONE {
                store.end_loan(entry.get() as usize);
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
