//! What differs from machine to machine: how it boots, finds its own words, takes interrupts and
//! ends. Each architecture has the same functions.

#[cfg(target_arch = "riscv64")]
mod riscv64;
#[cfg(target_arch = "riscv64")]
pub use riscv64::*;

#[cfg(target_arch = "x86_64")]
mod x86_64;
#[cfg(target_arch = "x86_64")]
pub use x86_64::*;

/// The most CPUs.
pub const CPUS: usize = 16;

/// How the kernel ends.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// All went well.
    Pass,
    /// Something was found.
    Fail,
}
