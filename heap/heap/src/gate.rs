//! The gate of the slow paths: a thread that takes a lock is inside, and `fork` waits until nobody
//! is.
//!
//! A child process has one thread, and a copy of every word as it was at the fork. Locks that other
//! threads held would be held for ever. So `fork` closes the gate, waits until nobody is inside any
//! more, and opens it afterwards in both processes. What lies outside the gate, the rows of CPUs,
//! is consistent at any moment (`one-store`).
//!
//! A thread that is inside may enter again, since the C library may allocate while it is called
//! from inside. So may the thread that closed the gate.
//!
//! Invariant `counted-in`: a stripe's count is the number of threads that entered by it and have
//! not left. A thread raises the count first and then looks whether the gate is closed. A thread
//! that closes the gate writes that first and then looks at the counts. All four are in one total
//! order, so one of the two threads sees the other.

use core::cell::Cell;
use core::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use brickyard::Platform;
use brickyard_arena::Threads;
use brickyard_arena::rows::thread_words;

/// Several counters, so that threads on different CPUs seldom change the same cache line.
const STRIPES: usize = 16;

#[derive(Debug)]
#[repr(align(128))]
struct Stripe(AtomicUsize);

/// See the [module](self).
#[derive(Debug)]
pub(crate) struct Gate {
    stripes: [Stripe; STRIPES],
    closed: AtomicBool,
}

/// The caller is inside as long as this lives.
#[derive(Debug)]
#[must_use = "the gate is left as soon as this is dropped"]
pub(crate) struct Inside<'g> {
    gate: &'g Gate,
    thread: Thread,
}

/// A thread's own words for the gate.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Thread {
    /// The number of times that it is inside.
    pub(crate) inside: &'static Cell<u32>,
    /// The counter that it raised.
    stripe: &'static Cell<u32>,
}

impl Thread {
    /// Returns the words of the calling thread.
    #[inline]
    pub(crate) fn this() -> Self {
        // SAFETY: `counted-in`: this heap is the allocator, and only its gate uses the words.
        let [inside, stripe] = unsafe { thread_words() };
        Self { inside, stripe }
    }
}

impl Gate {
    pub(crate) const fn new() -> Self {
        Self {
            stripes: [const { Stripe(AtomicUsize::new(0)) }; STRIPES],
            closed: AtomicBool::new(false),
        }
    }

    /// Enters. Waits while the gate is closed by another thread. `stripe` may be any number, best
    /// the CPU's.
    #[inline]
    pub(crate) fn enter(&self, stripe: usize) -> Inside<'_> {
        let thread = Thread::this();
        let depth = thread.inside.get();
        thread.inside.set(depth + 1);
        if depth == 0 {
            self.enter_first(thread, stripe % STRIPES);
        }
        Inside { gate: self, thread }
    }

    fn enter_first(&self, thread: Thread, stripe: usize) {
        thread.stripe.set(stripe as u32);
        let count = &self.stripes[stripe].0;
        loop {
            // SeqCst, here and in `close`: see `counted-in`. As an acquire it pairs with the
            // release of the last `open`.
            count.fetch_add(1, Ordering::SeqCst);
            if !self.closed.load(Ordering::SeqCst) {
                return;
            }
            // Release: nothing was done inside.
            count.fetch_sub(1, Ordering::Release);
            // Relaxed: looked at again above.
            while self.closed.load(Ordering::Relaxed) {
                Threads.relax();
            }
        }
    }

    /// Closes the gate and waits until nobody but the caller is inside. The caller counts as inside
    /// until it opens the gate again.
    pub(crate) fn close(&self) {
        // One at a time: two threads may fork at once.
        while self.closed.swap(true, Ordering::SeqCst) {
            Threads.relax();
        }
        let thread = Thread::this();
        let own = usize::from(thread.inside.get() > 0);
        thread.inside.set(thread.inside.get() + 1);
        for (index, stripe) in self.stripes.iter().enumerate() {
            let allowed = if index == thread.stripe.get() as usize {
                own
            } else {
                0
            };
            // As an acquire it pairs with the release of a thread that leaves.
            while stripe.0.load(Ordering::SeqCst) > allowed {
                Threads.relax();
            }
        }
    }

    /// Opens the gate again, on the thread that closed it.
    pub(crate) fn open(&self) {
        let thread = Thread::this();
        thread.inside.set(thread.inside.get() - 1);
        // Release: pairs with the acquire of a thread that enters next.
        self.closed.store(false, Ordering::Release);
    }

    /// Opens the gate in a child process. The other threads are gone there, and with them those
    /// that were about to turn back.
    pub(crate) fn open_in_child(&self) {
        let thread = Thread::this();
        let own = usize::from(thread.inside.get() > 1);
        for (index, stripe) in self.stripes.iter().enumerate() {
            let kept = if index == thread.stripe.get() as usize {
                own
            } else {
                0
            };
            // Relaxed: there is one thread.
            stripe.0.store(kept, Ordering::Relaxed);
        }
        self.open();
    }
}

impl Drop for Inside<'_> {
    #[inline]
    fn drop(&mut self) {
        let depth = self.thread.inside.get() - 1;
        self.thread.inside.set(depth);
        if depth == 0 {
            let stripe = self.thread.stripe.get() as usize;
            // Release: pairs with the load of a thread that closes.
            self.gate.stripes[stripe].0.fetch_sub(1, Ordering::Release);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    #[test]
    fn nobody_is_inside_while_it_is_closed() {
        let gate = Gate::new();
        // Pairs of words that are equal whenever nobody is inside.
        let pairs = [const { [const { AtomicUsize::new(0) }; 2] }; 4];
        let stop = AtomicBool::new(false);
        thread::scope(|scope| {
            for (index, pair) in pairs.iter().enumerate() {
                let (gate, stop) = (&gate, &stop);
                scope.spawn(move || {
                    while !stop.load(Ordering::Relaxed) {
                        let _inside = gate.enter(index);
                        pair[0].fetch_add(1, Ordering::Relaxed);
                        let _again = gate.enter(index + 1);
                        pair[1].fetch_add(1, Ordering::Relaxed);
                    }
                });
            }
            for _ in 0..2000 {
                gate.close();
                let own = gate.enter(3);
                for pair in &pairs {
                    let [a, b] = [0, 1].map(|word: usize| pair[word].load(Ordering::Relaxed));
                    assert_eq!(a, b);
                }
                drop(own);
                gate.open();
            }
            stop.store(true, Ordering::Relaxed);
        });
    }
}
