//! The frames of the recorded host that jobs hold, and the job and page of each.

use std::collections::BTreeMap;

use brickyard_trace::{Event, What};

/// A run of frames within one block of one job.
#[derive(Debug, Clone, Copy)]
struct HeldRange {
    frames: u64,
    block: Block,
    /// Its offset in the block, in frames.
    offset: u64,
}

/// A block that a job took.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Block {
    /// The index of the job.
    pub(super) job: usize,
    /// Its first page.
    pub(super) page: u32,
    /// The largest order in which parts of it are given back.
    pub(super) order_most: u8,
}

/// An aligned part of a block that is given back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Part {
    /// The index of the job that took it.
    pub(super) job: usize,
    /// Its first page.
    pub(super) page: u32,
    /// Its size.
    pub(super) order: u8,
}

/// Frames in use, as disjoint runs by their first frame.
#[derive(Debug, Default)]
pub(super) struct FrameOwners(BTreeMap<u64, HeldRange>);

impl FrameOwners {
    /// Applies an event: removes its frames and calls `gives` for each part of them that was held;
    /// then, for an allocation, adds them to `taker`, if there is one.
    pub(super) fn follow(&mut self, event: &Event, taker: Option<Block>, gives: impl FnMut(Part)) {
        let frames = event.order.frames() as u64;
        match event.what {
            What::Alloc { .. } | What::Free => self.remove(event.frame, frames, gives),
            _ => return,
        }
        if let (What::Alloc { .. }, Some(block)) = (event.what, taker) {
            let run = HeldRange {
                frames: frames.min(u64::MAX - event.frame),
                block,
                offset: 0,
            };
            self.0.insert(event.frame, run);
        }
    }

    /// Removes these frames, and calls `gives` for the largest aligned parts that were held. O(log
    /// n) for each of them, of n runs.
    fn remove(&mut self, frame: u64, frames: u64, mut gives: impl FnMut(Part)) {
        let end = frame.saturating_add(frames);
        let mut key = match self.0.range(..frame).next_back() {
            Some((&first, run)) if run.frames > frame - first => first,
            _ => frame,
        };
        while let Some((&first, &run)) = self.0.range(key..end).next() {
            self.0.remove(&first);
            let (from, to) = (frame.saturating_sub(first), (end - first).min(run.frames));
            for (from, to) in [(0, from), (to, run.frames)] {
                if from < to {
                    let rest = HeldRange {
                        frames: to - from,
                        offset: run.offset + from,
                        ..run
                    };
                    self.0.insert(first + from, rest);
                }
            }
            parts(run, from, to, &mut gives);
            // Do not visit the remainder before `frame` again.
            key = frame;
        }
    }
}

/// Calls `gives` for the frames `from..to` of a run, in aligned parts of its block that are no
/// larger than it allows.
fn parts(run: HeldRange, from: u64, to: u64, gives: &mut impl FnMut(Part)) {
    let (mut at, end) = (run.offset + from, run.offset + to);
    while at < end {
        let order = at.trailing_zeros().min((end - at).ilog2());
        let order = order.min(u32::from(run.block.order_most));
        gives(Part {
            job: run.block.job,
            page: run.block.page + at as u32,
            order: order as u8,
        });
        at += 1 << order;
    }
}
