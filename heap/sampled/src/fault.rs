//! The handler of accesses that the system refuses: it reports what is known of an access to
//! guarded memory before the program ends as it would have.
//!
//! The handler is looked after whenever a request is guarded: programs and languages set handlers
//! of their own, and some do so only where there is none yet, which is when the program starts.
//! What happens elsewhere goes to the handler that was there before.
//!
//! A program's handler may call the one that it has replaced, or the program sets that one again
//! later: and that may be one of the heap's. So there are several, each of which knows whose place
//! it has taken. Where all are taken, what the program sets stays, and guarded memory is no longer
//! told apart.

use core::ffi::{c_int, c_void};
use core::mem::MaybeUninit;
use core::ptr::{NonNull, null, null_mut};
use core::sync::atomic::{AtomicBool, AtomicI32, AtomicUsize, Ordering};

use crate::{Sampled, sampled};

/// A handler that wants to know what happened.
type Handler = extern "C-unwind" fn(c_int, *mut libc::siginfo_t, *mut c_void);

/// The handlers of the heap's.
static OURS: [Handler; 8] = [
    on_fault::<0>,
    on_fault::<1>,
    on_fault::<2>,
    on_fault::<3>,
    on_fault::<4>,
    on_fault::<5>,
    on_fault::<6>,
    on_fault::<7>,
];

/// The handler that was there before one of them: written before that one is set for the first
/// time, and never again.
struct Before {
    handler: AtomicUsize,
    flags: AtomicI32,
}

impl Before {
    const fn new() -> Self {
        Self {
            handler: AtomicUsize::new(libc::SIG_DFL),
            flags: AtomicI32::new(0),
        }
    }

    /// Returns it, and its flags.
    fn get(&self) -> (usize, c_int) {
        // Relaxed, both: the system call that has set the handler ordered them before.
        let handler = self.handler.load(Ordering::Relaxed);
        (handler, self.flags.load(Ordering::Relaxed))
    }
}

static BEFORE: [Before; OURS.len()] = [const { Before::new() }; OURS.len()];

/// Sets a handler, if none of the heap's is set.
pub(crate) fn watch() {
    static IS_BUSY: AtomicBool = AtomicBool::new(false);
    /// So many have been set.
    static TAKEN: AtomicUsize = AtomicUsize::new(0);
    let mut now = MaybeUninit::<libc::sigaction>::zeroed();
    // SAFETY: the action can be written; zero is one too.
    let mut action = unsafe {
        let _ = libc::sigaction(libc::SIGSEGV, null(), now.as_mut_ptr());
        now.assume_init()
    };
    let is_set = OURS
        .iter()
        .any(|&ours| ours as usize == action.sa_sigaction);
    // Acquire: pairs with the release below.
    if is_set || IS_BUSY.swap(true, Ordering::Acquire) {
        return;
    }
    // Relaxed, here and below: behind `IS_BUSY`; the system call orders what is written before what
    // the handler reads.
    let taken = TAKEN.load(Ordering::Relaxed);
    let found = (action.sa_sigaction, action.sa_flags);
    // That after the same one again, or the next.
    let same = BEFORE[..taken]
        .iter()
        .position(|before| before.get() == found);
    let index = same.unwrap_or(taken);
    if let Some(&ours) = OURS.get(index) {
        if same.is_none() {
            BEFORE[index].flags.store(found.1, Ordering::Relaxed);
            BEFORE[index].handler.store(found.0, Ordering::Relaxed);
            TAKEN.store(taken + 1, Ordering::Relaxed);
        }
        action.sa_sigaction = ours as usize;
        action.sa_flags |= libc::SA_SIGINFO | libc::SA_ONSTACK;
        // It would be taken away before it has said anything.
        action.sa_flags &= !libc::SA_RESETHAND;
        // SAFETY: an action as it was, but for the handler, which lives as long as the program.
        let _ = unsafe { libc::sigaction(libc::SIGSEGV, &raw const action, null_mut()) };
    }
    // Release: pairs with the acquire above.
    IS_BUSY.store(false, Ordering::Release);
}

/// Passes on what is not about guarded memory. The program's handler may throw an exception through
/// this frame: so it holds nothing to drop, and all else is called.
extern "C-unwind" fn on_fault<const OF: usize>(
    signal: c_int,
    about: *mut libc::siginfo_t,
    context: *mut c_void,
) {
    let next = next(&BEFORE[OF], signal, about, context);
    match next {
        Next::Done => {}
        Next::Knowing(handler) => handler(signal, about, context),
        Next::Plain(handler) => handler(signal),
    }
}

/// What is still to be done about a signal.
#[repr(C)]
enum Next {
    Done,
    /// A handler of three arguments is to be called.
    Knowing(Handler),
    /// One of one.
    Plain(extern "C-unwind" fn(c_int)),
}

/// Tells an access to guarded memory, or does what the system does without a handler, or returns
/// the handler that was there before.
#[inline(never)]
extern "C" fn next(
    before: &Before,
    signal: c_int,
    about: *mut libc::siginfo_t,
    context: *mut c_void,
) -> Next {
    // SAFETY: what the system passes to a handler.
    let (code, address) = unsafe { ((*about).si_code, (*about).si_addr()) };
    let is_fault = code > 0;
    let guarded = sampled().and_then(Sampled::guarded);
    if is_fault
        && let (Some(guarded), Some(address)) = (guarded, NonNull::new(address))
        && guarded.contains(address.addr().get())
    {
        guarded.report_access(address.addr().get(), |stack, walk| {
            // SAFETY: as above.
            unsafe { stack.interrupted(walk, context) };
        });
        // The fault comes again when this returns.
        let _ = set_default(signal);
        return Next::Done;
    }
    let (handler, flags) = before.get();
    match handler {
        libc::SIG_IGN if !is_fault => return Next::Done,
        // A fault cannot be ignored.
        libc::SIG_DFL | libc::SIG_IGN => {
            let is_set = set_default(signal);
            if !is_fault && is_set {
                // SAFETY: a signal that somebody has sent is sent again.
                let _ = unsafe { libc::raise(signal) };
            }
            return Next::Done;
        }
        _ => {}
    }
    if flags & libc::SA_RESETHAND != 0 {
        // As the system would have.
        let _ = set_default(signal);
    }
    // SAFETY: a handler of three arguments or of one, as the program had set it.
    unsafe {
        match flags & libc::SA_SIGINFO {
            0 => Next::Plain(core::mem::transmute::<usize, extern "C-unwind" fn(c_int)>(
                handler,
            )),
            _ => Next::Knowing(core::mem::transmute::<usize, Handler>(handler)),
        }
    }
}

/// Has the signal do what it does without a handler.
fn set_default(signal: c_int) -> bool {
    // SAFETY: an action that is zero is the default one.
    unsafe {
        let action: libc::sigaction = core::mem::zeroed();
        libc::sigaction(signal, &raw const action, null_mut()) == 0
    }
}
