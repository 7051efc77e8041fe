//! The short way of most requests: objects that this CPU has at hand, and frees of objects. What it
//! does not serve takes the slow path.

use core::hint::assert_unchecked;
use core::ptr::{NonNull, null_mut};
use core::sync::atomic::{AtomicPtr, Ordering};

use brickyard_slab::sizes::STEP;
use brickyard_slab::sizes::process::{CLASSES, SIZES};

use crate::closed_gate;
use crate::fast_path::{FIRST_GENERAL, hit, put_in};
use crate::instance::Freed;
use crate::instance::built;
use crate::maintenance::{self, MayStart};

use super::canaries::END;
use super::granules::OBJECT;
use super::zeroing::SHORT;
use super::{Hardened, MAX_OBJECT, cache_at, class_at};

/// The hardened heap, from when it is built to the end.
static OPEN: AtomicPtr<Hardened> = AtomicPtr::new(null_mut());

/// Opens the short way: the heap is the hardened one, and built.
pub(super) fn open(hardened: &Hardened) {
    // Release: pairs with the acquire in `opened`.
    OPEN.store(core::ptr::from_ref(hardened).cast_mut(), Ordering::Release);
}

/// Closes the short way until it is opened again.
pub(super) fn close() {
    // Relaxed: who comes another way needs nothing of this.
    OPEN.store(null_mut(), Ordering::Relaxed);
}

#[inline(always)]
fn opened() -> Option<&'static Hardened> {
    // Acquire: pairs with the release in `open`.
    let hardened = OPEN.load(Ordering::Acquire);
    // SAFETY: `open` gave a reference that lives for ever.
    unsafe { hardened.as_ref() }
}

/// The largest class whose objects are served without a loop, and so without a call.
const LAST_SHORT: u8 = CLASSES[SHORT / STEP];

const _: () = assert!(SIZES[LAST_SHORT as usize] as usize <= SHORT && SIZES[0] as usize > END);

/// Allocates `bytes` zeros, if the heap is the hardened one, and this CPU has an object at hand.
/// Otherwise returns what `slow` returns.
#[inline(always)]
#[must_use]
pub fn allocate_hardened_or(bytes: usize, slow: impl Fn() -> *mut u8) -> *mut u8 {
    let Some(hardened) = opened() else {
        return slow();
    };
    // No bytes are no object's.
    if bytes.wrapping_sub(1) >= MAX_OBJECT {
        return slow();
    }
    let cache = FIRST_GENERAL + CLASSES[(bytes + END).div_ceil(STEP)];
    // SAFETY: the heap is built, and the number is a general size's.
    let Some(object) = NonNull::new(unsafe { hit(usize::from(cache)) }) else {
        return slow();
    };
    let class = cache - FIRST_GENERAL;
    if class > LAST_SHORT {
        // SAFETY: just taken from the queue of that cache.
        return unsafe { begin_long(hardened, object, class, bytes) };
    }
    let size = SIZES[usize::from(class)] as usize;
    // SAFETY: classes up to the last short one are as short, and ascend. The object was just taken
    // from the queue of that cache.
    unsafe {
        assert_unchecked(size > END && size <= SHORT);
        hardened.begin_object(object, (cache, size), bytes);
    }
    object.as_ptr()
}

/// # Safety
/// The conditions of [`Hardened::begin_object`].
#[inline(never)]
unsafe fn begin_long(hardened: &Hardened, object: NonNull<u8>, class: u8, bytes: usize) -> *mut u8 {
    let size = SIZES[usize::from(class)] as usize;
    // SAFETY: passed on.
    unsafe { hardened.begin_object(object, (FIRST_GENERAL + class, size), bytes) };
    object.as_ptr()
}

/// What is still to be done of a free.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rest {
    /// All: the heap is not the hardened one, or what begins there is no object.
    /// [`free_slow`](crate::free_slow) does it.
    All,
    /// It was freed, and queues became shorter, of which [`after_free`] takes notice.
    Notice,
}

/// Takes an object of the hardened heap back. `slow` does what is still to be done, if anything. It
/// gets the memory and the caller.
///
/// # Safety
/// The conditions of [`free_slow`](crate::free_slow).
#[inline(always)]
pub unsafe fn free_hardened_or(
    memory: *mut u8,
    caller: usize,
    slow: unsafe fn(*mut u8, usize, Rest),
) {
    // SAFETY: by `one-state` who ends the state of an object has it alone, and by the exchange what
    // has waited; by `built-before-seen` the words of rows are there. The rest is passed on.
    unsafe {
        let (Some(hardened), Some(object)) = (opened(), NonNull::new(memory)) else {
            return slow(memory, caller, Rest::All);
        };
        let Some(granule) = hardened.states.granule(object) else {
            return slow(memory, caller, Rest::All);
        };
        let class = cache_at(granule).wrapping_sub(FIRST_GENERAL);
        if class > LAST_SHORT {
            return free_long(hardened, (object, granule), caller, slow);
        }
        if hardened.states.end_at(granule, OBJECT).is_err() {
            return slow(memory, caller, Rest::All);
        }
        let class = usize::from(class);
        let size = SIZES[class] as usize;
        // As in `allocate_hardened_or`.
        assert_unchecked(size > END && size <= SHORT);
        // An object begins there, which nobody else has freed. What comes instead is free.
        if let Some(old) = hardened.free_object(object, class, size)
            && !put_in(class + usize::from(FIRST_GENERAL), old.as_ptr())
        {
            give_slowly(hardened, (class, old), caller, slow);
        }
    }
}

/// # Safety
/// The conditions of [`free_hardened_or`].
#[inline(never)]
unsafe fn free_long(
    hardened: &Hardened,
    (object, granule): (NonNull<u8>, usize),
    caller: usize,
    slow: unsafe fn(*mut u8, usize, Rest),
) {
    // SAFETY: as in `free_hardened_or`.
    unsafe {
        if hardened.states.end_at(granule, OBJECT).is_err() {
            return slow(object.as_ptr(), caller, Rest::All);
        }
        let (class, size) = class_at(object, granule);
        if let Some(old) = hardened.free_object(object, class, size)
            && !put_in(class + usize::from(FIRST_GENERAL), old.as_ptr())
        {
            give_slowly(hardened, (class, old), caller, slow);
        }
    }
}

/// # Safety
/// The conditions of [`Hardened::give`].
#[cold]
#[inline(never)]
unsafe fn give_slowly(
    hardened: &Hardened,
    (class, old): (usize, NonNull<u8>),
    caller: usize,
    slow: unsafe fn(*mut u8, usize, Rest),
) {
    // SAFETY: passed on.
    unsafe {
        if hardened.give_slowly(FIRST_GENERAL + class as u8, old) == Freed::Inside {
            slow(old.as_ptr(), caller, Rest::Notice);
        }
    }
}

/// Does what is to be done when memory was freed: see [`Rest::Notice`].
#[cold]
pub fn after_free(from: From) {
    if let Some(heap) = built() {
        closed_gate::free_what_waits(heap);
        let may = match from {
            From::Anywhere => MayStart::Thread,
            From::UnderLocks => MayStart::Nothing,
        };
        maintenance::has_shrunk(heap, may);
    }
}

/// Where a free comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum From {
    /// Anywhere, so that a thread may be started.
    Anywhere,
    /// Perhaps a place under locks, as for [`free_slow_under_locks`](crate::free_slow_under_locks).
    UnderLocks,
}
