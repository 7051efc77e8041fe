//! Which frames are held, by which task and since when: disjoint ranges in order of frames.
//!
//! A range is an allocated block, the rest of one after a part was freed, or a run of frames that
//! were in use when the trace began.

use std::collections::BTreeMap;

/// Who holds a range.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Holder {
    /// In use when the trace began.
    Before {
        /// The time by which its state had certainly been read; the state may already include
        /// earlier events.
        settled: u64,
        /// False if the state does not distinguish a frame in use from one in a per-CPU cache.
        certain: bool,
    },
    /// Allocated at this time, with the indices of the block's class and of the task's name.
    Block {
        time: u64,
        class: u16,
        name: u32,
        order: u8,
    },
}

#[derive(Debug, Clone, Copy)]
struct Range {
    /// The frame after its last.
    end: u64,
    holder: Holder,
}

/// The ranges.
#[derive(Debug, Default)]
pub(super) struct Ledger {
    ranges: BTreeMap<u64, Range>,
}

impl Ledger {
    /// Records that `holder` holds the frames from `start` to before `end`, which must be free.
    pub(super) fn hold(&mut self, start: u64, end: u64, holder: Holder) {
        self.ranges.insert(start, Range { end, holder });
    }

    /// Removes the frames from `start` to before `end`. Calls `each` with how many of them each
    /// holder held.
    pub(super) fn release(&mut self, start: u64, end: u64, mut each: impl FnMut(u64, Holder)) {
        // Most frees are of exactly what was allocated.
        if let Some(range) = self.ranges.get(&start)
            && range.end == end
        {
            each(end - start, range.holder);
            self.ranges.remove(&start);
            return;
        }
        while let Some((&from, &range)) = self.ranges.range(..end).next_back() {
            if range.end <= start {
                return;
            }
            self.ranges.remove(&from);
            if range.end > end {
                self.hold(end, range.end, range.holder);
            }
            if from < start {
                self.hold(from, start, range.holder);
            }
            each(range.end.min(end) - from.max(start), range.holder);
        }
    }

    /// Returns all ranges: how many frames, and who holds them.
    pub(super) fn held(&self) -> impl Iterator<Item = (u64, Holder)> {
        let ranges = self.ranges.iter();
        ranges.map(|(start, range)| (range.end - start, range.holder))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn by(name: u32) -> Holder {
        Holder::Block {
            time: 0,
            class: 0,
            name,
            order: 0,
        }
    }

    fn released(ledger: &mut Ledger, start: u64, end: u64) -> Vec<(u64, Holder)> {
        let mut all = Vec::new();
        ledger.release(start, end, |frames, holder| all.push((frames, holder)));
        all
    }

    #[test]
    fn parts_come_back_one_by_one() {
        let mut ledger = Ledger::default();
        ledger.hold(8, 16, by(1));
        assert_eq!(released(&mut ledger, 10, 12), [(2, by(1))]);
        assert_eq!(released(&mut ledger, 10, 12), []);
        assert_eq!(
            ledger.held().map(|(frames, _)| frames).collect::<Vec<_>>(),
            [2, 4]
        );
        assert_eq!(released(&mut ledger, 8, 16), [(4, by(1)), (2, by(1))]);
        assert_eq!(ledger.held().count(), 0);
    }

    #[test]
    fn neighbours_are_left_alone() {
        let mut ledger = Ledger::default();
        ledger.hold(0, 8, by(1));
        ledger.hold(8, 9, by(2));
        ledger.hold(16, 32, by(3));
        assert_eq!(released(&mut ledger, 8, 16), [(1, by(2))]);
        assert_eq!(released(&mut ledger, 9, 16), []);
        assert_eq!(ledger.held().map(|(frames, _)| frames).sum::<u64>(), 24);
    }
}
