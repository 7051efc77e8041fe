//! Many runs at once: each on a thread of the host, the results in the order of what was asked for.

use core::num::NonZero;
use core::sync::atomic::{AtomicUsize, Ordering};
use std::sync::Mutex;
use std::thread;

/// Whoever waits for runs.
pub trait Watcher: Sync {
    /// So many are done. False: no more are begun.
    fn goes_on(&self, done: usize) -> bool {
        let _ = done;
        true
    }
}

/// Nobody waits.
impl Watcher for () {}

/// Threads of the host, one a core.
#[must_use]
pub fn host_threads() -> usize {
    thread::available_parallelism().map_or(1, NonZero::get)
}

/// Runs `work` on each of `asked`, on `threads` threads of the host. None for what was not begun
/// any more.
pub fn each<A: Sync, R: Send>(
    asked: &[A],
    threads: usize,
    watcher: &impl Watcher,
    work: impl Fn(&A) -> R + Sync,
) -> Vec<Option<R>> {
    let (next, done) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let results: Vec<Mutex<Option<R>>> = asked.iter().map(|_| Mutex::new(None)).collect();
    thread::scope(|scope| {
        for _ in 0..threads.clamp(1, asked.len().max(1)) {
            scope.spawn(|| {
                loop {
                    // Relaxed: each number is drawn once, and nothing else is read by it.
                    let place = next.fetch_add(1, Ordering::Relaxed);
                    let Some(one) = asked.get(place) else { break };
                    if !watcher.goes_on(done.load(Ordering::Relaxed)) {
                        break;
                    }
                    let result = work(one);
                    // The lock publishes the result to whoever takes it out below.
                    *results[place].lock().unwrap_or_else(|e| e.into_inner()) = Some(result);
                    watcher.goes_on(1 + done.fetch_add(1, Ordering::Relaxed));
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
        fn goes_on(&self, done: usize) -> bool {
            done < 2
        }
    }

    #[test]
    fn results_come_in_order_and_end_when_told() {
        let asked: Vec<u64> = (0..100).collect();
        let squares = each(&asked, 3, &(), |n| n * n);
        assert!(
            squares
                .iter()
                .zip(&asked)
                .all(|(square, n)| *square == Some(n * n))
        );
        let some = each(&asked, 1, &Two, |n| *n);
        assert_eq!(some.iter().flatten().count(), 2);
        assert_eq!(each(&[0; 0], 4, &(), |n: &u8| *n), []);
    }
}
