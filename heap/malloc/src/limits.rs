//! Calls by which a program limits its own addresses, after which the heap keeps to the limit:
//! it has reserved many more than it uses.

use core::ffi::c_int;
use core::mem::MaybeUninit;
use core::ptr::{null, null_mut};

use brickyard_heap as heap;

/// Sets and reads a limit of a process; 0 is this one.
///
/// # Safety
/// `new` is null or can be read, `old` is null or can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn prlimit64(
    process: libc::pid_t,
    resource: c_int,
    new: *const libc::rlimit64,
    old: *mut libc::rlimit64,
) -> c_int {
    // SAFETY: the caller's promise, both.
    unsafe {
        let done = libc::syscall(libc::SYS_prlimit64, process, resource, new, old);
        let is_own = process == 0 || process == libc::getpid();
        if done == 0
            && is_own
            && resource == libc::RLIMIT_AS as c_int
            && !new.is_null()
            && (*new).rlim_cur != libc::RLIM64_INFINITY
        {
            heap::fit_addresses(usize::try_from((*new).rlim_cur).unwrap_or(usize::MAX));
        }
        done as c_int
    }
}

/// Does [`prlimit64`]: both kinds of limits are the same here.
///
/// # Safety
/// The conditions of [`prlimit64`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn prlimit(
    process: libc::pid_t,
    resource: c_int,
    new: *const libc::rlimit64,
    old: *mut libc::rlimit64,
) -> c_int {
    // SAFETY: passed on.
    unsafe { prlimit64(process, resource, new, old) }
}

/// Sets a limit of this process.
///
/// # Safety
/// `new` can be read.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn setrlimit64(resource: c_int, new: *const libc::rlimit64) -> c_int {
    // SAFETY: passed on.
    unsafe { prlimit64(0, resource, new, null_mut()) }
}

/// Does [`setrlimit64`].
///
/// # Safety
/// `new` can be read.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn setrlimit(resource: c_int, new: *const libc::rlimit64) -> c_int {
    // SAFETY: passed on.
    unsafe { setrlimit64(resource, new) }
}

/// Locks all memory of this process, or all that will be mapped. Whatever is mapped counts towards
/// `RLIMIT_MEMLOCK`, used or not, unless the process has `CAP_IPC_LOCK`.
#[unsafe(no_mangle)]
pub extern "C" fn mlockall(flags: c_int) -> c_int {
    // SAFETY: plain calls, and the C library's own word of this thread.
    unsafe {
        let done = libc::syscall(libc::SYS_mlockall, flags) as c_int;
        let mut limit = MaybeUninit::<libc::rlimit64>::zeroed();
        if done == 0
            || *libc::__errno_location() != libc::ENOMEM
            || prlimit64(0, libc::RLIMIT_MEMLOCK as c_int, null(), limit.as_mut_ptr()) != 0
        {
            return done;
        }
        let limit = usize::try_from(limit.assume_init().rlim_cur);
        heap::fit_addresses(limit.unwrap_or(usize::MAX));
        libc::syscall(libc::SYS_mlockall, flags) as c_int
    }
}
