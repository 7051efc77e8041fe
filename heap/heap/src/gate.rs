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
//! The thread that forks may need a lock of the C library that another thread holds while it waits
//! at the gate: `fork` waits for the list of open streams, which `fflush` holds while it waits for
//! one stream, whose reader allocates. So a request waits for [`PATIENCE`] only, and then does
//! without entering (`closed_gate.rs`).
//!
//! A signal handler may fork too. It may have interrupted a thread that is inside and holds a lock
//! for which others wait inside: so that thread waits for them for [`PATIENCE`] only, and then
//! forks all the same. Its child may find a lock held by a thread that is gone; where the program
//! has several threads, POSIX does not allow a child to allocate. Or the handler has interrupted a
//! fork: then it forks at once, and leaves the gate as it is. All this goes as far as the C
//! library's own locks allow: the fork of glibc, in a process of several threads, may stand still
//! if it interrupts another.
//!
//! Invariant `counted-in`: a stripe's count is the number of threads that entered by it and have
//! not left. A thread raises the count first and then looks whether the gate is closed. A thread
//! that closes the gate writes that first and then looks at the counts. All four are in one total
//! order, so one of the two threads sees the other.

use core::cell::Cell;
use core::ptr::from_ref;
use core::sync::atomic::{AtomicUsize, Ordering, compiler_fence};
use core::time::Duration;

use brickyard::Platform;
use brickyard_arena::Threads;
use brickyard_arena::rows::thread_words;

/// How long a thread that forks while it is inside waits for others to leave, and a request until a
/// fork is done.
const PATIENCE: Duration = Duration::from_millis(20);

/// Several counters, so that threads on different CPUs seldom change the same cache line.
const STRIPES: usize = 16;

#[derive(Debug)]
#[repr(align(128))]
struct Stripe(AtomicUsize);

/// See the [module](self).
#[derive(Debug)]
pub(crate) struct Gate {
    stripes: [Stripe; STRIPES],
    /// The [`Closing`] of the thread that has closed it, or [`OPEN`].
    closed: AtomicUsize,
}

const OPEN: usize = 0;

/// Which thread has closed the gate, and how often it was inside then, itself included: of the
/// forks of one thread, of which one interrupts the other, only one has closed the gate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Closing(usize);

impl Closing {
    const DEPTH_BITS: u32 = 16;

    /// The thread is known by the address of its word, of at most 48 bits.
    fn by(thread: Thread) -> Self {
        let address = from_ref(thread.inside).addr();
        Self(address << Self::DEPTH_BITS | thread.inside.get() as usize)
    }

    const fn is_by_the_same(self, other: Self) -> bool {
        self.0 >> Self::DEPTH_BITS == other.0 >> Self::DEPTH_BITS
    }
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
    /// One more than the number of the stripe that counts it; 0 if none does. Where a signal
    /// interrupts a change, it is 0 and a stripe does, and `inside` is above 0.
    counted_by: &'static Cell<u32>,
}

impl Thread {
    /// Returns the words of the calling thread.
    #[inline]
    pub(crate) fn this() -> Self {
        // SAFETY: `counted-in`: this heap is the allocator, and only its gate uses the words.
        let [inside, counted_by] = unsafe { thread_words() };
        Self { inside, counted_by }
    }

    /// Returns how often stripe `index` counts it.
    fn counts(self, index: usize) -> usize {
        usize::from(self.counted_by.get() as usize == index + 1)
    }
}

/// Returns the time of a clock that only goes forward. A signal handler may call it.
fn now() -> Duration {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: `time` can be written. The clock is there, so this does not fail.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut time) };
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

impl Gate {
    pub(crate) const fn new() -> Self {
        Self {
            stripes: [const { Stripe(AtomicUsize::new(0)) }; STRIPES],
            closed: AtomicUsize::new(OPEN),
        }
    }

    /// Enters. Waits while the gate is closed by another thread. `stripe` may be any number, best
    /// the CPU's.
    #[inline]
    pub(crate) fn enter(&self, stripe: usize) -> Inside<'_> {
        let thread = Thread::this();
        let depth = thread.inside.get();
        thread.inside.set(depth + 1);
        while depth == 0 && !self.enter_first(thread, stripe % STRIPES) {}
        Inside { gate: self, thread }
    }

    /// Enters, after a wait of [`PATIENCE`] at most. Returns `None` if the gate is closed longer.
    #[inline]
    pub(crate) fn try_enter(&self, stripe: usize) -> Option<Inside<'_>> {
        let thread = Thread::this();
        let depth = thread.inside.get();
        thread.inside.set(depth + 1);
        if depth == 0 && !self.enter_first(thread, stripe % STRIPES) {
            thread.inside.set(0);
            return None;
        }
        Some(Inside { gate: self, thread })
    }

    /// Counts a thread in. False, and it is not counted, if the gate is closed for [`PATIENCE`].
    fn enter_first(&self, thread: Thread, stripe: usize) -> bool {
        let count = &self.stripes[stripe].0;
        loop {
            // SeqCst, here and in `close`: see `counted-in`. As an acquire it pairs with the
            // release of the last `open`.
            count.fetch_add(1, Ordering::SeqCst);
            if self.closed.load(Ordering::SeqCst) == OPEN {
                thread.counted_by.set(stripe as u32 + 1);
                return true;
            }
            uncount(count);
            let deadline = now() + PATIENCE;
            // Relaxed: looked at again above.
            while self.closed.load(Ordering::Relaxed) != OPEN {
                if now() >= deadline {
                    return false;
                }
                Threads.relax();
            }
        }
    }

    /// Closes the gate and waits until nobody but the caller is inside. The caller counts as inside
    /// until it opens the gate again. A caller that is inside already does not wait for ever, and
    /// one that has closed the gate does not wait: see the [module](self).
    pub(crate) fn close(&self) {
        let thread = Thread::this();
        let is_inside = thread.inside.get() > 0;
        thread.inside.set(thread.inside.get() + 1);
        let deadline = is_inside.then(|| now() + PATIENCE);
        let may_wait = || deadline.is_none_or(|deadline| now() < deadline);
        if !self.closes(Closing::by(thread), may_wait) {
            return;
        }
        for (index, stripe) in self.stripes.iter().enumerate() {
            // As an acquire it pairs with the release of a thread that leaves.
            while stripe.0.load(Ordering::SeqCst) > thread.counts(index) && may_wait() {
                Threads.relax();
            }
        }
    }

    /// Closes the gate, one thread at a time: two may fork at once. Returns false if the same
    /// thread has closed it already, or may not wait any longer for another.
    fn closes(&self, closing: Closing, may_wait: impl Fn() -> bool) -> bool {
        loop {
            // SeqCst: see `counted-in`. As an acquire it pairs with the release of the last `open`.
            let (success, failure) = (Ordering::SeqCst, Ordering::Relaxed);
            let closed = self
                .closed
                .compare_exchange(OPEN, closing.0, success, failure);
            match closed {
                Ok(_) => return true,
                Err(by) if closing.is_by_the_same(Closing(by)) || !may_wait() => return false,
                Err(_) => Threads.relax(),
            }
        }
    }

    /// Ends what the last `close` of this thread began: opens the gate, if that has closed it.
    pub(crate) fn open(&self) {
        let thread = Thread::this();
        // Relaxed: what this thread has written, or another's.
        if Closing(self.closed.load(Ordering::Relaxed)) == Closing::by(thread) {
            // Release: pairs with the acquire of a thread that enters next.
            self.closed.store(OPEN, Ordering::Release);
        }
        // Last: a handler that forks in between must not take this closing for its own.
        compiler_fence(Ordering::SeqCst);
        thread.inside.set(thread.inside.get() - 1);
    }

    /// Does [`Self::open`] in a child process. The other threads are gone there, and with them
    /// those that were inside, were about to turn back, or had closed the gate.
    pub(crate) fn open_in_child(&self) {
        let thread = Thread::this();
        // Relaxed, all: there is one thread.
        for (index, stripe) in self.stripes.iter().enumerate() {
            stripe.0.store(thread.counts(index), Ordering::Relaxed);
        }
        let closed = Closing(self.closed.load(Ordering::Relaxed));
        if !closed.is_by_the_same(Closing::by(thread)) {
            self.closed.store(OPEN, Ordering::Relaxed);
        }
        self.open();
    }
}

/// Lowers a count, but not below 0: in the child of a signal handler that interrupted a change of
/// the count, [`Gate::open_in_child`] may have cleared it already. That child has one thread until
/// the change ends, so nobody sees the count between the two steps.
fn uncount(count: &AtomicUsize) {
    // Release: pairs with the load of a thread that closes.
    if count.fetch_sub(1, Ordering::Release) == 0 {
        // Relaxed: there is one thread.
        count.fetch_add(1, Ordering::Relaxed);
    }
}

impl Drop for Inside<'_> {
    #[inline]
    fn drop(&mut self) {
        let depth = self.thread.inside.get() - 1;
        if depth == 0
            && let Some(stripe) = self.thread.counted_by.get().checked_sub(1)
        {
            self.thread.counted_by.set(0);
            uncount(&self.gate.stripes[stripe as usize].0);
        }
        // Last: a signal handler that forks must see that this thread may still be counted.
        compiler_fence(Ordering::SeqCst);
        self.thread.inside.set(depth);
    }
}

#[cfg(test)]
mod tests {
    use core::sync::atomic::AtomicBool;
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
