//! The heap of the process: what it consists of, and whether it is built. `build.rs` builds it.

use core::alloc::Layout;
use core::cell::UnsafeCell;
use core::fmt;
use core::mem::MaybeUninit;
use core::ptr::NonNull;
use core::sync::atomic::{AtomicU32, Ordering};

use brickyard::Platform;
use brickyard::sync::TestAndSetLock;
use brickyard_arena::Region;
use brickyard_arena::rows::Cpus;
use brickyard_slab::sheaf::Process;
use brickyard_slab::sizes::process::SIZES;
use brickyard_slab::{General, Sheafed, Slabs, TaskOnly};

use crate::fast_path::FIRST_GENERAL;
use crate::gate::{Gate, Inside};
use crate::large::LargeBlocks;
use crate::span::Span;

/// With a lock that is not handed on in order: a thread that waits may not be running, and then
/// everybody would wait for the system to run it.
pub(crate) type Design = Sheafed<'static, &'static Span, Cpus, TestAndSetLock, Process>;
pub(crate) type HeapSlabs = Slabs<'static, Design>;

/// The words of a row that are in use: three per cache.
pub(crate) const ROW_WORDS: usize = (SIZES.len() + FIRST_GENERAL as usize) * 3;

/// All that a heap consists of, once it is built.
pub(crate) struct Heap {
    pub(crate) span: &'static Span,
    pub(crate) slabs: &'static HeapSlabs,
    pub(crate) general: General<'static, 'static, Design, TaskOnly>,
    pub(crate) cpus: Cpus,
    pub(crate) background: Background,
    /// The background thread may go to other CPUs although calls are filtered.
    pub(crate) visits: bool,
    /// What serves requests that are no hits.
    pub(crate) ways: &'static dyn Ways,
    /// It is the hardened one.
    pub(crate) is_hardened: bool,
}

impl Heap {
    /// Returns which cache an address belongs to; 0 if it lies in no slab.
    pub(crate) fn cache_of(&self, memory: NonNull<u8>) -> u8 {
        match self.span.contains(memory.as_ptr()) {
            true => self.slabs.pages().cache_of(memory),
            false => 0,
        }
    }
}

/// What serves requests that are no hits: the plain heap (`plain.rs`) or the hardened one
/// (`hardened/`), chosen once, when the heap is built.
pub(crate) trait Ways: Sync {
    /// Allocates memory for `layout`, of any alignment.
    fn allocate(&self, heap: &'static Heap, layout: Layout) -> Option<NonNull<u8>>;

    /// Allocates zeros for `layout`.
    fn allocate_zeros(&self, heap: &'static Heap, layout: Layout) -> Option<NonNull<u8>> {
        self.allocate(heap, layout)
    }

    /// Allocates memory for `layout`, of [`BY_LAYOUT`](crate::fast_path::BY_LAYOUT) bytes at most,
    /// that is freed by that layout alone.
    fn allocate_by_layout(&self, heap: &'static Heap, layout: Layout) -> Option<NonNull<u8>> {
        self.allocate(heap, layout)
    }

    /// Takes memory back, and nothing else.
    ///
    /// # Safety
    /// The conditions of [`free_slow`](crate::free_slow).
    unsafe fn free(&self, heap: &'static Heap, memory: NonNull<u8>) -> Freed;

    /// Returns the usable bytes of memory.
    fn usable_size(&self, heap: &'static Heap, memory: NonNull<u8>) -> usize;

    /// Resizes memory of `had` usable bytes without copying it. `None`, and it is as it was, if
    /// that cannot be.
    ///
    /// # Safety
    /// The conditions of [`reallocate`](crate::reallocate).
    unsafe fn resize(
        &self,
        heap: &'static Heap,
        memory: NonNull<u8>,
        had: usize,
        bytes: usize,
    ) -> Option<NonNull<u8>>;

    /// Returns how many bytes to ask for where memory of `had` bytes becomes `bytes` bytes long.
    fn with_room_to_grow(&self, _had: usize, bytes: usize) -> usize {
        bytes
    }

    /// Frees for good what has been freed and waits.
    fn free_what_waits(&self, _heap: &'static Heap) {}
}

/// What became of memory that was freed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Freed {
    /// It is at hand for this CPU.
    AtHand,
    /// It was taken back by a thread inside the gate.
    Inside,
    /// It waits.
    Waits,
}

/// Says whether a background thread is wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Background {
    Wanted,
    Off,
}

/// The part that can be used before the heap is built.
pub(crate) struct Instance {
    pub(crate) state: AtomicU32,
    pub(crate) span: UnsafeCell<MaybeUninit<Span>>,
    pub(crate) slabs: UnsafeCell<MaybeUninit<HeapSlabs>>,
    pub(crate) heap: UnsafeCell<MaybeUninit<Heap>>,
    pub(crate) gate: Gate,
    pub(crate) large: LargeBlocks,
}

const NEW: u32 = 0;
pub(crate) const BUILT: u32 = 1;
pub(crate) const FAILED: u32 = 2;
/// Being built: by a thread of the process whose number stands above these bits. A child process
/// that was forked meanwhile has no such thread, and begins anew.
pub(crate) const BUSY_SHIFT: u32 = 2;

// Invariant `built-once`: the cells are written only by the one thread that turned the state to
// busy, and read only after it is `BUILT`.
// SAFETY: by `built-once`.
unsafe impl Sync for Instance {}

pub(crate) static INSTANCE: Instance = Instance {
    state: AtomicU32::new(NEW),
    span: UnsafeCell::new(MaybeUninit::uninit()),
    slabs: UnsafeCell::new(MaybeUninit::uninit()),
    heap: UnsafeCell::new(MaybeUninit::uninit()),
    gate: Gate::new(),
    large: LargeBlocks::new(),
};

/// Why there is no heap.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum HeapError {
    /// The system grants no addresses: `ulimit -v` is too low, or `2` in
    /// `/proc/sys/vm/overcommit_memory` leaves too little.
    NoAddresses,
}

impl fmt::Display for HeapError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(
            "the system gives no addresses for a heap: raise `ulimit -v`, or allow overcommitting",
        )
    }
}

impl core::error::Error for HeapError {}

/// Returns the heap, if it is built.
#[inline]
pub(crate) fn built() -> Option<&'static Heap> {
    // Acquire: pairs with the release of the thread that has built it.
    if INSTANCE.state.load(Ordering::Acquire) != BUILT {
        return None;
    }
    // SAFETY: `built-once`.
    Some(unsafe { (*INSTANCE.heap.get()).assume_init_ref() })
}

/// Enters the gate; `None` if a fork takes long, for which see `closed_gate.rs`.
pub(crate) fn enter(heap: &Heap) -> Option<Inside<'static>> {
    INSTANCE.gate.try_enter(heap.cpus.cpu())
}

/// Maps a piece of memory for ever, zero throughout.
pub(crate) fn for_ever(bytes: usize) -> Result<&'static mut [MaybeUninit<u8>], HeapError> {
    Region::map_for_ever(bytes).map_err(|_| HeapError::NoAddresses)
}
