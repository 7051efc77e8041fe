//! Threads that work at the same time.

use std::thread;

/// Runs `work` on so many threads, each with its number, and returns the sum of what they return. A
/// single thread is the calling one, so that the process has no other.
pub(crate) fn crew(threads: usize, work: impl Fn(usize) -> u64 + Sync) -> u64 {
    if threads == 1 {
        return work(0);
    }
    let work = &work;
    thread::scope(|scope| {
        let crew: Vec<_> = (0..threads)
            .map(|number| scope.spawn(move || work(number)))
            .collect();
        crew.into_iter()
            .map(|thread| match thread.join() {
                Ok(done) => done,
                Err(panic) => std::panic::resume_unwind(panic),
            })
            .sum()
    })
}
