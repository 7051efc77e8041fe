//! The time stamp counter, and how fast it is: by the timer of the local APIC, which QEMU runs at
//! 1 GHz.

use core::arch::asm;
use core::sync::atomic::{AtomicU64, Ordering};

use super::apic;

static PER_SECOND: AtomicU64 = AtomicU64::new(1_000_000_000);

/// Returns a clock.
pub fn ticks() -> u64 {
    let (low, high): (u32, u32);
    // SAFETY: reads a counter.
    unsafe {
        asm!("rdtsc", out("eax") low, out("edx") high, options(nomem, nostack, preserves_flags));
    }
    u64::from(high) << 32 | u64::from(low)
}

/// Returns how many ticks a second has.
pub fn ticks_per_second() -> u64 {
    // Relaxed: set before the other CPUs start.
    PER_SECOND.load(Ordering::Relaxed)
}

/// Measures the clock by so many microseconds of the timer.
pub fn measure(microseconds: u64) {
    let begin = ticks();
    apic::wait(microseconds);
    let per_second = (ticks() - begin) * 1_000_000 / microseconds;
    // Relaxed: as above.
    PER_SECOND.store(per_second.max(1), Ordering::Relaxed);
}
