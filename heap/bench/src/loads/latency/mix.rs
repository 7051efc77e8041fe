//! The load: what a thread of a long-lived program does. Small blocks mostly, one in 500 of 32 KiB
//! to 2 MiB, one in 20,000 of up to 16 MiB. Half of the small ones live for 64 allocations, the
//! others until they are replaced at random. Now and then half of these are freed, and memory grows
//! again. Where there are several threads, one block in eight goes through a table that they share,
//! and is freed by whom it comes to.

use core::ptr::NonNull;
use core::sync::atomic::{AtomicPtr, Ordering};

use brickyard_run::Dice;

use super::record::Record;
use super::{BlockKind, Timed};
use crate::loads::block::wrong;
use crate::loads::sizes::{halving, logarithmic, uniform};

const SMALL: (usize, usize) = (16, 16 << 10);
const MEDIUM: (usize, usize) = ((32 << 10) + 1, 2 << 20);
const LARGE: (usize, usize) = ((2 << 20) + 1, 16 << 20);

/// One block in so many is medium, and one in so many is large.
const A_MEDIUM: u64 = 500;
const A_LARGE: u64 = 20_000;

/// The places of small blocks of short lives, of small blocks of long ones, and of the others.
const SHORT: usize = 64;
const LONG: usize = 1 << 16;
const OF_MEDIUM: usize = 64;
const OF_LARGE: usize = 4;

/// One block in so many goes through the shared table, of so many places.
const A_SHARED: u64 = 8;
const SHARED: usize = 1024;

/// Half of the long-lived blocks are freed after so many allocations.
const PHASE: u64 = 1 << 20;

/// Each page of a new block is written.
const PAGE: usize = 4096;

/// A live block: its address, which is a multiple of 16, and its kind in the lowest bits.
///
/// Invariant `one-holder`: it is in one place, or in the hands of one thread, which may free it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct MixBlock(NonNull<u8>);

const KIND_MASK: usize = 15;

impl MixBlock {
    fn new(memory: NonNull<u8>, kind: BlockKind) -> Self {
        Self(memory.map_addr(|address| address | kind as usize))
    }

    fn parts(self) -> (*mut u8, BlockKind) {
        let kind = BlockKind::ALL[self.0.addr().get() & KIND_MASK];
        (
            self.0.as_ptr().map_addr(|address| address & !KIND_MASK),
            kind,
        )
    }
}

type Place = Option<MixBlock>;

/// The table through which threads hand blocks to each other.
#[derive(Debug)]
pub(super) struct Shared(Vec<AtomicPtr<u8>>);

impl Shared {
    pub(super) fn new() -> Self {
        Self((0..SHARED).map(|_| AtomicPtr::default()).collect())
    }

    /// Puts a block in a place, and takes what was there.
    fn swap(&self, place: usize, block: MixBlock) -> Place {
        // AcqRel: the thread that takes the block, by another swap, sees what was written to it.
        let before = self.0[place].swap(block.0.as_ptr(), Ordering::AcqRel);
        NonNull::new(before).map(MixBlock)
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        for place in &mut self.0 {
            free(NonNull::new(*place.get_mut()).map(MixBlock));
        }
    }
}

/// Frees a block, if there is one.
fn free(block: Place) {
    if let Some(block) = block {
        // SAFETY: `one-holder`.
        unsafe { libc::free(block.parts().0.cast()) };
    }
}

/// The blocks of a thread.
#[derive(Debug)]
pub(super) struct Mix<'s> {
    dice: Dice,
    short: Vec<Place>,
    long: Vec<Place>,
    medium: Vec<Place>,
    large: Vec<Place>,
    shared: Option<&'s Shared>,
    allocations: u64,
}

impl<'s> Mix<'s> {
    /// Makes the tables of a thread. `shared` is there if there are several.
    pub(super) fn new(seed: u64, shared: Option<&'s Shared>) -> Self {
        Self {
            dice: Dice::new(seed),
            short: vec![None; SHORT],
            long: vec![None; LONG],
            medium: vec![None; OF_MEDIUM],
            large: vec![None; OF_LARGE],
            shared,
            allocations: 0,
        }
    }

    /// Returns how many blocks were allocated.
    pub(super) const fn allocations(&self) -> u64 {
        self.allocations
    }

    /// Allocates a block, puts it in the place of another, and frees that.
    pub(super) fn step(&mut self, record: &mut Record) {
        self.allocations += 1;
        if self.allocations.is_multiple_of(PHASE) {
            self.shrink(record);
        }
        let (kind, bytes) = self.draw();
        record.nothing();
        let block = allocate(kind, bytes, record);
        let mut before = self.place(kind).replace(block);
        if let Some(shared) = self.shared
            && let Some(block) = before
            && self.dice.chance(A_SHARED)
        {
            before = shared.swap(self.dice.below(SHARED as u64) as usize, block);
        }
        release(before, record);
    }

    fn draw(&mut self) -> (BlockKind, usize) {
        let dice = &mut self.dice;
        if dice.chance(A_LARGE) {
            return (BlockKind::Large, uniform(dice, LARGE.0, LARGE.1));
        }
        if dice.chance(A_MEDIUM) {
            return (BlockKind::Medium, logarithmic(dice, MEDIUM.0, MEDIUM.1));
        }
        (BlockKind::Small, halving(dice, SMALL.0, SMALL.1))
    }

    /// Returns the place of a new block.
    fn place(&mut self, kind: BlockKind) -> &mut Place {
        let lives_shortly = self.dice.chance(2);
        let places = match kind {
            BlockKind::Small if lives_shortly => {
                return &mut self.short[self.allocations as usize % SHORT];
            }
            BlockKind::Small => &mut self.long,
            BlockKind::Medium => &mut self.medium,
            BlockKind::Large => &mut self.large,
        };
        let which = self.dice.below(places.len() as u64) as usize;
        &mut places[which]
    }

    fn shrink(&mut self, record: &mut Record) {
        for place in &mut self.long {
            if self.dice.chance(2) {
                release(place.take(), record);
                record.commit_if_full();
            }
        }
    }
}

impl Drop for Mix<'_> {
    fn drop(&mut self) {
        let tables = [&self.short, &self.long, &self.medium, &self.large];
        for &place in tables.into_iter().flatten() {
            free(place);
        }
    }
}

#[inline(always)]
fn allocate(kind: BlockKind, bytes: usize, record: &mut Record) -> MixBlock {
    let begun = record.now();
    // SAFETY: any size may be asked for.
    let memory: *mut u8 = unsafe { libc::malloc(bytes) }.cast();
    record.add(kind, Timed::Malloc, begun);
    let Some(memory) = NonNull::new(memory) else {
        wrong(format_args!("an allocation of {bytes} bytes failed"));
    };
    let begun = record.now();
    for at in (0..bytes).step_by(PAGE) {
        // SAFETY: the block has so many bytes. Volatile: nobody reads it.
        unsafe { memory.add(at).write_volatile(1) };
    }
    record.add(kind, Timed::Touch, begun);
    MixBlock::new(memory, kind)
}

#[inline(always)]
fn release(block: Place, record: &mut Record) {
    let Some(block) = block else {
        return;
    };
    let (memory, kind) = block.parts();
    let begun = record.now();
    // SAFETY: `one-holder`.
    unsafe { libc::free(memory.cast()) };
    record.add(kind, Timed::Free, begun);
}

#[cfg(test)]
mod tests {
    use super::*;
    use brickyard_measure::ticks::Ticks;

    #[test]
    fn a_block_is_known_by_its_kind() {
        let mut record = Record::new(Ticks::new().unwrap());
        for kind in BlockKind::ALL {
            let held = allocate(kind, 100, &mut record);
            assert_eq!(held.parts().1, kind);
            assert!(held.parts().0.addr().is_multiple_of(16));
            release(Some(held), &mut record);
        }
    }

    #[test]
    fn all_kinds_are_drawn_and_blocks_move_between_threads() {
        let shared = Shared::new();
        let mut record = Record::new(Ticks::new().unwrap());
        let mut one = Mix::new(1, Some(&shared));
        let mut kinds = [0; 3];
        for _ in 0..200_000 {
            let (kind, bytes) = one.draw();
            assert!(bytes <= LARGE.1);
            kinds[kind as usize] += 1;
        }
        assert!(
            kinds[1] > 300 && kinds[2] > 2 && kinds[0] > 190_000,
            "{kinds:?}"
        );
        for _ in 0..20_000 {
            one.step(&mut record);
            record.commit_if_full();
        }
        let is_taken = |place: &AtomicPtr<u8>| !place.load(Ordering::Relaxed).is_null();
        assert!(shared.0.iter().filter(|&place| is_taken(place)).count() > 100);
    }
}
