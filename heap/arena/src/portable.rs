//! As `area.rs`, for systems that it does not support, with the means of std.

use core::cell::Cell;
use std::sync::OnceLock;
use std::time::Instant;

use crate::threads::{UNKNOWN, ended};

thread_local! {
    // Read on every request, so without a destructor.
    static NUMBER: Cell<usize> = const { Cell::new(UNKNOWN) };
    static SPINS: Cell<u32> = const { Cell::new(0) };
    static END: End = const { End };
}

/// Calls [`ended`] when the thread ends.
struct End;

impl Drop for End {
    fn drop(&mut self) {
        ended();
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

pub(crate) fn tell_the_end() -> bool {
    END.try_with(|_| ()).is_ok()
}

pub(crate) fn nanoseconds() -> u64 {
    static START: OnceLock<Instant> = OnceLock::new();
    START.get_or_init(Instant::now).elapsed().as_nanos() as u64
}
