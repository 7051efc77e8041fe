//! Page blocks by the frames in them: which are mixed, and by what.
//!
//! A huge page needs a whole block, and a single immovable page prevents it. pagetypeinfo, which
//! counts blocks by their nominal type, does not show that.

use brickyard_run::named;
use brickyard_trace::{PageUse, StateRun};

use crate::movability::{Judge, Movability};
use crate::zoneinfo::ZoneInfo;

/// The frames of one block, counted by use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct BlockUse {
    /// Its first frame, which may be before the zone.
    pub frame: u64,
    /// Frames by [`PageUse`]; those outside the zone are [`PageUse::Hole`].
    pub by_use: [u32; PageUse::ALL.len()],
    /// Frames that compaction could move.
    pub movable: u32,
    /// Frames that may be free in per-CPU lists.
    pub perhaps: u32,
    /// Frames that cannot be moved.
    pub stuck: u32,
    /// Frames under writeback or isolated for reclaim.
    pub writeback: u32,
}

named! {
    /// The kind of a block, by the frames in it.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
    pub enum BlockKind {
        /// No memory.
        Absent => "absent",
        /// All free.
        Free => "free",
        /// An explicit huge page.
        Huge => "huge",
        /// Free and movable frames: compaction could empty it.
        Movable => "movable",
        /// Like `Movable`, but with frames that may be free in per-CPU lists, or immovable.
        Perhaps => "perhaps",
        /// Movable and immovable frames.
        Mixed => "mixed",
        /// In use, without movable frames.
        Unmovable => "unmovable",
    }
}

impl BlockUse {
    /// Returns the number of frames of this use.
    #[must_use]
    pub fn of_use(&self, usage: PageUse) -> u32 {
        self.by_use[usage as usize]
    }

    /// Returns the kind of the block.
    #[must_use]
    pub fn kind(&self) -> BlockKind {
        let frames: u32 = self.by_use.iter().sum();
        if self.of_use(PageUse::Hole) == frames {
            BlockKind::Absent
        } else if self.of_use(PageUse::Free) == frames {
            BlockKind::Free
        } else if self.of_use(PageUse::Huge) == frames {
            BlockKind::Huge
        } else if self.movable == 0 {
            BlockKind::Unmovable
        } else if self.stuck > 0 {
            BlockKind::Mixed
        } else if self.perhaps > 0 {
            BlockKind::Perhaps
        } else {
            BlockKind::Movable
        }
    }
}

/// Returns the blocks of 2^`order` frames that `zone` overlaps, in order. `runs` must be in order
/// of frames. Makes one pass over the zone's runs; takes 64 bytes a block.
#[must_use]
pub fn of_zone(runs: &[StateRun], zone: &ZoneInfo, order: u8, judge: &Judge) -> Vec<BlockUse> {
    let size = 1_u64 << order.min(31);
    let end = zone.end_pfn();
    let first = runs.partition_point(|run| run_end(run) <= zone.start_pfn);
    let mut blocks: Vec<BlockUse> = Vec::new();
    for run in runs[first..].iter().take_while(|run| run.frame < end) {
        let movability = judge.of(run);
        let mut at = run.frame.max(zone.start_pfn);
        let until = run_end(run).min(end);
        while at < until {
            let frame = at / size * size;
            if blocks.last().is_none_or(|last| last.frame != frame) {
                blocks.push(BlockUse {
                    frame,
                    ..BlockUse::default()
                });
            }
            let next = until.min(frame + size);
            if let Some(block) = blocks.last_mut() {
                // At most the 2^31 frames of a block.
                add(block, run, movability, (next - at) as u32);
            }
            at = next;
        }
    }
    for block in &mut blocks {
        let known: u32 = block.by_use.iter().sum();
        let outside = (size as u32).saturating_sub(known);
        block.by_use[PageUse::Hole as usize] += outside;
    }
    blocks
}

/// Returns the frame after the last of a run.
fn run_end(run: &StateRun) -> u64 {
    run.frame.saturating_add(run.frames)
}

fn add(block: &mut BlockUse, run: &StateRun, movability: Movability, frames: u32) {
    block.by_use[run.state.usage as usize] += frames;
    match movability {
        Movability::Movable => block.movable += frames,
        Movability::Perhaps => block.perhaps += frames,
        Movability::Stuck => block.stuck += frames,
        Movability::Free | Movability::Huge | Movability::Absent => {}
    }
    if run.state.writeback {
        block.writeback += frames;
    }
}

/// How many blocks there are of each kind, and the frames of the mixed ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct BlockSummary {
    /// Blocks without memory.
    pub absent: u64,
    /// Blocks that are all free.
    pub free: u64,
    /// Explicit huge pages.
    pub huge: u64,
    /// Blocks of free and movable frames.
    pub movable: u64,
    /// Blocks of movable frames and of frames that may be free in per-CPU lists.
    pub perhaps: u64,
    /// Blocks of movable and immovable frames.
    pub mixed: u64,
    /// Mixed blocks with at most [`BlockSummary::FEW`] immovable frames.
    pub mixed_by_few: u64,
    /// Blocks in use without movable frames.
    pub unmovable: u64,
    /// Frames in mixed blocks by [`PageUse`].
    pub in_mixed: [u64; PageUse::ALL.len()],
}

impl BlockSummary {
    /// The limit of [`BlockSummary::mixed_by_few`].
    pub const FEW: u32 = 8;

    /// Summarizes these blocks.
    #[must_use]
    pub fn of(blocks: &[BlockUse]) -> Self {
        let mut summary = Self::default();
        for block in blocks {
            match block.kind() {
                BlockKind::Absent => summary.absent += 1,
                BlockKind::Free => summary.free += 1,
                BlockKind::Huge => summary.huge += 1,
                BlockKind::Movable => summary.movable += 1,
                BlockKind::Perhaps => summary.perhaps += 1,
                BlockKind::Unmovable => summary.unmovable += 1,
                BlockKind::Mixed => {
                    summary.mixed += 1;
                    summary.mixed_by_few += u64::from(block.stuck <= Self::FEW);
                    for (sum, &frames) in summary.in_mixed.iter_mut().zip(&block.by_use) {
                        *sum += u64::from(frames);
                    }
                }
            }
        }
        summary
    }
}
