//! The sized forms of `delete`, which the hardened heap compares with what was asked for.
//!
//! They jump by a table of their own, which costs what a jump by the loader's does. The loader
//! writes the same into it: the process's form without a size. Where the heap is to be the hardened
//! one, that is replaced, when the library is loaded, by a function that compares first. The table
//! has a page for itself that cannot be written otherwise.
//!
//! Only memory that came from this library's `new` and goes to its `delete` is looked at: what the
//! program's own operators do with sizes is their affair.

use core::arch::{asm, global_asm};
use core::ffi::c_void;

use brickyard_heap as heap;

use super::{bound, is_ours};

global_asm!(
    ".pushsection .data.rel.ro.brickyard_sized, \"aw\", %progbits",
    ".balign 4096",
    ".globl brickyard_sized_one",
    ".hidden brickyard_sized_one",
    "brickyard_sized_one: .quad _ZdlPv",
    ".globl brickyard_sized_many",
    ".hidden brickyard_sized_many",
    "brickyard_sized_many: .quad _ZdaPv",
    ".zero 4080",
    ".popsection",
);

/// A jump by a word of the table.
#[cfg(target_arch = "x86_64")]
macro_rules! jump_by {
    ($word:literal) => {
        concat!("jmp qword ptr [rip + ", $word, "]")
    };
}

#[cfg(target_arch = "aarch64")]
macro_rules! jump_by {
    ($word:literal) => {
        concat!(
            "adrp x16, ",
            $word,
            "\n",
            "ldr x16, [x16, :lo12:",
            $word,
            "]\n",
            "br x16"
        )
    };
}

pub(super) use jump_by;

/// A form of `delete` without a size.
type Delete = unsafe extern "C" fn(*mut c_void);

/// A form of `delete` with a size.
type Sized = unsafe extern "C" fn(*mut c_void, usize);

/// Has sizes compared, if the heap is to be the hardened one.
#[used]
#[unsafe(link_section = ".init_array")]
static AT_START: extern "C" fn() = register;

extern "C" fn register() {
    const PAGE: usize = 4096;
    if !heap::wants_hardening() {
        return;
    }
    let table = table();
    // SAFETY: the table has that page for itself, and nobody else writes it. A thread that deletes
    // meanwhile finds one function or the other. If the system refuses, nothing is compared.
    unsafe {
        if libc::mprotect(table.cast(), PAGE, libc::PROT_READ | libc::PROT_WRITE) == 0 {
            table.write_volatile(delete_one);
            table.add(1).write_volatile(delete_many);
            libc::mprotect(table.cast(), PAGE, libc::PROT_READ);
        }
    }
}

/// Returns the address of the table.
fn table() -> *mut Sized {
    let table: *mut Sized;
    // SAFETY: makes an address.
    unsafe {
        #[cfg(target_arch = "x86_64")]
        asm!(
            "lea {}, [rip + brickyard_sized_one]",
            out(reg) table,
            options(pure, nomem, nostack, preserves_flags),
        );
        #[cfg(target_arch = "aarch64")]
        asm!(
            "adrp {0}, brickyard_sized_one",
            "add {0}, {0}, :lo12:brickyard_sized_one",
            out(reg) table,
            options(pure, nomem, nostack, preserves_flags),
        );
    }
    table
}

unsafe extern "C" fn delete_one(memory: *mut c_void, bytes: usize) {
    if is_ours!("_ZdlPv") && is_ours!("_Znwm") {
        heap::check_size(memory.cast(), bytes);
    }
    let next = bound!("_ZdlPv");
    // SAFETY: the process's `operator delete(void*)`. The rest is passed on.
    unsafe { core::mem::transmute::<usize, Delete>(next)(memory) };
}

unsafe extern "C" fn delete_many(memory: *mut c_void, bytes: usize) {
    let ours = is_ours!("_ZdaPv") && is_ours!("_Znam");
    if ours && is_ours!("_ZdlPv") && is_ours!("_Znwm") {
        heap::check_size(memory.cast(), bytes);
    }
    let next = bound!("_ZdaPv");
    // SAFETY: the process's `operator delete[](void*)`. The rest is passed on.
    unsafe { core::mem::transmute::<usize, Delete>(next)(memory) };
}
