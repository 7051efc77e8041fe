//! What `operator new` does without memory, by the C++ library that the process has.
//!
//! Nothing of it is looked up before. It is looked up in the order of the process's libraries, then
//! in a C++ library that only some part of the process can see: the extension of an interpreter
//! brings it along.

use core::ffi::{CStr, c_void};
use core::mem::transmute;
use core::ptr::{NonNull, null_mut};

use super::Nothrow;

/// The names of the C++ libraries of GNU and of LLVM.
const LIBRARIES: [&CStr; 2] = [c"libstdc++.so.6", c"libc++.so.1"];

/// Where a search begins.
enum From {
    /// At the program.
    Start,
    /// Behind this library.
    Here,
}

/// Returns the C++ library's function of this name.
fn find(name: &CStr, from: From) -> Option<NonNull<c_void>> {
    let from = match from {
        From::Start => libc::RTLD_DEFAULT,
        From::Here => libc::RTLD_NEXT,
    };
    // SAFETY: the names are C strings. The second loads nothing: it only finds what is there.
    unsafe {
        if let Some(found) = NonNull::new(libc::dlsym(from, name.as_ptr())) {
            return Some(found);
        }
        LIBRARIES.into_iter().find_map(|library| {
            let loaded = libc::dlopen(library.as_ptr(), libc::RTLD_NOW | libc::RTLD_NOLOAD);
            let loaded = NonNull::new(loaded)?;
            NonNull::new(libc::dlsym(loaded.as_ptr(), name.as_ptr()))
        })
    }
}

/// Calls the program's handler, which may free memory, throw, or end the program. Without a handler
/// `std::bad_alloc` is thrown.
#[cold]
pub(super) extern "C-unwind" fn make_room() {
    type Handler = unsafe extern "C-unwind" fn();
    type GetHandler = unsafe extern "C-unwind" fn() -> Option<Handler>;
    if let Some(get) = find(c"_ZSt15get_new_handlerv", From::Start) {
        // SAFETY: `std::get_new_handler()` by its ABI name, so it is of this type. What it returns
        // was set by the program, to be called here. `nothing-to-drop`.
        unsafe {
            let get: GetHandler = transmute(get);
            if let Some(handler) = get() {
                handler();
                return;
            }
        }
    }
    throw();
}

/// Throws `std::bad_alloc`. In a process without a C++ library nobody could catch it: then this
/// says so, and ends the process.
#[cold]
pub(super) extern "C-unwind" fn throw() -> ! {
    type Throw = unsafe extern "C-unwind" fn() -> !;
    if let Some(throw) = find(c"_ZSt17__throw_bad_allocv", From::Start) {
        // SAFETY: `std::__throw_bad_alloc()` by its ABI name. `nothing-to-drop`.
        unsafe { transmute::<NonNull<c_void>, Throw>(throw)() }
    }
    let said = b"brickyard: operator new: no memory, and no C++ library to throw std::bad_alloc\n";
    // SAFETY: the bytes are there; ends the process.
    unsafe {
        libc::write(2, said.as_ptr().cast(), said.len());
        libc::abort()
    }
}

/// Calls the C++ library's own form, which calls the one that throws and catches what it throws:
/// so the handler is called, and a handler that throws makes it null. Null if there is no C++
/// library.
#[cold]
#[inline(never)]
pub(super) fn next_or_null(name: &CStr, bytes: usize, tag: Nothrow) -> *mut c_void {
    type Form = unsafe extern "C" fn(usize, Nothrow) -> *mut c_void;
    match find(name, From::Here) {
        // SAFETY: a form of `operator new` by its ABI name, with what it takes.
        Some(form) => unsafe { transmute::<NonNull<c_void>, Form>(form)(bytes, tag) },
        None => null_mut(),
    }
}

/// Calls the handler for a form of `new` with an alignment, which returns null in the end.
#[cold]
#[inline(never)]
pub(super) fn next_aligned_or_null(
    name: &CStr,
    bytes: usize,
    align: usize,
    tag: Nothrow,
) -> *mut c_void {
    type Form = unsafe extern "C" fn(usize, usize, Nothrow) -> *mut c_void;
    match find(name, From::Here) {
        // SAFETY: as in `next_or_null`.
        Some(form) => unsafe { transmute::<NonNull<c_void>, Form>(form)(bytes, align, tag) },
        None => null_mut(),
    }
}
