//! How much free memory may stay resident while a program runs.
//!
//! What is idle is returned by age, about once a second (`maintenance.rs`). This is the limit in
//! between, which a caller that frees keeps to, or takes pages that had no memory:
//!
//! - An eighth of what is in use, or 16 MiB, may be idle in any case.
//! - As much more may be as has been in use since the last look and is no longer: a program that
//!   needs memory again and again would only pay for its return. That is half of what is in use, or
//!   32 MiB, at most.
//!
//! So the sum of what is in use and what is idle exceeds what was in use lately by the first part
//! at most. What is above goes back a little at a time, so that nobody waits long (`span/idle.rs`):
//! for a while an eighth more may be idle, and what the second's round has yet to give back.

/// So many bytes may be idle, however little is in use.
const LEAST: usize = 16 << 20;

/// One part in so many of what is in use may be idle.
const LEAST_PART: usize = 8;

/// So many bytes more may be idle if as many were in use lately.
const AGAIN: usize = 32 << 20;

/// One part in so many of what is in use may be idle if as much was in use lately.
const AGAIN_PART: usize = 2;

/// Returns the bytes that may be idle beside `in_use` bytes in any case.
pub(crate) fn least(in_use: usize) -> usize {
    LEAST.max(in_use / LEAST_PART)
}

/// Returns the bytes that may be idle beside `in_use` bytes, where `most` bytes have been in use
/// lately.
pub(crate) fn allowed(in_use: usize, most: usize) -> usize {
    let again = AGAIN.max(in_use / AGAIN_PART);
    least(in_use) + most.saturating_sub(in_use).min(again)
}

#[cfg(test)]
mod tests {
    use super::allowed;

    const MIB: usize = 1 << 20;

    #[test]
    fn what_was_in_use_lately_may_stay_within_limits() {
        // Nothing more was in use.
        assert_eq!(allowed(0, 0), 16 * MIB);
        assert_eq!(allowed(800 * MIB, 800 * MIB), 100 * MIB);
        assert_eq!(allowed(800 * MIB, 850 * MIB), 150 * MIB);
        // More was.
        assert_eq!(allowed(10 * MIB, 30 * MIB), 36 * MIB);
        assert_eq!(allowed(800 * MIB, 1000 * MIB), 300 * MIB);
        // Much more was.
        assert_eq!(allowed(0, 1000 * MIB), 48 * MIB);
        assert_eq!(allowed(800 * MIB, 9000 * MIB), 500 * MIB);
    }
}
