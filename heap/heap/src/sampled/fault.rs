//! Accesses that the system refuses: if one was to guarded memory, what is known of it is said
//! before the program ends as it would have.
//!
//! The handler is looked after whenever a request is guarded: programs and languages set handlers
//! of their own, and some do so only where there is none yet, which is when the program starts.
//! What happens elsewhere goes to the handler that was there before.

use core::ffi::{c_int, c_void};
use core::mem::MaybeUninit;
use core::ptr::{NonNull, null, null_mut};
use core::sync::atomic::{AtomicBool, AtomicI32, AtomicUsize, Ordering};

use super::sampled;
use super::stack::Stack;

/// The handler that was there before, and its flags. Of two that are written and read at once a mix
/// may be read: the flags are written first, and say only how the handler is called.
static BEFORE: AtomicUsize = AtomicUsize::new(libc::SIG_DFL);
static FLAGS: AtomicI32 = AtomicI32::new(0);

/// A handler that wants to know what happened.
type Handler = extern "C" fn(c_int, *mut libc::siginfo_t, *mut c_void);

/// Sets the handler, if it is not set.
pub(super) fn watch() {
    static IS_BUSY: AtomicBool = AtomicBool::new(false);
    let handler = on_fault as Handler as usize;
    let mut now = MaybeUninit::<libc::sigaction>::zeroed();
    // SAFETY: the action can be written; zero is one too.
    let mut action = unsafe {
        let _ = libc::sigaction(libc::SIGSEGV, null(), now.as_mut_ptr());
        now.assume_init()
    };
    // Acquire: pairs with the release below.
    if action.sa_sigaction == handler || IS_BUSY.swap(true, Ordering::Acquire) {
        return;
    }
    // Relaxed, both: the system call below orders them before what the handler does.
    FLAGS.store(action.sa_flags, Ordering::Relaxed);
    BEFORE.store(action.sa_sigaction, Ordering::Relaxed);
    action.sa_sigaction = handler;
    action.sa_flags |= libc::SA_SIGINFO | libc::SA_ONSTACK;
    // It would be taken away before it has said anything.
    action.sa_flags &= !libc::SA_RESETHAND;
    // SAFETY: an action as it was, but for the handler, which lives as long as the program.
    let _ = unsafe { libc::sigaction(libc::SIGSEGV, &raw const action, null_mut()) };
    // Release: pairs with the acquire above.
    IS_BUSY.store(false, Ordering::Release);
}

/// Returns the instruction that a signal has interrupted.
///
/// # Safety
/// `context` is what the system passes to a handler.
unsafe fn instruction(context: *mut c_void) -> usize {
    // SAFETY: the caller's promise.
    let machine = unsafe { &(*context.cast::<libc::ucontext_t>()).uc_mcontext };
    #[cfg(target_arch = "x86_64")]
    return machine.gregs[libc::REG_RIP as usize] as usize;
    #[cfg(target_arch = "aarch64")]
    return machine.pc as usize;
}

extern "C" fn on_fault(signal: c_int, about: *mut libc::siginfo_t, context: *mut c_void) {
    // SAFETY: what the system passes to a handler.
    let (code, address, at) =
        unsafe { ((*about).si_code, (*about).si_addr(), instruction(context)) };
    let is_fault = code > 0;
    let guarded = sampled().and_then(|sampled| sampled.guarded());
    if is_fault
        && let (Some(guarded), Some(address)) = (guarded, NonNull::new(address))
        && guarded.contains(address.addr().get())
    {
        guarded.report_access(address.addr().get(), |stack| *stack = Stack::at(at));
        // The fault comes again when this returns.
        let _ = set_default(signal);
        return;
    }
    match BEFORE.load(Ordering::Relaxed) {
        libc::SIG_IGN if !is_fault => {}
        // A fault cannot be ignored.
        libc::SIG_DFL | libc::SIG_IGN => {
            let is_set = set_default(signal);
            if !is_fault && is_set {
                // SAFETY: a signal that somebody has sent is sent again.
                let _ = unsafe { libc::raise(signal) };
            }
        }
        handler if FLAGS.load(Ordering::Relaxed) & libc::SA_SIGINFO != 0 => {
            // SAFETY: a handler of three arguments, which the program had set.
            let handler: Handler = unsafe { core::mem::transmute(handler) };
            handler(signal, about, context);
        }
        handler => {
            // SAFETY: a handler of one argument, which the program had set.
            let handler: extern "C" fn(c_int) = unsafe { core::mem::transmute(handler) };
            handler(signal);
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
