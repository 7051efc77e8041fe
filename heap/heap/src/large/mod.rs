//! Large blocks: a mapping of its own for each, and a table of them.
//!
//! Their memory comes from the system. What is freed is kept for a while (`spare.rs`), and then
//! goes back to it. A block grows by moving its pages (`mremap`), not its bytes. The table
//! ([`Table`]) maps addresses to lengths.
//!
//! While the gate is closed, blocks are listed beside the table (`lockless_table.rs`).
//!
//! Invariant `mapping-listed`: a mapping is in the table from after it was made until before it
//! ends or moves. So what is found in the table exists, and no address is listed twice.

mod lockless_table;
mod spare;

use core::cell::UnsafeCell;
use core::ptr::NonNull;
use core::sync::atomic::{AtomicUsize, Ordering};
use std::io;

use brickyard::Platform;
use brickyard::sync::{Locked, TestAndSetLock};
use brickyard_arena::address_table::{Known, Table};
use brickyard_arena::{Region, Release, Threads, page_bytes};
use rustix::mm::{MremapFlags, mremap};

use lockless_table::{BESIDE, Unlisted};
use spare::Spare;

use crate::huge::{self, Huge, huge};
use crate::span::Contents;
use crate::surplus;

/// The blocks that have a mapping each.
#[derive(Debug)]
pub(crate) struct LargeBlocks {
    lock: UnsafeCell<Locked<TestAndSetLock, ()>>,
    table: UnsafeCell<Table<Piece>>,
    /// Behind the same lock.
    spare: UnsafeCell<Spare>,
    bytes: AtomicUsize,
    /// The most bytes and blocks that there were.
    most: [AtomicUsize; 2],
    /// The most bytes that there were since the last look.
    lately: AtomicUsize,
    /// The bytes of spare pieces when the look began; 0 when it is over.
    looking_at: AtomicUsize,
    /// The bytes of spare pieces.
    idle: AtomicUsize,
    /// Where memory may be huge pages, if it is not as in the rest of the process.
    huge: Option<Huge>,
    beside: [Unlisted; BESIDE],
}

/// A piece of address space that is a block, or was one and is kept: whole pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Piece {
    address: usize,
    bytes: usize,
}

// SAFETY: both are 0 then.
unsafe impl Known for Piece {
    const NOTHING: Self = Self {
        address: 0,
        bytes: 0,
    };

    fn address(&self) -> usize {
        self.address
    }
}

impl Piece {
    /// Divides it at a byte, a multiple of a page. `None` for a part without any.
    fn split(self, at: usize) -> [Option<Self>; 2] {
        debug_assert!(at.is_multiple_of(page_bytes()));
        let at = at.min(self.bytes);
        let (address, bytes) = (self.address + at, self.bytes - at);
        let parts = [Self { bytes: at, ..self }, Self { address, bytes }];
        parts.map(|part| (part.bytes > 0).then_some(part))
    }
}

/// So many bytes may be unmapped at once in any case: that takes some hundred microseconds.
const AT_ONCE: usize = 8 << 20;

/// Blocks of so many bytes or more are whole huge pages, where there are any: at most a fifth of
/// their memory was not asked for.
const WHOLE_FROM: usize = 8 << 20;

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
            looking_at: AtomicUsize::new(0),
            idle: AtomicUsize::new(0),
            huge: None,
            beside: [const { Unlisted::new() }; BESIDE],
        }
    }

    const fn lock(&self) -> &Locked<TestAndSetLock, ()> {
        // SAFETY: it is replaced only in a child process, by its only thread (`forget_holder`).
        unsafe { &*self.lock.get() }
    }

    fn with_table<R>(&self, work: impl FnOnce(&mut Table<Piece>) -> R) -> R {
        let _held = self.lock().lock(|| Threads.relax());
        // SAFETY: the lock is held as long as `work` runs, so this is the only reference.
        work(unsafe { &mut *self.table.get() })
    }

    fn with_spare<R>(&self, work: impl FnOnce(&mut Spare) -> R) -> R {
        let _held = self.lock().lock(|| Threads.relax());
        // SAFETY: as in `with_table`.
        let spare = unsafe { &mut *self.spare.get() };
        spare.divide_by(self.unit());
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

    /// Allocates a block of at least `bytes` bytes at a multiple of `align`, a power of two. Also
    /// returns what is in it. Takes up to four system calls; none where a spare piece serves as it
    /// is.
    pub(crate) fn alloc(&self, bytes: usize, align: usize) -> Option<(NonNull<u8>, Contents)> {
        let is_usual = align <= page_bytes();
        let length = self.rounded(bytes)?;
        if let Some(block) = is_usual.then(|| self.take_spare(length)).flatten() {
            return Some((self.list(block)?, Contents::Anything));
        }
        Some((self.map(bytes, align)?, Contents::Zeros))
    }

    /// Allocates a block in a new mapping, so that it is zero.
    pub(crate) fn map(&self, bytes: usize, align: usize) -> Option<NonNull<u8>> {
        let least = rounded(bytes)?;
        let bytes = self.rounded(bytes)?;
        let region = match self.new_mapping(bytes, align) {
            Ok(region) => region,
            // Perhaps there is a limit to what may be mapped.
            Err(_) => {
                let _ = self.release_idle();
                let again = self.new_mapping(bytes, align);
                again.or_else(|_| Region::map_memory(least, align)).ok()?
            }
        };
        self.list(leaked(region))
    }

    /// Maps so many bytes, of huge pages where there are any. Takes up to four system calls.
    fn new_mapping(&self, bytes: usize, align: usize) -> io::Result<Region> {
        let (unit, huge) = (self.unit(), self.huge());
        if bytes < unit || huge == Huge::Never {
            return Region::map_memory(bytes, align);
        }
        let aligned = Region::map_memory(bytes, align.max(unit));
        let region = aligned.or_else(|_| Region::map_memory(bytes, align))?;
        if huge != Huge::Usual {
            // Whatever the system says to that, it is memory.
            let _ = region.want_huge(0..region.bytes(), huge == Huge::Asked);
        }
        Ok(region)
    }

    fn huge(&self) -> Huge {
        self.huge.unwrap_or_else(huge)
    }

    /// Returns what pieces are divided by: the bytes of a huge page, or of a page where there are
    /// none.
    fn unit(&self) -> usize {
        match self.huge() {
            Huge::Never | Huge::Unwanted => page_bytes(),
            Huge::Asked | Huge::Usual => huge::BYTES,
        }
    }

    /// Rounds up to pages, or to huge ones what is long; `None` for more than `isize::MAX` bytes.
    fn rounded(&self, bytes: usize) -> Option<usize> {
        let rounded = rounded(bytes)?;
        if rounded < WHOLE_FROM {
            return Some(rounded);
        }
        let rounded = rounded.checked_next_multiple_of(self.unit())?;
        (rounded <= isize::MAX as usize).then_some(rounded)
    }

    /// Lists a piece as a block; it is unmapped if there is no room in the table.
    fn list(&self, block: Piece) -> Option<NonNull<u8>> {
        let listed = self.with_table(|table| {
            let room = table.reserve();
            if room {
                table.put(block);
            }
            room.then_some(table.used())
        });
        let Some(blocks) = listed else {
            unmap(block);
            return None;
        };
        self.grown_by(block.bytes, blocks);
        start_of(block)
    }

    /// Takes a piece of at least `bytes` bytes from the spare ones; `None` if there are none, or if
    /// the system has no room for it.
    fn take_spare(&self, bytes: usize) -> Option<Piece> {
        // Relaxed: a hint.
        if self.idle.load(Ordering::Relaxed) == 0 {
            return None;
        }
        let (piece, look) = self.with_spare(|spare| spare.take(bytes))?;
        if piece.bytes >= bytes {
            return Some(self.cut(piece, look, bytes));
        }
        if self.unit() > page_bytes() {
            // Moved, it might begin in the middle of a huge page.
            self.keep(piece, Some(look));
            return None;
        }
        // SAFETY: `spare-owned`: nobody uses it.
        let longer = unsafe { self.resized(piece, bytes) };
        if longer.is_none() {
            unmap(piece);
        }
        longer
    }

    /// Cuts a piece that is long enough, and keeps what is left.
    fn cut(&self, piece: Piece, look: u32, bytes: usize) -> Piece {
        // A block ends with a huge page, if another piece begins behind it.
        let unit = self.unit();
        let end = (piece.address + bytes).next_multiple_of(unit);
        let (head, rest) = spare::cut(piece, end - piece.address, unit);
        if let Some(rest) = rest {
            self.keep(rest, Some(look));
        }
        head
    }

    /// Puts a piece that nobody uses among the spare ones, and unmaps what is too much. A rest of a
    /// piece is as old as that was.
    fn keep(&self, piece: Piece, look: Option<u32>) {
        // Relaxed: hints.
        let (in_use, most) = (self.bytes(), self.lately.load(Ordering::Relaxed));
        let unit = self.unit();
        let allowed = surplus::allowed(in_use, most) / unit * unit;
        let [Some(piece), surplus] = piece.split(allowed.min(spare::MOST)) else {
            return;
        };
        if let Some(surplus) = surplus {
            unmap(surplus);
        }
        // Of what is too much already, nobody unmaps much more than he brings.
        let most = AT_ONCE.max(2 * piece.bytes);
        let stays = (self.idle_bytes() + piece.bytes).saturating_sub(most);
        let allowed = allowed.max(stays / unit * unit);
        while let Some(surplus) = self.with_spare(|spare| spare.put(piece, look, allowed)) {
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
        let mut bytes = 0;
        while let Some(piece) = self.with_spare(Spare::take_oldest) {
            bytes += piece.bytes;
            unmap(piece);
        }
        bytes
    }

    /// Unmaps what has been kept since before the last call, if this is called about once a second.
    /// Returns the number of bytes.
    pub(crate) fn release_by_age(&self) -> usize {
        self.begin_look();
        self.go_on_with_look(usize::MAX, 1)
    }

    /// Begins a look, as is done about once a second.
    pub(crate) fn begin_look(&self) {
        // Relaxed, all: hints, of what will be in use from now on, and for the thread that looks.
        self.lately.store(self.bytes(), Ordering::Relaxed);
        self.looking_at
            .store(self.idle_bytes().max(1), Ordering::Relaxed);
    }

    /// Unmaps some of what has been kept since before the last look: `parts` of `all` parts of what
    /// was kept when the look began, but 8 MiB each at least, and a few more. Returns the number of
    /// bytes.
    pub(crate) fn go_on_with_look(&self, parts: usize, all: usize) -> usize {
        let page = page_bytes();
        // Relaxed, here and below: as in `begin_look`.
        let looking_at = self.looking_at.load(Ordering::Relaxed);
        let part = (looking_at / all).next_multiple_of(page);
        let most = part.max(AT_ONCE).saturating_mul(parts);
        let mut bytes = 0;
        while bytes < most && self.looking_at.load(Ordering::Relaxed) != 0 {
            match self.with_spare(|spare| spare.take_old(most - bytes)) {
                Some(piece) => {
                    bytes += piece.bytes;
                    unmap(piece);
                }
                None => self.looking_at.store(0, Ordering::Relaxed),
            }
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
        // SAFETY: `mapping-listed`: whole pages of a mapping, which stays the caller's: it is
        // leaked again below.
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
            let entry = table.get(start.addr().get())?;
            Some(entry.bytes)
        })
    }

    /// Frees a block, whose memory may be kept for the next. False if none begins there.
    ///
    /// # Safety
    /// If one begins there, nobody uses it any more.
    pub(crate) unsafe fn free(&self, start: NonNull<u8>) -> bool {
        self.take_out(start)
            .map(|block| self.keep(block, None))
            .is_some()
    }

    /// Frees a block, and ends its mapping at once. False if none begins there.
    ///
    /// # Safety
    /// The conditions of [`LargeBlocks::free`].
    pub(crate) unsafe fn unmap(&self, start: NonNull<u8>) -> bool {
        self.take_out(start).map(unmap).is_some()
    }

    /// Takes a block out of the table: it is the caller's mapping from then on.
    fn take_out(&self, start: NonNull<u8>) -> Option<Piece> {
        // The table may have no room for one that is beside it, and needs none.
        let taken = self.take_beside(start).or_else(|| {
            self.with_table(|table| {
                let taken = table.take(start.addr().get())?;
                table.unreserve();
                Some(taken)
            })
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
        let least = rounded(bytes)?;
        let bytes = self.rounded(bytes)?;
        let _ = self.list_in_table(start);
        // Its place in the table stays reserved until it is put back.
        let old = self.with_table(|table| table.take(start.addr().get()))?;
        let new = if (least..=bytes).contains(&old.bytes) {
            // It is long enough, and may have been refused more.
            Some(old)
        } else {
            // SAFETY: passed on: nobody uses it meanwhile. The second try is with what is really
            // needed, under a limit of addresses.
            unsafe {
                self.resized(old, bytes)
                    .or_else(|| self.resized(old, least))
            }
        };
        self.with_table(|table| table.put(new.unwrap_or(old)));
        let new = new?;
        // By the difference: the two never are memory at once.
        self.grown_by(new.bytes.saturating_sub(old.bytes), 0);
        let less = old.bytes.saturating_sub(new.bytes);
        self.bytes.fetch_sub(less, Ordering::Relaxed);
        start_of(new)
    }

    /// Makes a piece longer or shorter. `None`, and it is as it was, if the system has no room, or
    /// if the program has made several mappings of it (by locking a part, for one).
    ///
    /// # Safety
    /// Nobody uses it meanwhile, nor by its old address afterwards.
    unsafe fn resized(&self, old: Piece, bytes: usize) -> Option<Piece> {
        let (start, flags) = (start_of(old)?, MremapFlags::MAYMOVE);
        // SAFETY: `mapping-listed`, `spare-owned`: whole pages. The rest is passed on.
        let moved = unsafe { mremap(start.as_ptr().cast(), old.bytes, bytes, flags) };
        Some(piece_of(NonNull::new(moved.ok()?.cast())?, bytes))
    }
}

/// Returns the first byte of a piece.
fn start_of(piece: Piece) -> Option<NonNull<u8>> {
    NonNull::new(core::ptr::with_exposed_provenance_mut(piece.address))
}

/// Returns the piece that begins at an address.
fn piece_of(start: NonNull<u8>, bytes: usize) -> Piece {
    Piece {
        address: start.as_ptr().expose_provenance(),
        bytes,
    }
}

/// Keeps a new mapping as a piece.
fn leaked(region: Region) -> Piece {
    let bytes = region.bytes();
    piece_of(region.leak(), bytes)
}

/// Ends the mapping of a piece that is the caller's.
fn unmap(piece: Piece) {
    if let Some(start) = start_of(piece) {
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
mod tests;
