//! Maps of memory, small enough to keep: what is in each page block, and what each frame is used
//! for.

use brickyard_host::blocks::{BlockKind, BlockUse};
use brickyard_trace::{PageUse, StateRun};

/// Adjacent page blocks of one kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BlockRun {
    /// The number of the first block: its first frame shifted by the order of a block.
    pub first: u64,
    /// How many.
    pub blocks: u64,
    /// Their kind.
    pub kind: BlockKind,
}

/// Returns the blocks, which are in order, as runs. A block that two zones share is two blocks in
/// `blocks`; it becomes one, of the second's kind unless that has no memory.
#[must_use]
pub fn block_runs<'a>(blocks: impl Iterator<Item = &'a BlockUse>, order: u8) -> Vec<BlockRun> {
    let mut runs: Vec<BlockRun> = Vec::new();
    let mut next = 0;
    for block in blocks {
        let (first, kind) = (block.frame >> order, block.kind());
        if first < next && !replaces(&mut runs, first, kind) {
            continue;
        }
        next = first + 1;
        match runs.last_mut() {
            Some(last) if last.kind == kind && last.first + last.blocks == first => {
                last.blocks += 1
            }
            _ => runs.push(BlockRun {
                first,
                blocks: 1,
                kind,
            }),
        }
    }
    runs
}

/// Removes the last block of the runs, which is block `first`, if one of this kind shall be in its
/// place.
fn replaces(runs: &mut Vec<BlockRun>, first: u64, kind: BlockKind) -> bool {
    let Some(last) = runs.last_mut() else {
        return false;
    };
    if kind == BlockKind::Absent || last.first + last.blocks != first + 1 {
        return false;
    }
    last.blocks -= 1;
    if last.blocks == 0 {
        runs.pop();
    }
    true
}

/// Frames of a part of the map: 1 GiB in frames of 4 KiB.
const PART: u64 = 1 << 18;

/// What each frame is used for: a byte a frame, in parts of 1 GiB; parts without memory take none.
#[derive(Debug, Default)]
pub struct FrameMap {
    /// By their numbers, in order.
    parts: Vec<(u64, Box<[u8]>)>,
    end: u64,
}

impl FrameMap {
    /// Makes the map of these runs, which are in order of frames.
    #[must_use]
    pub fn of(runs: &[StateRun]) -> Self {
        let mut map = Self::default();
        for run in runs {
            map.end = run.frame.saturating_add(run.frames);
            if run.state.usage != PageUse::Hole {
                map.fill(run.frame, map.end, run.state.usage);
            }
        }
        map
    }

    fn fill(&mut self, start: u64, end: u64, usage: PageUse) {
        let mut at = start;
        while at < end {
            let part = at / PART;
            if self.parts.last().is_none_or(|last| last.0 != part) {
                let holes = vec![PageUse::Hole as u8; PART as usize];
                self.parts.push((part, holes.into()));
            }
            let until = end.min((part + 1) * PART);
            if let Some((_, bytes)) = self.parts.last_mut() {
                let from = (at % PART) as usize;
                bytes[from..from + (until - at) as usize].fill(usage as u8);
            }
            at = until;
        }
    }

    /// Returns the frame after the last.
    #[must_use]
    pub fn end(&self) -> u64 {
        self.end
    }

    /// Returns what the frames from `first` on are used for, at most `count` of them: fewer where
    /// memory ends. A search in the parts, and a step a frame.
    pub fn uses(&self, first: u64, count: u64) -> impl Iterator<Item = PageUse> {
        let end = first.saturating_add(count).min(self.end);
        (first..end).map(|frame| {
            let found = self
                .parts
                .binary_search_by_key(&(frame / PART), |part| part.0);
            let byte = found.map_or(0, |at| self.parts[at].1[(frame % PART) as usize]);
            PageUse::ALL
                .get(usize::from(byte))
                .copied()
                .unwrap_or(PageUse::Hole)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use brickyard_trace::PageState;

    fn run(frame: u64, frames: u64, usage: PageUse) -> StateRun {
        let state = PageState::of(usage);
        StateRun {
            time: 0,
            frame,
            frames,
            order: 0,
            state,
        }
    }

    #[test]
    fn a_map_has_what_the_runs_have() {
        let runs = [
            run(0, 3, PageUse::Slab),
            run(3, PART, PageUse::File),
            run(3 + PART, 7 * PART, PageUse::Hole),
            run(3 + 8 * PART, 2, PageUse::Free),
        ];
        let map = FrameMap::of(&runs);
        assert_eq!((map.parts.len(), map.end()), (3, 8 * PART + 5));
        let naive = |frame: u64| {
            let of = runs.iter().find(|run| frame < run.frame + run.frames);
            of.unwrap().state.usage
        };
        for first in [0, 2, PART - 1, PART + 2, 8 * PART - 3, 8 * PART + 1] {
            let wanted: Vec<_> = (first..(first + 9).min(map.end())).map(naive).collect();
            assert_eq!(map.uses(first, 9).collect::<Vec<_>>(), wanted, "{first}");
        }
        assert_eq!(map.uses(map.end() + 5, u64::MAX).count(), 0);
    }

    fn block(frame: u64, usage: PageUse) -> BlockUse {
        let mut block = BlockUse {
            frame,
            ..BlockUse::default()
        };
        block.by_use[usage as usize] = 512;
        block
    }

    #[test]
    fn blocks_of_a_kind_are_a_run_and_zones_share_a_block_once() {
        let blocks = [
            block(0, PageUse::Free),
            block(512, PageUse::Free),
            block(1024, PageUse::Hole),
            // The next zone begins in the same block.
            block(1024, PageUse::Free),
            block(1024, PageUse::Hole),
            block(4096, PageUse::Free),
        ];
        let kind = BlockKind::Free;
        let run = |first, blocks| BlockRun {
            first,
            blocks,
            kind,
        };
        assert_eq!(block_runs(blocks.iter(), 9), [run(0, 3), run(8, 1)]);
    }
}
