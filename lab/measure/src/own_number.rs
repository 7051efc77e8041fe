//! The number of the calling thread, read by two instructions.
//!
//! A `thread_local!` of another crate may be read by a call, before which the measured code had to
//! save its registers: a third more instructions for an allocation. So on x86-64 it is a symbol of
//! the *initial-exec* kind, whose offset from the thread pointer is known when the program starts.

/// The number of a thread that has not asked yet.
pub(crate) const UNKNOWN: usize = usize::MAX;

#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod word {
    use core::arch::{asm, global_asm};

    // As `UNKNOWN`, in every thread at its start. The name has the version, so that two versions of
    // this library can be in one program.
    macro_rules! symbol {
        () => {
            concat!(
                "brickyard_measure_own_number_",
                env!("CARGO_PKG_VERSION_MAJOR"),
                "_",
                env!("CARGO_PKG_VERSION_MINOR"),
                "_",
                env!("CARGO_PKG_VERSION_PATCH")
            )
        };
    }

    global_asm!(
        ".pushsection .tdata.brickyard_measure, \"awT\", %progbits",
        ".balign 8",
        concat!(".globl ", symbol!()),
        concat!(".hidden ", symbol!()),
        concat!(".type ", symbol!(), ", %tls_object"),
        concat!(".size ", symbol!(), ", 8"),
        concat!(symbol!(), ":"),
        ".quad -1",
        ".popsection",
    );

    /// Returns where the word lies from the thread pointer. It is the same for all threads.
    #[inline]
    fn offset() -> isize {
        let offset;
        // SAFETY: reads a word that the loader has written before, and that does not change.
        unsafe {
            asm!(
                concat!("mov {}, qword ptr [rip + ", symbol!(), "@GOTTPOFF]"),
                out(reg) offset,
                options(pure, nomem, nostack, preserves_flags),
            );
        }
        offset
    }

    #[inline]
    pub(crate) fn get() -> usize {
        let number;
        // SAFETY: reads the word, which is the thread's own.
        unsafe {
            asm!(
                "mov {}, qword ptr fs:[{}]",
                out(reg) number,
                in(reg) offset(),
                options(pure, readonly, nostack, preserves_flags),
            );
        }
        number
    }

    pub(crate) fn set(number: usize) {
        // SAFETY: writes the word, which is the thread's own, and to which there is no reference.
        unsafe {
            asm!(
                "mov qword ptr fs:[{}], {}",
                in(reg) offset(),
                in(reg) number,
                options(nostack, preserves_flags),
            );
        }
    }
}

#[cfg(not(all(target_os = "linux", target_arch = "x86_64")))]
mod word {
    use core::cell::Cell;

    thread_local!(static NUMBER: Cell<usize> = const { Cell::new(super::UNKNOWN) });

    #[inline]
    pub(crate) fn get() -> usize {
        NUMBER.get()
    }

    pub(crate) fn set(number: usize) {
        NUMBER.set(number);
    }
}

pub(crate) use word::{get, set};
