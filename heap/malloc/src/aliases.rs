//! The C library's other names of its functions.
//!
//! The C library exports them too, and some programs call them. What they returned would be foreign
//! to [`free`], so they have to be this library's.

use core::ffi::{c_int, c_void};

use super::{
    calloc, cfree, free, malloc, memalign, posix_memalign, pvalloc, realloc, reallocarray, valloc,
};

/// Exports functions by other names.
macro_rules! aliases {
    ($($name:ident = $function:ident($($argument:ident: $kind:ty),*) $(-> $result:ty)?;)*) => {$(
        #[doc = concat!("[`", stringify!($function), "`], by a name that the C library has for itself.")]
        ///
        /// # Safety
        /// The conditions of that function.
        #[unsafe(no_mangle)]
        #[allow(unused_unsafe, reason = "some of them are safe")]
        pub(crate) unsafe extern "C" fn $name($($argument: $kind),*) $(-> $result)? {
            // SAFETY: passed on.
            unsafe { $function($($argument),*) }
        }
    )*};
}

aliases! {
    __libc_malloc = malloc(bytes: usize) -> *mut c_void;
    __libc_free = free(memory: *mut c_void);
    __libc_cfree = cfree(memory: *mut c_void);
    __libc_calloc = calloc(count: usize, bytes: usize) -> *mut c_void;
    __libc_realloc = realloc(memory: *mut c_void, bytes: usize) -> *mut c_void;
    __libc_reallocarray = reallocarray(memory: *mut c_void, count: usize, bytes: usize) -> *mut c_void;
    __libc_memalign = memalign(align: usize, bytes: usize) -> *mut c_void;
    __libc_valloc = valloc(bytes: usize) -> *mut c_void;
    __libc_pvalloc = pvalloc(bytes: usize) -> *mut c_void;
    __posix_memalign = posix_memalign(memory: *mut *mut c_void, align: usize, bytes: usize) -> c_int;
}
