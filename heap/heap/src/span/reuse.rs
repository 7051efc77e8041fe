//! Runs from idle pages that lie side by side.
//!
//! Zones do not know which free pages have memory, and hand out blocks aligned to their size. So
//! runs of odd lengths would take new pages most of the time, at the price of a fault each, while
//! as many idle ones had to be returned to the system. So a run is looked for in the bits of idle
//! pages first, wherever it may begin, from the lowest address of a zone on. One zone is searched
//! for a request; where it has no such run, it is the next zone's turn for the request that comes.

use core::sync::atomic::Ordering;

use brickyard::{Context, Frame, FrameRange, Mobility, Order};

use super::Span;
use super::idle::WORD;

/// A request looks at so many places at most: others may take them first.
const TRIES: usize = 3;

impl Span {
    /// Takes so many idle pages side by side, and returns the first. They are not accounted yet. It
    /// looks at the bits of one zone, 4096 words at most.
    pub(super) fn take_idle(&self, pages: usize) -> Option<usize> {
        // Relaxed, all: hints.
        if self.counts.idle.load(Ordering::Relaxed) < pages {
            return None;
        }
        let zone_pages = self.layout.zone_pages;
        let grown = self.grown.load(Ordering::Relaxed);
        let first = self.counts.reused.load(Ordering::Relaxed) * zone_pages;
        let first = if first < grown { first } else { 0 };
        let end = grown.min(first + zone_pages);
        let request = Self::request(Order::ZERO, Mobility::Movable, Context::MaySleep);
        let mut from = first;
        for _ in 0..TRIES {
            let Some(page) = self.idle_side_by_side(from, end, pages) else {
                break;
            };
            let range = FrameRange::at(Frame::new(page), pages);
            if self.zone_of(page).alloc_range_at(range, &request).is_ok() {
                return Some(page);
            }
            from = (page + pages).next_multiple_of(WORD);
        }
        let next = if end < grown { end / zone_pages } else { 0 };
        self.counts.reused.store(next, Ordering::Relaxed);
        None
    }

    /// Returns the first of so many pages side by side whose bits are set, in `from..end`, both
    /// multiples of a word.
    fn idle_side_by_side(&self, from: usize, end: usize, pages: usize) -> Option<usize> {
        let mut before = 0;
        for word in from / WORD..end / WORD {
            // Relaxed: a hint. The zone decides.
            let bits = self.idle_word(word).load(Ordering::Relaxed);
            let at = word * WORD;
            if before + bits.trailing_ones() as usize >= pages {
                return Some(at - before);
            }
            if let Some(inside) = ones_side_by_side(bits, pages) {
                return Some(at + inside);
            }
            before = match bits {
                u64::MAX => before + WORD,
                _ => bits.leading_ones() as usize,
            };
        }
        None
    }
}

/// Returns the position of the first of so many ones side by side in a word.
fn ones_side_by_side(mut bits: u64, mut ones: usize) -> Option<usize> {
    if ones > WORD {
        return None;
    }
    // A bit that stays stands for a number of ones from it on: twice as many in each round.
    let mut had = 1;
    while ones > 1 && bits != 0 {
        let step = had.min(ones - 1);
        bits &= bits >> step;
        ones -= step;
        had *= 2;
    }
    (bits != 0).then(|| bits.trailing_zeros() as usize)
}

#[cfg(test)]
mod tests {
    use super::ones_side_by_side;

    #[test]
    fn ones_are_found_as_by_looking_at_each() {
        let mut state = 7_u64;
        for round in 0..20_000 {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(99);
            // Few and many ones.
            let bits = match round % 4 {
                0 => state & state << 7,
                1 => state | state << 9,
                2 => state | state << 9 | state >> 21,
                _ => !(1 << (state >> 58)),
            };
            for ones in 1..=65 {
                let all = |at: &usize| (*at..at + ones).all(|bit| bit < 64 && bits >> bit & 1 == 1);
                let expected = (0..64).find(all);
                assert_eq!(ones_side_by_side(bits, ones), expected, "{bits:x} {ones}");
            }
        }
    }
}
