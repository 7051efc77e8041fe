//! Nothing: the archive has what the compiler's own runtime library has.

#![no_std]

#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    // Nothing here calls it.
    loop {
        core::hint::spin_loop();
    }
}
