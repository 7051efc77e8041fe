//! Where the dynamic loader's code lies.
//!
//! The loader frees what belongs to ended threads under a lock that a new thread needs. So a free
//! by the loader must not start a thread.

use core::ptr::with_exposed_provenance;
use core::sync::atomic::{AtomicUsize, Ordering};

/// Its length in bytes; 0 before it was asked for.
static BYTES: AtomicUsize = AtomicUsize::new(0);

/// Its address, once the length is known.
static BASE: AtomicUsize = AtomicUsize::new(0);

/// Returns true if an address lies in the loader. If there is no loader (the program was started by
/// calling the loader), it is true for all addresses, to be on the safe side. Costs a call and a
/// comparison.
pub(super) fn contains(address: usize) -> bool {
    // Acquire: pairs with the release in `find`.
    let bytes = match BYTES.load(Ordering::Acquire) {
        0 => find(),
        bytes => bytes,
    };
    // Relaxed: written before the length, which is known.
    address.wrapping_sub(BASE.load(Ordering::Relaxed)) < bytes
}

/// Finds the loader, and returns its length.
#[cold]
fn find() -> usize {
    // SAFETY: reads what the system gave the program.
    let base = unsafe { libc::getauxval(libc::AT_BASE) } as usize;
    let bytes = if base == 0 {
        usize::MAX
    } else {
        // SAFETY: the loader begins there.
        unsafe { length(base) }
    };
    // Relaxed: all threads find the same.
    BASE.store(base, Ordering::Relaxed);
    // Release: pairs with the acquire in `contains`.
    BYTES.store(bytes, Ordering::Release);
    bytes
}

/// Returns the bytes from the first to the last segment.
///
/// # Safety
/// The loader lies at `base`, with its headers in front.
unsafe fn length(base: usize) -> usize {
    // SAFETY: the system has mapped a file of this form there, and it stays. Its headers are in the
    // first segment.
    unsafe {
        let header = &*with_exposed_provenance::<libc::Elf64_Ehdr>(base);
        let segments = with_exposed_provenance::<libc::Elf64_Phdr>(base + header.e_phoff as usize);
        let segments = core::slice::from_raw_parts(segments, usize::from(header.e_phnum));
        let loaded = segments
            .iter()
            .filter(|segment| segment.p_type == libc::PT_LOAD);
        loaded
            .map(|segment| (segment.p_vaddr + segment.p_memsz) as usize)
            .max()
            .unwrap_or(usize::MAX)
    }
}
