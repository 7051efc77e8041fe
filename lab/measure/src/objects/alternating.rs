//! How much longer one loop takes than another, where the difference is smaller than the changes in
//! the host's speed during a sample.
//!
//! The loops take turns in blocks that are much shorter than such a change: once through all of
//! them and back again, so that a steady drift affects each equally. The difference is taken within
//! each such round, and the median over all rounds, so that an interrupted one does not matter.

use core::time::Duration;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use super::crowd::{Clock, time};
use crate::clock::cpu_of_this_thread;

/// The approximate time of a block: many calls, but few timer interrupts.
pub const BLOCK: Duration = Duration::from_micros(50);

/// Returns a function that reads a clock of the calling thread.
pub fn now(clock: Clock) -> impl Fn() -> Duration {
    let begun = Instant::now();
    move || match clock {
        Clock::Wall => begun.elapsed(),
        Clock::Cpu => cpu_of_this_thread(),
    }
}

/// Returns how much longer a block of each of `N` loops takes than one of the first, in ns: the
/// median over so many rounds of each of so many threads in parallel. `thread` makes, on each
/// thread, the function that runs a block and returns its time.
pub fn differences<const N: usize, B: FnMut(usize) -> Duration>(
    threads: usize,
    rounds: u64,
    thread: impl Fn() -> B + Sync,
) -> [f64; N] {
    let all: Mutex<Vec<[f64; N]>> = Mutex::default();
    time(threads, rounds, |_, pace| {
        let mut block = thread();
        let mut of_thread = Vec::new();
        pace.run(|rounds| of_thread = (0..rounds).map(|_| round(&mut block)).collect());
        let mut all = all.lock().unwrap_or_else(PoisonError::into_inner);
        all.append(&mut of_thread);
    });
    medians(&all.into_inner().unwrap_or_else(PoisonError::into_inner))
}

/// Returns how much longer a block of each loop took than one of the first.
fn round<const N: usize>(mut block: impl FnMut(usize) -> Duration) -> [f64; N] {
    let mut spent = [Duration::ZERO; N];
    for which in (0..N).chain((0..N).rev()) {
        spent[which] += block(which);
    }
    let ns = spent.map(|spent| spent.as_nanos() as f64 / 2.0);
    ns.map(|of_one| of_one - ns[0])
}

fn medians<const N: usize>(rounds: &[[f64; N]]) -> [f64; N] {
    core::array::from_fn(|which| {
        let mut all: Vec<f64> = rounds.iter().map(|round| round[which]).collect();
        all.sort_unstable_by(f64::total_cmp);
        all.get(all.len() / 2).copied().unwrap_or_default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A host that gets slower steadily, by far more than the loops differ.
    #[test]
    fn a_drift_affects_all_loops_equally() {
        let [none, more, less] = differences(1, 20, || {
            let mut now = 0;
            move |which| {
                now += 1;
                Duration::from_nanos([1000, 1030, 990][which] + 100 * now)
            }
        });
        assert_eq!([none, more, less], [0.0, 30.0, -10.0]);
    }

    #[test]
    fn an_interrupted_round_does_not_matter() {
        let [_, more] = differences(2, 9, || {
            let mut blocks = 0;
            move |which| {
                blocks += 1;
                let interrupt = if blocks % 24 == 2 { 1_000_000 } else { 0 };
                Duration::from_nanos([50, 57][which] + interrupt)
            }
        });
        assert_eq!(more, 7.0);
    }

    #[test]
    fn no_rounds_have_no_difference() {
        assert_eq!(medians::<2>(&[]), [0.0; 2]);
    }
}
