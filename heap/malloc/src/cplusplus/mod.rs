//! C++'s `operator new` and `operator delete`, in all their forms, by the names of the Itanium ABI.
//!
//! | form | here |
//! |---|---|
//! | `new`, `delete` | a hit is that of `malloc` and `free` |
//! | `new` with an alignment | a hit where a slab has it, as for Rust's layouts |
//! | `new` that throws nothing | as above; a miss goes to the C++ library's own form |
//! | `new[]`, `delete[]`, sized, `delete` with an alignment | a jump to the form of one object |
//! | sized `delete` in the hardened heap | the size is compared first (`sized.rs`) |
//!
//! **Replaced operators.** A program may have operators of its own, and need not have all: the
//! standard says that the forms it leaves out end in those it has. So what is a jump here goes
//! through the loader's table, to the program's operator if there is one. A form that throws
//! nothing cannot jump, and compares instead: if the one that throws is the program's, the C++
//! library's form is called, which calls it. Invariant `one-allocator`: what arrives at `delete`
//! here came from a `new` here, unless the program mixes what does not belong together. (Of a
//! library that is loaded late, and asked for these functions by its handle, some would be the
//! process's: that is no way to use them.)
//!
//! **Exhaustion.** The handler that the program has set is called until there is memory, or until
//! there is no handler: then `std::bad_alloc` is thrown. The library does not depend on a C++
//! library: it is looked up at that moment (`new_handler.rs`). An exception passes through frames
//! of this file. Invariant `nothing-to-drop`: none of those that are `C-unwind` holds a value whose
//! drop does anything when it calls out. So the unwinder, which may be another than the library's
//! own, finds no code there that asks about the exception (a test looks at the tables).

use core::alloc::Layout;
use core::arch::{asm, naked_asm};
use core::ffi::c_void;
use core::ptr::null_mut;

use brickyard_heap as heap;

use self::new_handler::{make_room, next_aligned_or_null, next_or_null, throw};
use super::ALIGN;
use super::hits::new_or_null;

mod new_handler;
mod sized;

/// A jump to the function of this name that the process uses, with all arguments as they came.
#[cfg(target_arch = "x86_64")]
macro_rules! jump {
    ($name:literal) => {
        concat!("jmp qword ptr [rip + ", $name, "@GOTPCREL]")
    };
}

#[cfg(target_arch = "aarch64")]
macro_rules! jump {
    ($name:literal) => {
        concat!(
            "adrp x16, :got:",
            $name,
            "\n",
            "ldr x16, [x16, :got_lo12:",
            $name,
            "]\n",
            "br x16"
        )
    };
}

/// A jump to a function of this library.
#[cfg(target_arch = "x86_64")]
macro_rules! stay {
    () => {
        "jmp {}"
    };
}

#[cfg(target_arch = "aarch64")]
macro_rules! stay {
    () => {
        "b {}"
    };
}

/// The third argument becomes the second.
#[cfg(target_arch = "x86_64")]
macro_rules! third_to_second {
    () => {
        "mov rsi, rdx"
    };
}

#[cfg(target_arch = "aarch64")]
macro_rules! third_to_second {
    () => {
        "mov x1, x2"
    };
}

/// Gives the place a second name, which no other library can stand before: `here` and the name.
macro_rules! here {
    ($name:literal) => {
        concat!(
            ".globl here",
            $name,
            "\n",
            ".hidden here",
            $name,
            "\n",
            "here",
            $name,
            ":"
        )
    };
}

pub(super) use here;

/// The address of the process's function of the name, from the loader's table.
macro_rules! bound {
    ($name:literal) => {{
        let used: usize;
        // SAFETY: reads a word of the loader's table.
        unsafe {
            #[cfg(target_arch = "x86_64")]
            asm!(
                concat!("mov {used}, qword ptr [rip + ", $name, "@GOTPCREL]"),
                used = out(reg) used,
                options(pure, readonly, nostack, preserves_flags),
            );
            #[cfg(target_arch = "aarch64")]
            asm!(
                concat!("adrp {used}, :got:", $name),
                concat!("ldr {used}, [{used}, :got_lo12:", $name, "]"),
                used = out(reg) used,
                options(pure, readonly, nostack, preserves_flags),
            );
        }
        used
    }};
}

use bound;

/// True if the process uses this library's function of the name: if the loader's table has the
/// address that `here!` has named. Three instructions.
macro_rules! is_ours {
    ($name:literal) => {{
        let used = bound!($name);
        let ours: usize;
        // SAFETY: makes the address of a function.
        unsafe {
            #[cfg(target_arch = "x86_64")]
            asm!(
                concat!("lea {ours}, [rip + here", $name, "]"),
                ours = out(reg) ours,
                options(pure, nomem, nostack, preserves_flags),
            );
            #[cfg(target_arch = "aarch64")]
            asm!(
                concat!("adrp {ours}, here", $name),
                concat!("add {ours}, {ours}, :lo12:here", $name),
                ours = out(reg) ours,
                options(pure, nomem, nostack, preserves_flags),
            );
        }
        used == ours
    }};
}

use is_ours;

/// A reference to `std::nothrow_t`, which holds nothing.
pub(super) type Nothrow = *const c_void;

// ---- new ----

/// `operator new[](size_t)`.
#[unsafe(no_mangle)]
#[unsafe(naked)]
pub(crate) extern "C-unwind" fn _Znam(bytes: usize) -> *mut c_void {
    naked_asm!(here!("_Znam"), jump!("_Znwm"))
}

/// `operator new(size_t, align_val_t)`.
#[unsafe(no_mangle)]
#[unsafe(naked)]
pub(crate) extern "C-unwind" fn _ZnwmSt11align_val_t(bytes: usize, align: usize) -> *mut c_void {
    naked_asm!(here!("_ZnwmSt11align_val_t"), stay!(), sym new_aligned)
}

/// `operator new[](size_t, align_val_t)`.
#[unsafe(no_mangle)]
#[unsafe(naked)]
pub(crate) extern "C-unwind" fn _ZnamSt11align_val_t(bytes: usize, align: usize) -> *mut c_void {
    naked_asm!(here!("_ZnamSt11align_val_t"), jump!("_ZnwmSt11align_val_t"))
}

/// The misses of `operator new`: only the heap's slow path tells that there is no memory.
#[cold]
#[inline(never)]
pub(super) extern "C-unwind" fn new_slow(bytes: usize) -> *mut c_void {
    loop {
        let memory = new_or_none(bytes);
        if !memory.is_null() {
            return memory;
        }
        // `nothing-to-drop`.
        make_room();
    }
}

/// Out of line, so that nothing of it is in a frame that an exception passes.
#[inline(never)]
extern "C" fn new_or_none(bytes: usize) -> *mut c_void {
    heap::allocate_hardened_or(bytes, || heap::allocate(bytes)).cast()
}

extern "C-unwind" fn new_aligned(bytes: usize, align: usize) -> *mut c_void {
    let memory = aligned(bytes, align);
    if memory.is_null() {
        return new_aligned_slow(bytes, align);
    }
    memory
}

#[cold]
#[inline(never)]
extern "C-unwind" fn new_aligned_slow(bytes: usize, align: usize) -> *mut c_void {
    if !align.is_power_of_two() {
        // No handler can help.
        throw();
    }
    loop {
        // `nothing-to-drop`.
        make_room();
        let memory = aligned_or_none(bytes, align);
        if !memory.is_null() {
            return memory;
        }
    }
}

/// Returns memory at a multiple of `align`, or null, after the program's handler was asked for
/// more.
#[inline(never)]
extern "C" fn aligned_or_none(bytes: usize, align: usize) -> *mut c_void {
    aligned(bytes, align)
}

/// Allocates memory at a multiple of `align`; null if there is none, or `align` is no power of two.
#[inline(always)]
fn aligned(bytes: usize, align: usize) -> *mut c_void {
    match Layout::from_size_align(bytes.max(1), align.max(ALIGN)) {
        Ok(layout) if align.is_power_of_two() => heap::alloc_aligned(layout).cast(),
        _ => null_mut(),
    }
}

// ---- new that throws nothing ----

/// `operator new(size_t, nothrow_t const&)`.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn _ZnwmRKSt9nothrow_t(bytes: usize, tag: Nothrow) -> *mut c_void {
    if is_ours!("_Znwm") {
        return new_or_null(bytes, tag);
    }
    next_or_null(c"_ZnwmRKSt9nothrow_t", bytes, tag)
}

/// `operator new[](size_t, nothrow_t const&)`.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn _ZnamRKSt9nothrow_t(bytes: usize, tag: Nothrow) -> *mut c_void {
    if is_ours!("_Znam") && is_ours!("_Znwm") {
        return new_or_null(bytes, tag);
    }
    next_or_null(c"_ZnamRKSt9nothrow_t", bytes, tag)
}

/// The misses of both: the heap's slow path, then the C++ library.
#[cold]
#[inline(never)]
pub(super) extern "C" fn new_or_null_slow(bytes: usize, tag: Nothrow) -> *mut c_void {
    let memory = heap::allocate_hardened_or(bytes, || heap::allocate(bytes));
    if memory.is_null() {
        return next_or_null(c"_ZnwmRKSt9nothrow_t", bytes, tag);
    }
    memory.cast()
}

/// `operator new(size_t, align_val_t, nothrow_t const&)`.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn _ZnwmSt11align_val_tRKSt9nothrow_t(
    bytes: usize,
    align: usize,
    tag: Nothrow,
) -> *mut c_void {
    if is_ours!("_ZnwmSt11align_val_t") {
        let memory = aligned(bytes, align);
        if !memory.is_null() {
            return memory;
        }
    }
    next_aligned_or_null(c"_ZnwmSt11align_val_tRKSt9nothrow_t", bytes, align, tag)
}

/// `operator new[](size_t, align_val_t, nothrow_t const&)`.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn _ZnamSt11align_val_tRKSt9nothrow_t(
    bytes: usize,
    align: usize,
    tag: Nothrow,
) -> *mut c_void {
    if is_ours!("_ZnamSt11align_val_t") && is_ours!("_ZnwmSt11align_val_t") {
        let memory = aligned(bytes, align);
        if !memory.is_null() {
            return memory;
        }
    }
    next_aligned_or_null(c"_ZnamSt11align_val_tRKSt9nothrow_t", bytes, align, tag)
}

// ---- delete: the forms of one object are in `x86_64.rs` and `portable.rs` ----

/// Forms that end in another: arguments that it has not are dropped.
macro_rules! deletes {
    ($($what:literal $name:ident($($argument:ident),*) is [$($line:expr),*];)*) => {
        $(
            #[doc = $what]
            ///
            /// # Safety
            /// The conditions of [`free`](super::free).
            #[unsafe(no_mangle)]
            #[unsafe(naked)]
            pub(crate) unsafe extern "C" fn $name(memory: *mut c_void, $($argument: usize),*) {
                naked_asm!($($line),*)
            }
        )*
    };
}

deletes! {
    "`operator delete[](void*)`."
    _ZdaPv() is [here!("_ZdaPv"), jump!("_ZdlPv")];

    "`operator delete(void*, size_t)`."
    _ZdlPvm(bytes) is [sized::jump_by!("brickyard_sized_one")];

    "`operator delete[](void*, size_t)`."
    _ZdaPvm(bytes) is [sized::jump_by!("brickyard_sized_many")];

    "`operator delete(void*, nothrow_t const&)`."
    _ZdlPvRKSt9nothrow_t(tag) is [jump!("_ZdlPv")];

    "`operator delete[](void*, nothrow_t const&)`."
    _ZdaPvRKSt9nothrow_t(tag) is [jump!("_ZdaPv")];

    "`operator delete[](void*, align_val_t)`."
    _ZdaPvSt11align_val_t(align) is [jump!("_ZdlPvSt11align_val_t")];

    "`operator delete(void*, size_t, align_val_t)`."
    _ZdlPvmSt11align_val_t(bytes, align) is [third_to_second!(), jump!("_ZdlPvSt11align_val_t")];

    "`operator delete[](void*, size_t, align_val_t)`."
    _ZdaPvmSt11align_val_t(bytes, align) is [third_to_second!(), jump!("_ZdaPvSt11align_val_t")];

    "`operator delete(void*, align_val_t, nothrow_t const&)`."
    _ZdlPvSt11align_val_tRKSt9nothrow_t(align, tag) is [jump!("_ZdlPvSt11align_val_t")];

    "`operator delete[](void*, align_val_t, nothrow_t const&)`."
    _ZdaPvSt11align_val_tRKSt9nothrow_t(align, tag) is [jump!("_ZdaPvSt11align_val_t")];
}
