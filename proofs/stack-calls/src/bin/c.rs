//! The C interface: every function of `brickyard.h`, and an embedder of whom nothing counts. Built
//! once with the platform as a table, and once with functions that are linked.

#![no_std]
#![no_main]

#[path = "../../../../examples/freestanding/src/runtime.rs"]
mod runtime;

use core::ffi::{c_char, c_void};
use core::hint::black_box;

use brickyard_c::platform::by_work;
use brickyard_c::{error, machine, memory, ranges, slabs, stats};

/// The address of a function.
#[repr(transparent)]
struct Kept(#[allow(dead_code, reason = "read by the linker")] *const ());

// SAFETY: an address.
unsafe impl Sync for Kept {}

macro_rules! kept {
    ($($module:ident { $($function:ident)* })*) => {
        #[used]
        static KEPT: &[Kept] = &[$($(Kept($module::$function as *const ()),)*)*];
    };
}

kept! {
    error { by_error_text }
    machine { by_machine_bytes by_machine_init }
    memory {
        by_alloc by_alloc_from by_alloc_at by_alloc_bulk by_alloc_contiguous by_free by_free_bulk
        by_free_range by_zone_of by_drain by_compact by_set_min_free_kbytes by_min_free_kbytes
    }
    ranges { by_add by_reserve by_unreserve by_remove by_offline }
    slabs {
        by_slabs_bytes by_slabs_init by_malloc by_mfree by_usable by_cache_init by_cache_alloc
        by_cache_alloc_zeroed by_cache_free by_cache_shrink by_cache_destroy by_slabs_trim
        by_slabs_drain by_write_slabinfo
    }
    stats { by_zone_counts by_write_text by_check }
}

/// What is called through pointers, of the table, the hooks and the plans, and returns at once.
#[inline(never)]
extern "C" fn embedder_in_c(context: *mut c_void) -> usize {
    black_box(context) as usize
}

/// Runs the library's work, as `run_on` of the platform does.
#[inline(never)]
unsafe extern "C" fn embedder_runs_on(
    context: *mut c_void,
    _cpu: usize,
    work: by_work,
    argument: *mut c_void,
) -> bool {
    black_box(context);
    // SAFETY: the caller's promise.
    unsafe { work(argument) }
    true
}

#[used]
static EMBEDDER: [Kept; 2] = [
    Kept(embedder_in_c as *const ()),
    Kept(embedder_runs_on as *const ()),
];

#[unsafe(no_mangle)]
extern "C" fn by_panic(_file: *const c_char, _length: usize, _line: u32) -> ! {
    stop()
}

/// The functions of the platform that are linked.
#[cfg(feature = "linked")]
mod linked {
    use super::{black_box, by_work, c_void, embedder_in_c, embedder_runs_on};

    macro_rules! answers {
        ($($name:ident($($argument:ident: $type:ty)?) -> $result:ty;)*) => {$(
            #[unsafe(no_mangle)]
            #[inline(never)]
            extern "C" fn $name($($argument: $type)?) -> $result {
                $(black_box($argument);)?
                black_box(embedder_in_c(core::ptr::null_mut())) as $result
            }
        )*};
    }

    answers! {
        by_cpu() -> usize;
        by_pin() -> usize;
        by_mask_interrupts() -> usize;
        by_unpin() -> usize;
        by_restore_interrupts(found: usize) -> usize;
        by_relax() -> usize;
        by_address(frame: usize) -> *mut c_void;
    }

    #[unsafe(no_mangle)]
    #[inline(never)]
    extern "C" fn by_in_interrupt() -> bool {
        embedder_in_c(core::ptr::null_mut()) == 1
    }

    #[unsafe(no_mangle)]
    #[inline(never)]
    unsafe extern "C" fn by_run_on(cpu: usize, work: by_work, argument: *mut c_void) -> bool {
        // SAFETY: the caller's promise.
        unsafe { embedder_runs_on(core::ptr::null_mut(), cpu, work, argument) }
    }
}

/// # Safety
/// `text` ends with a zero.
#[unsafe(no_mangle)]
unsafe extern "C" fn strlen(text: *const u8) -> usize {
    // SAFETY: no byte behind the zero is read.
    let ends = |at: &usize| unsafe { text.add(*at).read_volatile() } == 0;
    (0..).find(ends).unwrap_or(0)
}

/// What is measured is never run.
#[unsafe(no_mangle)]
extern "C" fn _start() -> ! {
    stop()
}

fn stop() -> ! {
    loop {
        core::hint::spin_loop();
    }
}
