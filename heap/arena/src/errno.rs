//! The error number of the calling thread.

/// Calls the C library and leaves `errno` as it was: an allocator may not change it when it
/// succeeds.
pub fn keeping_errno<R>(call: impl FnOnce() -> R) -> R {
    // SAFETY: a plain call.
    let errno = unsafe { libc::__errno_location() };
    // SAFETY: the C library's own word of this thread, there as long as the thread is.
    let found = unsafe { errno.read() };
    let result = call();
    // SAFETY: as above. The call may have used the word by another pointer, which does not conflict
    // with this one.
    unsafe { errno.write(found) };
    result
}
