//! A panic, where there is no std. Brickyard panics at bugs only: its own, or those of a platform
//! that does not keep its promises. The embedder's `by_panic` is told the place, and nothing is
//! formatted.

use core::ffi::c_char;
use core::panic::PanicInfo;

unsafe extern "C" {
    /// Called at a bug, with the place in the source: `length` bytes at `file` (no zero follows),
    /// and the line. Must not return.
    safe fn by_panic(file: *const c_char, length: usize, line: u32) -> !;
}

#[panic_handler]
fn panic(info: &PanicInfo<'_>) -> ! {
    match info.location() {
        Some(place) => by_panic(
            place.file().as_ptr().cast(),
            place.file().len(),
            place.line(),
        ),
        None => by_panic(core::ptr::null(), 0, 0),
    }
}
