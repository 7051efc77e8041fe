//! Mappings of freed blocks, kept for a while for the blocks that come next.
//!
//! A new mapping costs a fault for each page that is touched. So a few are kept: as many bytes as
//! `surplus.rs` allows, for two looks at most (`maintenance.rs`). A block takes the shortest that
//! is long enough, and leaves what it does not need. If all are too short, the longest is made
//! longer: the system moves its pages, which costs less than new ones.
//!
//! Invariant `spare-owned`: a piece in the list is whole pages of a mapping that belong to nobody
//! else, from when it is put in until it is taken out.

use brickyard_arena::address_table::Known;

use super::Piece;

/// So many pieces are kept at most.
pub(super) const PIECES: usize = 64;

/// Shorter pieces are not kept; where there are huge pages, none that is shorter than one.
pub(super) const LEAST: usize = 128 << 10;

/// Longer ones are not either: a program may compute for hours before the next look at them.
pub(super) const MOST: usize = 256 << 20;

/// Pieces, the oldest first.
#[derive(Debug)]
pub(super) struct Spare {
    pieces: [SpareMapping; PIECES],
    count: usize,
    bytes: usize,
    /// The number of the look that comes next.
    look: u32,
    /// Pieces are divided at multiples of so many bytes.
    unit: usize,
}

#[derive(Debug, Clone, Copy)]
struct SpareMapping {
    piece: Piece,
    /// The look that was to come when it was put in.
    look: u32,
}

impl Spare {
    pub(super) const fn new() -> Self {
        let piece = Piece::NOTHING;
        Self {
            pieces: [SpareMapping { piece, look: 0 }; PIECES],
            count: 0,
            bytes: 0,
            look: 0,
            unit: 1,
        }
    }

    /// Says that pieces are divided at multiples of so many bytes.
    pub(super) const fn divide_by(&mut self, unit: usize) {
        self.unit = unit;
    }

    /// Returns the bytes of the shortest piece that is kept.
    fn least(&self) -> usize {
        LEAST.max(self.unit)
    }

    /// Returns the bytes of all pieces.
    pub(super) const fn bytes(&self) -> usize {
        self.bytes
    }

    /// Puts a piece in, as one that was to be seen by the next look, or by `look`. Returns what has
    /// to be unmapped instead, if anything has: the piece itself, or as much of an older one as
    /// makes room for it; then the caller tries again.
    pub(super) fn put(&mut self, piece: Piece, look: Option<u32>, allowed: usize) -> Option<Piece> {
        if piece.bytes < self.least() || piece.bytes > allowed.min(MOST) {
            return Some(piece);
        }
        let surplus = (self.bytes + piece.bytes).saturating_sub(allowed);
        if surplus > 0
            && let Some(tail) = self.cut_oldest(surplus)
        {
            return Some(tail);
        }
        if surplus > 0 {
            return Some(self.remove(0));
        }
        if self.count == PIECES {
            let pieces = self.pieces.iter().enumerate();
            let (shortest, kept) = pieces.min_by_key(|(_, kept)| kept.piece.bytes)?;
            return match kept.piece.bytes <= piece.bytes {
                true => Some(self.remove(shortest)),
                false => Some(piece),
            };
        }
        let look = look.unwrap_or(self.look);
        let younger =
            |kept: &SpareMapping| self.look.wrapping_sub(kept.look) < self.look.wrapping_sub(look);
        let pieces = &self.pieces[..self.count];
        let place = pieces.iter().position(younger).unwrap_or(self.count);
        self.pieces.copy_within(place..self.count, place + 1);
        self.pieces[place] = SpareMapping { piece, look };
        self.count += 1;
        self.bytes += piece.bytes;
        None
    }

    /// Takes the piece that serves a block of `bytes` bytes best, and says which look was to see
    /// it.
    pub(super) fn take(&mut self, bytes: usize) -> Option<(Piece, u32)> {
        let pieces = self.pieces[..self.count].iter().enumerate();
        // Those that are long enough first, the shortest of them; then the longest.
        let (best, _) = pieces.min_by_key(|(_, kept)| {
            let had = kept.piece.bytes;
            (had < bytes, had.abs_diff(bytes))
        })?;
        let look = self.pieces[best].look;
        Some((self.remove(best), look))
    }

    /// Takes the oldest piece; `None` if there is none.
    pub(super) fn take_oldest(&mut self) -> Option<Piece> {
        (self.count > 0).then(|| self.remove(0))
    }

    /// Takes the last `bytes` bytes of the oldest piece, or some more; `None` if what stays is not
    /// worth keeping. There must be a piece.
    fn cut_oldest(&mut self, bytes: usize) -> Option<Piece> {
        let oldest = self.pieces[0].piece;
        let less = oldest.bytes.checked_sub(bytes)?;
        let end = (oldest.address + less) / self.unit * self.unit;
        let less = end.checked_sub(oldest.address)?;
        match oldest.split(less) {
            [Some(kept), Some(tail)] if less >= self.least() => {
                self.pieces[0].piece = kept;
                self.bytes -= tail.bytes;
                Some(tail)
            }
            _ => None,
        }
    }

    /// Takes a piece that was there at the last look already, or the last `most` bytes of it and a
    /// few more. `None`, and this look is over, if there is none.
    pub(super) fn take_old(&mut self, most: usize) -> Option<Piece> {
        if self.count > 0 && self.pieces[0].look != self.look {
            return self.cut_oldest(most).or_else(|| Some(self.remove(0)));
        }
        self.look = self.look.wrapping_add(1);
        None
    }

    fn remove(&mut self, index: usize) -> Piece {
        let SpareMapping { piece, .. } = self.pieces[index];
        self.pieces.copy_within(index + 1..self.count, index);
        self.count -= 1;
        self.bytes -= piece.bytes;
        piece
    }
}

/// Divides a piece behind the first `bytes` bytes, if what is left there is worth keeping:
/// [`LEAST`] bytes, and `unit` bytes.
pub(super) fn cut(piece: Piece, bytes: usize, unit: usize) -> (Piece, Option<Piece>) {
    if piece.bytes < bytes + LEAST.max(unit) {
        return (piece, None);
    }
    match piece.split(bytes) {
        [Some(head), rest] => (head, rest),
        [None, _] => (piece, None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: usize = 1 << 20;

    fn entry(number: usize, bytes: usize) -> Piece {
        Piece {
            address: number << 32,
            bytes,
        }
    }

    fn number(entry: Option<Piece>) -> Option<usize> {
        entry.map(|entry| entry.address >> 32)
    }

    #[test]
    fn the_piece_that_fits_best_serves() {
        let mut spare = Spare::new();
        for (number, mib) in [(1, 4), (2, 7), (3, 5)] {
            assert!(
                spare
                    .put(entry(number, mib * MIB), None, 64 * MIB)
                    .is_none()
            );
        }
        assert_eq!(spare.bytes(), 16 * MIB);
        assert_eq!(number(spare.take(9 * MIB).map(|(entry, _)| entry)), Some(2));
        assert_eq!(number(spare.take(3 * MIB).map(|(entry, _)| entry)), Some(1));
        assert_eq!(number(spare.take(5 * MIB).map(|(entry, _)| entry)), Some(3));
        assert_eq!(
            (spare.bytes(), number(spare.take(1).map(|(entry, _)| entry))),
            (0, None)
        );
    }

    #[test]
    fn no_more_bytes_and_pieces_are_kept_than_allowed() {
        let mut spare = Spare::new();
        let refused = |put: Option<Piece>| number(put);
        assert_eq!(
            refused(spare.put(entry(1, 9 * MIB), None, 8 * MIB)),
            Some(1)
        );
        assert_eq!(
            refused(spare.put(entry(2, LEAST - 1), None, 8 * MIB)),
            Some(2)
        );
        assert_eq!(refused(spare.put(entry(3, 5 * MIB), None, 8 * MIB)), None);
        // As much of the older one goes as is too much.
        let tail = spare.put(entry(4, 5 * MIB), None, 8 * MIB).unwrap();
        assert_eq!((tail.address, tail.bytes), ((3 << 32) + 3 * MIB, 2 * MIB));
        assert_eq!(refused(spare.put(entry(4, 5 * MIB), None, 8 * MIB)), None);
        assert_eq!(spare.bytes(), 8 * MIB);
        // And all of it if hardly anything would be left.
        let surplus = 3 * MIB - LEAST / 2;
        assert_eq!(
            refused(spare.put(entry(5, surplus), None, 8 * MIB)),
            Some(3)
        );
        assert_eq!(spare.bytes(), 5 * MIB);
        for number in 5..5 + PIECES - 1 {
            assert_eq!(
                refused(spare.put(entry(number, LEAST), None, 64 * MIB)),
                None
            );
        }
        assert_eq!(
            refused(spare.put(entry(99, LEAST), None, 64 * MIB)),
            Some(5)
        );
        assert_eq!(refused(spare.put(entry(99, LEAST), None, 64 * MIB)), None);
        // The shortest one goes, be it the new one.
        let longer = refused(spare.put(entry(100, 2 * LEAST), None, 64 * MIB));
        assert_eq!(longer, Some(6));
    }

    #[test]
    fn what_a_look_has_seen_goes_at_the_next() {
        let mut spare = Spare::new();
        assert!(spare.put(entry(1, MIB), None, 8 * MIB).is_none());
        assert_eq!(number(spare.take_old(MOST)), None);
        assert!(spare.put(entry(2, MIB), None, 8 * MIB).is_none());
        assert_eq!(number(spare.take_old(MOST)), Some(1));
        assert_eq!(number(spare.take_old(MOST)), None);
        assert_eq!(number(spare.take_old(MOST)), Some(2));
        assert_eq!((spare.bytes(), number(spare.take_oldest())), (0, None));
    }

    #[test]
    fn what_is_old_can_be_taken_in_parts() {
        let mut spare = Spare::new();
        assert!(spare.put(entry(1, 10 * MIB), None, 64 * MIB).is_none());
        assert_eq!(spare.take_old(4 * MIB), None);
        assert!(spare.put(entry(2, MIB), None, 64 * MIB).is_none());
        for (from, bytes) in [(6, 4), (2, 4), (0, 2)] {
            let part = Piece {
                address: (1 << 32) + from * MIB,
                bytes: bytes * MIB,
            };
            assert_eq!(spare.take_old(4 * MIB), Some(part));
        }
        // Not worth keeping without its end.
        assert_eq!(spare.take_old(MIB - LEAST / 2), None);
        assert_eq!(spare.take_old(MIB - LEAST / 2), Some(entry(2, MIB)));
        assert_eq!(spare.bytes(), 0);
    }

    #[test]
    fn a_rest_is_as_old_as_what_it_is_of() {
        let mut spare = Spare::new();
        assert!(spare.put(entry(1, 8 * MIB), None, 64 * MIB).is_none());
        assert_eq!(number(spare.take_old(MOST)), None);
        assert!(spare.put(entry(2, MIB), None, 64 * MIB).is_none());
        let (taken, look) = spare.take(3 * MIB).unwrap();
        let (head, left) = cut(taken, 3 * MIB, 1);
        let left = left.unwrap();
        assert_eq!((head.bytes, left.bytes), (3 * MIB, 5 * MIB));
        assert!(spare.put(left, Some(look), 64 * MIB).is_none());
        // It goes at this look, and the younger one at the next.
        assert_eq!(number(spare.take_old(MOST)), Some(1));
        assert_eq!(number(spare.take_old(MOST)), None);
        assert_eq!(number(spare.take_old(MOST)), Some(2));
    }

    #[test]
    fn what_is_very_long_is_not_kept() {
        let mut spare = Spare::new();
        assert!(spare.put(entry(1, MOST), None, usize::MAX).is_none());
        assert!(spare.put(entry(2, MOST + 4096), None, usize::MAX).is_some());
    }
}
