//! Which frames of the recorded host the jobs hold, and which page of which job each is.

use std::collections::BTreeMap;

use brickyard_trace::{Event, What};

/// A run of frames that lie in one block of one job.
#[derive(Debug, Clone, Copy)]
struct HeldRange {
    frames: u64,
    block: Block,
    /// Where in its block it begins.
    offset: u64,
}

/// A block that a job took.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Block {
    /// The place of the job.
    pub(super) job: usize,
    /// Its first page.
    pub(super) page: u32,
}

/// An aligned part of a block that is given back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Part {
    /// The place of the job that took it.
    pub(super) job: usize,
    /// Its first page.
    pub(super) page: u32,
    /// Its size.
    pub(super) order: u8,
}

/// Frames in use, as runs that do not overlap, by their first frame.
#[derive(Debug, Default)]
pub(super) struct Held(BTreeMap<u64, HeldRange>);

impl Held {
    /// What an event changes: its frames are nobody's any more, which `gives` is told of what was
    /// held; then they are `taker`'s, if it takes some.
    pub(super) fn follow(&mut self, event: &Event, taker: Option<Block>, gives: impl FnMut(Part)) {
        let frames = event.order.frames() as u64;
        match event.what {
            What::Alloc { .. } | What::Free => self.take_out(event.frame, frames, gives),
            What::Failure { .. } | What::Fallback { .. } => return,
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

    /// Tells in parts as large as can be. O(log of the runs) for each run.
    fn take_out(&mut self, frame: u64, frames: u64, mut gives: impl FnMut(Part)) {
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
            // What is left before `frame` is not looked at again.
            key = frame;
        }
    }
}

/// The frames `from..to` of a run, in aligned parts of its block.
fn parts(run: HeldRange, from: u64, to: u64, gives: &mut impl FnMut(Part)) {
    let (mut at, end) = (run.offset + from, run.offset + to);
    while at < end {
        let order = at.trailing_zeros().min((end - at).ilog2());
        gives(Part {
            job: run.block.job,
            page: run.block.page + at as u32,
            order: order as u8,
        });
        at += 1 << order;
    }
}
