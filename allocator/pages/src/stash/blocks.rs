//! The page blocks that a CPU fetches single frames from first: those that it has on loan, or had.

use brickyard_sync::GuardedU32;

use crate::MigrateType;
use crate::bitmap::{Bitmap, Borrower, Borrows, Loan};

/// How many: with page blocks of 2 MiB they are 32 MiB for each mobility.
const MOST: usize = 16;

/// No page block.
const NONE: u32 = u32::MAX;

/// Page blocks by number, those added last first. Whoever is inside the stash reads and writes
/// them.
#[derive(Debug)]
pub(super) struct Blocks([GuardedU32; MOST]);

impl Blocks {
    pub(super) const fn new() -> Self {
        Self([const { GuardedU32::new(NONE) }; MOST])
    }

    /// The fullest of them that something is free in. Lets go of those that have become something
    /// else.
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

    /// Adds a block, in the place of one that is used up, or of the one that was added longest ago.
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

    /// How the next block is to be had: one that nobody else writes, while there are such.
    pub(super) fn loan(&self, store: &Bitmap<'_>, kind: MigrateType, cpus: usize) -> Loan {
        if !store.may_lend() {
            return Loan::None;
        }
        // What cannot be moved stays at its end of the zone.
        if cpus == 1 || kind != MigrateType::Movable {
            return Loan::Any;
        }
        Loan::Near(self.0[0].get() as usize)
    }

    /// Is it one of them?
    pub(super) fn contains(&self, block: usize) -> bool {
        self.0.iter().any(|entry| entry.get() == block as u32)
    }

    /// All loans end.
    pub(super) fn let_go(&self, store: &Bitmap<'_>) {
        for entry in &self.0 {
            store.end_loan(entry.get() as usize);
            entry.set(NONE);
        }
    }

    /// As what frames are given back by: blocks come on loan as far as there is room.
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

/// A CPU's blocks while it gives frames back.
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
