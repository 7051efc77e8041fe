//! What belongs to a thread, in thread-local memory that needs no call and no allocation to be reached.
//!
//! A `thread_local!` of a library that is loaded late is allocated on a thread's first use, by `malloc`: no place for an allocator's own state. So this is a
//! symbol of the *initial-exec* kind, which has its room in every thread from the start; 64 bytes of it fit even where the library is loaded by `dlopen`. The loader sets
//! it to zero.

use core::arch::{asm, global_asm};
use core::cell::Cell;

/// Two words of each thread's own, zero at first, that are reached without a call and without memory:
/// for the allocator of the process, of which there is one.
#[inline]
#[must_use]
pub fn thread_words() -> &'static [Cell<u32>; 2] {
    &ThreadArea::of_this_thread().words
}

/// Waits a little: spins a while, then lets others run.
pub fn relax() {
    ThreadArea::relax();
}

/// What belongs to a thread. The first 16 bytes have the shape of the system's `struct rseq`, so that the same sequences serve threads without it.
#[derive(Debug)]
#[repr(C, align(64))]
pub(crate) struct ThreadArea {
    /// Zero, as the upper half of a CPU's number is.
    zero: Cell<u32>,
    /// The row of this thread, by number; 0: none (yet).
    pub(crate) row: Cell<u32>,
    /// Written by every sequence, read by nobody.
    sequence: Cell<u64>,
    /// How far the thread has come with a row of its own.
    pub(crate) stage: Cell<Stage>,
    /// See [`thread_words`].
    words: [Cell<u32>; 2],
    /// Spins since this thread last let others run.
    pub(crate) spins: Cell<u32>,
}

/// How far a thread has come with a row of its own. New threads begin with zero.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub(crate) enum Stage {
    /// It has not asked for one.
    New = 0,
    /// It has asked: there is one, or there was none left.
    Asked = 1,
    /// It is ending and has given its row back.
    Ended = 2,
}

const _: () = assert!(size_of::<ThreadArea>() == 64);

// The name carries the version, so that two versions of this library can be in one program.
macro_rules! symbol {
    () => {
        concat!(
            "brickyard_thread_area_",
            env!("CARGO_PKG_VERSION_MAJOR"),
            "_",
            env!("CARGO_PKG_VERSION_MINOR"),
            "_",
            env!("CARGO_PKG_VERSION_PATCH")
        )
    };
}

global_asm!(
    ".pushsection .tbss.brickyard, \"awT\", %nobits",
    ".balign 64",
    concat!(".globl ", symbol!()),
    concat!(".hidden ", symbol!()),
    concat!(".type ", symbol!(), ", %tls_object"),
    concat!(".size ", symbol!(), ", 64"),
    concat!(symbol!(), ":"),
    ".zero 64",
    ".popsection",
);

/// Where a thread's own area is, from the thread pointer on; the same for all threads.
#[inline]
pub(crate) fn own_offset() -> isize {
    let offset: isize;
    // SAFETY: reads a word that the loader has written before anything of this library runs.
    unsafe {
        #[cfg(target_arch = "x86_64")]
        asm!(
            concat!("mov {}, qword ptr [rip + ", symbol!(), "@GOTTPOFF]"),
            out(reg) offset,
            options(pure, readonly, nostack, preserves_flags),
        );
        #[cfg(target_arch = "aarch64")]
        asm!(
            concat!("adrp {0}, :gottprel:", symbol!()),
            concat!("ldr {0}, [{0}, #:gottprel_lo12:", symbol!(), "]"),
            out(reg) offset,
            options(pure, readonly, nostack, preserves_flags),
        );
    }
    offset
}

/// The thread pointer of the calling thread.
#[inline]
pub(super) fn thread_pointer() -> *mut u8 {
    let pointer: *mut u8;
    // SAFETY: reads the register, or the first word of the thread's control block, which by the platform's ABI is its own address.
    unsafe {
        #[cfg(target_arch = "x86_64")]
        asm!("mov {}, qword ptr fs:[0]", out(reg) pointer, options(pure, readonly, nostack, preserves_flags));
        #[cfg(target_arch = "aarch64")]
        asm!("mrs {}, tpidr_el0", out(reg) pointer, options(pure, nomem, nostack, preserves_flags));
    }
    pointer
}

impl ThreadArea {
    /// The calling thread's area. Not to be kept beyond the end of the thread, nor sent to another.
    #[inline]
    pub(crate) fn of_this_thread<'t>() -> &'t Self {
        let area = thread_pointer()
            .wrapping_offset(own_offset())
            .cast::<Self>();
        // SAFETY: the symbol has 64 bytes, aligned, in every thread, zero at first, which is a value of each field; they live as long as the thread. Other threads never see
        // the reference, since cells make the type unfit to be shared.
        unsafe { &*area }
    }

    /// Waits a little: spins a while, then lets others run.
    pub(crate) fn relax() {
        const SPINS_BEFORE_YIELD: u32 = 64;
        let area = Self::of_this_thread();
        let spins = area.spins.get() + 1;
        if spins < SPINS_BEFORE_YIELD {
            area.spins.set(spins);
            core::hint::spin_loop();
        } else {
            area.spins.set(0);
            rustix::thread::sched_yield();
        }
    }
}
