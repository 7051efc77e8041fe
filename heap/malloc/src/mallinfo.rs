//! What the C library tells of its `malloc`, and lets a program set: of this heap.
//!
//! Functions that print gather all numbers first. They hold no lock while they write, and a thread
//! that is cancelled meanwhile leaves the heap as it should be.

use core::ffi::{CStr, c_char, c_int, c_void};
use core::fmt::{self, Write};

use brickyard_heap::{self as heap, Format};

use super::set_errno;

/// The C library's `struct mallinfo2`. Fields are in its order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[repr(C)]
pub struct Mallinfo2 {
    /// Bytes of slabs, runs, idle pages and freed large blocks.
    pub arena: usize,
    /// Free objects in slabs.
    pub ordblks: usize,
    /// Free objects at hand for CPUs.
    pub smblks: usize,
    /// Blocks of more than 2 MiB: mappings of their own.
    pub hblks: usize,
    /// Their bytes.
    pub hblkhd: usize,
    /// Always 0, as in the C library.
    pub usmblks: usize,
    /// Bytes of free objects at hand for CPUs.
    pub fsmblks: usize,
    /// Bytes of objects and runs in use.
    pub uordblks: usize,
    /// Bytes of `arena` that are not in use.
    pub fordblks: usize,
    /// Bytes of idle pages and of freed large blocks: `malloc_trim` gives them back.
    pub keepcost: usize,
}

/// The C library's `struct mallinfo`: as [`Mallinfo2`], in `int`s that may be too small. Here they
/// then hold the largest number, and do not wrap.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[repr(C)]
#[expect(missing_docs, reason = "the fields are those of `Mallinfo2`")]
pub struct Mallinfo {
    pub arena: c_int,
    pub ordblks: c_int,
    pub smblks: c_int,
    pub hblks: c_int,
    pub hblkhd: c_int,
    pub usmblks: c_int,
    pub fsmblks: c_int,
    pub uordblks: c_int,
    pub fordblks: c_int,
    pub keepcost: c_int,
}

/// Returns what the heap holds. Takes the locks of every size once.
#[unsafe(no_mangle)]
pub extern "C" fn mallinfo2() -> Mallinfo2 {
    let of = heap::statistics();
    let (arena, uordblks) = (of.pages + of.idle, of.objects() + of.runs());
    let queued = of.sizes.iter().map(|of| of.queued).sum();
    let free: usize = of.sizes.iter().map(|of| of.objects - of.in_use).sum();
    Mallinfo2 {
        arena,
        ordblks: free.saturating_sub(queued),
        smblks: queued,
        hblks: of.large_blocks,
        hblkhd: of.large,
        usmblks: 0,
        fsmblks: of.queued(),
        uordblks,
        fordblks: arena.saturating_sub(uordblks),
        keepcost: of.idle,
    }
}

/// Returns what [`mallinfo2`] does, in `int`s.
#[unsafe(no_mangle)]
pub extern "C" fn mallinfo() -> Mallinfo {
    let int = |number: usize| c_int::try_from(number).unwrap_or(c_int::MAX);
    let of = mallinfo2();
    Mallinfo {
        arena: int(of.arena),
        ordblks: int(of.ordblks),
        smblks: int(of.smblks),
        hblks: int(of.hblks),
        hblkhd: int(of.hblkhd),
        usmblks: int(of.usmblks),
        fsmblks: int(of.fsmblks),
        uordblks: int(of.uordblks),
        fordblks: int(of.fordblks),
        keepcost: int(of.keepcost),
    }
}

/// Prints what the heap holds on standard error: as text, or in the format that `BRICKYARD_STATS`
/// names (`text`, `json`, `openmetrics`, `xml`), which a setuid program does not read.
#[unsafe(no_mangle)]
pub extern "C" fn malloc_stats() {
    // SAFETY: the name is a C string, and what `secure_getenv` returns is one, which is read at
    // once.
    let format = unsafe {
        let value = secure_getenv(c"BRICKYARD_STATS".as_ptr());
        if value.is_null() {
            None
        } else {
            Format::named(CStr::from_ptr(value).to_bytes())
        }
    };
    let statistics = heap::statistics();
    // A standard error that is closed is no reason to fail: the function returns nothing.
    let _ = heap::print(2, &statistics.text(format.unwrap_or(Format::Text)));
}

/// Writes what the heap holds to a descriptor, in a format: `text`, `json`, `openmetrics` or `xml`.
/// Returns 0, or an error number: `EINVAL` if there is no such format, or that of the `write` that
/// failed. Allocates nothing.
///
/// # Safety
/// `format` is a C string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn brickyard_stats(descriptor: c_int, format: *const c_char) -> c_int {
    // SAFETY: the caller's promise.
    let name = unsafe { CStr::from_ptr(format) };
    let Some(format) = Format::named(name.to_bytes()) else {
        return libc::EINVAL;
    };
    let statistics = heap::statistics();
    match heap::print(descriptor, &statistics.text(format)) {
        Ok(()) => 0,
        Err(number) => number,
    }
}

/// Writes the heap profile of this process to a descriptor, in the text format that `pprof` and
/// `jeprof` read. Returns 0, or an error number: `ENODATA` if there is none (`BRICKYARD_PROFILE` is
/// not set), `EBUSY` if a handler calls that has interrupted the heap, or while another thread
/// forks; or that of the `write` that failed. Allocates nothing.
#[unsafe(no_mangle)]
pub extern "C" fn brickyard_profile(descriptor: c_int) -> c_int {
    heap::write_profile(descriptor).err().unwrap_or(0)
}

/// Prints what the heap holds to a stream, as XML with the elements that the C library prints.
/// There are no options: others than 0 are refused with -1 and `EINVAL`.
///
/// # Safety
/// `stream` is open for writing.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn malloc_info(options: c_int, stream: *mut libc::FILE) -> c_int {
    if options != 0 {
        set_errno(libc::EINVAL);
        return -1;
    }
    let statistics = heap::statistics();
    let _not_cancelled = NotCancelled::begin();
    let done = write!(Stream(stream), "{}", statistics.text(Format::Xml));
    // As the C library: who asks learns by `ferror` whether it was written.
    let _ = done;
    0
}

/// A stream of the C library.
struct Stream(*mut libc::FILE);

impl Write for Stream {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        // SAFETY: the stream is open (`malloc_info`), and the bytes are there.
        let written =
            unsafe { libc::fwrite(text.as_ptr().cast::<c_void>(), 1, text.len(), self.0) };
        if written == text.len() {
            Ok(())
        } else {
            Err(fmt::Error)
        }
    }
}

/// The calling thread is not cancelled as long as this lives: a cancellation unwinds, which ends
/// the process where it meets these functions.
struct NotCancelled {
    state: c_int,
}

unsafe extern "C" {
    fn secure_getenv(name: *const c_char) -> *mut c_char;
    fn pthread_setcancelstate(state: c_int, old: *mut c_int) -> c_int;
}

const PTHREAD_CANCEL_DISABLE: c_int = 1;

impl NotCancelled {
    fn begin() -> Self {
        let mut state = 0;
        // SAFETY: a state that there is, and a word that can be written.
        let _ = unsafe { pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &raw mut state) };
        Self { state }
    }
}

impl Drop for NotCancelled {
    fn drop(&mut self) {
        let mut state = 0;
        // SAFETY: as above.
        let _ = unsafe { pthread_setcancelstate(self.state, &raw mut state) };
    }
}

/// Sets something of the heap. Returns 1 if the setting is in effect, or is one that has nothing to
/// act on here; 0 if it is not possible, or is unknown.
///
/// | parameter | what it does |
/// |---|---|
/// | `M_TRIM_THRESHOLD` | so many idle bytes are kept, whatever their age; -1: all (blocks above 2 MiB apart) |
/// | `M_MXFAST`, `M_TOP_PAD`, `M_MMAP_THRESHOLD`, `M_MMAP_MAX`, `M_ARENA_TEST`, `M_ARENA_MAX` | nothing |
/// | `M_CHECK_ACTION` | nothing: what is found wrong always ends the process |
/// | `M_PERTURB` | freed memory holds the value, and new memory its complement; every request takes the slow path from then on. Not on the hardened heap |
#[unsafe(no_mangle)]
pub extern "C" fn mallopt(parameter: c_int, value: c_int) -> c_int {
    match parameter {
        libc::M_TRIM_THRESHOLD => {
            let bytes = usize::try_from(value).unwrap_or(usize::MAX);
            c_int::from(heap::keep_idle(bytes))
        }
        // The C library refuses more than this.
        libc::M_MXFAST => c_int::from(usize::try_from(value).is_ok_and(|value| value <= MXFAST)),
        libc::M_TOP_PAD
        | libc::M_MMAP_THRESHOLD
        | libc::M_MMAP_MAX
        | libc::M_ARENA_TEST
        | libc::M_ARENA_MAX
        | libc::M_CHECK_ACTION => 1,
        libc::M_PERTURB => c_int::from(heap::perturb(value as u8)),
        _ => 0,
    }
}

/// The largest value of `M_MXFAST` in the C library.
const MXFAST: usize = 80 * size_of::<usize>() / 4;
