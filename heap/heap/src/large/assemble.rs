//! Blocks that are assembled of kept pieces that are too short, by moving their pages: the system
//! changes some words of its tables for a page, where a new page costs a fault, and zeros.
//!
//! Invariant `both-are-ours`: while pages are moved, their old and their new addresses are mapped
//! for this caller. If the system fails, the old ones are as they were, but there may be a hole in
//! the new place, which another thread may have got since. It is filled again if it is a hole
//! still. Otherwise it is left alone, as it cannot be told whose it is, and no pages are moved any
//! more.
//!
//! Huge pages are moved whole: what is less at the end of a piece is unmapped. Where all memory is
//! locked (`mlockall`), what is new behind the first piece gets its pages before others are moved
//! there.

use core::ffi::c_void;
use core::sync::atomic::Ordering;

use brickyard_arena::page_bytes;
use brickyard_arena::rows::keeping_errno;

use super::piece::{JOINTS, Piece};
use super::spare::{LEAST, PIECES};
use super::{LargeBlocks, leaked, remapped, start_of, unmap, whole};

/// Longer blocks are not assembled: one that is may have to be copied when it grows.
pub(super) const MOST: usize = 64 << 20;

/// Nor are blocks while there are more than so many: each may take as many mappings as a piece has
/// joints, and one, and a process may have 65,530.
const BLOCKS: usize = 512;

const _: () = assert!((BLOCKS + PIECES) * (JOINTS + 1) < 20_000);

/// Whether pages are moved.
pub(super) mod moves {
    pub(in super::super) const ALLOWED: u8 = 0;
    /// The system does not do it.
    pub(in super::super) const NEVER: u8 = 1;
}

/// A block that is being assembled.
struct Block {
    /// All of it.
    piece: Piece,
    /// So many of its first bytes have come from kept pieces.
    filled: usize,
    /// Pages have been moved in, so that what is new behind them begins another mapping.
    is_joined: bool,
    /// Nothing more is to be moved in.
    is_done: bool,
    /// What is moved is a multiple of so many bytes.
    unit: usize,
}

/// The block was given up.
struct Lost;

/// What became of a move.
#[derive(PartialEq, Eq)]
enum Moved {
    Done,
    /// Nothing has moved, and the place is mapped.
    Refused {
        /// The system will refuse all others too.
        for_good: bool,
    },
    /// Nothing has moved, and the place may be another's.
    Lost,
}

impl LargeBlocks {
    /// Makes a block of `bytes` bytes that begins with a piece that is shorter, and goes on with
    /// others that are kept. What is left is new. `None` if the system has no room, or if the piece
    /// cannot be made longer.
    pub(super) fn assembled(&self, piece: Piece, look: u32, bytes: usize) -> Option<Piece> {
        let may = self.may_assemble(bytes);
        let unit = self.unit();
        let [Some(piece), tail] = piece.split(piece.bytes / unit * unit) else {
            unmap(piece);
            return None;
        };
        if let Some(tail) = tail {
            unmap(tail);
        }
        // New mappings are aligned to huge pages. (Those that the system moves as they become
        // longer are from Linux 6.7 on.)
        let is_longer = piece.is_whole() && (unit == page_bytes() || !may);
        let mut block = if is_longer {
            Block::of(self.lengthened(piece, bytes)?, piece.bytes, unit)
        } else if may {
            let Ok(region) = self.new_mapping(bytes, 1) else {
                // For want of mappings, perhaps: this needs none.
                return self.lengthened(piece, bytes);
            };
            let mut block = Block::of(leaked(region), 0, unit);
            self.move_in(&mut block, piece, look).ok()?;
            block
        } else {
            self.keep(piece, Some(look));
            return None;
        };
        while may && block.wants_more() {
            let missing = bytes - block.filled;
            let Some((piece, look)) = self.with_spare(|spare| spare.take(missing)) else {
                break;
            };
            self.move_in(&mut block, piece, look).ok()?;
        }
        if block.is_joined && !block.is_done {
            // What is new is of the first mapping again.
            block.piece.join(block.filled);
        }
        Some(block.piece)
    }

    /// Makes a piece longer, if it is one mapping. `None`, and it is unmapped, if the system has no
    /// room, or if it is more.
    fn lengthened(&self, piece: Piece, bytes: usize) -> Option<Piece> {
        if piece.is_whole() {
            // SAFETY: `spare-owned`: nobody uses it.
            let moved = unsafe { remapped(start_of(piece)?, piece.bytes, bytes) };
            if let Ok(moved) = moved {
                return Some(whole(moved, bytes));
            }
        }
        unmap(piece);
        None
    }

    /// Returns true if a block of so many bytes may be assembled.
    fn may_assemble(&self, bytes: usize) -> bool {
        if bytes > MOST || self.with_table(|table| table.used()) > BLOCKS {
            return false;
        }
        // Relaxed: a hint.
        self.moves.load(Ordering::Relaxed) == moves::ALLOWED
    }

    /// Moves as much of a piece to the end of what is filled as there is room for, and keeps the
    /// rest.
    fn move_in(&self, block: &mut Block, piece: Piece, look: u32) -> Result<(), Lost> {
        let mut rest = Some(piece);
        while let Some(piece) = rest
            && block.has_room()
        {
            let (from, first) = piece.first();
            let part = first.min(block.piece.bytes - block.filled) / block.unit * block.unit;
            if part == 0 {
                let [short, behind] = piece.split(first);
                short.into_iter().for_each(unmap);
                rest = behind;
                continue;
            }
            let [_, behind] = piece.split(part);
            match moved(from, block.piece.address + block.filled, part) {
                Moved::Done => {
                    block.piece.join(block.filled);
                    block.filled += part;
                    block.is_joined = true;
                    rest = behind;
                }
                Moved::Refused { for_good } => {
                    if for_good {
                        self.moves.store(moves::NEVER, Ordering::Relaxed);
                    }
                    // The place is a mapping of its own now. The piece may not be one (parts of it
                    // may have been locked, or got advice), and would be refused again.
                    block.piece.join(block.filled);
                    block.piece.join(block.filled + part);
                    block.is_done = true;
                    unmap(piece);
                    return Ok(());
                }
                Moved::Lost => {
                    self.moves.store(moves::NEVER, Ordering::Relaxed);
                    let [head, place] = block.piece.split(block.filled);
                    let tail = place.and_then(|place| place.split(part)[1]);
                    // But for the place, which may be another's.
                    [head, tail, Some(piece)]
                        .into_iter()
                        .flatten()
                        .for_each(unmap);
                    return Err(Lost);
                }
            }
        }
        if let Some(rest) = rest {
            self.keep(rest, Some(look));
        }
        Ok(())
    }
}

impl Block {
    const fn of(piece: Piece, filled: usize, unit: usize) -> Self {
        Self {
            piece,
            filled,
            is_joined: false,
            is_done: false,
            unit,
        }
    }

    /// Returns true if pages can be moved in: there is a joint for their begin, and one for what is
    /// behind them.
    fn has_room(&self) -> bool {
        let left = self.piece.bytes - self.filled;
        !self.is_done && left >= self.unit && self.piece.room() >= 2
    }

    /// Returns true if another piece is worth a call of the system.
    fn wants_more(&self) -> bool {
        self.has_room() && self.piece.bytes - self.filled >= LEAST
    }
}

/// Moves the pages of so many bytes of one mapping into the place of others of the caller's.
fn moved(from: usize, to: usize, bytes: usize) -> Moved {
    let [from, to]: [*mut c_void; 2] = [from, to].map(core::ptr::with_exposed_provenance_mut);
    let flags = libc::MREMAP_MAYMOVE | libc::MREMAP_FIXED;
    let access = libc::PROT_READ | libc::PROT_WRITE;
    let anew = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED_NOREPLACE;
    keeping_errno(|| {
        // SAFETY: `spare-owned`, and `both-are-ours`: whole pages that nobody uses, of this
        // caller's.
        if unsafe { libc::mremap(from, bytes, bytes, flags, to) } == to {
            return Moved::Done;
        }
        // SAFETY: the C library's own word of this thread.
        let error = unsafe { libc::__errno_location().read() };
        if matches!(error, libc::EPERM | libc::EACCES | libc::ENOSYS) {
            // A filter: the system was not even asked.
            return Moved::Refused { for_good: true };
        }
        // SAFETY: what is mapped there, for this caller or for others, stays.
        let filled = unsafe { libc::mmap(to, bytes, access, anew, -1, 0) };
        if filled == to {
            return Moved::Refused { for_good: false };
        }
        if filled != libc::MAP_FAILED {
            // An old system, which takes the address for a hint.
            // SAFETY: it was made just now.
            unsafe { libc::munmap(filled, bytes) };
        }
        Moved::Lost
    })
}
