//! Accesses that the system refuses: if one was to guarded memory, what is known of it is said before
//! the program ends as it would have.
//!
//! A handler that the program sets itself takes the place of this one. What happens elsewhere goes
//! to the handler that was there before.

use core::cell::UnsafeCell;
use core::ffi::{c_int, c_void};
use core::mem::MaybeUninit;
use core::ptr::{NonNull, null_mut};

use super::sampled;
use super::stack::Stack;

/// The action that was there before. Invariant `written-before-faults`: it is written once, when the
/// heap is built, and read only by the handler.
struct Before(UnsafeCell<MaybeUninit<libc::sigaction>>);

// SAFETY: by `written-before-faults`.
unsafe impl Sync for Before {}

static BEFORE: Before = Before(UnsafeCell::new(MaybeUninit::zeroed()));

/// Begins to watch.
pub(super) fn watch() {
    // SAFETY: an action that is zero but for what is set is one, and the handler lives as long as
    // the program. `written-before-faults`: nothing is guarded yet.
    unsafe {
        let mut action: libc::sigaction = core::mem::zeroed();
        let handler: extern "C" fn(c_int, *mut libc::siginfo_t, *mut c_void) = on_fault;
        action.sa_sigaction = handler as usize;
        action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
        let before = (*BEFORE.0.get()).as_mut_ptr();
        let _ = libc::sigaction(libc::SIGSEGV, &raw const action, before);
    }
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
        guarded.report_access(address.addr().get(), &Stack::at(at));
        end_as_before(signal, None);
        return;
    }
    // SAFETY: `written-before-faults`; zero is an action too.
    let before = unsafe { (*BEFORE.0.get()).assume_init_ref() };
    match before.sa_sigaction {
        libc::SIG_DFL | libc::SIG_IGN => {
            end_as_before(signal, (!is_fault).then_some(before.sa_sigaction));
        }
        handler if before.sa_flags & libc::SA_SIGINFO != 0 => {
            // SAFETY: a handler of three arguments, which the program had set.
            let handler: extern "C" fn(c_int, *mut libc::siginfo_t, *mut c_void) =
                unsafe { core::mem::transmute(handler) };
            handler(signal, about, context);
        }
        handler => {
            // SAFETY: a handler of one argument, which the program had set.
            let handler: extern "C" fn(c_int) = unsafe { core::mem::transmute(handler) };
            handler(signal);
        }
    }
}

/// Has the signal do what it does without a handler. A fault comes again when the handler returns; a
/// signal that somebody has sent, whose action was `sent`, is sent again.
fn end_as_before(signal: c_int, sent: Option<usize>) {
    if sent == Some(libc::SIG_IGN) {
        return;
    }
    // SAFETY: an action that is zero is the default one.
    unsafe {
        let action: libc::sigaction = core::mem::zeroed();
        let _ = libc::sigaction(signal, &raw const action, null_mut());
        if sent.is_some() {
            let _ = libc::raise(signal);
        }
    }
}
