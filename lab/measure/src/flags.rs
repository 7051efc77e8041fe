//! Saving and restoring the processor's flags, as a kernel does around code that interrupts must
//! stay out of.
//!
//! A process may not mask interrupts (`cli` faults), so of `pushf; cli; ...; popf` only the first
//! and the last are executed. They are the expensive ones: Dumazet found that `popf` alone took a
//! fifth of the time of SLQB's allocation. So what is measured is somewhat less than a kernel pays.

/// Whether this processor has flags to save: x86-64 only.
pub const SAVED: bool = cfg!(target_arch = "x86_64");

/// Returns the flags.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
pub fn save() -> u64 {
    let flags: u64;
    // SAFETY: a word is pushed and popped again; nothing else changes.
    unsafe { core::arch::asm!("pushfq", "pop {}", out(reg) flags) };
    flags
}

/// Restores the flags that [`save`] returned.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
pub fn restore(flags: u64) {
    // SAFETY: a word is pushed and popped again; the flags become what they were at `save`.
    unsafe { core::arch::asm!("push {}", "popfq", in(reg) flags) };
}

/// Returns nothing: another processor.
#[cfg(not(target_arch = "x86_64"))]
pub fn save() -> u64 {
    0
}

/// Does nothing: another processor.
#[cfg(not(target_arch = "x86_64"))]
pub fn restore(_flags: u64) {}
