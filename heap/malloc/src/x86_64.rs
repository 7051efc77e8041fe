//! `malloc` and `free` where they are hits, in assembly: as `portable.rs` says them, in 18 and 21
//! instructions.
//!
//! What compilers add to it is a second test of what the sequence has tested already, and a
//! register for each word that an instruction could read from memory itself. The offsets are those
//! of [`Fast`], the sequence that of the heap's rows; a miss jumps out of it before its last store,
//! which is allowed at any place.

use core::arch::naked_asm;
use core::ffi::c_void;

use brickyard_arena::restartable;
use brickyard_heap::{self as heap, FAST, Fast, PAGE_SHIFT};

use super::{loader, slow};

/// Memory for `bytes` bytes, aligned to 16.
#[unsafe(no_mangle)]
#[unsafe(naked)]
pub extern "C" fn malloc(bytes: usize) -> *mut c_void {
    naked_asm!(
        restartable![
            "cmp rdi, qword ptr [rip + {fast} + {limit}]",
            "jae {slow}",
            // The column of the size: it does not wait for the CPU's number.
            "lea rcx, [rdi + 15]",
            "shr rcx, 4",
            "lea rsi, [rip + {fast} + {columns}]",
            "movzx ecx, byte ptr [rsi + rcx]",
            "mov rdx, qword ptr [rip + {fast} + {area}]",
            "2:",
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
            "sub r9, 8",
            "mov qword ptr [r8 + rcx * 8], r9",
            "5:",
            "ret",
            // Begins a line, as its section does then.
            ".balign 64",
        ],
        fast = sym FAST,
        slow = sym slow,
        limit = const Fast::LIMIT,
        columns = const Fast::COLUMNS,
        area = const Fast::AREA,
        rows = const Fast::ROWS,
    )
}

/// Takes memory back; null is nothing.
///
/// # Safety
/// It came from this library and was not freed since, or is null; nobody uses it any more.
#[unsafe(no_mangle)]
#[unsafe(naked)]
pub unsafe extern "C" fn free(memory: *mut c_void) {
    naked_asm!(
        restartable![
            // The cache of the page.
            "mov rcx, rdi",
            "sub rcx, qword ptr [rip + {fast} + {start}]",
            "shr rcx, {page_shift}",
            "cmp rcx, qword ptr [rip + {fast} + {pages}]",
            "jae {slow}",
            "mov rdx, qword ptr [rip + {fast} + {ids}]",
            "movzx ecx, byte ptr [rdx + rcx]",
            "mov rdx, qword ptr [rip + {fast} + {area}]",
            "2:",
            "lea r8, [rip + 3b]",
            "mov qword ptr fs:[rdx + 8], r8",
            "4:",
            "mov r8d, dword ptr fs:[rdx + 2]",
            "add r8, qword ptr [rip + {fast} + {rows}]",
            "mov r9, qword ptr [r8 + rcx * 8]",
            // The last one freed, again?
            "cmp qword ptr [r9], rdi",
            "je {slow}",
            "add r9, 8",
            "test r9d, {sheaf_mask}",
            "jz {slow}",
            "mov qword ptr [r9], rdi",
            "mov qword ptr [r8 + rcx * 8], r9",
            "5:",
            "ret",
            // Begins a line, as its section does then.
            ".balign 64",
        ],
        fast = sym FAST,
        slow = sym slow_free,
        page_shift = const PAGE_SHIFT,
        start = const Fast::START,
        pages = const Fast::PAGES,
        ids = const Fast::IDS,
        area = const Fast::AREA,
        rows = const Fast::ROWS,
        sheaf_mask = const SHEAF_MASK,
    )
}

/// A top whose next entry has these bits all zero is the last of its sheaf.
const SHEAF_MASK: usize = heap::SHEAF_BYTES - 1;

/// A free that is no hit: as [`free`], which jumps here with the stack as it found it.
#[unsafe(naked)]
unsafe extern "C" fn slow_free(memory: *mut c_void) {
    naked_asm!(
        // Who called: the return address.
        "mov rsi, qword ptr [rsp]",
        "jmp {from}",
        from = sym slow_free_from,
    )
}

#[cold]
unsafe extern "C" fn slow_free_from(memory: *mut c_void, caller: usize) {
    // SAFETY: passed on.
    unsafe {
        if loader::contains(caller) {
            heap::free_slow_under_locks(memory.cast());
        } else {
            heap::free_slow(memory.cast());
        }
    }
}
