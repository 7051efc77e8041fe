//! One set-associative cache with LRU replacement. Tags only, no contents.
//!
//! A set is a run of tags, the most recently used first and the empty places last. A hit moves its
//! tag to the front; an insertion evicts the tag at the end. At most 20 words in one or two host
//! cache lines are moved, so no clock and no list is needed.

use crate::CacheShape;

/// An empty place. Others hold the line's number plus one, so that a new cache is zeroed memory,
/// which the host provides on first use.
const EMPTY: u32 = 0;

#[derive(Debug, Clone)]
pub(crate) struct Cache {
    /// Set after set, `ways` tags each.
    tags: Vec<u32>,
    ways: usize,
    /// Number of sets less one: the mask of a line's number that gives its set.
    mask: usize,
}

impl Cache {
    /// An empty cache.
    pub(crate) fn new(shape: CacheShape) -> Self {
        let ways = shape.ways.max(1);
        let sets = shape.sets();
        Self {
            tags: vec![EMPTY; sets * ways],
            ways,
            mask: sets - 1,
        }
    }

    #[inline]
    fn set(&mut self, line: u32) -> &mut [u32] {
        let first = (line as usize & self.mask) * self.ways;
        &mut self.tags[first..first + self.ways]
    }

    /// Returns true if the line is here, and makes it the most recently used of its set.
    #[inline]
    pub(crate) fn touch(&mut self, line: u32) -> bool {
        let tag = line + 1;
        let set = self.set(line);
        if set[0] == tag {
            return true;
        }
        let Some(place) = set.iter().position(|&held| held == tag) else {
            return false;
        };
        to_front(set, place, tag);
        true
    }

    /// Inserts a line that is not here as the most recently used; returns the line it evicted.
    #[inline]
    pub(crate) fn insert(&mut self, line: u32) -> Option<u32> {
        let tag = line + 1;
        let set = self.set(line);
        let last = set.len() - 1;
        let victim = set[last];
        to_front(set, last, tag);
        victim.checked_sub(1)
    }

    /// Removes a line, if it is here; its place is the next to be filled.
    #[inline]
    pub(crate) fn remove(&mut self, line: u32) {
        let tag = line + 1;
        let set = self.set(line);
        if let Some(place) = set.iter().position(|&held| held == tag) {
            let last = set.len() - 1;
            for to in place..last {
                set[to] = set[to + 1];
            }
            set[last] = EMPTY;
        }
    }

    /// Whether the line is here. Changes nothing.
    pub(crate) fn contains(&self, line: u32) -> bool {
        let first = (line as usize & self.mask) * self.ways;
        self.tags[first..first + self.ways].contains(&(line + 1))
    }

    /// Returns all lines that are here.
    pub(crate) fn lines(&self) -> impl Iterator<Item = u32> {
        self.tags.iter().filter_map(|tag| tag.checked_sub(1))
    }
}

/// Moves all tags before `place` back by one, and puts `tag` first. A loop and not `copy_within`:
/// for so few words the call costs more.
#[inline]
fn to_front(set: &mut [u32], place: usize, tag: u32) {
    let mut carried = tag;
    for held in &mut set[..=place] {
        core::mem::swap(held, &mut carried);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 4 sets of 2 ways.
    fn small() -> Cache {
        Cache::new(CacheShape::new(8, 2, 0))
    }

    #[test]
    fn the_least_recently_used_of_the_set_is_evicted() {
        let mut cache = small();
        // 0, 4, 8, 12 belong to set 0.
        assert_eq!(cache.insert(0), None);
        assert_eq!(cache.insert(4), None);
        assert!(cache.touch(0));
        assert_eq!(cache.insert(8), Some(4));
        assert_eq!(cache.insert(12), Some(0));
        assert!(!cache.touch(0) && !cache.touch(4));
        assert!(cache.touch(8) && cache.touch(12));
        // Another set is not affected.
        assert_eq!(cache.insert(1), None);
        assert_eq!(cache.lines().collect::<Vec<_>>(), [12, 8, 1]);
    }

    #[test]
    fn a_place_that_was_cleared_is_filled_before_a_line_is_evicted() {
        let mut cache = small();
        cache.insert(0);
        cache.insert(4);
        cache.remove(4);
        cache.remove(8);
        assert!(!cache.contains(4) && cache.contains(0));
        assert_eq!(cache.insert(8), None);
        assert_eq!(cache.insert(12), Some(0));
    }

    #[test]
    fn one_set_holds_as_many_lines_as_it_has_ways() {
        let mut cache = Cache::new(CacheShape::new(3, 3, 0));
        for line in [10, 20, 30] {
            assert_eq!(cache.insert(line), None);
        }
        cache.remove(20);
        assert_eq!(cache.lines().collect::<Vec<_>>(), [30, 10]);
        assert_eq!(cache.insert(40), None);
        assert_eq!(cache.insert(50), Some(10));
    }
}
