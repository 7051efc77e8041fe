//! A thread's own data, in thread-local memory that is reached without a call or an allocation.
//!
//! A `thread_local!` of a library that is loaded late is allocated on a thread's first use, by
//! `malloc`. That is no place for an allocator's own state. So this is a symbol of the
//! *initial-exec* kind, which has its room in every thread from the start. Its 64 bytes fit even
//! where the library is loaded by `dlopen`. The loader copies its initial contents into every
//! thread.

use core::arch::{asm, global_asm};
use core::cell::Cell;
use core::ffi::c_void;
use core::mem::offset_of;
use core::ptr::without_provenance;
use core::sync::atomic::{AtomicU32, AtomicUsize, Ordering};

use crate::errno::keeping_errno;

/// The number of a thread that has not asked yet.
pub(crate) const UNKNOWN: usize = usize::MAX;

/// So many numbers have a row: that of the number 0 is the row 1.
pub(crate) const ROWS: usize = 256;

/// A thread's own data. The first 16 bytes have the layout of the system's `struct rseq`, so that
/// the same sequences serve threads without it.
#[derive(Debug)]
#[repr(C, align(64))]
pub(crate) struct ThreadArea {
    /// Zero, as the upper half of a CPU's number is.
    zero: Cell<u32>,
    /// The row of this thread; 0: none (yet).
    row: Cell<u32>,
    /// Written by every sequence, and read by nobody.
    sequence: Cell<u64>,
    /// The number of this thread, as in [`Threads`](crate::Threads).
    number: AtomicUsize,
    /// See [`thread_words`].
    words: [Cell<u32>; 2],
    /// The number of spins since this thread last let others run.
    spins: Cell<u32>,
    /// How often it could not change its row, and then how often it went without one; and how often
    /// it has given up its row (see [`rows_given_up`]).
    failures: Cell<usize>,
}

// As the symbol below assumes.
const _: () = assert!(size_of::<ThreadArea>() == 64 && UNKNOWN == usize::MAX);

// The name contains the version, so that two versions of this library can be in one program.
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
    ".pushsection .tdata.brickyard, \"awT\", %progbits",
    ".balign 64",
    concat!(".globl ", symbol!()),
    concat!(".hidden ", symbol!()),
    concat!(".type ", symbol!(), ", %tls_object"),
    concat!(".size ", symbol!(), ", 64"),
    concat!(symbol!(), ":"),
    ".zero 16",
    ".quad -1",
    ".zero 40",
    ".popsection",
);

/// Returns the offset of a thread's own area from the thread pointer. It is the same for all
/// threads.
#[inline]
pub(crate) fn own_offset() -> isize {
    let offset: isize;
    // SAFETY: reads a word that the loader has written before anything of this library runs, and
    // that does not change.
    unsafe {
        #[cfg(target_arch = "x86_64")]
        asm!(
            concat!("mov {}, qword ptr [rip + ", symbol!(), "@GOTTPOFF]"),
            out(reg) offset,
            options(pure, nomem, nostack, preserves_flags),
        );
        #[cfg(target_arch = "aarch64")]
        asm!(
            concat!("adrp {0}, :gottprel:", symbol!()),
            concat!("ldr {0}, [{0}, #:gottprel_lo12:", symbol!(), "]"),
            out(reg) offset,
            options(pure, nomem, nostack, preserves_flags),
        );
    }
    offset
}

/// Returns the thread pointer of the calling thread.
#[inline]
pub(crate) fn thread_pointer() -> *mut u8 {
    let pointer: *mut u8;
    // SAFETY: reads the register, or the first word of the thread's control block, which by the
    // platform's ABI is its own address.
    unsafe {
        #[cfg(target_arch = "x86_64")]
        asm!("mov {}, qword ptr fs:[0]", out(reg) pointer, options(pure, readonly, nostack, preserves_flags));
        #[cfg(target_arch = "aarch64")]
        asm!("mrs {}, tpidr_el0", out(reg) pointer, options(pure, nomem, nostack, preserves_flags));
    }
    pointer
}

impl ThreadArea {
    /// Returns the calling thread's area.
    #[inline]
    pub(crate) fn of_this_thread() -> &'static Self {
        let area = thread_pointer()
            .wrapping_offset(own_offset())
            .cast::<Self>();
        // SAFETY: the symbol has 64 bytes, aligned, in every thread, and they are a value of each
        // field. They live as long as code of the thread runs. Other threads never get the
        // reference, since cells make the type not `Sync`.
        unsafe { &*area }
    }

    /// Returns the number of its row; 0 if it has none.
    #[inline]
    pub(crate) fn row(&self) -> usize {
        self.row.get() as usize
    }
}

/// Returns the word at an offset of the calling thread's area.
#[inline]
fn word<const OFFSET: usize>() -> usize {
    let word;
    // SAFETY: reads a field where `of_this_thread` finds it, with two instructions less. No other
    // thread writes it.
    #[cfg(target_arch = "x86_64")]
    unsafe {
        asm!(
            "mov {}, qword ptr fs:[{} + {}]",
            out(reg) word,
            in(reg) own_offset(),
            const OFFSET,
            options(pure, readonly, nostack, preserves_flags),
        );
    }
    #[cfg(target_arch = "aarch64")]
    {
        let area = core::ptr::from_ref(ThreadArea::of_this_thread());
        // SAFETY: a field, which no other thread writes.
        word = unsafe { area.byte_add(OFFSET).cast::<usize>().read() };
    }
    word
}

/// Returns the number of the calling thread.
#[inline]
pub(crate) fn number() -> usize {
    word::<{ offset_of!(ThreadArea, number) }>()
}

/// Returns the thread's count of failures to change its row.
#[inline]
pub(crate) fn failures() -> usize {
    word::<{ offset_of!(ThreadArea, failures) }>()
}

/// Makes that count `failures`.
pub(crate) fn set_failures(failures: usize) {
    ThreadArea::of_this_thread().failures.set(failures);
}

/// Gives the thread this number from now on, and the row that belongs to it if there is one.
/// Returns its number before.
pub(crate) fn go_by(number: usize) -> usize {
    let area = ThreadArea::of_this_thread();
    let row = number.wrapping_add(1);
    let row = if row < ROWS { row } else { 0 };
    area.row.set(row as u32);
    // One instruction, so that no signal comes between. Relaxed: no other thread sees it.
    area.number.swap(number, Ordering::Relaxed)
}

/// The count of failures stands below this bit, and how often the thread has given up its row from
/// there on.
const GIVEN_UP_SHIFT: u32 = 16;

/// Returns how often the thread has given up its row. While it has, [`Cpus`](crate::rows::Cpus)
/// tells no row for it, so that slabs take their ways that need none.
#[inline]
#[must_use]
pub fn rows_given_up() -> u32 {
    (failures() >> GIVEN_UP_SHIFT) as u32
}

/// Sets how often the thread has given up its row: for a thread whose memory another one is about to
/// use, as that of a child of `vfork` does.
pub fn set_rows_given_up(times: u32) {
    set_failures((times as usize) << GIVEN_UP_SHIFT);
}

/// Calls `with` with the thread's count of spins.
pub(crate) fn spins<R>(with: impl FnOnce(&Cell<u32>) -> R) -> R {
    with(&ThreadArea::of_this_thread().spins)
}

/// Returns two words of the calling thread, zero at first. They are reached without a call and
/// without an allocation, for the allocator of the process.
///
/// ```compile_fail,E0133
/// // If anybody could write them, the heap could believe that its caller is inside already.
/// brickyard_arena::rows::thread_words()[0].set(1);
/// ```
///
/// # Safety
/// The caller is that allocator, of which there is one: its soundness may rest on what they hold.
#[inline]
#[must_use]
pub unsafe fn thread_words() -> &'static [Cell<u32>; 2] {
    &ThreadArea::of_this_thread().words
}

/// The key whose destructor tells that a thread has ended, plus 1; 0 before there is one.
static KEY: AtomicU32 = AtomicU32::new(0);

/// Returns the key, made once. `None` if the process has no key left.
fn key(ended: AtTheEnd) -> Option<libc::pthread_key_t> {
    // Relaxed, here and below: a number whose meaning the C library guards.
    let known = KEY.load(Ordering::Relaxed);
    if known != 0 {
        return Some(known - 1);
    }
    let mut key = 0;
    // SAFETY: `key` can be written, and `ended` lives as long as the program. (A library that
    // holds this code must not be unloaded.)
    if unsafe { libc::pthread_key_create(&raw mut key, Some(ended)) } != 0 {
        return None;
    }
    match KEY.compare_exchange(0, key + 1, Ordering::Relaxed, Ordering::Relaxed) {
        Ok(_) => Some(key),
        Err(other) => {
            // SAFETY: made above, and nobody else knows of it.
            unsafe { libc::pthread_key_delete(key) };
            Some(other - 1)
        }
    }
}

/// A function that the C library calls at the end of a thread.
pub(crate) type AtTheEnd = unsafe extern "C" fn(*mut c_void);

/// Arranges that `ended` is called when the calling thread ends; it is the same in each call. False
/// if that cannot be done. It uses the C library's keys and not a `thread_local!` with a
/// destructor, since nothing here may allocate.
pub(crate) fn tell_the_end(ended: AtTheEnd) -> bool {
    // Any value but null makes the C library call the destructor.
    let value = without_provenance(1);
    // SAFETY: `key` was made by `pthread_key_create` and is never deleted.
    key(ended)
        .is_some_and(|key| keeping_errno(|| unsafe { libc::pthread_setspecific(key, value) }) == 0)
}

/// Returns the time of the system's monotonic clock.
pub(crate) fn nanoseconds() -> u64 {
    let mut now = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: `now` can be written. (The clock is there on every Linux.)
    let _ = unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut now) };
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}
