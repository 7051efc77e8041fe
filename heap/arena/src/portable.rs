//! A thread's own data, by std's `thread_local!`: for systems that `thread_local.rs` does not
//! support.

use core::cell::Cell;
use std::sync::OnceLock;
use std::time::Instant;

use core::ffi::c_void;

/// The number of a thread that has not asked yet.
pub(crate) const UNKNOWN: usize = usize::MAX;

thread_local! {
    // Read on every request, so without a destructor.
    static NUMBER: Cell<usize> = const { Cell::new(UNKNOWN) };
    static SPINS: Cell<u32> = const { Cell::new(0) };
    static END: ThreadEnd = const { ThreadEnd(Cell::new(None)) };
}

/// A function that is called at the end of a thread.
pub(crate) type AtTheEnd = unsafe extern "C" fn(*mut c_void);

/// Calls it when the thread ends.
struct ThreadEnd(Cell<Option<AtTheEnd>>);

impl Drop for ThreadEnd {
    fn drop(&mut self) {
        if let Some(ended) = self.0.get() {
            // SAFETY: as for the C library, which calls it with any value.
            unsafe { ended(core::ptr::null_mut()) };
        }
    }
}

#[inline]
pub(crate) fn number() -> usize {
    NUMBER.get()
}

pub(crate) fn go_by(number: usize) -> usize {
    NUMBER.replace(number)
}

pub(crate) fn spins<R>(with: impl FnOnce(&Cell<u32>) -> R) -> R {
    SPINS.with(with)
}

pub(crate) fn tell_the_end(ended: AtTheEnd) -> bool {
    END.try_with(|end| end.0.set(Some(ended))).is_ok()
}

pub(crate) fn nanoseconds() -> u64 {
    static START: OnceLock<Instant> = OnceLock::new();
    START.get_or_init(Instant::now).elapsed().as_nanos() as u64
}
