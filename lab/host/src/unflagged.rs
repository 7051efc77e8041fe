//! Frames without any flag ([`PageUse::Untold`]): pages in per-CPU lists, or memory of the kernel's
//! own.
//!
//! Pages in per-CPU lists are single or a few adjacent ones, while a balloon or a driver has whole
//! adjacent page blocks. So a long stretch is not in lists, and neither is a compound page, since a
//! page in a list is never compound.

use core::ops::Range;

use brickyard_trace::{PageUse, StateRun};

/// Returns the stretches of `least` or more adjacent frames without a flag, in order: memory of the
/// kernel's own. Compound pages are not counted. `runs` must be in order of frames.
///
/// ```
/// use brickyard_trace::{PageState, PageUse, StateRun};
/// let run = |time, frame, frames| StateRun { time, frame, frames, order: 0, state: PageState::of(PageUse::Untold) };
/// // Read at two times, yet one stretch; the third is a short one.
/// let runs = [run(0, 0, 500), run(7, 500, 30), run(7, 600, 511)];
/// assert_eq!(brickyard_host::unflagged::long_stretches(&runs, 512), [0..530]);
/// ```
#[must_use]
pub fn long_stretches(runs: &[StateRun], least: u64) -> Vec<Range<u64>> {
    let mut stretches: Vec<Range<u64>> = Vec::new();
    for run in runs.iter().filter(|run| is_single_unflagged(run)) {
        let end = run.frame.saturating_add(run.frames);
        match stretches.last_mut() {
            Some(last) if last.end == run.frame => last.end = end,
            last => {
                if last.is_some_and(|last| last.end - last.start < least) {
                    stretches.pop();
                }
                stretches.push(run.frame..end);
            }
        }
    }
    stretches.retain(|stretch| stretch.end - stretch.start >= least);
    stretches
}

/// Returns true if the frames of this run may be in per-CPU lists, by the run alone.
#[must_use]
pub fn is_single_unflagged(run: &StateRun) -> bool {
    run.state.usage == PageUse::Untold && run.order == 0
}

/// Returns true if one of `stretches` (sorted, disjoint) contains `frame`.
#[must_use]
pub fn contains(stretches: &[Range<u64>], frame: u64) -> bool {
    let before = stretches.partition_point(|stretch| stretch.end <= frame);
    stretches
        .get(before)
        .is_some_and(|stretch| stretch.start <= frame)
}
