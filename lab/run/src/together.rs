//! Threads that do the same work at the same time.

use std::panic::resume_unwind;
use std::thread;

/// Runs `work` on so many threads in parallel, each with its number, and waits for all of them.
/// Returns their results in order. A panic of one thread is continued here.
///
/// Each thread is joined: the scope may end slightly before the threads' numbers, and with them
/// their caches, are free again.
pub fn together<R: Send>(threads: usize, work: impl Fn(usize) -> R + Sync) -> Vec<R> {
    on_threads(threads, &work)
}

// Not generic in the work: starting threads is much code, and would be compiled for each of them.
fn on_threads<R: Send>(threads: usize, work: &(dyn Fn(usize) -> R + Sync)) -> Vec<R> {
    thread::scope(|scope| {
        let threads: Vec<_> = (0..threads)
            .map(|number| scope.spawn(move || work(number)))
            .collect();
        let joined = threads
            .into_iter()
            .map(|thread| thread.join().unwrap_or_else(|panic| resume_unwind(panic)));
        joined.collect()
    })
}
