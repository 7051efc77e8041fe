//! Large blocks: a mapping of its own for each, and a table of them.
//!
//! Their memory comes from the system and goes back to it at once. A block grows by moving its
//! pages (`mremap`), not its bytes. The table maps addresses to lengths. It uses open addressing
//! with linear probing in mapped memory of its own, at most half full, so a lookup takes a step or
//! two.
//!
//! While the gate is closed, a request that cannot wait for it lists its block in a few places
//! beside the table, which change by one compare-and-swap each. It may look into the table, under
//! its lock, but does not change it. So at a fork the table is as it should be, and only its lock
//! may be held by a thread that the child does not have.
//!
//! Invariant `mapping-listed`: a mapping is in the table from after it was made until before it
//! ends or moves. So what is found in the table exists, and no address is listed twice.

use core::cell::UnsafeCell;
use core::mem::offset_of;
use core::ptr::{NonNull, from_ref};
use core::slice;
use core::sync::atomic::{AtomicUsize, Ordering};

use brickyard::Platform;
use brickyard::sync::{Locked, TestAndSetLock};
use brickyard_arena::{Region, Threads, page_bytes};
use rustix::mm::{MremapFlags, mremap};

/// A mapping. A free place has the address 0.
#[derive(Debug, Clone, Copy)]
struct Entry {
    address: usize,
    bytes: usize,
}

/// See the [module](self).
#[derive(Debug)]
struct Table {
    /// A power of two of them, or none, in memory mapped for them.
    entries: &'static mut [Entry],
    /// Entries in use, and those reserved for blocks that are being resized.
    used: usize,
}

/// The blocks that have a mapping each.
#[derive(Debug)]
pub(crate) struct LargeBlocks {
    lock: UnsafeCell<Locked<TestAndSetLock, ()>>,
    table: UnsafeCell<Table>,
    bytes: AtomicUsize,
    /// The most bytes and blocks that there were.
    most: [AtomicUsize; 2],
    beside: [Beside; BESIDE],
}

/// So many blocks can be listed beside the table.
const BESIDE: usize = 64;

/// A place beside the table. Invariant `beside-claimed`: who makes `bytes` something else than 0 by
/// a compare-and-swap owns the place until `address` is written, and who takes the address out by
/// one owns it until `bytes` is 0 again.
#[derive(Debug)]
struct Beside {
    address: AtomicUsize,
    bytes: AtomicUsize,
}

impl Beside {
    /// Takes the address out, and returns the bytes of its block; `None` if another has.
    fn take(&self, start: NonNull<u8>) -> Option<usize> {
        let address = start.addr().get();
        // Acquire: pairs with the release in `alloc_beside`.
        let (success, failure) = (Ordering::Acquire, Ordering::Relaxed);
        let taken = self.address.compare_exchange(address, 0, success, failure);
        taken.is_ok().then(|| self.bytes.load(Ordering::Relaxed))
    }

    /// Leaves the place to the next owner.
    fn leave(&self) {
        // Release: pairs with the acquire of the next owner.
        self.bytes.store(0, Ordering::Release);
    }
}

/// Where the words lie that count large blocks, for a reader in another process.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub(crate) struct LargePlaces {
    /// The bytes of all blocks.
    pub(crate) bytes: usize,
    /// The most bytes that there were; the word behind it has the most blocks.
    pub(crate) most: usize,
    /// The number of blocks in the table.
    pub(crate) listed: usize,
    /// The address of the first block that is listed beside it, or 0.
    pub(crate) beside: usize,
}

impl LargePlaces {
    /// So many places are beside the table.
    pub(crate) const BESIDE: usize = BESIDE;
    /// The distance of two such places.
    pub(crate) const BESIDE_BYTES: usize = size_of::<Beside>();
}

// SAFETY: only a holder of the lock uses the table; no thread owns its memory.
unsafe impl Sync for LargeBlocks {}

impl Table {
    const FIRST_CAPACITY: usize = 256;

    const fn new() -> Self {
        Self {
            entries: &mut [],
            used: 0,
        }
    }

    /// Returns where an address belongs.
    const fn home(&self, address: usize) -> usize {
        // Fibonacci hashing of the page number.
        let mixed = (address >> 12).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        (mixed >> 32) & (self.entries.len() - 1)
    }

    fn next(&self, index: usize) -> usize {
        (index + 1) & (self.entries.len() - 1)
    }

    fn find(&mut self, address: usize) -> Option<usize> {
        if self.entries.is_empty() {
            return None;
        }
        let mut index = self.home(address);
        loop {
            match self.entries[index].address {
                0 => return None,
                found if found == address => return Some(index),
                _ => index = self.next(index),
            }
        }
    }

    /// Makes room for one more. False if there is no memory for a larger table.
    fn reserve(&mut self) -> bool {
        if (self.used + 1) * 2 > self.entries.len() && !self.enlarge() {
            return false;
        }
        self.used += 1;
        true
    }

    fn enlarge(&mut self) -> bool {
        let capacity = (self.entries.len() * 2).max(Self::FIRST_CAPACITY);
        let Ok(region) = Region::map_memory(capacity * size_of::<Entry>(), 1) else {
            return false;
        };
        // SAFETY: there is room for so many entries, and nobody else knows of it; zero is a free
        // entry.
        let larger = unsafe { slice::from_raw_parts_mut(region.leak().as_ptr().cast(), capacity) };
        let old = core::mem::replace(&mut self.entries, larger);
        for entry in old.iter().filter(|entry| entry.address != 0) {
            self.put(*entry);
        }
        if !old.is_empty() {
            // SAFETY: leaked by an earlier call, and its contents have been moved.
            drop(unsafe { Region::from_leaked(NonNull::from(&mut *old).cast(), size_of_val(old)) });
        }
        true
    }

    /// Puts an entry in. There must be room.
    fn put(&mut self, entry: Entry) {
        let mut index = self.home(entry.address);
        while self.entries[index].address != 0 {
            index = self.next(index);
        }
        self.entries[index] = entry;
    }

    /// Takes an entry out, and moves entries behind it that would not be found any more. Its room
    /// stays reserved.
    fn take(&mut self, address: usize) -> Option<Entry> {
        let mut hole = self.find(address)?;
        let taken = self.entries[hole];
        let mut index = self.next(hole);
        loop {
            let entry = self.entries[index];
            if entry.address == 0 {
                break;
            }
            // The entry may fill the hole if its home does not lie behind the hole, cyclically.
            let from_home = index.wrapping_sub(self.home(entry.address)) & (self.entries.len() - 1);
            let from_hole = index.wrapping_sub(hole) & (self.entries.len() - 1);
            if from_home >= from_hole {
                self.entries[hole] = entry;
                hole = index;
            }
            index = self.next(index);
        }
        self.entries[hole].address = 0;
        Some(taken)
    }
}

impl LargeBlocks {
    pub(crate) const fn new() -> Self {
        Self {
            lock: UnsafeCell::new(Locked::new(())),
            table: UnsafeCell::new(Table::new()),
            bytes: AtomicUsize::new(0),
            most: [const { AtomicUsize::new(0) }; 2],
            beside: [const {
                Beside {
                    address: AtomicUsize::new(0),
                    bytes: AtomicUsize::new(0),
                }
            }; BESIDE],
        }
    }

    const fn lock(&self) -> &Locked<TestAndSetLock, ()> {
        // SAFETY: it is replaced only in a child process, by its only thread (`forget_holder`).
        unsafe { &*self.lock.get() }
    }

    fn with_table<R>(&self, work: impl FnOnce(&mut Table) -> R) -> R {
        let _held = self.lock().lock(|| Threads.relax());
        // SAFETY: the lock is held as long as `work` runs, so this is the only reference.
        work(unsafe { &mut *self.table.get() })
    }

    /// Forgets who holds the lock, in a child process.
    ///
    /// # Safety
    /// The process has one thread, which is not in a function of this value. Whoever held the lock
    /// at the fork was only looking.
    pub(crate) unsafe fn forget_holder(&self) {
        // SAFETY: the caller's promise: nobody refers to it.
        unsafe { *self.lock.get() = Locked::new(()) };
    }

    /// Returns where the words lie that are counted.
    pub(crate) fn places(&self) -> LargePlaces {
        LargePlaces {
            bytes: from_ref(&self.bytes).addr(),
            most: self.most.as_ptr().addr(),
            listed: self.table.get().addr() + offset_of!(Table, used),
            beside: self.beside.as_ptr().addr() + offset_of!(Beside, address),
        }
    }

    /// Returns the most bytes and blocks that there were.
    pub(crate) fn most(&self) -> [usize; 2] {
        // Relaxed, here and below: hints.
        [0, 1].map(|which: usize| self.most[which].load(Ordering::Relaxed))
    }

    fn grown_by(&self, bytes: usize, blocks: usize) {
        let bytes = self.bytes.fetch_add(bytes, Ordering::Relaxed) + bytes;
        let _ = self.most[0].fetch_max(bytes, Ordering::Relaxed);
        let _ = self.most[1].fetch_max(blocks, Ordering::Relaxed);
    }

    /// As [`LargeBlocks::alloc`], without changing the table. `None` also if too many blocks are
    /// listed beside it.
    pub(crate) fn alloc_beside(&self, bytes: usize, align: usize) -> Option<NonNull<u8>> {
        let bytes = rounded(bytes)?;
        let region = Region::map_memory(bytes, align).ok()?;
        let place = self.beside.iter().find(|place| {
            // Acquire: pairs with the release of the last owner (`beside-claimed`).
            let (success, failure) = (Ordering::Acquire, Ordering::Relaxed);
            let claimed = place.bytes.compare_exchange(0, bytes, success, failure);
            claimed.is_ok()
        })?;
        let start = region.leak();
        // Release: pairs with the acquire of who looks for the address.
        place.address.store(start.addr().get(), Ordering::Release);
        self.grown_by(bytes, 0);
        Some(start)
    }

    /// Returns the place beside the table that lists an address.
    fn beside(&self, start: NonNull<u8>) -> Option<&Beside> {
        let address = start.addr().get();
        // Acquire: pairs with the release in `alloc_beside`.
        let mut places = self.beside.iter();
        places.find(|place| place.address.load(Ordering::Acquire) == address)
    }

    /// Frees a block that is listed beside the table. False if none is that begins there.
    ///
    /// # Safety
    /// As [`LargeBlocks::free`].
    pub(crate) unsafe fn free_beside(&self, start: NonNull<u8>) -> bool {
        let Some(place) = self.beside(start) else {
            return false;
        };
        let Some(bytes) = place.take(start) else {
            return false;
        };
        self.bytes.fetch_sub(bytes, Ordering::Relaxed);
        // SAFETY: `mapping-listed`: it is a mapping of so many bytes, and this caller took it out.
        drop(unsafe { Region::from_leaked(start, bytes) });
        place.leave();
        true
    }

    /// Moves what is listed beside the table into it, and returns true if the address was listed
    /// there. The gate must be open for the caller.
    fn list_in_table(&self, start: NonNull<u8>) -> bool {
        let Some(place) = self.beside(start) else {
            return false;
        };
        let address = start.addr().get();
        self.with_table(|table| {
            if !table.reserve() {
                return false;
            }
            let Some(bytes) = place.take(start) else {
                table.used -= 1;
                return false;
            };
            table.put(Entry { address, bytes });
            place.leave();
            true
        })
    }

    /// Returns the bytes of all large blocks.
    pub(crate) fn bytes(&self) -> usize {
        // Relaxed: a hint.
        self.bytes.load(Ordering::Relaxed)
    }

    /// Returns the number of all large blocks.
    pub(crate) fn blocks(&self) -> usize {
        // Relaxed: a hint.
        let places = self.beside.iter();
        let beside = places.filter(|place| place.address.load(Ordering::Relaxed) != 0);
        let beside = beside.count();
        self.with_table(|table| table.used + beside)
    }

    /// Allocates a block of at least `bytes` bytes at a multiple of `align`, a power of two. It is
    /// zero throughout. Takes one system call, or three.
    pub(crate) fn alloc(&self, bytes: usize, align: usize) -> Option<NonNull<u8>> {
        let bytes = rounded(bytes)?;
        let region = Region::map_memory(bytes, align).ok()?;
        let entry = Entry {
            address: region.start().addr().get(),
            bytes,
        };
        let listed = self.with_table(|table| {
            let room = table.reserve();
            if room {
                table.put(entry);
            }
            room.then_some(table.used)
        });
        let blocks = listed?;
        self.grown_by(bytes, blocks);
        Some(region.leak())
    }

    /// Returns the bytes of the block that begins at an address; `None` if none does.
    pub(crate) fn bytes_at(&self, start: NonNull<u8>) -> Option<usize> {
        if let Some(place) = self.beside(start) {
            return Some(place.bytes.load(Ordering::Relaxed));
        }
        self.with_table(|table| {
            let index = table.find(start.addr().get())?;
            Some(table.entries[index].bytes)
        })
    }

    /// Frees a block. False if none begins there.
    ///
    /// # Safety
    /// If one begins there, nobody uses it any more.
    pub(crate) unsafe fn free(&self, start: NonNull<u8>) -> bool {
        let _ = self.list_in_table(start);
        let taken = self.with_table(|table| {
            let taken = table.take(start.addr().get());
            table.used -= usize::from(taken.is_some());
            taken
        });
        let Some(Entry { bytes, .. }) = taken else {
            return false;
        };
        self.bytes.fetch_sub(bytes, Ordering::Relaxed);
        // SAFETY: `mapping-listed`: it is a mapping of so many bytes, and this caller took it out
        // of the table.
        drop(unsafe { Region::from_leaked(start, bytes) });
        true
    }

    /// Makes a block longer or shorter. It may move, and is then aligned only to a page. `None`,
    /// and the block is as it was, if the system has no room, or if no block begins there.
    ///
    /// # Safety
    /// Nobody uses the block meanwhile, nor by its old address afterwards.
    pub(crate) unsafe fn resize(&self, start: NonNull<u8>, bytes: usize) -> Option<NonNull<u8>> {
        let bytes = rounded(bytes)?;
        let _ = self.list_in_table(start);
        // Its place in the table stays reserved until it is put back.
        let old = self.with_table(|table| table.take(start.addr().get()))?;
        // SAFETY: `mapping-listed`: a mapping of so many bytes, which nobody uses meanwhile.
        let moved = unsafe {
            mremap(
                start.as_ptr().cast(),
                old.bytes,
                bytes,
                MremapFlags::MAYMOVE,
            )
        };
        let entry = match moved {
            Ok(moved) => Entry {
                address: moved.addr(),
                bytes,
            },
            Err(_) => old,
        };
        self.with_table(|table| table.put(entry));
        let moved = NonNull::new(moved.ok()?.cast())?;
        self.grown_by(bytes, 0);
        self.bytes.fetch_sub(old.bytes, Ordering::Relaxed);
        Some(moved)
    }
}

/// Rounds up to pages; `None` for more than `isize::MAX` bytes.
fn rounded(bytes: usize) -> Option<usize> {
    let rounded = bytes.max(1).checked_next_multiple_of(page_bytes())?;
    (rounded <= isize::MAX as usize).then_some(rounded)
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;
    use std::thread;

    use super::*;

    fn next(state: &mut u64) -> usize {
        *state = state
            .wrapping_mul(6364136223846793005)
            .wrapping_add(1442695040888963407);
        (*state >> 33) as usize
    }

    #[test]
    fn the_table_agrees_with_a_map() {
        let mut table = Table::new();
        let mut model = HashMap::new();
        let mut state = 1;
        for _ in 0..40_000 {
            // Few addresses, close together: long chains.
            let address = (next(&mut state) % 700 + 1) << 12;
            match model.remove(&address) {
                None => {
                    let bytes = next(&mut state);
                    assert!(table.reserve());
                    table.put(Entry { address, bytes });
                    model.insert(address, bytes);
                }
                Some(bytes) => {
                    assert_eq!(table.take(address).unwrap().bytes, bytes);
                    table.used -= 1;
                }
            }
            assert_eq!(table.used, model.len());
            let probe = (next(&mut state) % 700 + 1) << 12;
            let found = table.find(probe);
            let found = found.map(|index| table.entries[index].bytes);
            assert_eq!(found, model.get(&probe).copied());
        }
    }

    #[test]
    fn blocks_are_aligned_zero_and_keep_their_contents_when_they_grow() {
        let large = LargeBlocks::new();
        for align in [1, 4096, 64 << 10, 4 << 20, 1 << 30] {
            let block = large.alloc(3 << 20, align).unwrap();
            assert!(block.addr().get().is_multiple_of(align));
            assert_eq!(large.bytes_at(block), Some(3 << 20));
            // SAFETY: the block is this test's.
            unsafe {
                assert_eq!(block.add((3 << 20) - 1).read(), 0);
                block.add((3 << 20) - 1).write(7);
                let grown = large.resize(block, 50 << 20).unwrap();
                assert_eq!(grown.add((3 << 20) - 1).read(), 7);
                assert_eq!((large.bytes(), large.blocks()), (50 << 20, 1));
                assert!(large.free(grown) && !large.free(grown));
            }
            assert_eq!(large.bytes_at(block), None);
        }
        assert!(large.alloc(usize::MAX, 1).is_none() && large.alloc(1 << 62, 1).is_none());
        assert_eq!((large.bytes(), large.blocks()), (0, 0));
    }

    #[test]
    fn a_panic_leaves_the_lock_free() {
        let large = LargeBlocks::new();
        let panicked = std::panic::catch_unwind(core::panic::AssertUnwindSafe(|| {
            large.with_table(|_| panic!("in the table"));
        }));
        assert!(panicked.is_err() && !large.lock().is_locked());
        let block = large.alloc(4096, 1).unwrap();
        // SAFETY: the block is this test's.
        assert!(unsafe { large.free(block) });
    }

    #[test]
    fn threads_do_not_meet() {
        let large = LargeBlocks::new();
        let work = |owner: usize| {
            let mut state = owner as u64;
            let mut held: Vec<NonNull<u8>> = Vec::new();
            for _ in 0..400 {
                if held.len() < 300 && !next(&mut state).is_multiple_of(3) {
                    let block = large.alloc(4096 * (1 + next(&mut state) % 8), 1).unwrap();
                    // SAFETY: this thread's own block.
                    unsafe { block.cast().write(owner) };
                    held.push(block);
                } else if let Some(block) = held.pop() {
                    // SAFETY: this thread's own block.
                    unsafe {
                        let block = large
                            .resize(block, 4096 * (1 + next(&mut state) % 8))
                            .unwrap();
                        assert_eq!(block.cast::<usize>().read(), owner);
                        assert!(large.free(block));
                    }
                }
            }
            for block in held {
                // SAFETY: this thread's own block.
                unsafe {
                    assert_eq!(block.cast::<usize>().read(), owner);
                    assert!(large.free(block));
                }
            }
        };
        thread::scope(|scope| {
            let work = &work;
            for owner in 1..=4 {
                scope.spawn(move || work(owner));
            }
        });
        assert_eq!((large.bytes(), large.blocks()), (0, 0));
    }
}
