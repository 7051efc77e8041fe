//! A thread of our own that looks after memory while nobody asks for any.
//!
//! It is started when the heap has grown (a program that stays small never has it), with all signals blocked, and calls a function about once a second. When that has found
//! nothing to do a dozen times, the thread sleeps until it is woken: a program at rest is not disturbed by it. In a child process it is gone, like all other threads, and is started again on
//! need.
//!
//! Invariant `one-thread`: the state leaves `NONE` by a compare-and-swap of whoever then makes the thread, so there is one in a process. It is `AWAKE` while the thread works or sleeps for a
//! period, and `ASLEEP` from before the last look that it takes until somebody wakes it: what happens after that look is seen by who made it happen, who wakes it.

use core::ffi::c_void;
use core::mem::MaybeUninit;
use core::ptr::{from_ref, null_mut};
use core::sync::atomic::{AtomicU32, Ordering};
use core::time::Duration;

/// What a look found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tick {
    /// Something was done, or will be to do soon.
    Again,
    /// Nothing to do.
    Nothing,
}

/// So many times nothing, and the thread sleeps until it is woken.
const QUIET: u32 = 12;

/// No thread.
const NONE: u32 = 0;
/// A thread that looks every period.
const AWAKE: u32 = 1;
/// A thread that waits to be woken.
const ASLEEP: u32 = 2;
/// The system has refused a thread; it is not asked again.
const REFUSED: u32 = 3;

/// See the [module](self).
#[derive(Debug)]
pub(crate) struct Background {
    state: AtomicU32,
    /// From one look to the next.
    period: Duration,
    look: fn() -> Tick,
}

impl Background {
    /// A thread, not yet there, that calls `look` every second.
    pub(crate) const fn new(look: fn() -> Tick) -> Self {
        Self::every(Duration::from_secs(1), look)
    }

    const fn every(period: Duration, look: fn() -> Tick) -> Self {
        Self {
            state: AtomicU32::new(NONE),
            period,
            look,
        }
    }

    /// Something has happened that the thread has to look after: starts it if there is none, wakes it if it sleeps. Two loads and comparisons if it is awake. A new thread is made by the C library, which
    /// may allocate: no lock is held. Where none can be had, no call tries again.
    #[inline]
    pub(crate) fn call(&'static self) {
        // Relaxed: a hint; made sure of below.
        if self.state.load(Ordering::Relaxed) != AWAKE {
            self.call_slowly();
        }
    }

    /// The same for who would not start one: wakes it if it sleeps.
    #[inline]
    pub(crate) fn wake(&self) {
        // SeqCst: `one-thread`; pairs with the store of `ASLEEP` before the last look.
        if self.state.load(Ordering::SeqCst) == ASLEEP {
            self.wake_slowly();
        }
    }

    #[cold]
    fn wake_slowly(&self) {
        let woken = self
            .state
            .compare_exchange(ASLEEP, AWAKE, Ordering::SeqCst, Ordering::Relaxed);
        if woken.is_ok() {
            let _ =
                rustix::thread::futex::wake(&self.state, rustix::thread::futex::Flags::PRIVATE, 1);
        }
    }

    #[cold]
    fn call_slowly(&'static self) {
        let begun = self
            .state
            .compare_exchange(NONE, AWAKE, Ordering::Relaxed, Ordering::Relaxed);
        match begun {
            Ok(_) if spawn(self) => {}
            // Relaxed: nobody waits for it.
            Ok(_) => self.state.store(REFUSED, Ordering::Relaxed),
            Err(REFUSED) => {}
            Err(_) => self.wake(),
        }
    }

    /// In a child process, just after `fork`: there is no thread any more.
    pub(crate) fn forget(&self) {
        // Relaxed: there is one thread.
        self.state.store(NONE, Ordering::Relaxed);
    }

    /// What the thread does, for ever.
    fn run(&self) -> ! {
        let mut quiet = 0;
        loop {
            sleep(self.period);
            match (self.look)() {
                Tick::Again => quiet = 0,
                Tick::Nothing => quiet += 1,
            }
            if quiet >= QUIET {
                self.rest();
                quiet = 0;
            }
        }
    }

    /// Sleeps until somebody calls, unless there is something to do after all.
    fn rest(&self) {
        use rustix::thread::futex::{Flags, wait};
        // SeqCst: `one-thread`; pairs with the load in `wake`.
        self.state.store(ASLEEP, Ordering::SeqCst);
        if (self.look)() == Tick::Again {
            // Relaxed: only this thread waits for the change.
            self.state.store(AWAKE, Ordering::Relaxed);
            return;
        }
        while self.state.load(Ordering::SeqCst) == ASLEEP {
            // Whatever ends it, the state is looked at again.
            let _ = wait(&self.state, Flags::PRIVATE, ASLEEP, None);
        }
    }
}

fn sleep(time: Duration) {
    let time = libc::timespec {
        tv_sec: time.as_secs() as libc::time_t,
        tv_nsec: time.subsec_nanos() as _,
    };
    // SAFETY: a value that lives through the call. (A shorter sleep does no harm.)
    let _ = unsafe { libc::nanosleep(&raw const time, null_mut()) };
}

extern "C" fn start(background: *mut c_void) -> *mut c_void {
    // SAFETY: `spawn` gave a reference that lives for ever.
    let background: &'static Background = unsafe { &*background.cast_const().cast() };
    // A name for who lists threads. It fails for none of at most fifteen bytes.
    let _ = rustix::thread::set_name(c"brickyard");
    background.run()
}

/// Makes the thread; false if the system has none.
fn spawn(background: &'static Background) -> bool {
    let argument = from_ref(background).cast_mut().cast();
    // SAFETY: each call has values that live through it and were made as the C library wants them; `errno` is not touched by them. Signals are blocked around the start, since a thread
    // begins with its maker's mask.
    unsafe {
        let mut attributes = MaybeUninit::uninit();
        if libc::pthread_attr_init(attributes.as_mut_ptr()) != 0 {
            return false;
        }
        // The usual stack: only what is used of it has memory, and a program's thread-local memory, which lies there too, may be large.
        libc::pthread_attr_setdetachstate(attributes.as_mut_ptr(), libc::PTHREAD_CREATE_DETACHED);
        let mut all = MaybeUninit::uninit();
        let mut found = MaybeUninit::uninit();
        libc::sigfillset(all.as_mut_ptr());
        libc::pthread_sigmask(libc::SIG_SETMASK, all.as_ptr(), found.as_mut_ptr());
        let mut thread = MaybeUninit::uninit();
        let made = libc::pthread_create(thread.as_mut_ptr(), attributes.as_ptr(), start, argument);
        libc::pthread_sigmask(libc::SIG_SETMASK, found.as_ptr(), null_mut());
        libc::pthread_attr_destroy(attributes.as_mut_ptr());
        made == 0
    }
}

#[cfg(test)]
mod tests {
    use core::ptr::null;
    use std::thread;
    use std::time::Instant;

    use super::*;

    static LOOKS: AtomicU32 = AtomicU32::new(0);
    static UNBLOCKED: AtomicU32 = AtomicU32::new(0);

    fn look() -> Tick {
        // SAFETY: asks for the thread's own mask.
        let blocked = unsafe {
            let mut mask = MaybeUninit::uninit();
            libc::pthread_sigmask(libc::SIG_SETMASK, null(), mask.as_mut_ptr());
            libc::sigismember(mask.as_ptr(), libc::SIGTERM)
        };
        if blocked != 1 {
            UNBLOCKED.fetch_add(1, Ordering::Relaxed);
        }
        LOOKS.fetch_add(1, Ordering::Relaxed);
        Tick::Nothing
    }

    static BACKGROUND: Background = Background::every(Duration::from_millis(20), look);

    fn until(what: &str, mut done: impl FnMut() -> bool) {
        let start = Instant::now();
        while !done() {
            assert!(
                start.elapsed() < Duration::from_secs(60),
                "waited in vain: {what}"
            );
            thread::sleep(Duration::from_millis(20));
        }
    }

    #[test]
    fn it_looks_rests_and_is_woken() {
        BACKGROUND.wake();
        assert_eq!(BACKGROUND.state.load(Ordering::Relaxed), NONE);
        // However many call, one thread begins.
        thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| BACKGROUND.call());
            }
        });
        until("first look", || LOOKS.load(Ordering::Relaxed) >= 2);
        until("rest", || {
            BACKGROUND.state.load(Ordering::Relaxed) == ASLEEP
        });
        // One more than it takes to become quiet.
        until("last look", || LOOKS.load(Ordering::Relaxed) == QUIET + 1);
        BACKGROUND.call();
        assert_eq!(BACKGROUND.state.load(Ordering::Relaxed), AWAKE);
        until("look again", || LOOKS.load(Ordering::Relaxed) > QUIET + 1);
        assert_eq!(UNBLOCKED.load(Ordering::Relaxed), 0);
    }
}
