//! Runs from free pages that lie side by side.
//!
//! Zones do not know which free pages have memory, and hand out blocks aligned to their size. So
//! runs of odd lengths would take new pages most of the time, at the price of a fault each, while
//! as many idle ones had to be returned to the system. So a run is looked for in the bits of free
//! pages first, wherever it may begin, from the lowest address of a zone on: in the first group
//! (see below) with a place nearly all of which is idle, or else where most of it is. (The first
//! place all of which is idle, wherever it lies, costs up to twice as many faults: what is used then
//! does not stay together.) One zone is searched for a request; where it has no such run, it is the
//! next zone's turn for the request that comes. Where a request stops before, since it has looked at
//! much, and has found no idle place, the next one goes on; once one finds an idle place, the next
//! begins at the zone's beginning.
//!
//! For each **group** of 512 pages there is a word that says how long a run may be that begins
//! there. A request passes groups with too short ones, and looks at the bits of others. What it
//! does not find there the word then excludes, until a page of the group becomes free.
//!
//! Invariant `no-longer-run`: if the word of a group is less than a number of pages, so many free
//! pages do not begin there side by side, but while somebody looks. Whoever looks lowers the word
//! first, then reads the bits, and raises it again if it finds what it looks for; whoever frees
//! a page sets its bit first and then reads the word. All that is in one total order, so either
//! the first sees the bit, or the second the lowered word, which it raises.

use core::sync::atomic::{AtomicU16, Ordering};

use brickyard::{Context, Frame, FrameRange, Mobility, Order};

use super::Span;
use super::idle::Bits;
use super::layout::{GROUP, WORD};

/// The word of a group of which nothing is known.
const ANY: u16 = u16::MAX;

/// A request looks at the bits of so many groups at most.
const LOOKS: usize = 32;

/// A request tries so many places at most: others may take them first.
const TRIES: usize = 3;

/// A place will do if all but one part in so many is idle.
const REST_PART: usize = 8;

/// Where a run may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) page: usize,
    /// How many of its pages are idle.
    idle: usize,
    /// It is nearly all of them.
    pub(super) is_idle: bool,
}

impl Span {
    /// The pages of the longest run that may begin in a group.
    pub(super) fn longest(&self, group: usize) -> &AtomicU16 {
        let word = self.tables.at(self.layout.longest_at).cast::<AtomicU16>();
        // SAFETY: the tables have such a word for each group, initially zero: no page was free.
        unsafe { word.add(group).as_ref() }
    }

    /// Notes that pages have become free: runs that begin in their groups may be longer. To be
    /// called after their bits are set.
    pub(super) fn may_serve(&self, page: usize, pages: usize) {
        let first = page / GROUP;
        let note = |group: usize| {
            // SeqCst: after the bit is set (`no-longer-run`).
            if self.longest(group).load(Ordering::SeqCst) != ANY {
                self.longest(group).store(ANY, Ordering::SeqCst);
            }
        };
        for group in first..=(page + pages - 1) / GROUP {
            note(group);
        }
        // A run of the group before may go on in this one.
        let start = first * GROUP;
        if first > 0 && self.is_free(start) && self.is_free(start - 1) {
            note(first - 1);
        }
    }

    fn is_free(&self, page: usize) -> bool {
        // SeqCst: of two that become free at once, one sees both.
        self.bits(page / WORD).free.load(Ordering::SeqCst) >> (page % WORD) & 1 != 0
    }

    /// Takes the pages of a place that [`Span::best_place`] has found, or else of another. They are
    /// not accounted yet. Tries [`TRIES`] places.
    pub(super) fn take_place(&self, mut place: Place, pages: usize) -> Option<usize> {
        let request = Self::request(Order::ZERO, Mobility::Movable, Context::MaySleep);
        for tried in 1..=TRIES {
            let page = place.page;
            let range = FrameRange::at(Frame::new(page), pages);
            if self.zone_of(page).alloc_range_at(range, &request).is_ok() {
                return Some(page);
            }
            // Somebody holds it, perhaps for long.
            // Relaxed: a hint.
            let behind = page / GROUP + 1;
            self.counts.reused.store(behind, Ordering::Relaxed);
            if tried < TRIES {
                place = self.best_place(pages)?;
            }
        }
        None
    }

    /// Returns where so many free pages lie side by side, and says where the next request looks. It
    /// looks at the words of a zone's groups, 512 at most, and the bits of [`LOOKS`].
    pub(super) fn best_place(&self, pages: usize) -> Option<Place> {
        let zone_pages = self.layout.zone_pages;
        // Relaxed, all: hints.
        let grown = self.grown.load(Ordering::Relaxed);
        let reused = &self.counts.reused;
        let from = reused.load(Ordering::Relaxed) * GROUP;
        let from = if from < grown { from } else { 0 };
        let first = from / zone_pages * zone_pages;
        // Not `grown`, which may be older than the bits that are read: what is not grown yet has
        // none that are set.
        let end = self.limit().min(first + zone_pages);
        let groups = from / GROUP..grown.min(end).div_ceil(GROUP);
        let mut looks = LOOKS;
        let mut best: Option<Place> = None;
        let mut next = if end < grown { end / GROUP } else { 0 };
        for group in groups {
            if usize::from(self.longest(group).load(Ordering::Relaxed)) < pages {
                continue;
            }
            if looks == 0 {
                // The next request goes on from here.
                next = group;
                break;
            }
            looks -= 1;
            let Some(page) = self.place_in(group, end, pages) else {
                continue;
            };
            let idle = self.idle_among(page, pages);
            if best.is_none_or(|best| idle > best.idle) {
                let is_idle = idle >= pages - pages / REST_PART;
                best = Some(Place {
                    page,
                    idle,
                    is_idle,
                });
                if is_idle {
                    break;
                }
            }
        }
        if best.is_some_and(|best| best.is_idle) {
            // Low addresses again: what is used stays together.
            next = first / GROUP;
        }
        if next != from / GROUP {
            reused.store(next, Ordering::Relaxed);
        }
        best
    }

    /// Returns the first of so many idle pages side by side that begin in a group, and end below
    /// `end`, or else the first of so many free ones; without any, its word says so.
    fn place_in(&self, group: usize, end: usize, pages: usize) -> Option<usize> {
        let longest = self.longest(group);
        // SeqCst: before the bits are read (`no-longer-run`).
        let before = longest.swap(pages as u16 - 1, Ordering::SeqCst);
        let idle = |bits: &Bits| bits.idle.load(Ordering::Relaxed);
        // SeqCst: after the group's word is lowered (`no-longer-run`).
        let free = |bits: &Bits| bits.free.load(Ordering::SeqCst);
        let page = self.side_by_side(group, end, pages, idle);
        let page = page.or_else(|| self.side_by_side(group, end, pages, free))?;
        // Relaxed: it may be raised whenever.
        let _ = longest.fetch_max(before, Ordering::Relaxed);
        Some(page)
    }

    /// Returns the first of so many pages side by side whose bits are set. It is one of `group`;
    /// the last is below `end`.
    fn side_by_side(
        &self,
        group: usize,
        end: usize,
        pages: usize,
        bits_of: impl Fn(&Bits) -> u64,
    ) -> Option<usize> {
        let behind = (group + 1) * GROUP / WORD;
        let mut before = 0;
        for word in group * GROUP / WORD..end.div_ceil(WORD) {
            let bits = bits_of(self.bits(word));
            let at = word * WORD;
            if before + bits.trailing_ones() as usize >= pages {
                return Some(at - before);
            }
            if word < behind
                && let Some(inside) = ones_side_by_side(bits, pages)
            {
                return Some(at + inside);
            }
            before = match bits {
                u64::MAX => before + WORD,
                _ if word < behind => bits.leading_ones() as usize,
                _ => 0,
            };
            if word + 1 >= behind && before == 0 {
                return None;
            }
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
