//! A piece of address space that is a block, or was one: whole pages, of one mapping of the system
//! or of several side by side.
//!
//! The system moves and lengthens one mapping at a time. So where a piece is made of several, it is
//! kept where the later ones begin: its joints.

use brickyard_arena::page_bytes;

use crate::address_table::Known;

/// The most joints of a piece.
pub(super) const JOINTS: usize = 30;

/// See the [module](self).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Piece {
    pub(super) address: usize,
    pub(super) bytes: usize,
    /// In pages from its begin, ascending; 0: no more. The first page of a mapping that may not be
    /// that of the page before.
    joints: [u32; JOINTS],
}

// SAFETY: all of it is 0 then.
unsafe impl Known for Piece {
    const NOTHING: Self = Self::whole(0, 0);

    fn address(&self) -> usize {
        self.address
    }
}

impl Piece {
    /// Returns a piece of one mapping.
    pub(super) const fn whole(address: usize, bytes: usize) -> Self {
        Self {
            address,
            bytes,
            joints: [0; JOINTS],
        }
    }

    /// Returns true if it is of one mapping.
    pub(super) const fn is_whole(&self) -> bool {
        self.joints[0] == 0
    }

    fn offsets(&self) -> impl Iterator<Item = usize> {
        let joints = self.joints.into_iter().take_while(|&joint| joint != 0);
        joints.map(|joint| joint as usize * page_bytes())
    }

    /// Returns how many joints more there may be.
    pub(super) fn room(&self) -> usize {
        JOINTS - self.offsets().count()
    }

    /// Notes that another mapping begins at a byte, behind all joints so far. At its begin and its
    /// end there is nothing to note. There must be room.
    pub(super) fn join(&mut self, at: usize) {
        if at == 0 || at >= self.bytes {
            return;
        }
        let pages = (at / page_bytes()) as u32;
        let free = self.joints.iter_mut().find(|joint| **joint == 0);
        debug_assert!(free.is_some(), "there must be room");
        if let Some(joint) = free {
            *joint = pages;
        }
    }

    /// Returns the address and the bytes of its first mapping.
    pub(super) fn first(&self) -> (usize, usize) {
        let end = self.offsets().next().unwrap_or(self.bytes);
        (self.address, end)
    }

    /// Divides it at a byte, a multiple of a page. `None` for a part without any.
    pub(super) fn split(&self, at: usize) -> [Option<Self>; 2] {
        debug_assert!(at.is_multiple_of(page_bytes()));
        let at = at.min(self.bytes);
        let mut parts = [
            Self::whole(self.address, at),
            Self::whole(self.address + at, self.bytes - at),
        ];
        for joint in self.offsets() {
            match joint.checked_sub(at) {
                None => parts[0].join(joint),
                Some(joint) => parts[1].join(joint),
            }
        }
        parts.map(|part| (part.bytes > 0).then_some(part))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A piece of mappings of so many pages each.
    fn of(lengths: &[usize]) -> Piece {
        let pages: usize = lengths.iter().sum();
        let mut piece = Piece::whole(1 << 30, pages * page_bytes());
        let mut at = 0;
        for length in lengths {
            piece.join(at * page_bytes());
            at += length;
        }
        piece
    }

    /// The lengths of its mappings, in pages.
    fn lengths(piece: Option<Piece>) -> Vec<usize> {
        let mut lengths = Vec::new();
        let mut rest = piece;
        while let Some(piece) = rest {
            let (_, bytes) = piece.first();
            lengths.push(bytes / page_bytes());
            [_, rest] = piece.split(bytes);
        }
        lengths
    }

    #[test]
    fn a_piece_is_divided_where_its_mappings_are_and_in_them() {
        let all = [3, 1, 4, 1, 5, 9, 2];
        let piece = of(&all);
        assert_eq!((piece.is_whole(), piece.room()), (false, JOINTS - 6));
        assert_eq!(lengths(Some(piece)), all);
        for at in 0..=25 {
            let [head, tail] = piece.split(at * page_bytes());
            let (mut head, mut tail) = (lengths(head), lengths(tail));
            assert_eq!(head.iter().sum::<usize>(), at);
            assert_eq!(tail.iter().sum::<usize>(), 25 - at);
            // Together they are what it was, but for a mapping that is divided.
            if head.len() + tail.len() > all.len() {
                let part = head.pop().unwrap();
                tail[0] += part;
            }
            head.append(&mut tail);
            assert_eq!(head, all);
        }
        assert!(of(&[7]).is_whole());
        assert_eq!(of(&[1; JOINTS + 1]).room(), 0);
        assert_eq!(of(&[7]).room(), JOINTS);
    }
}
