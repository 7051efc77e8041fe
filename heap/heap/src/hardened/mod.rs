//! The hardened heap (`BRICKYARD_HARDEN=1`): requests whose every mistake that can be seen is found
//! at once, and freed memory that tells nothing.
//!
//! All requests take this way, past the fast paths. On top of the same slabs, runs and large
//! blocks:
//!
//! | what | how | where |
//! |---|---|---|
//! | a double free, an address inside memory, one that is not aligned, a foreign one | a byte a granule of sixteen bytes says what begins there | `granules.rs` |
//! | a write behind the end, from the first byte on; one before the beginning | a word at the end of each piece, eight bytes at most behind what was asked for; the word of the piece before | `canaries.rs` |
//! | a sized free of another size | what was asked for is known | here |
//! | a read of freed memory | it is zero | here, `zeroing.rs` |
//! | a write to freed memory | it is no longer zero when it is handed out | here |
//! | a read of new memory | it is zero | here |
//! | memory that is used again at once | freed memory waits in places of which each free draws one | `quarantine.rs` |
//! | an access behind a large block or to a freed run | pages that cannot be accessed | `pages.rs` |
//! | an access to memory of no bytes | an address that cannot be accessed | `../zero_sized.rs` |
//! | a damaged queue of free objects | what comes out of it must be a free object of its size | here |
//!
//! Most requests have a short way (`fast_path.rs`), which finds the same.
//!
//! A finding is a line on standard error, and ends the process.
//!
//! Invariant `zero-while-free`: memory of slabs and runs is zero while it is free, but for the word
//! at a piece's end. Pages are cleared when a slab or a run takes them, if they are not zero, and a
//! piece when it is freed; neither slabs nor queues write into free objects.

mod canaries;
mod fast_path;
mod granules;
mod guard_pages;
mod mistakes;
mod pages;
mod quarantine;
mod zeroing;

use core::alloc::Layout;
use core::ops::Range;
use core::panic::Location;
use core::ptr::NonNull;
use core::sync::atomic::{AtomicPtr, Ordering};

use brickyard_arena::rows::number;
use brickyard_slab::sizes::STEP;
use brickyard_slab::sizes::process::{CLASSES, SIZES};

use canaries::{Canaries, END};
use granules::{FREED, OBJECT, RUN, States};
use quarantine::Waiting;
use zeroing::{clear, is_zero};

use crate::closed_gate;
use crate::complaints::complain;
use crate::fast_path::{BY_LAYOUT, FAST, FIRST_GENERAL, cache_of, hit_slowly, put_slowly};
use crate::instance::{Freed, Heap, HeapError, INSTANCE, Ways, built, enter};
use crate::maintenance;
use crate::span::{Contents, Guard};
use crate::zero_sized;

pub use fast_path::{From, Rest, after_free, allocate_hardened_or, free_hardened_or};

/// The largest request that a slab serves, with the word at its end. What is larger is runs, which
/// have guard pages.
const MAX_OBJECT: usize = BY_LAYOUT - END;

/// All that the hardened heap has beside the plain one.
pub(crate) struct Hardened {
    states: States,
    ends: Canaries,
    waiting: Waiting,
}

static HARDENED: AtomicPtr<Hardened> = AtomicPtr::new(core::ptr::null_mut());

/// Returns the hardened heap, if this heap is one.
#[inline]
pub(crate) fn hardened() -> Option<&'static Hardened> {
    // Acquire: pairs with the release in `publish`.
    let hardened = HARDENED.load(Ordering::Acquire);
    // SAFETY: `publish` gave a reference that lives for ever.
    unsafe { hardened.as_ref() }
}

impl Ways for Hardened {
    fn allocate(&self, heap: &'static Heap, layout: Layout) -> Option<NonNull<u8>> {
        Hardened::allocate(self, heap, layout)
    }

    unsafe fn free(&self, heap: &'static Heap, memory: NonNull<u8>) -> Freed {
        // SAFETY: passed on.
        unsafe { Hardened::free(self, heap, memory) }
    }

    fn usable_size(&self, heap: &'static Heap, memory: NonNull<u8>) -> usize {
        Hardened::usable_size(self, heap, memory)
    }

    unsafe fn resize(
        &self,
        heap: &'static Heap,
        memory: NonNull<u8>,
        _had: usize,
        bytes: usize,
    ) -> Option<NonNull<u8>> {
        // SAFETY: passed on.
        unsafe { Hardened::resize(self, heap, memory, bytes) }
    }

    fn free_what_waits(&self, heap: &'static Heap) {
        Hardened::free_what_waits(self, heap);
    }
}

impl Guard for Hardened {
    fn commit(&self, part: Range<usize>) -> bool {
        self.states.commit(part)
    }

    fn give_up(&self, part: Range<usize>) {
        self.states.give_up(part);
    }

    fn regain(&self, part: Range<usize>) -> bool {
        self.states.regain(part)
    }

    /// They are zero then, and nothing begins in them.
    unsafe fn prepare(&self, first: NonNull<u8>, bytes: usize, contents: Contents) {
        if contents == Contents::Anything {
            // SAFETY: the caller's promise.
            unsafe { first.write_bytes(0, bytes) };
        }
        self.states.forget(first, bytes);
    }
}

impl Hardened {
    /// Makes it for a span of so many bytes at `start`, in memory that it maps for ever.
    pub(crate) fn new(start: usize, span_bytes: usize, cpus: usize) -> Result<Self, HeapError> {
        let secret = canaries::secret();
        Ok(Self {
            states: States::new(start, span_bytes)?,
            ends: Canaries::new(secret),
            waiting: Waiting::new(cpus, secret)?,
        })
    }

    /// Returns about how many bytes of addresses it takes for such a span.
    pub(crate) const fn table_bytes(span_bytes: usize) -> usize {
        span_bytes / granules::GRANULE + (32 << 20)
    }

    /// Makes this the heap's. Requests see it from now on.
    pub(crate) fn publish(&'static self) {
        let this = core::ptr::from_ref(self).cast_mut();
        // Release: pairs with the acquire in `hardened`.
        HARDENED.store(this, Ordering::Release);
    }

    /// Opens the short way of most requests, when the heap is built.
    pub(crate) fn open(&'static self) {
        fast_path::open(self);
    }

    /// Closes it until it is opened again.
    pub(crate) fn close(&self) {
        fast_path::close();
    }

    /// Allocates zeros for `layout`.
    #[inline]
    pub(crate) fn allocate(&self, heap: &'static Heap, layout: Layout) -> Option<NonNull<u8>> {
        if layout.size() == 0 {
            return self.allocate_nothing(heap, layout.align());
        }
        let given = self.allocate_once(heap, layout);
        if given.is_some() || layout.size() > heap.span.bytes() {
            return given;
        }
        self.free_what_waits(heap);
        self.allocate_once(heap, layout)
    }

    #[inline]
    fn allocate_once(&self, heap: &'static Heap, layout: Layout) -> Option<NonNull<u8>> {
        if let Some(cache) = object_cache(layout) {
            return self.allocate_object(heap, cache, layout);
        }
        self.allocate_pages(heap, layout)
    }

    /// Allocates memory of no bytes; of one byte, if too many others have none.
    #[cold]
    fn allocate_nothing(&self, heap: &'static Heap, align: usize) -> Option<NonNull<u8>> {
        let nothing = if align <= granules::GRANULE {
            zero_sized::allocate()
        } else {
            None
        };
        nothing.or_else(|| self.allocate(heap, Layout::from_size_align(1, align).ok()?))
    }

    #[inline]
    fn allocate_object(
        &self,
        heap: &'static Heap,
        cache: u8,
        layout: Layout,
    ) -> Option<NonNull<u8>> {
        let bytes = layout.size();
        let object = match take(heap, cache) {
            QueueAnswer::Object(object) => object,
            QueueAnswer::Exhausted => return None,
            QueueAnswer::GateClosed => return self.allocate_pages(heap, layout),
        };
        let size = SIZES[usize::from(cache - FIRST_GENERAL)] as usize;
        // SAFETY: just taken.
        unsafe { self.begin_object(object, (cache, size), bytes) };
        Some(object)
    }

    /// Makes an object ready for a request of so many bytes.
    ///
    /// # Safety
    /// It has just been taken out of a queue of that cache, whose objects have that size, and room
    /// for so many bytes and a word.
    #[inline(always)]
    unsafe fn begin_object(&self, object: NonNull<u8>, (cache, size): (u8, usize), bytes: usize) {
        let begins = |granule| cache_at(granule) == cache && self.states.begin_at(granule, OBJECT);
        if !self.states.granule(object).is_some_and(begins) {
            mistakes::damaged_queue(object);
        }
        // SAFETY: an object of that size, taken by this caller.
        if !unsafe { is_zero(object, size - END) } {
            mistakes::written_after_free(object);
        }
        // SAFETY: as above.
        unsafe { self.ends.mark(object, bytes, size) };
    }

    /// Takes memory back.
    ///
    /// # Safety
    /// The conditions of [`free_slow`](super::free_slow).
    #[inline]
    pub(crate) unsafe fn free(&self, heap: &'static Heap, memory: NonNull<u8>) -> Freed {
        // SAFETY: passed on.
        if let Some(granule) = self.states.granule(memory)
            && self.states.end_at(granule, OBJECT).is_ok()
        {
            let (class, size) = class_at(memory, granule);
            // SAFETY: an object begins there, which nobody else has freed.
            return match unsafe { self.free_object(memory, class, size) } {
                // SAFETY: a free object that waited, and that nobody else knows of.
                Some(old) => unsafe { self.give(FIRST_GENERAL + class as u8, old) },
                None => Freed::AtHand,
            };
        }
        // SAFETY: passed on.
        unsafe { self.free_others(heap, memory) }
    }

    #[cold]
    unsafe fn free_others(&self, heap: &'static Heap, memory: NonNull<u8>) -> Freed {
        if !heap.span.contains(memory.as_ptr()) {
            if zero_sized::free(memory) {
                return Freed::AtHand;
            }
            // SAFETY: passed on.
            return unsafe { self.free_large(heap, memory) };
        }
        if !is_aligned(memory) {
            complain(
                "free of an address inside memory: it is not aligned",
                memory,
            );
        }
        match self.states.end(memory, RUN) {
            Ok(()) => {
                // SAFETY: a run begins there, which nobody else has freed.
                unsafe { self.free_run(heap, memory) };
                Freed::Inside
            }
            Err(FREED) => complain("freed twice", memory),
            Err(_) => complain(
                "free of what was not allocated, or of an address inside",
                memory,
            ),
        }
    }

    /// Takes an object back: it waits from now on. Returns what has waited in its place: a free
    /// object of the same size that nobody else knows of.
    ///
    /// # Safety
    /// The caller has ended its state. It is of that class and size.
    #[inline(always)]
    unsafe fn free_object(
        &self,
        object: NonNull<u8>,
        class: usize,
        size: usize,
    ) -> Option<NonNull<u8>> {
        // SAFETY: the caller has taken the object, of that size.
        unsafe {
            self.ends.check(object, size);
            // The first object of a page may have pages of others before it.
            if !object.addr().get().is_multiple_of(1 << crate::PAGE_SHIFT) {
                self.ends.check_before(object);
            }
            clear(object, size - END);
        }
        // SAFETY: the heap is built.
        let row = unsafe { number(FAST.area.load(Ordering::Relaxed)) };
        self.waiting.exchange(row, class, object)
    }

    /// Puts an object into this CPU's queue, or else frees it by the slow path.
    ///
    /// # Safety
    /// It is a free object of that cache that nobody else knows of.
    #[inline(always)]
    unsafe fn give(&self, cache: u8, object: NonNull<u8>) -> Freed {
        // SAFETY: passed on, both.
        unsafe {
            if put_slowly(usize::from(cache), object.as_ptr()) {
                return Freed::AtHand;
            }
            self.give_slowly(cache, object)
        }
    }

    #[cold]
    #[inline(never)]
    unsafe fn give_slowly(&self, cache: u8, object: NonNull<u8>) -> Freed {
        let Some(heap) = built() else {
            complain("an object of a heap that is not built", object);
        };
        // SAFETY: passed on, throughout.
        unsafe {
            let Some(_inside) = enter(heap) else {
                // In use once more, so that it can be freed once more.
                let size = SIZES[usize::from(cache - FIRST_GENERAL)] as usize;
                let _ = self.states.begin(object, OBJECT);
                self.ends.mark(object, size - END, size);
                return closed_gate::free(heap, object);
            };
            let freed = heap.general.free_slow(cache, object, Location::caller());
            if freed.is_err() {
                complain("the table of pages is damaged", object);
            }
            Freed::Inside
        }
    }

    /// Frees for good what waits.
    pub(crate) fn free_what_waits(&self, heap: &'static Heap) {
        for class in 0..SIZES.len() {
            while let Some(object) = self.waiting.take_any(class) {
                // SAFETY: a free object of that size that waited, and that nobody else knows of.
                let _ = unsafe { self.give(FIRST_GENERAL + class as u8, object) };
            }
        }
        while let Some(run) = self.waiting.take_any(quarantine::RUNS) {
            // SAFETY: a free run, likewise.
            unsafe { pages::give_run(heap, run) };
        }
    }

    /// Returns the bytes that were asked for, which are those that may be used; 0 for what is not
    /// in use.
    pub(crate) fn usable_size(&self, heap: &Heap, memory: NonNull<u8>) -> usize {
        if !heap.span.contains(memory.as_ptr()) {
            if zero_sized::contains(memory) {
                return 0;
            }
            return self.large_size(memory);
        }
        if !is_aligned(memory) {
            complain("an address inside memory: it is not aligned", memory);
        }
        match self.states.at(memory) {
            OBJECT => {
                let cache = heap.cache_of(memory);
                let size = SIZES[usize::from(cache - FIRST_GENERAL)] as usize;
                // SAFETY: an object of that size begins there.
                unsafe {
                    self.ends.check(memory, size);
                    self.ends.asked(memory, size)
                }
            }
            // SAFETY: a run of pages holds what begins there.
            RUN => unsafe { self.run_size(heap, memory) },
            _ => complain("the size of what is not in use", memory),
        }
    }

    /// Ends the process if memory is in use, and more or less than so many bytes were asked for.
    /// (No bytes and one are the same: some forms of C++'s `new` make one of none.)
    pub(crate) fn check_size(&self, heap: &Heap, memory: NonNull<u8>, bytes: usize) {
        let is_in_use = if heap.span.contains(memory.as_ptr()) {
            is_aligned(memory) && matches!(self.states.at(memory), OBJECT | RUN)
        } else {
            zero_sized::contains(memory) || INSTANCE.large.bytes_at(memory).is_some()
        };
        if is_in_use && self.usable_size(heap, memory).max(1) != bytes.max(1) {
            complain("freed with another size than was asked for", memory);
        }
    }

    /// Ends the process if so many bytes from an address on, if that lies in the span, are not all
    /// in use by one piece. Says nothing where the beginning of the piece is too far to be looked
    /// for.
    pub(crate) fn check_range(&self, heap: &Heap, memory: NonNull<u8>, bytes: usize) {
        if !heap.span.contains(memory.as_ptr()) {
            return;
        }
        let Some((start, asked)) = self.around(heap, memory) else {
            return;
        };
        let offset = memory.addr().get() - start.addr().get();
        if offset > asked || bytes > asked - offset {
            complain("a copy to or from memory that is not in use", memory);
        }
    }

    /// Returns where the piece begins in which an address of the span lies, or which is the last
    /// one before it, and the bytes that were asked for, none if it is free. `None` if that is too
    /// far to be looked for.
    fn around(&self, heap: &Heap, memory: NonNull<u8>) -> Option<(NonNull<u8>, usize)> {
        if let Some((start, cache)) = heap.general.object_around(memory) {
            let size = SIZES[usize::from(cache - FIRST_GENERAL)] as usize;
            let asked = match self.states.at(start) {
                // SAFETY: an object of that size begins there. (Its end is checked when it is
                // freed.)
                OBJECT => unsafe { self.ends.asked(start, size) },
                _ => 0,
            };
            return Some((start, asked));
        }
        if heap.cache_of(memory) >= FIRST_GENERAL {
            // Before the first object of a slab, or behind the last.
            return Some((memory, 0));
        }
        let (start, state) = match self.run_around(heap, memory) {
            Some(start) => (start, RUN),
            None => self.states.before(memory)?,
        };
        let asked = match state {
            OBJECT | RUN => self.usable_size(heap, start),
            _ => 0,
        };
        Some((start, asked))
    }

    /// Changes the size of memory without copying it: of an object, if the same size of slab serves
    /// it, or of a large block, whose pages may move. `None`, and it is as it was, if that cannot
    /// be.
    ///
    /// # Safety
    /// The memory is the caller's.
    pub(crate) unsafe fn resize(
        &self,
        heap: &Heap,
        memory: NonNull<u8>,
        bytes: usize,
    ) -> Option<NonNull<u8>> {
        if bytes == 0 || zero_sized::contains(memory) {
            return None;
        }
        if !heap.span.contains(memory.as_ptr()) {
            // SAFETY: passed on.
            return unsafe { self.resize_large(heap, memory, bytes) };
        }
        if self.states.at(memory) != OBJECT {
            return None;
        }
        let cache = heap.cache_of(memory);
        let wanted = Layout::from_size_align(bytes, 16)
            .ok()
            .and_then(object_cache);
        if wanted != Some(cache) {
            return None;
        }
        let size = SIZES[usize::from(cache - FIRST_GENERAL)] as usize;
        // SAFETY: an object of that size, which is the caller's. What lies behind the new end is
        // cleared, so that it is zero if the object grows again.
        unsafe {
            self.ends.check(memory, size);
            let asked = self.ends.asked(memory, size);
            let from = bytes.min(asked);
            memory.add(from).write_bytes(0, size - END - from);
            self.ends.mark(memory, bytes, size);
        }
        Some(memory)
    }
}

/// Returns the cache that serves a request together with the word at its end.
#[inline]
fn object_cache(layout: Layout) -> Option<u8> {
    if layout.size() > MAX_OBJECT {
        return None;
    }
    if layout.align() <= STEP {
        let steps = (layout.size() + END).div_ceil(STEP);
        return CLASSES.get(steps).map(|class| FIRST_GENERAL + class);
    }
    cache_of(Layout::from_size_align(layout.size() + END, layout.align()).ok()?)
}

enum QueueAnswer {
    Object(NonNull<u8>),
    Exhausted,
    /// See `closed_gate.rs`.
    GateClosed,
}

/// Takes an object out of this CPU's queue, or else by the slow path.
fn take(heap: &'static Heap, cache: u8) -> QueueAnswer {
    // SAFETY: the heap is built, and the number is a general size's.
    if let Some(object) = NonNull::new(unsafe { hit_slowly(usize::from(cache)) }) {
        return QueueAnswer::Object(object);
    }
    let Some(inside) = enter(heap) else {
        return QueueAnswer::GateClosed;
    };
    let object = heap.general.alloc_slow(cache, Location::caller());
    drop(inside);
    closed_gate::free_what_waits(heap);
    maintenance::has_grown(heap);
    object.map_or(QueueAnswer::Exhausted, QueueAnswer::Object)
}

/// Returns the cache of the page that a granule of the span lies in.
#[inline(always)]
fn cache_at(granule: usize) -> u8 {
    let page = granule >> (crate::PAGE_SHIFT - crate::GRANULE_SHIFT);
    // SAFETY: the table has a byte for each page of the span, in which the granule lies.
    // Relaxed: what a page holds came to the caller in ways that carry this along.
    unsafe { (*FAST.ids.load(Ordering::Relaxed).add(page)).load(Ordering::Relaxed) }
}

/// Returns the class and the size of the objects of the page that a granule lies in, where an
/// object begins.
fn class_at(object: NonNull<u8>, granule: usize) -> (usize, usize) {
    let class = usize::from(cache_at(granule).wrapping_sub(FIRST_GENERAL));
    match SIZES.get(class) {
        Some(&size) => (class, size as usize),
        None => complain("the table of pages is damaged", object),
    }
}

/// Returns true if something may begin there.
fn is_aligned(memory: NonNull<u8>) -> bool {
    memory.addr().get().is_multiple_of(granules::GRANULE)
}

/// Ends the process with a line if so many bytes from an address on are not all in use by one
/// piece, as far as the hardened heap can tell. Says nothing on a plain heap, and of addresses
/// elsewhere.
#[inline]
pub fn check_range(memory: *mut u8, bytes: usize) {
    if bytes > 0
        && let (Some(hardened), Some(heap)) = (hardened(), built())
        && let Some(memory) = NonNull::new(memory)
    {
        hardened.check_range(heap, memory, bytes);
    }
}

/// Ends the process with a line if memory of the hardened heap is in use, and more or less than
/// `bytes` bytes were asked for. Says nothing on a plain heap, and of other addresses: who frees
/// them will.
#[inline]
pub fn check_size(memory: *mut u8, bytes: usize) {
    if let (Some(hardened), Some(heap)) = (hardened(), built())
        && let Some(memory) = NonNull::new(memory)
    {
        hardened.check_size(heap, memory, bytes);
    }
}
