//! Blocks that are assembled of kept pieces that are too short, by moving their pages: the system
//! changes some words of its tables for a page, where a new page costs a fault, and zeros.
//!
//! Invariant `place-is-ours`: while a block is assembled, all of its addresses are mapped for this
//! caller. If the system fails to move pages there, it may have left a hole, which another thread may
//! have got since. Then the place is filled again if it is a hole still, and left alone otherwise, as it
//! cannot be told whose it is; and no block is assembled any more.

use core::ffi::c_void;
use core::sync::atomic::Ordering;

use brickyard_arena::Region;
use brickyard_arena::rows::keeping_errno;

use super::piece::{JOINTS, Piece};
use super::spare::{LEAST, PIECES};
use super::{LargeBlocks, leaked, remapped, start_of, unmap, whole};

/// Longer blocks are not assembled: one that is may have to be copied when it grows.
const MOST: usize = 64 << 20;

/// Nor are blocks while there are more than so many: each may take as many mappings as a piece has
/// joints, and one, and a process may have 65,530.
const BLOCKS: usize = 512;

const _: () = assert!((BLOCKS + PIECES) * (JOINTS + 1) < 20_000);

/// A block that is being assembled.
struct Block {
    /// All of it.
    piece: Piece,
    /// So many of its first bytes have come from kept pieces.
    filled: usize,
}

/// What became of a move.
#[derive(PartialEq, Eq)]
enum Moved {
    Done,
    /// Nothing has moved.
    Refused,
    /// Nothing has moved, and the place may be another's.
    Lost,
}

impl LargeBlocks {
    /// Makes a block of `bytes` bytes that begins with a piece that is shorter, and goes on with others
    /// that are kept. What is left is new. `None`, and the piece is gone, if the system has no room.
    pub(super) fn assembled(&self, piece: Piece, look: u32, bytes: usize) -> Option<Piece> {
        let mut block = if piece.is_whole() {
            // SAFETY: `spare-owned`: nobody uses it.
            let moved = unsafe { remapped(start_of(piece)?, piece.bytes, bytes) };
            let Ok(moved) = moved else {
                unmap(piece);
                return None;
            };
            Block {
                piece: whole(moved, bytes),
                filled: piece.bytes,
            }
        } else {
            let Ok(region) = Region::map_memory(bytes, 1) else {
                unmap(piece);
                return None;
            };
            let mut block = Block {
                piece: leaked(region),
                filled: 0,
            };
            self.move_in(&mut block, piece, look).then_some(())?;
            block
        };
        let may = bytes <= MOST && self.with_table(|table| table.used()) <= BLOCKS;
        while may
            && bytes - block.filled >= LEAST
            && block.piece.room() >= 2
            && !self.moves_fail.load(Ordering::Relaxed)
        {
            let Some((piece, look)) = self.with_spare(|spare| spare.take(bytes - block.filled))
            else {
                break;
            };
            self.move_in(&mut block, piece, look).then_some(())?;
        }
        // What is new is of the first mapping again.
        block.piece.join(block.filled);
        Some(block.piece)
    }

    /// Moves as much of a piece to the end of what is filled as there is room for, and keeps the rest.
    /// False if the block is gone: the system has moved half of it.
    fn move_in(&self, block: &mut Block, piece: Piece, look: u32) -> bool {
        let mut rest = Some(piece);
        while let Some(piece) = rest
            && block.filled < block.piece.bytes
            // One for what is moved, and one for what is new behind it.
            && block.piece.room() >= 2
        {
            let (from, part) = piece.first();
            let part = part.min(block.piece.bytes - block.filled);
            match moved(from, block.piece.address + block.filled, part) {
                Moved::Done => {
                    block.piece.join(block.filled);
                    block.filled += part;
                    [_, rest] = piece.split(part);
                }
                Moved::Refused => {
                    // Relaxed, also below: a hint.
                    self.moves_fail.store(true, Ordering::Relaxed);
                    break;
                }
                Moved::Lost => {
                    self.moves_fail.store(true, Ordering::Relaxed);
                    let [head, behind] = block.piece.split(block.filled);
                    let tail = behind.and_then(|behind| behind.split(part)[1]);
                    [head, tail, Some(piece)]
                        .into_iter()
                        .flatten()
                        .for_each(unmap);
                    return false;
                }
            }
        }
        if let Some(rest) = rest {
            self.keep(rest, Some(look));
        }
        true
    }
}

/// Moves the pages of so many bytes of one mapping into the place of others of the caller's.
fn moved(from: usize, to: usize, bytes: usize) -> Moved {
    let [from, to]: [*mut c_void; 2] = [from, to].map(core::ptr::with_exposed_provenance_mut);
    let flags = libc::MREMAP_MAYMOVE | libc::MREMAP_FIXED;
    let access = libc::PROT_READ | libc::PROT_WRITE;
    let anew = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED_NOREPLACE;
    keeping_errno(|| {
        // SAFETY: `spare-owned`, and `place-is-ours`: both are whole pages that nobody uses, of this
        // caller's.
        if unsafe { libc::mremap(from, bytes, bytes, flags, to) } == to {
            return Moved::Done;
        }
        // SAFETY: what is mapped there, for this caller or for others, stays.
        let filled = unsafe { libc::mmap(to, bytes, access, anew, -1, 0) };
        if filled == to {
            return Moved::Refused;
        }
        if filled != libc::MAP_FAILED {
            // An old system, which takes the address for a hint.
            // SAFETY: it was made just now.
            unsafe { libc::munmap(filled, bytes) };
        }
        Moved::Lost
    })
}
