//! Memory of no bytes: addresses that cannot be accessed, each given once at a time.
//!
//! `malloc(0)` is served by them, so that whoever reads or writes there is stopped at once. That
//! costs no other request anything: the fast path's table has no column for it. They are mapped at
//! the first such request: a byte for each address, which is 1 while it is in use, and behind these
//! the addresses. (Layouts of no bytes are another thing: they take the fast path.)

use core::ptr::{NonNull, with_exposed_provenance, with_exposed_provenance_mut};
use core::sync::atomic::{AtomicBool, AtomicU8, AtomicUsize, Ordering};

use brickyard_arena::Region;

use crate::complaints::complain;

/// So many pieces of no bytes can be had at a time. Others have one byte.
const PIECES: usize = 1 << 20;

/// The bytes from one piece to the next.
const STEP: usize = 16;

/// A request looks at so many places at most.
const LOOKS: usize = 64;

/// Where the table begins; 0 before it is made, [`REFUSED`] if it cannot be.
static TABLE: AtomicUsize = AtomicUsize::new(0);
const REFUSED: usize = 1;

/// None was found; nobody looks before one is free again.
static IS_FULL: AtomicBool = AtomicBool::new(false);

/// The piece to be looked at next.
static NEXT: AtomicUsize = AtomicUsize::new(0);

/// Returns the bytes of the table, and the address behind it, where the first piece begins.
fn table() -> Option<(&'static [AtomicU8], usize)> {
    // Acquire: pairs with the release in `make`.
    let start = TABLE.load(Ordering::Acquire);
    if start <= REFUSED {
        return None;
    }
    // SAFETY: `make` has mapped so many zeros there, for ever.
    let used = unsafe { core::slice::from_raw_parts(with_exposed_provenance(start), PIECES) };
    Some((used, start + PIECES))
}

/// Maps the table and the addresses. Of two threads that do so at once one prevails.
#[cold]
fn make() -> Option<()> {
    let made = Region::map_addresses(PIECES + PIECES * STEP, 1).ok();
    // SAFETY: nobody has written to the mapping.
    let made = made.filter(|region| unsafe { region.commit_new(0..PIECES) }.is_ok());
    let start = made.as_ref().map_or(REFUSED, |region| {
        region.start().as_ptr().expose_provenance()
    });
    // Release: pairs with the acquire in `table`.
    let (success, failure) = (Ordering::Release, Ordering::Relaxed);
    let mine = TABLE.compare_exchange(0, start, success, failure);
    match (mine, made) {
        (Ok(_), Some(region)) => {
            let _ = region.leak();
        }
        (Ok(_), None) => return None,
        // The other's is used; this one is unmapped.
        (Err(_), _) => {}
    }
    Some(())
}

/// Returns an address that nobody else has; `None` if too many are in use, or if the system
/// refuses.
#[cold]
pub(crate) fn allocate() -> Option<NonNull<u8>> {
    if TABLE.load(Ordering::Relaxed) == 0 {
        make()?;
    }
    // Relaxed, here and below: there is no memory that the orders could be for.
    if IS_FULL.load(Ordering::Relaxed) {
        return None;
    }
    let (used, first) = table()?;
    let found = (0..LOOKS).find_map(|_| {
        let piece = NEXT.fetch_add(1, Ordering::Relaxed) % PIECES;
        let free = used[piece].swap(1, Ordering::Relaxed) == 0;
        let address = with_exposed_provenance_mut(first + piece * STEP);
        free.then(|| NonNull::new(address))?
    });
    if found.is_none() {
        IS_FULL.store(true, Ordering::Relaxed);
    }
    found
}

/// Returns true if an address is among them.
#[inline]
pub(crate) fn contains(memory: NonNull<u8>) -> bool {
    table().is_some_and(|(_, first)| memory.addr().get().wrapping_sub(first) < PIECES * STEP)
}

/// Takes an address back if it is among them; false if it is not. Ends the process if nobody has
/// it.
#[inline]
pub(crate) fn free(memory: NonNull<u8>) -> bool {
    let Some((used, first)) = table() else {
        return false;
    };
    let offset = memory.addr().get().wrapping_sub(first);
    if offset >= PIECES * STEP {
        return false;
    }
    if !offset.is_multiple_of(STEP) || used[offset / STEP].swap(0, Ordering::Relaxed) == 0 {
        complain(
            "freed twice, or an address inside memory of no bytes",
            memory,
        );
    }
    if IS_FULL.load(Ordering::Relaxed) {
        IS_FULL.store(false, Ordering::Relaxed);
    }
    true
}
