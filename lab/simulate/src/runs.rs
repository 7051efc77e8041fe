//! Many runs at once, on several threads of the host; the results are in the order of the input.

use core::num::NonZero;
use core::sync::atomic::{AtomicUsize, Ordering};
use std::sync::Mutex;
use std::thread;

/// Observer of many runs, which can end them early.
pub trait Watcher: Sync {
    /// Called before and after each run with the number of runs that are done. Once it returns
    /// false before a run, the calling thread begins no more runs.
    fn keep_going(&self, done: usize) -> bool {
        let _ = done;
        true
    }
}

/// A watcher that ignores everything.
impl Watcher for () {}

/// Returns how many threads the host can run at once.
#[must_use]
pub fn host_threads() -> usize {
    thread::available_parallelism().map_or(1, NonZero::get)
}

/// Runs `work` on each of `inputs`, on `threads` threads of the host. The result is `None` where
/// the watcher ended the runs before.
pub fn each<A: Sync, R: Send>(
    inputs: &[A],
    threads: usize,
    watcher: &impl Watcher,
    work: impl Fn(&A) -> R + Sync,
) -> Vec<Option<R>> {
    let (next, done) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let results: Vec<Mutex<Option<R>>> = inputs.iter().map(|_| Mutex::new(None)).collect();
    thread::scope(|scope| {
        for _ in 0..threads.clamp(1, inputs.len().max(1)) {
            scope.spawn(|| {
                loop {
                    // Relaxed: each number is drawn once, and orders no other access.
                    let place = next.fetch_add(1, Ordering::Relaxed);
                    let Some(input) = inputs.get(place) else {
                        break;
                    };
                    if !watcher.keep_going(done.load(Ordering::Relaxed)) {
                        break;
                    }
                    let result = work(input);
                    // The lock publishes the result to the thread that collects it below.
                    *results[place].lock().unwrap_or_else(|e| e.into_inner()) = Some(result);
                    watcher.keep_going(1 + done.fetch_add(1, Ordering::Relaxed));
                }
            });
        }
    });
    let taken = results.into_iter().map(Mutex::into_inner);
    taken
        .map(|result| result.unwrap_or_else(|e| e.into_inner()))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Two;

    impl Watcher for Two {
        fn keep_going(&self, done: usize) -> bool {
            done < 2
        }
    }

    #[test]
    fn results_come_in_order_and_the_watcher_ends_them() {
        let inputs: Vec<u64> = (0..100).collect();
        let squares = each(&inputs, 3, &(), |n| n * n);
        assert!(
            squares
                .iter()
                .zip(&inputs)
                .all(|(square, n)| *square == Some(n * n))
        );
        let some = each(&inputs, 1, &Two, |n| *n);
        assert_eq!(some.iter().flatten().count(), 2);
        assert_eq!(each(&[0; 0], 4, &(), |n: &u8| *n), []);
    }
}
