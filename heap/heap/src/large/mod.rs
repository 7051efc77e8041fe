//! Large blocks: a mapping of its own for each, and a table of them.
//!
//! Their memory comes from the system. What is freed is kept for a while (`spare.rs`), and then goes
//! back to it. A block grows by moving its pages (`mremap`), not its bytes. The table (`table.rs`)
//! maps addresses to lengths.
//!
//! While the gate is closed, a request that cannot wait for it lists its block in a few places
//! beside the table, which change by one compare-and-swap each. It may look into the table, under
//! its lock, but does not change it. So at a fork the table is as it should be, and only its lock
//! may be held by a thread that the child does not have.
//!
//! Invariant `mapping-listed`: a mapping is in the table from after it was made until before it
//! ends or moves. So what is found in the table exists, and no address is listed twice.

mod spare;
mod table;

use core::cell::UnsafeCell;
use core::ptr::NonNull;
use core::sync::atomic::{AtomicUsize, Ordering};

use brickyard::Platform;
use brickyard::sync::{Locked, TestAndSetLock};
use brickyard_arena::{Region, Release, Threads, page_bytes};
use rustix::io::Errno;
use rustix::mm::{MremapFlags, mremap};

use crate::span::Contents;
use crate::surplus;
use spare::Spare;
use table::{Entry, Table};

/// The blocks that have a mapping each.
#[derive(Debug)]
pub(crate) struct LargeBlocks {
    lock: UnsafeCell<Locked<TestAndSetLock, ()>>,
    table: UnsafeCell<Table>,
    /// Behind the same lock.
    spare: UnsafeCell<Spare>,
    bytes: AtomicUsize,
    /// The most bytes and blocks that there were.
    most: [AtomicUsize; 2],
    /// The most bytes that there were since the last look.
    lately: AtomicUsize,
    /// The bytes of spare pieces.
    idle: AtomicUsize,
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

// SAFETY: only a holder of the lock uses the table and the spare pieces; no thread owns their
// memory.
unsafe impl Sync for LargeBlocks {}

impl LargeBlocks {
    pub(crate) const fn new() -> Self {
        Self {
            lock: UnsafeCell::new(Locked::new(())),
            table: UnsafeCell::new(Table::new()),
            spare: UnsafeCell::new(Spare::new()),
            bytes: AtomicUsize::new(0),
            most: [const { AtomicUsize::new(0) }; 2],
            lately: AtomicUsize::new(0),
            idle: AtomicUsize::new(0),
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

    fn with_spare<R>(&self, work: impl FnOnce(&mut Spare) -> R) -> R {
        let _held = self.lock().lock(|| Threads.relax());
        // SAFETY: as in `with_table`.
        let spare = unsafe { &mut *self.spare.get() };
        let done = work(spare);
        // Relaxed: a hint.
        self.idle.store(spare.bytes(), Ordering::Relaxed);
        done
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
        let _ = self.lately.fetch_max(bytes, Ordering::Relaxed);
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
        let address = start.as_ptr().expose_provenance();
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

    /// Allocates a block of at least `bytes` bytes at a multiple of `align`, a power of two. Also
    /// returns what is in it. Takes one system call, or three; none where a spare piece serves as
    /// it is.
    pub(crate) fn alloc(&self, bytes: usize, align: usize) -> Option<(NonNull<u8>, Contents)> {
        let bytes = rounded(bytes)?;
        let is_usual = align <= page_bytes();
        if let Some(region) = is_usual.then(|| self.from_spare(bytes)).flatten() {
            return Some((self.list(region)?, Contents::Anything));
        }
        Some((self.map(bytes, align)?, Contents::Zeros))
    }

    /// As [`LargeBlocks::alloc`], but always makes a new mapping: it is zero.
    pub(crate) fn map(&self, bytes: usize, align: usize) -> Option<NonNull<u8>> {
        let bytes = rounded(bytes)?;
        let region = match Region::map_memory(bytes, align) {
            Ok(region) => region,
            // Perhaps there is a limit to what may be mapped.
            Err(_) if self.release_idle() > 0 => Region::map_memory(bytes, align).ok()?,
            Err(_) => return None,
        };
        self.list(region)
    }

    /// Lists a mapping as a block.
    fn list(&self, region: Region) -> Option<NonNull<u8>> {
        let (address, bytes) = (region.start().as_ptr().expose_provenance(), region.bytes());
        let listed = self.with_table(|table| {
            let room = table.reserve();
            if room {
                table.put(Entry { address, bytes });
            }
            room.then_some(table.used)
        });
        self.grown_by(bytes, listed?);
        Some(region.leak())
    }

    /// Takes a mapping of at least `bytes` bytes from the spare pieces; `None` if there are none, or
    /// if the system has no room for it.
    fn from_spare(&self, bytes: usize) -> Option<Region> {
        // Relaxed: a hint.
        if self.idle.load(Ordering::Relaxed) == 0 {
            return None;
        }
        let piece = self.with_spare(|spare| spare.take(bytes))?;
        let start = NonNull::new(core::ptr::with_exposed_provenance_mut(piece.address))?;
        if piece.bytes < bytes {
            // SAFETY: `spare-owned`: nobody uses it.
            let moved = unsafe { remapped(start, piece.bytes, bytes) };
            if moved.is_err() {
                unmap(piece);
            }
            // SAFETY: it was moved there, and nobody knows of it.
            return moved
                .ok()
                .map(|moved| unsafe { Region::from_leaked(moved, bytes) });
        }
        let rest = spare::rest(piece, bytes);
        if let Some(rest) = rest {
            self.keep(rest);
        }
        let bytes = rest.map_or(piece.bytes, |_| bytes);
        // SAFETY: `spare-owned`: it belonged to the list, and does no more.
        Some(unsafe { Region::from_leaked(start, bytes) })
    }

    /// Puts a piece that nobody uses among the spare ones, and unmaps what is too much.
    fn keep(&self, piece: Entry) {
        // Relaxed: hints.
        let (in_use, most) = (self.bytes(), self.lately.load(Ordering::Relaxed));
        let allowed = surplus::allowed(in_use, most);
        while let Err(surplus) = self.with_spare(|spare| spare.put(piece, allowed)) {
            unmap(surplus);
            if surplus.address == piece.address {
                return;
            }
        }
    }

    /// Returns the bytes of freed blocks that are kept.
    pub(crate) fn idle_bytes(&self) -> usize {
        // Relaxed: a hint.
        self.idle.load(Ordering::Relaxed)
    }

    /// Unmaps all that is kept. Returns the number of bytes.
    pub(crate) fn release_idle(&self) -> usize {
        self.unmap_while(Spare::take_oldest)
    }

    /// Unmaps what has been kept since before the last call, if this is called about once a second.
    /// Returns the number of bytes.
    pub(crate) fn release_by_age(&self) -> usize {
        // Relaxed: a hint, of what will be in use from now on.
        self.lately.store(self.bytes(), Ordering::Relaxed);
        self.unmap_while(Spare::take_old)
    }

    fn unmap_while(&self, take: impl Fn(&mut Spare) -> Option<Entry>) -> usize {
        let mut bytes = 0;
        while let Some(piece) = self.with_spare(&take) {
            bytes += piece.bytes;
            unmap(piece);
        }
        bytes
    }

    /// Makes a block of at least `bytes` bytes zero: gives its memory back to the system, or, where
    /// that is locked, writes it.
    ///
    /// # Safety
    /// A block begins there, and is the caller's.
    pub(crate) unsafe fn clear(&self, start: NonNull<u8>, bytes: usize) {
        let whole = bytes.next_multiple_of(page_bytes());
        // SAFETY: `mapping-listed`: whole pages of a mapping, which stays the caller's: it is leaked
        // again below.
        let region = unsafe { Region::from_leaked(start, whole) };
        // SAFETY: the caller's promise, both.
        unsafe {
            if region.release(0..whole, Release::Now).is_err() {
                start.write_bytes(0, bytes);
            }
        }
        let _ = region.leak();
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

    /// Frees a block, whose memory may be kept for the next. False if none begins there.
    ///
    /// # Safety
    /// If one begins there, nobody uses it any more.
    pub(crate) unsafe fn free(&self, start: NonNull<u8>) -> bool {
        self.take_out(start).map(|block| self.keep(block)).is_some()
    }

    /// Frees a block, and ends its mapping at once. False if none begins there.
    ///
    /// # Safety
    /// As [`LargeBlocks::free`].
    pub(crate) unsafe fn unmap(&self, start: NonNull<u8>) -> bool {
        self.take_out(start).map(unmap).is_some()
    }

    /// Takes a block out of the table: it is the caller's mapping from then on.
    fn take_out(&self, start: NonNull<u8>) -> Option<Entry> {
        let _ = self.list_in_table(start);
        let taken = self.with_table(|table| {
            let taken = table.take(start.addr().get())?;
            table.used -= 1;
            Some(taken)
        })?;
        self.bytes.fetch_sub(taken.bytes, Ordering::Relaxed);
        Some(taken)
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
        let moved = unsafe { remapped(start, old.bytes, bytes) };
        let entry = match moved {
            Ok(moved) => Entry {
                address: moved.as_ptr().expose_provenance(),
                bytes,
            },
            Err(_) => old,
        };
        self.with_table(|table| table.put(entry));
        let moved = moved.ok()?;
        self.grown_by(bytes, 0);
        self.bytes.fetch_sub(old.bytes, Ordering::Relaxed);
        Some(moved)
    }
}

/// Makes a mapping longer or shorter. It may move.
///
/// # Safety
/// So many bytes are whole pages of one mapping, which nobody uses meanwhile, nor by their old
/// address afterwards.
unsafe fn remapped(start: NonNull<u8>, had: usize, bytes: usize) -> Result<NonNull<u8>, Errno> {
    let flags = MremapFlags::MAYMOVE;
    // SAFETY: passed on.
    let moved = unsafe { mremap(start.as_ptr().cast(), had, bytes, flags) }?;
    NonNull::new(moved.cast()).ok_or(Errno::NOMEM)
}

/// Ends a mapping that was a block, or a spare piece, and is the caller's.
fn unmap(piece: Entry) {
    let start = core::ptr::with_exposed_provenance_mut(piece.address);
    if let Some(start) = NonNull::new(start) {
        // SAFETY: `mapping-listed`, `spare-owned`: whole pages that this caller has taken out of
        // the table, or of the list.
        drop(unsafe { Region::from_leaked(start, piece.bytes) });
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
            let (block, contents) = large.alloc(3 << 20, align).unwrap();
            assert_eq!(contents, Contents::Zeros);
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
        let block = large.map(4096, 1).unwrap();
        // SAFETY: the block is this test's.
        assert!(unsafe { large.free(block) });
    }

    fn is_mapped(start: NonNull<u8>) -> bool {
        let mut byte = 0;
        // SAFETY: the system looks, and writes a byte.
        unsafe { libc::mincore(start.as_ptr().cast(), 1, &raw mut byte) == 0 }
    }

    #[test]
    fn a_freed_block_serves_the_next_one_longer_and_shorter() {
        let large = LargeBlocks::new();
        let (block, _) = large.alloc(6 << 20, 1).unwrap();
        // SAFETY: the block is this test's, here and below.
        unsafe {
            block.write_bytes(7, 6 << 20);
            assert!(large.free(block) && !large.free(block));
        }
        assert_eq!((large.bytes(), large.idle_bytes()), (0, 6 << 20));
        // A shorter one leaves the rest.
        let (shorter, contents) = large.alloc(4 << 20, 1).unwrap();
        assert_eq!((shorter, contents), (block, Contents::Anything));
        assert_eq!((large.bytes(), large.idle_bytes()), (4 << 20, 2 << 20));
        // A longer one takes it, and has zeros where it is new.
        let (longer, contents) = large.alloc(3 << 20, 1).unwrap();
        assert_eq!((contents, large.idle_bytes()), (Contents::Anything, 0));
        assert_eq!(large.bytes_at(longer), Some(3 << 20));
        // SAFETY: as above.
        unsafe {
            assert_eq!(longer.add((2 << 20) - 1).read(), 7);
            assert_eq!(longer.add(2 << 20).read(), 0);
            large.clear(longer, 3 << 20);
            assert_eq!(longer.read(), 0);
            assert_eq!(shorter.read(), 7);
            // What is aligned to more than a page is new.
            assert!(large.free(longer));
            let (aligned, contents) = large.alloc(3 << 20, 1 << 20).unwrap();
            assert_eq!(contents, Contents::Zeros);
            assert!(large.unmap(aligned) && large.free(shorter));
        }
        assert_eq!((large.bytes(), large.idle_bytes()), (0, 7 << 20));
        assert!(is_mapped(shorter));
        assert_eq!((large.release_idle(), large.idle_bytes()), (7 << 20, 0));
        assert!(!is_mapped(shorter));
    }

    #[test]
    fn no_more_is_kept_than_was_in_use_lately() {
        let large = LargeBlocks::new();
        let free = |block| {
            // SAFETY: the block is this test's.
            assert!(unsafe { large.free(block) });
        };
        let blocks = [0; 8].map(|_| large.alloc(20 << 20, 1).unwrap().0);
        for (freed, block) in blocks.into_iter().enumerate() {
            free(block);
            let allowed = surplus::allowed((7 - freed) * (20 << 20), 160 << 20);
            assert!(large.idle_bytes() <= allowed);
            assert!(large.idle_bytes() >= 20 << 20);
        }
        // It is there for two looks at most.
        assert_eq!(large.release_by_age(), 0);
        assert_eq!(large.release_by_age(), 20 << 20);
        // By now nothing was in use lately.
        let (block, _) = large.alloc(4 << 20, 1).unwrap();
        free(block);
        assert_eq!(large.idle_bytes(), 4 << 20);
        let (block, _) = large.alloc(90 << 20, 1).unwrap();
        free(block);
        assert_eq!(large.idle_bytes(), 0);
        assert_eq!((large.bytes(), large.blocks()), (0, 0));
    }

    #[test]
    fn threads_do_not_meet() {
        const PIECE: usize = spare::LEAST / 2;

        let large = LargeBlocks::new();
        let work = |owner: usize| {
            let mut state = owner as u64;
            let mut held: Vec<NonNull<u8>> = Vec::new();
            for _ in 0..400 {
                if held.len() < 300 && !next(&mut state).is_multiple_of(3) {
                    let bytes = PIECE * (1 + next(&mut state) % 8);
                    let (block, _) = large.alloc(bytes, 1).unwrap();
                    // SAFETY: this thread's own block.
                    unsafe { block.cast().write(owner) };
                    held.push(block);
                } else if let Some(block) = held.pop() {
                    // SAFETY: this thread's own block.
                    unsafe {
                        let block = large
                            .resize(block, PIECE * (1 + next(&mut state) % 8))
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
