//! One function per public call of the library, for `proofs/stack`, which reads from the linked
//! program how much stack each may take. On x86-64 Linux the program also makes real calls on a
//! painted stack, and prints how much each took.
//!
//! A function's path says the call: `stack_calls::exclusive::Zone::alloc`. Calls are there for
//! zones with exclusive and with shared slots. A result is written where the caller wants it, so
//! that it does not count.

#![no_std]
#![no_main]

mod embedder;
mod memory;
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
mod run;
#[path = "../../../examples/freestanding/src/runtime.rs"]
mod runtime;

use core::panic::PanicInfo;

/// Makes a module for each type that calls belong to, and in it a function for each call, which the
/// linker keeps.
macro_rules! calls {
    ($($of:ident {
        $($call:ident $(<$($life:lifetime),*>)? ($($name:ident: $type:ty),*) -> $result:ty = $what:expr;)*
    })*) => {$(
        #[allow(non_snake_case, reason = "named as the type whose calls it holds")]
        pub(crate) mod $of {
            #[allow(unused_imports, reason = "some name all types by their paths")]
            use super::*;

            $(
                #[inline(never)]
                pub(crate) fn $call $(<$($life),*>)? ($($name: $type),*) -> $result {
                    $what
                }
            )*

            #[used]
            static KEPT: [crate::Kept; [$(stringify!($call)),*].len()] =
                [$(crate::Kept($call as *const ())),*];
        }
    )*};
}

/// The address of a function.
#[repr(transparent)]
pub(crate) struct Kept(#[allow(dead_code, reason = "read by the linker")] *const ());

// SAFETY: an address.
unsafe impl Sync for Kept {}

#[cfg(feature = "planted")]
mod planted;

pub(crate) mod exclusive {
    pub(crate) type Access = brickyard::sync::Exclusive;
    include!("calls/pages.rs");
    include!("calls/slabs.rs");
}

pub(crate) mod shared {
    pub(crate) type Access = brickyard::sync::Shared;
    include!("calls/pages.rs");
    include!("calls/slabs.rs");
}

/// Calls that do not depend on how slots are entered.
pub(crate) mod either {
    include!("calls/either.rs");
}

#[cfg(not(all(target_arch = "x86_64", target_os = "linux")))]
#[unsafe(no_mangle)]
extern "C" fn _start() -> ! {
    // What is measured is never run here.
    loop {
        core::hint::spin_loop();
    }
}

#[panic_handler]
fn panic(_: &PanicInfo<'_>) -> ! {
    #[cfg(all(target_arch = "x86_64", target_os = "linux"))]
    run::exit(101);
    #[cfg(not(all(target_arch = "x86_64", target_os = "linux")))]
    loop {
        core::hint::spin_loop();
    }
}
