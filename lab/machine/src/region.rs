//! Which memory of the host is shared memory of the machine, and where it lies there.
//!
//! The host puts things at other addresses each time. A run must not depend on that, so each piece
//! that is mapped gets the next pages of the machine, in the order in which they were mapped.

/// Bytes of a page of the machine; mapped memory begins at one, on both sides.
pub(crate) const PAGE: usize = 4096;

/// A mapped piece.
#[derive(Debug, Clone, Copy)]
struct Piece {
    first: usize,
    bytes: usize,
    /// Where it lies in the machine.
    simulated: usize,
}

/// All mapped pieces.
#[derive(Debug, Default)]
pub(crate) struct Regions {
    pieces: Vec<Piece>,
    end: usize,
}

impl Regions {
    /// Maps `bytes` at `first`, which begins a page.
    pub(crate) fn add(&mut self, first: usize, bytes: usize) {
        assert!(
            first.is_multiple_of(PAGE),
            "mapped memory begins at a page, so that lines are the same in every run"
        );
        let overlaps =
            |piece: &Piece| first < piece.first + piece.bytes && piece.first < first + bytes;
        assert!(
            !self.pieces.iter().any(overlaps),
            "mapped memory is mapped once"
        );
        self.pieces.push(Piece {
            first,
            bytes,
            simulated: self.end,
        });
        self.end += bytes.next_multiple_of(PAGE);
    }

    /// The machine's address of what the host has at `address`.
    #[inline]
    pub(crate) fn find(&mut self, address: usize) -> Option<usize> {
        // The piece that was asked for last stands first.
        let place = self
            .pieces
            .iter()
            .position(|piece| address.wrapping_sub(piece.first) < piece.bytes)?;
        if place > 0 {
            self.pieces.swap(0, place);
        }
        let piece = self.pieces[0];
        Some(piece.simulated + (address - piece.first))
    }

    /// Bytes mapped so far, in whole pages.
    pub(crate) const fn bytes(&self) -> usize {
        self.end
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_follow_each_other_wherever_they_lie_on_the_host() {
        let mut regions = Regions::default();
        regions.add(7 * PAGE, 100);
        regions.add(3 * PAGE, PAGE + 1);
        assert_eq!(regions.find(7 * PAGE + 99), Some(99));
        assert_eq!(regions.find(7 * PAGE + 100), None);
        assert_eq!(regions.find(3 * PAGE + 1), Some(PAGE + 1));
        assert_eq!(regions.find(2 * PAGE), None);
        assert_eq!(regions.bytes(), 3 * PAGE);
    }

    #[test]
    #[should_panic(expected = "mapped once")]
    fn nothing_is_mapped_twice() {
        let mut regions = Regions::default();
        regions.add(PAGE, 2 * PAGE);
        regions.add(2 * PAGE, PAGE);
    }
}
