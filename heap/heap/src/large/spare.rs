//! Mappings of freed blocks, kept for a while for the blocks that come next.
//!
//! A new mapping costs a fault for each page that is touched. So a few are kept: as many bytes as
//! `surplus.rs` allows, for two looks at most (`life.rs`). A block takes the shortest that is long
//! enough, and leaves what it does not need. If all are too short, it takes the longest, which the
//! system makes longer by moving its pages.
//!
//! Invariant `spare-owned`: a piece in the list is whole pages of a mapping that belong to nobody
//! else, from when it is put in until it is taken out.

use super::Entry;
use crate::addresses::Known;

/// So many pieces are kept at most.
const PIECES: usize = 16;

/// Shorter pieces are not kept.
pub(super) const LEAST: usize = 128 << 10;

/// Longer ones are not either: a program may compute for hours before the next look at them.
pub(super) const MOST: usize = 256 << 20;

/// Pieces, the oldest first.
#[derive(Debug)]
pub(super) struct Spare {
    pieces: [Piece; PIECES],
    count: usize,
    bytes: usize,
    /// The number of the look that comes next.
    look: u32,
}

#[derive(Debug, Clone, Copy)]
struct Piece {
    entry: Entry,
    /// The look that was to come when it was put in.
    look: u32,
}

impl Spare {
    pub(super) const fn new() -> Self {
        let entry = Entry::NOTHING;
        Self {
            pieces: [Piece { entry, look: 0 }; PIECES],
            count: 0,
            bytes: 0,
            look: 0,
        }
    }

    /// Returns the bytes of all pieces.
    pub(super) const fn bytes(&self) -> usize {
        self.bytes
    }

    /// Puts a piece in, as one that was to be seen by the next look, or by `look`. Returns what has to
    /// be unmapped instead, if anything has: the piece itself, or an older one; then the caller tries
    /// again.
    pub(super) fn put(
        &mut self,
        entry: Entry,
        look: Option<u32>,
        allowed: usize,
    ) -> Result<(), Entry> {
        if entry.bytes < LEAST || entry.bytes > allowed.min(MOST) {
            return Err(entry);
        }
        if self.count == PIECES || self.bytes + entry.bytes > allowed {
            return Err(self.remove(0));
        }
        let look = look.unwrap_or(self.look);
        let younger =
            |piece: &Piece| self.look.wrapping_sub(piece.look) < self.look.wrapping_sub(look);
        let pieces = &self.pieces[..self.count];
        let place = pieces.iter().position(younger).unwrap_or(self.count);
        self.pieces.copy_within(place..self.count, place + 1);
        self.pieces[place] = Piece { entry, look };
        self.count += 1;
        self.bytes += entry.bytes;
        Ok(())
    }

    /// Takes the piece that serves a block of `bytes` bytes best, and says which look was to see it.
    pub(super) fn take(&mut self, bytes: usize) -> Option<(Entry, u32)> {
        let pieces = self.pieces[..self.count].iter().enumerate();
        // Those that are long enough first, the shortest of them; then the longest.
        let (best, _) = pieces.min_by_key(|(_, piece)| {
            let had = piece.entry.bytes;
            (had < bytes, had.abs_diff(bytes))
        })?;
        let look = self.pieces[best].look;
        Some((self.remove(best), look))
    }

    /// Takes the oldest piece; `None` if there is none.
    pub(super) fn take_oldest(&mut self) -> Option<Entry> {
        (self.count > 0).then(|| self.remove(0))
    }

    /// Takes a piece that was there at the last look already. `None`, and this look is over, if
    /// there is none.
    pub(super) fn take_old(&mut self) -> Option<Entry> {
        if self.count > 0 && self.pieces[0].look != self.look {
            return Some(self.remove(0));
        }
        self.look = self.look.wrapping_add(1);
        None
    }

    fn remove(&mut self, index: usize) -> Entry {
        let Piece { entry, .. } = self.pieces[index];
        self.pieces.copy_within(index + 1..self.count, index);
        self.count -= 1;
        self.bytes -= entry.bytes;
        entry
    }
}

/// Returns what is left of a piece behind the first `bytes` bytes; `None` if that is not worth
/// keeping.
pub(super) const fn rest(entry: Entry, bytes: usize) -> Option<Entry> {
    if entry.bytes < bytes + LEAST {
        return None;
    }
    Some(Entry {
        address: entry.address + bytes,
        bytes: entry.bytes - bytes,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: usize = 1 << 20;

    fn entry(number: usize, bytes: usize) -> Entry {
        Entry {
            address: number << 32,
            bytes,
        }
    }

    fn number(entry: Option<Entry>) -> Option<usize> {
        entry.map(|entry| entry.address >> 32)
    }

    #[test]
    fn the_piece_that_fits_best_serves() {
        let mut spare = Spare::new();
        for (number, mib) in [(1, 4), (2, 7), (3, 5)] {
            assert!(spare.put(entry(number, mib * MIB), None, 64 * MIB).is_ok());
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
        let refused = |put: Result<(), Entry>| number(put.err());
        assert_eq!(
            refused(spare.put(entry(1, 9 * MIB), None, 8 * MIB)),
            Some(1)
        );
        assert_eq!(
            refused(spare.put(entry(2, LEAST - 1), None, 8 * MIB)),
            Some(2)
        );
        assert_eq!(refused(spare.put(entry(3, 5 * MIB), None, 8 * MIB)), None);
        // The older one goes.
        assert_eq!(
            refused(spare.put(entry(4, 5 * MIB), None, 8 * MIB)),
            Some(3)
        );
        assert_eq!(refused(spare.put(entry(4, 5 * MIB), None, 8 * MIB)), None);
        for number in 5..5 + PIECES - 1 {
            assert_eq!(
                refused(spare.put(entry(number, LEAST), None, 8 * MIB)),
                None
            );
        }
        assert_eq!(refused(spare.put(entry(99, LEAST), None, 8 * MIB)), Some(4));
    }

    #[test]
    fn what_a_look_has_seen_goes_at_the_next() {
        let mut spare = Spare::new();
        assert!(spare.put(entry(1, MIB), None, 8 * MIB).is_ok());
        assert_eq!(number(spare.take_old()), None);
        assert!(spare.put(entry(2, MIB), None, 8 * MIB).is_ok());
        assert_eq!(number(spare.take_old()), Some(1));
        assert_eq!(number(spare.take_old()), None);
        assert_eq!(number(spare.take_old()), Some(2));
        assert_eq!((spare.bytes(), number(spare.take_oldest())), (0, None));
    }
    #[test]
    fn a_rest_is_as_old_as_what_it_is_of() {
        let mut spare = Spare::new();
        assert!(spare.put(entry(1, 8 * MIB), None, 64 * MIB).is_ok());
        assert_eq!(number(spare.take_old()), None);
        assert!(spare.put(entry(2, MIB), None, 64 * MIB).is_ok());
        let (taken, look) = spare.take(3 * MIB).unwrap();
        let left = rest(taken, 3 * MIB).unwrap();
        assert!(spare.put(left, Some(look), 64 * MIB).is_ok());
        // It goes at this look, and the younger one at the next.
        assert_eq!(number(spare.take_old()), Some(1));
        assert_eq!(number(spare.take_old()), None);
        assert_eq!(number(spare.take_old()), Some(2));
    }

    #[test]
    fn what_is_very_long_is_not_kept() {
        let mut spare = Spare::new();
        assert!(spare.put(entry(1, MOST), None, usize::MAX).is_ok());
        assert!(spare.put(entry(2, MOST + 4096), None, usize::MAX).is_err());
    }
}
