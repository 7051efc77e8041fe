//! The background thread, which gives idle memory back to the system while no thread asks for any.
//!
//! It is started when a large heap has changed in a process of several threads, so a program that
//! stays small, or has one thread, never has it. It runs with all signals blocked, and calls a
//! function about once a second. When it has found nothing to do eight times, and nobody has called
//! meanwhile, it **ends**; the next call starts another one. In a child process it is gone, like
//! all other threads, and is started again when needed.
//!
//! A process that has it is limited in two ways, until its memory has been quiet for [`QUIET`]
//! looks:
//! - If all its other threads have ended, it has two. So what the system allows only to
//!   single-threaded processes (`unshare(CLONE_NEWUSER)`, `setns` to a user namespace) fails with
//!   `EINVAL`.
//! - Where `main` calls `pthread_exit`, the process ends with this thread, if that is the last one.
//!   Functions given to `atexit` then run on it, with signals blocked.
//!
//! Invariant `one-thread`: the state leaves `NONE` by a compare-and-swap of the caller that then
//! makes the thread. It becomes `NONE` again by a compare-and-swap of the thread, as its last step.
//! So a process has at most one.
//!
//! Invariant `no-call-lost`: a caller changes memory, then executes a fence, and then reads the
//! state. The thread writes `THERE`, then executes a fence, and then looks at memory. So either the
//! look sees the change, or the caller sees `THERE` or `NONE` and makes it `CALLED`: then the
//! thread looks again, or a new one does. The thread ends from `THERE` only.

use core::ffi::c_void;
use core::mem::MaybeUninit;
use core::ptr::{from_ref, null_mut};
use core::sync::atomic::{AtomicU32, Ordering, fence};
use core::time::Duration;

use brickyard_arena::rows::keeping_errno;

use crate::instance::built;
use crate::seccomp;

/// The result of a look.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tick {
    /// Something was done, or there will be something to do soon.
    Again,
    /// Nothing to do.
    Nothing,
}

/// The thread ends after so many looks that found nothing.
const QUIET: u32 = 8;

/// No thread.
const NONE: u32 = 0;
/// There is a thread, and nobody has called since its last look began.
const THERE: u32 = 1;
/// There is a thread, and it has been called.
const CALLED: u32 = 2;
/// The system has refused a thread, or may do worse (`seccomp.rs`); it is not asked before
/// [`Background::may_be_had`].
const REFUSED: u32 = 3;

/// See the [module](self).
#[derive(Debug)]
pub(crate) struct Background {
    state: AtomicU32,
    /// The time from one look to the next.
    period: Duration,
    look: fn() -> Tick,
}

impl Background {
    /// Makes a thread, not started yet, that calls `look` every second.
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

    /// Tells the thread that something has happened that it has to look after, and starts it if
    /// there is none. Costs a fence, a load and a comparison; about once a second it costs more.
    /// The C library makes a new thread, which may allocate and takes locks, so the caller must
    /// hold none. If no thread can be had, all calls return false, and none tries again before
    /// [`Background::may_be_had`].
    #[inline]
    pub(crate) fn call(&'static self) -> bool {
        // SeqCst: `no-call-lost`; pairs with the fence in `run`.
        fence(Ordering::SeqCst);
        // Relaxed: behind the fence.
        self.state.load(Ordering::Relaxed) == CALLED || self.call_slowly()
    }

    /// Tells the thread, if there is one, and starts none. For callers that hold locks that a new
    /// thread needs.
    pub(crate) fn tell(&self) {
        // SeqCst: as in `call`.
        fence(Ordering::SeqCst);
        // Relaxed: behind the fence. Where the thread has been told already, or there is none, the
        // state's cache line stays with all CPUs that read it.
        if self.state.load(Ordering::Relaxed) == THERE {
            // SeqCst: pairs with the swap in `run`. If it fails, the same is true by now.
            let _ = self
                .state
                .compare_exchange(THERE, CALLED, Ordering::SeqCst, Ordering::Relaxed);
        }
    }

    #[cold]
    fn call_slowly(&'static self) -> bool {
        // Relaxed: behind the fence in `call`, and verified below.
        let mut state = self.state.load(Ordering::Relaxed);
        while state == NONE || state == THERE {
            // SeqCst: pairs with the swap in `run`, and with the compare-and-swap of a thread that
            // ends.
            let told =
                self.state
                    .compare_exchange(state, CALLED, Ordering::SeqCst, Ordering::Relaxed);
            match told {
                Ok(NONE) if seccomp::is_new() || !keeping_errno(|| spawn(self)) => {
                    // Relaxed: nobody waits for it.
                    self.state.store(REFUSED, Ordering::Relaxed);
                    return false;
                }
                Ok(_) => return true,
                Err(now) => state = now,
            }
        }
        state != REFUSED
    }

    /// Lets the next call ask again for a thread that was refused: what was lacking may be there by
    /// now. To ask costs as much as a thread, so this is not called often.
    pub(crate) fn may_be_had(&self) {
        // Relaxed: who calls next asks, and nobody waits for it.
        let _ = self
            .state
            .compare_exchange(REFUSED, NONE, Ordering::Relaxed, Ordering::Relaxed);
    }

    /// Called in a child process, just after `fork`: there is no thread any more.
    pub(crate) fn forget(&self) {
        // Relaxed: there is one thread.
        self.state.store(NONE, Ordering::Relaxed);
    }

    /// The thread's loop.
    fn run(&self) {
        let mut quiet = 0;
        loop {
            sleep(self.period);
            // SeqCst: `no-call-lost`; pairs with the compare-and-swap of a caller.
            if self.state.swap(THERE, Ordering::SeqCst) == CALLED {
                quiet = 0;
            }
            // SeqCst: `no-call-lost`; pairs with the fence of a caller.
            fence(Ordering::SeqCst);
            match (self.look)() {
                Tick::Again => quiet = 0,
                Tick::Nothing => quiet += 1,
            }
            if quiet >= QUIET && self.ends() {
                return;
            }
        }
    }

    /// Makes the state `NONE`, unless somebody has called. Returns true if it did.
    fn ends(&self) -> bool {
        // SeqCst: `one-thread`; pairs with the compare-and-swap of the caller that makes the next
        // thread.
        self.state
            .compare_exchange(THERE, NONE, Ordering::SeqCst, Ordering::Relaxed)
            .is_ok()
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
    // A name for tools that list threads. It cannot fail for a name of at most fifteen bytes.
    let _ = rustix::thread::set_name(c"brickyard");
    be_usual();
    background.run();
    null_mut()
}

/// Gives up what the thread has inherited from its maker: real time or least priority. Others wait
/// for what it holds, and it may take long.
fn be_usual() {
    if seccomp::is_there() && !built().is_some_and(|heap| heap.visits) {
        return;
    }
    // SAFETY: plain calls, for this thread alone, and a value that lives through the call. If they
    // fail, it stays as it is.
    unsafe {
        let usual: libc::sched_param = core::mem::zeroed();
        let _ = libc::sched_setscheduler(0, libc::SCHED_OTHER, &raw const usual);
        if libc::getpriority(libc::PRIO_PROCESS, 0) < 0 {
            let _ = libc::setpriority(libc::PRIO_PROCESS, 0, 0);
        }
    }
}

/// Returns the size of its stack: the process's limit, or the usual one. (Without one the C library
/// takes a lock to find one out, under which it allocates elsewhere.)
fn stack_bytes() -> usize {
    const USUAL: usize = 8 << 20;
    if seccomp::is_there() {
        return USUAL;
    }
    let mut limit = MaybeUninit::<libc::rlimit>::zeroed();
    // SAFETY: the system writes such a value, if anything; zeros are one.
    let limit = unsafe {
        let _ = libc::getrlimit(libc::RLIMIT_STACK, limit.as_mut_ptr());
        limit.assume_init()
    };
    match limit.rlim_cur {
        0 | libc::RLIM_INFINITY => USUAL,
        bytes => usize::try_from(bytes).unwrap_or(USUAL).max(256 << 10),
    }
}

/// Makes the thread. False if the system refuses.
fn spawn(background: &'static Background) -> bool {
    let argument = from_ref(background).cast_mut().cast();
    // SAFETY: each call gets values that live through it and were made as the C library requires.
    // Signals are blocked around the start, since a thread begins with its maker's mask.
    unsafe {
        let mut attributes = MaybeUninit::uninit();
        if libc::pthread_attr_init(attributes.as_mut_ptr()) != 0 {
            return false;
        }
        // Only what is used of it has memory, and a program's thread-local memory, which lies there
        // too, may be large.
        libc::pthread_attr_setstacksize(attributes.as_mut_ptr(), stack_bytes());
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
    use core::sync::atomic::AtomicBool;
    use std::thread;

    use super::*;

    static LOOKS: AtomicU32 = AtomicU32::new(0);
    static THREAD: AtomicU32 = AtomicU32::new(0);
    static UNBLOCKED: AtomicU32 = AtomicU32::new(0);
    /// While it is true, looks do not end.
    static HELD: AtomicBool = AtomicBool::new(false);

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
        // SAFETY: a plain call.
        THREAD.store(unsafe { libc::gettid() }.unsigned_abs(), Ordering::Relaxed);
        LOOKS.fetch_add(1, Ordering::Relaxed);
        while HELD.load(Ordering::Relaxed) {
            thread::yield_now();
        }
        Tick::Nothing
    }

    static BACKGROUND: Background = Background::every(Duration::from_millis(20), look);

    /// Waits, however long it takes: the machine may be busy with other things.
    fn until(mut done: impl FnMut() -> bool) {
        while !done() {
            thread::sleep(Duration::from_millis(20));
        }
    }

    fn state() -> u32 {
        BACKGROUND.state.load(Ordering::Relaxed)
    }

    /// Returns true if the thread that looked last is still there.
    fn is_there() -> bool {
        let thread = THREAD.load(Ordering::Relaxed);
        std::path::Path::new(&format!("/proc/self/task/{thread}")).exists()
    }

    #[test]
    fn it_looks_ends_and_is_started_again() {
        BACKGROUND.tell();
        assert_eq!(state(), NONE);
        // However many threads call, only one background thread begins. None of them comes so late
        // that it has ended.
        HELD.store(true, Ordering::Relaxed);
        thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| assert!(BACKGROUND.call()));
            }
        });
        HELD.store(false, Ordering::Relaxed);
        until(|| LOOKS.load(Ordering::Relaxed) >= 2);
        let first = THREAD.load(Ordering::Relaxed);
        until(|| state() == NONE);
        until(|| !is_there());
        assert_eq!(THREAD.load(Ordering::Relaxed), first);
        // One more, if somebody called during the first.
        let looks = LOOKS.load(Ordering::Relaxed);
        assert!((QUIET..=QUIET + 1).contains(&looks), "{looks} looks");
        // Where there is one, it is told, however often.
        BACKGROUND.state.store(THERE, Ordering::Relaxed);
        BACKGROUND.tell();
        BACKGROUND.tell();
        assert_eq!(state(), CALLED);
        BACKGROUND.forget();
        // A call in between keeps it for a while; telling alone does not start one.
        BACKGROUND.tell();
        assert_eq!(state(), NONE);
        assert!(BACKGROUND.call());
        until(|| LOOKS.load(Ordering::Relaxed) > looks);
        let seen = LOOKS.load(Ordering::Relaxed);
        assert!(BACKGROUND.call());
        until(|| state() == NONE);
        assert!(LOOKS.load(Ordering::Relaxed) >= seen + QUIET);
        assert_eq!(UNBLOCKED.load(Ordering::Relaxed), 0);
    }
}
