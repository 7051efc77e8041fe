//! The fast paths of `malloc` and `free`, and of C++'s `new` and `delete`, in assembly. They do
//! what `portable.rs` does, in 17 and 26 instructions.
//!
//! A compiler would add a second test of what the sequence has tested already, and a register for
//! each word that an instruction could read from memory itself. The offsets are those of [`Fast`],
//! and the sequence is that of the heap's rows. A miss jumps out of the sequence before its last
//! store, which is allowed at any place. Who was interrupted in the sequence misses too.

use core::arch::naked_asm;
use core::ffi::c_void;

use brickyard_arena::restartable;
use brickyard_heap::{
    self as heap, AWAY, AWAY_BELOW, FAST, Fast, From, GRANULE_SHIFT, PAGE_SHIFT, Rest,
};

use super::cplusplus::{Nothrow, here, new_or_null_slow, new_slow};
use super::{loader, slow};

/// The whole of a function that allocates: its first argument is the size. A miss jumps to `$slow`,
/// with all arguments as they came. `$name` is a line that names the place once more.
macro_rules! allocates {
    ($slow:path, $name:expr) => {
        naked_asm!(
            restartable![
                "jmp {slow}",
                $name,
                "cmp rdi, qword ptr [rip + {fast} + {limit}]",
                "jae {slow}",
                // The column of the size, which does not depend on the CPU's number.
                "lea rcx, [rdi + 15]",
                "shr rcx, 4",
                "lea rsi, [rip + {fast} + {columns}]",
                "movzx ecx, byte ptr [rsi + rcx]",
                "mov rdx, qword ptr [rip + {fast} + {area}]",
                "lea r8, [rip + 3b]",
                "mov qword ptr fs:[rdx + 8], r8",
                "4:",
                // The CPU's number times 64 KiB.
                "mov r8d, dword ptr fs:[rdx + 2]",
                "add r8, qword ptr [rip + {fast} + {rows}]",
                "mov r9, qword ptr [r8 + rcx * 8]",
                "mov rax, qword ptr [r9]",
                "test rax, rax",
                "jz {slow}",
                "sub qword ptr [r8 + rcx * 8], 8",
                "5:",
                "ret",
                // So that the code begins a cache line: its section is aligned like this.
                ".balign 64",
            ],
            fast = sym FAST,
            slow = sym $slow,
            limit = const Fast::LIMIT,
            columns = const Fast::COLUMNS,
            area = const Fast::AREA,
            rows = const Fast::ROWS,
        )
    };
}

/// The whole of a function that frees: its first argument is the memory.
/// `$name` is a line that names the place once more.
macro_rules! frees {
    ($name:expr) => {
        naked_asm!(
            restartable![
                "jmp {slow}",
                $name,
                // An address that is no multiple of 16 is beyond all others when it is rotated.
                "mov rcx, rdi",
                "sub rcx, qword ptr [rip + {fast} + {start}]",
                "ror rcx, {granule_shift}",
                "cmp rcx, qword ptr [rip + {fast} + {granules}]",
                "jae {slow}",
                // The home and the cache of the page.
                "shr rcx, {page_shift} - {granule_shift}",
                "mov rsi, qword ptr [rip + {fast} + {homes}]",
                "mov rdx, qword ptr [rip + {fast} + {area}]",
                "movzx eax, byte ptr fs:[rdx + 4]",
                "cmp al, byte ptr [rsi + rcx]",
                "mov rax, qword ptr [rip + {fast} + {ids}]",
                "movzx ecx, byte ptr [rax + rcx]",
                "jne 7f",
                "2:",
                "lea r8, [rip + 3b]",
                "mov qword ptr fs:[rdx + 8], r8",
                "4:",
                "mov r8d, dword ptr fs:[rdx + 2]",
                "add r8, qword ptr [rip + {fast} + {rows}]",
                "mov r9, qword ptr [r8 + rcx * 8]",
                // The last object freed, again: a double free.
                "cmp qword ptr [r9], rdi",
                "je {slow}",
                "add r9, 8",
                "test r9d, {sheaf_mask}",
                "jz {slow}",
                "mov qword ptr [r9], rdi",
                "mov qword ptr [r8 + rcx * 8], r9",
                "5:",
                "ret",
                // The column of what is away from home, if there are several threads.
                "7: mov rax, qword ptr [rip + {fast} + {alone}]",
                "cmp byte ptr [rax], 0",
                "jne 2b",
                "cmp ecx, {away_below}",
                "jae 2b",
                "add ecx, {away}",
                "jmp 2b",
                // So that the code begins a cache line: its section is aligned like this.
                ".balign 64",
            ],
            fast = sym FAST,
            slow = sym slow_free,
            page_shift = const PAGE_SHIFT,
            start = const Fast::START,
            granule_shift = const GRANULE_SHIFT,
            granules = const Fast::GRANULES,
            ids = const Fast::IDS,
            homes = const Fast::HOMES,
            alone = const Fast::ALONE,
            away = const AWAY,
            away_below = const AWAY_BELOW,
            area = const Fast::AREA,
            rows = const Fast::ROWS,
            sheaf_mask = const SHEAF_MASK,
        )
    };
}

/// Allocates `bytes` bytes, aligned to 16.
#[unsafe(no_mangle)]
#[unsafe(naked)]
pub extern "C" fn malloc(bytes: usize) -> *mut c_void {
    allocates!(slow_malloc, "")
}

/// The slow path of [`malloc`], which jumps here with the stack as it found it.
extern "C" fn slow_malloc(bytes: usize) -> *mut c_void {
    heap::allocate_hardened_or(bytes, || slow(bytes).cast()).cast()
}

/// Takes memory back. Null is ignored.
///
/// # Safety
/// It came from this library and was not freed since, or is null. Nobody uses it any more.
#[unsafe(no_mangle)]
#[unsafe(naked)]
pub unsafe extern "C" fn free(memory: *mut c_void) {
    frees!("")
}

/// `operator new(size_t)`: a [`malloc`] whose misses end in C++'s way.
#[unsafe(no_mangle)]
#[unsafe(naked)]
pub(super) extern "C-unwind" fn _Znwm(bytes: usize) -> *mut c_void {
    allocates!(new_slow, here!("_Znwm"))
}

/// The way of `operator new` that throws nothing; it is told so by a second argument.
#[unsafe(naked)]
pub(super) extern "C" fn new_or_null(bytes: usize, tag: Nothrow) -> *mut c_void {
    allocates!(new_or_null_slow, "")
}

/// `operator delete(void*)`.
///
/// # Safety
/// The conditions of [`free`].
#[unsafe(no_mangle)]
#[unsafe(naked)]
pub(super) unsafe extern "C" fn _ZdlPv(memory: *mut c_void) {
    frees!(here!("_ZdlPv"))
}

/// `operator delete(void*, align_val_t)`.
///
/// # Safety
/// The conditions of [`free`].
#[unsafe(no_mangle)]
#[unsafe(naked)]
pub(super) unsafe extern "C" fn _ZdlPvSt11align_val_t(memory: *mut c_void, align: usize) {
    frees!("")
}

/// A top is the last of its sheaf if the address behind it has these bits all zero.
const SHEAF_MASK: usize = heap::SHEAF_BYTES - 1;

/// The slow path of [`free`], which jumps here with the stack as it found it.
#[unsafe(naked)]
unsafe extern "C" fn slow_free(memory: *mut c_void) {
    naked_asm!(
        // The caller: the return address.
        "mov rsi, qword ptr [rsp]",
        "jmp {from}",
        from = sym slow_free_from,
    )
}

unsafe extern "C" fn slow_free_from(memory: *mut c_void, caller: usize) {
    // SAFETY: passed on.
    unsafe { heap::free_hardened_or(memory.cast(), caller, slow_free_by) };
}

#[cold]
#[inline(never)]
unsafe fn slow_free_by(memory: *mut u8, caller: usize, rest: Rest) {
    if rest == Rest::Notice {
        let from = if loader::contains(caller) {
            From::UnderLocks
        } else {
            From::Anywhere
        };
        return heap::after_free(from);
    }
    // SAFETY: passed on.
    unsafe {
        // One call at the end: of two, LLVM takes the stack down before it has compared, and does
        // not tell the unwinder.
        let free = match loader::contains(caller) {
            true => heap::free_slow_under_locks,
            false => heap::free_slow,
        };
        free(memory);
    }
}
