//! Symbols of the C library that an older or another one does not have. Who uses one declares it
//! weak by `.weak`, so that it is null there.

/// The address of a symbol of the C library, which may be absent.
#[doc(hidden)]
#[macro_export]
macro_rules! weak_address {
    ($name:literal) => {{
        let address: *const u8;
        // SAFETY: reads a word of the global offset table, which the loader has written.
        unsafe {
            #[cfg(target_arch = "x86_64")]
            core::arch::asm!(
                concat!("mov {}, qword ptr [rip + ", $name, "@GOTPCREL]"),
                out(reg) address,
                options(pure, readonly, nostack, preserves_flags),
            );
            #[cfg(target_arch = "aarch64")]
            core::arch::asm!(
                concat!("adrp {0}, :got:", $name),
                concat!("ldr {0}, [{0}, #:got_lo12:", $name, "]"),
                out(reg) address,
                options(pure, readonly, nostack, preserves_flags),
            );
        }
        address
    }};
}
