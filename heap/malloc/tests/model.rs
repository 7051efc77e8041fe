//! The library's own functions against the model of the malloc family: loaded late, beside the
//! process's malloc, so that every call is one of the test.

#![cfg(all(
    target_os = "linux",
    any(target_arch = "x86_64", target_arch = "aarch64")
))]
#![allow(clippy::unwrap_used, reason = "a test fails by it")]

use core::alloc::Layout;
use core::ffi::{CStr, c_int};
use core::ptr::null_mut;
use std::ffi::CString;
use std::thread;

use brickyard_heap_bench::model::{Driven, Family, drive};

/// The functions of the loaded library.
struct Library {
    malloc: unsafe extern "C" fn(usize) -> *mut u8,
    calloc: unsafe extern "C" fn(usize, usize) -> *mut u8,
    realloc: unsafe extern "C" fn(*mut u8, usize) -> *mut u8,
    free: unsafe extern "C" fn(*mut u8),
    posix_memalign: unsafe extern "C" fn(*mut *mut u8, usize, usize) -> c_int,
    malloc_usable_size: unsafe extern "C" fn(*mut u8) -> usize,
    malloc_trim: unsafe extern "C" fn(usize) -> c_int,
}

/// A function of the library that `loaded` stands for.
///
/// # Safety
/// `F` is the function's type.
unsafe fn function<F: Copy>(loaded: *mut core::ffi::c_void, name: &CStr) -> F {
    // SAFETY: the handle is one of `dlopen`.
    let address = unsafe { libc::dlsym(loaded, name.as_ptr()) };
    assert!(!address.is_null(), "{name:?} is not in the library");
    // SAFETY: a function's address, of this type by the condition above.
    unsafe { core::mem::transmute_copy(&address) }
}

impl Library {
    fn load() -> Self {
        let tests = std::env::current_exe().unwrap();
        let beside = tests.parent().unwrap().join("libbrickyard_malloc.so");
        let above = tests.parent().unwrap().join("../libbrickyard_malloc.so");
        let path = if beside.exists() { beside } else { above };
        let path = CString::new(path.canonicalize().unwrap().to_str().unwrap()).unwrap();
        // SAFETY: the library's constructors do nothing to others'; it is never unloaded. All types
        // are those of the standard.
        unsafe {
            let loaded = libc::dlopen(path.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL);
            assert!(!loaded.is_null(), "{path:?} cannot be loaded");
            Self {
                malloc: function(loaded, c"malloc"),
                calloc: function(loaded, c"calloc"),
                realloc: function(loaded, c"realloc"),
                free: function(loaded, c"free"),
                posix_memalign: function(loaded, c"posix_memalign"),
                malloc_usable_size: function(loaded, c"malloc_usable_size"),
                malloc_trim: function(loaded, c"malloc_trim"),
            }
        }
    }
}

// SAFETY: what `malloc` promises.
unsafe impl Family for Library {
    fn malloc(&self, bytes: usize) -> *mut u8 {
        // SAFETY: any size can be asked for; here and below.
        unsafe { (self.malloc)(bytes) }
    }

    fn calloc(&self, count: usize, bytes: usize) -> *mut u8 {
        // SAFETY: as above.
        unsafe { (self.calloc)(count, bytes) }
    }

    fn aligned(&self, layout: Layout) -> *mut u8 {
        let mut memory = null_mut();
        let align = layout.align().max(size_of::<usize>());
        // SAFETY: as above; the pointer is written to this frame's word.
        match unsafe { (self.posix_memalign)(&raw mut memory, align, layout.size()) } {
            0 => memory,
            _ => null_mut(),
        }
    }

    unsafe fn realloc(&self, memory: *mut u8, bytes: usize) -> *mut u8 {
        // SAFETY: passed on.
        unsafe { (self.realloc)(memory, bytes) }
    }

    unsafe fn free(&self, memory: *mut u8) {
        // SAFETY: passed on.
        unsafe { (self.free)(memory) };
    }

    unsafe fn usable_size(&self, memory: *mut u8) -> usize {
        // SAFETY: passed on.
        unsafe { (self.malloc_usable_size)(memory) }
    }

    fn trim(&self) {
        // SAFETY: it can be called at any time.
        unsafe { (self.malloc_trim)(0) };
    }
}

/// Bytes that decide what happens, from a seed.
fn bytes(seed: u64) -> Vec<u8> {
    let mut dice = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut next = || {
        dice ^= dice << 13;
        dice ^= dice >> 7;
        dice ^= dice << 17;
        (dice >> 24) as u8
    };
    (0..20_000).map(|_| next()).collect()
}

/// `BRICKYARD_OPERATIONS` sets about how many operations each thread runs.
fn rounds() -> u64 {
    let operations = std::env::var("BRICKYARD_OPERATIONS").ok();
    let operations = operations.and_then(|operations| operations.parse().ok());
    operations.unwrap_or(10_000_u64).div_ceil(5000)
}

#[test]
fn the_library_agrees_with_the_model() {
    let library = Library::load();
    let sum = thread::scope(|scope| {
        let threads: Vec<_> = (1..5)
            .map(|owner| {
                let library = &library;
                let one = move |round| drive(library, &bytes(owner << 20 | round), owner);
                scope.spawn(move || (0..rounds()).map(one).fold(Driven::default(), |a, b| a + b))
            })
            .collect();
        threads
            .into_iter()
            .map(|thread| thread.join().unwrap())
            .fold(Driven::default(), |a, b| a + b)
    });
    println!("{sum:?}");
    assert!(sum.served > 5000 && sum.freed > 5000, "{sum:?}");
    assert!(sum.zeroed > 100 && sum.aligned > 100, "{sum:?}");
    assert!(sum.resized > 1000 && sum.moved > 100, "{sum:?}");
    assert!(sum.large > 0 && sum.refused > 0, "{sum:?}");
}
