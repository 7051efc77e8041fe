//! How much free memory may keep its memory while a program goes on.
//!
//! What is idle is returned by age, about once a second (`life.rs`). This is the limit in between,
//! which a caller that frees keeps to:
//!
//! - An eighth of what is in use, and 8 MiB, may be idle in any case.
//! - More may be, as long as what is in use and what is idle do not exceed what the program has
//!   used since the last look: it needs as much again and again, so returning it would only cost
//!   time. That is half of what is in use, or 32 MiB, at most.

/// So many bytes may be idle, however little is in use.
const LEAST: usize = 8 << 20;

/// One part in so many of what is in use may be idle.
const LEAST_PART: usize = 8;

/// So many bytes may be idle if they were in use lately.
const AGAIN: usize = 32 << 20;

/// One part in so many of what is in use may be idle if it was in use lately.
const AGAIN_PART: usize = 2;

/// Returns the bytes that may be idle beside `in_use` bytes, where `most` bytes have been in use
/// lately.
pub(crate) fn allowed(in_use: usize, most: usize) -> usize {
    let least = LEAST.max(in_use / LEAST_PART);
    let again = AGAIN.max(in_use / AGAIN_PART);
    most.saturating_sub(in_use).min(again).max(least)
}

#[cfg(test)]
mod tests {
    use super::allowed;

    const MIB: usize = 1 << 20;

    #[test]
    fn what_was_in_use_lately_may_stay_within_limits() {
        // Nothing more was in use.
        assert_eq!(allowed(0, 0), 8 * MIB);
        assert_eq!(allowed(800 * MIB, 800 * MIB), 100 * MIB);
        assert_eq!(allowed(800 * MIB, 850 * MIB), 100 * MIB);
        // More was.
        assert_eq!(allowed(10 * MIB, 30 * MIB), 20 * MIB);
        assert_eq!(allowed(800 * MIB, 1000 * MIB), 200 * MIB);
        // Much more was.
        assert_eq!(allowed(0, 1000 * MIB), 32 * MIB);
        assert_eq!(allowed(800 * MIB, 9000 * MIB), 400 * MIB);
    }
}
