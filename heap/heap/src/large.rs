//! Large blocks: a mapping of its own for each, and a table of them.
//!
//! Their memory comes from the system and goes back to it at once. A block grows by moving its
//! pages (`mremap`), not its bytes. The table (`addresses.rs`) maps addresses to lengths.
//!
//! While the gate is closed, a request that cannot wait for it lists its block in a few places
//! beside the table, which change by one compare-and-swap each. It may look into the table, under
//! its lock, but does not change it. So at a fork the table is as it should be, and only its lock
//! may be held by a thread that the child does not have.
//!
//! Invariant `mapping-listed`: a mapping is in the table from after it was made until before it
//! ends or moves. So what is found in the table exists, and no address is listed twice.

use core::cell::UnsafeCell;
use core::ptr::NonNull;
use core::sync::atomic::{AtomicUsize, Ordering};

use brickyard::Platform;
use brickyard::sync::{Locked, TestAndSetLock};
use brickyard_arena::{Region, Threads, page_bytes};
use rustix::mm::{MremapFlags, mremap};

use crate::addresses::{Entry, Table};

/// A mapping, with its bytes.
type Mapping = Entry<usize>;

/// The blocks that have a mapping each.
#[derive(Debug)]
pub(crate) struct LargeBlocks {
    lock: UnsafeCell<Locked<TestAndSetLock, ()>>,
    table: UnsafeCell<Table<usize>>,
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

// SAFETY: only a holder of the lock uses the table; no thread owns its memory.
unsafe impl Sync for LargeBlocks {}

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

    fn with_table<R>(&self, work: impl FnOnce(&mut Table<usize>) -> R) -> R {
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
                table.unreserve();
                return false;
            };
            table.put(Entry { address, of: bytes });
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
        self.with_table(|table| table.used() + beside)
    }

    /// Allocates a block of at least `bytes` bytes at a multiple of `align`, a power of two. It is
    /// zero throughout. Takes one system call, or three.
    pub(crate) fn alloc(&self, bytes: usize, align: usize) -> Option<NonNull<u8>> {
        let bytes = rounded(bytes)?;
        let region = Region::map_memory(bytes, align).ok()?;
        let entry = Mapping {
            address: region.start().addr().get(),
            of: bytes,
        };
        let listed = self.with_table(|table| {
            let room = table.reserve();
            if room {
                table.put(entry);
            }
            room.then_some(table.used())
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
        self.with_table(|table| table.get(start.addr().get()))
    }

    /// Frees a block. False if none begins there.
    ///
    /// # Safety
    /// If one begins there, nobody uses it any more.
    pub(crate) unsafe fn free(&self, start: NonNull<u8>) -> bool {
        let _ = self.list_in_table(start);
        let taken = self.with_table(|table| {
            let taken = table.take(start.addr().get());
            if taken.is_some() {
                table.unreserve();
            }
            taken
        });
        let Some(Mapping { of: bytes, .. }) = taken else {
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
        let moved = unsafe { mremap(start.as_ptr().cast(), old.of, bytes, MremapFlags::MAYMOVE) };
        let entry = match moved {
            Ok(moved) => Mapping {
                address: moved.addr(),
                of: bytes,
            },
            Err(_) => old,
        };
        self.with_table(|table| table.put(entry));
        let moved = NonNull::new(moved.ok()?.cast())?;
        self.grown_by(bytes, 0);
        self.bytes.fetch_sub(old.of, Ordering::Relaxed);
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
    use std::thread;

    use super::*;

    fn next(state: &mut u64) -> usize {
        *state = state
            .wrapping_mul(6364136223846793005)
            .wrapping_add(1442695040888963407);
        (*state >> 33) as usize
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
