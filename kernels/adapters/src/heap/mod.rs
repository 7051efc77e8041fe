//! A kernel's heap as Rust's global allocator: slabs for what is small, pages for the rest.
//!
//! | file | what it holds |
//! |---|---|
//! | `pages.rs` | pages by address, out of frames by number |
//! | `system.rs` | pages, slabs and the general sizes, in the embedder's memory; every call |
//! | `global.rs` | `GlobalAlloc` |
//! | `mod.rs` | the heap as a static: how it is planned, built, extended |

mod global;
mod pages;
mod system;

use core::error::Error;
use core::fmt;
use core::mem::MaybeUninit;

use brickyard::sync::{OnceSlot, RawLock, Shared, TicketLock};
use brickyard::{FrameRange, PlanError, Platform, RangeError, Zone};
use brickyard_slab::{BuildError, CacheError, SlabPlan, Slabs};

use crate::Frames;
pub use pages::{HeapPages, Map};
#[cfg(feature = "arceos")]
pub(crate) use pages::{PAGE, frames_of};
pub use system::HeapSlabs;
use system::Layouts;
pub(crate) use system::System;
#[cfg(feature = "arceos")]
pub(crate) use system::{place_of, place_one};

/// The zone of a heap that has its memory to itself.
pub type OwnZone<P> = &'static Zone<'static, P, Shared>;

/// The values that a heap is built with.
#[derive(Debug, Clone, Copy)]
pub struct HeapPlan {
    /// The CPUs that have queues and a stash of their own. Those with higher numbers are served
    /// too, without any.
    pub cpus: usize,
    /// The frames that the heap can ever have, if it is to have more than those of its first memory
    /// (see [`KernelHeap::add`]). Each page of it, holes included, costs 66 bytes.
    pub span: Option<FrameRange>,
    /// What the slabs are built with. Its `caches` count the 40 of the general sizes. `cpus` and
    /// `pages` are set by the heap.
    pub slabs: SlabPlan,
}

impl HeapPlan {
    /// Returns a plan for so many CPUs, over one piece of memory, with room for 8 caches besides
    /// those of the general sizes.
    #[must_use]
    pub const fn new(cpus: usize) -> Self {
        Self {
            cpus,
            span: None,
            slabs: SlabPlan::new(48, cpus),
        }
    }

    /// Returns the same plan, with memory that may lie anywhere in these frames: those at the
    /// addresses from `start << 12` up to `end << 12`.
    #[must_use]
    pub const fn spanning(mut self, frames: FrameRange) -> Self {
        self.span = Some(frames);
        self
    }
}

/// Why a heap could not be built or extended. Memory that was given to a call that failed is lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum HeapError {
    /// The heap is built already.
    Built,
    /// The heap is not built yet.
    NotBuilt,
    /// The memory does not hold what the heap keeps for itself, and one page.
    TooSmall {
        /// The bytes that would suffice, at any alignment.
        needed: usize,
    },
    /// Memory lies outside the span that was planned.
    Outside {
        /// The frames of the memory.
        memory: FrameRange,
        /// The frames that were planned.
        span: FrameRange,
    },
    /// The frames are not mapped so that slabs can use them: the map's offset is not a multiple of
    /// 128 KiB, or it reaches address 0 or the end of the address space.
    Map,
    /// The zone.
    Zone(PlanError),
    /// The slabs.
    Slabs(BuildError),
    /// The caches of the general sizes.
    Caches(CacheError),
}

impl fmt::Display for HeapError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Built => f.write_str("the heap is built already: give it more memory by `add`"),
            Self::NotBuilt => f.write_str("the heap is not built yet: call `init` first"),
            Self::TooSmall { needed } => write!(
                f,
                "a heap with this plan needs {needed} bytes: give it more, or plan fewer CPUs, \
                 caches, or a shorter span"
            ),
            Self::Outside { memory, span } => write!(
                f,
                "the memory in frames {memory:?} lies outside {span:?}: plan that by `spanning`"
            ),
            Self::Map => f.write_str(
                "slabs need a map whose offset is a multiple of 128 KiB and that reaches neither \
                 address 0 nor the last one",
            ),
            Self::Zone(error) => error.fmt(f),
            Self::Slabs(error) => error.fmt(f),
            Self::Caches(error) => error.fmt(f),
        }
    }
}

impl Error for HeapError {}

/// How much of a heap's own memory is where.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HeapNumbers {
    /// The pages that it has.
    pub pages: usize,
    /// Of these, the pages that are neither a slab's nor in use.
    pub free: usize,
    /// The frees that were refused: see [`KernelHeap::refused`].
    pub refused: usize,
}

/// A heap for `#[global_allocator]` in a kernel.
///
/// Requests up to 32 KiB are served by slabs (`brickyard-slab`): a hit takes about fifteen
/// instructions, without a lock. Larger ones, and those aligned to more than a page, take pages, as
/// many as they need and not the next power of two. A `realloc` within a size, or that makes pages
/// fewer, moves nothing.
///
/// It may be used by tasks and interrupts alike; interrupts are masked while a CPU's own words are
/// touched. It never sleeps.
///
/// `P` is the kernel's [`Platform`]; `K` the lock of the slow paths, any
/// [`LockApi`](brickyard::sync::LockApi) with the feature `lock_api`; `F` where pages come from.
/// There are two ways to build it:
///
/// - [`KernelHeap::init`]: the heap gets memory of its own.
/// - [`KernelHeap::init_over`]: the heap shares the kernel's zone, or its nodes, with everybody
///   else.
///
/// ```
/// use core::mem::MaybeUninit;
/// use brickyard::OneCpu;
/// use brickyard_adapters::{HeapPlan, KernelHeap};
///
/// // SAFETY: one thread uses it, and no interrupt.
/// static HEAP: KernelHeap<OneCpu> = unsafe { KernelHeap::new(OneCpu) };
///
/// // In a kernel: `#[global_allocator]` before it, and memory from the firmware's map.
/// let memory = vec![MaybeUninit::uninit(); 4 << 20].leak();
/// HEAP.init(&HeapPlan::new(1), memory)?;
///
/// # use core::alloc::{GlobalAlloc, Layout};
/// let layout = Layout::new::<[u64; 100]>();
/// // SAFETY: the layout has a size; the memory is freed once, with the layout it has.
/// unsafe {
///     let numbers = HEAP.alloc(layout);
///     assert!(!numbers.is_null());
///     HEAP.dealloc(numbers, layout);
/// }
/// # Ok::<(), brickyard_adapters::HeapError>(())
/// ```
pub struct KernelHeap<
    P: Platform + 'static,
    K: RawLock = TicketLock,
    F: Frames + 'static = OwnZone<&'static P>,
> {
    platform: P,
    system: OnceSlot<&'static System<&'static P, K, F>>,
}

impl<P: Platform, K: RawLock, F: Frames> KernelHeap<P, K, F> {
    /// Makes a heap that is not built yet: until then every request is refused.
    ///
    /// # Safety
    /// Invariant `heap-platform`: the platform keeps what
    /// [`Pinned::new`](brickyard_slab::Pinned::new) asks, as long as the heap is used. In short:
    /// who is pinned is alone on that CPU but for interrupts, who has masked them is alone,
    /// [`Platform::in_interrupt`] tells where an interrupt may have come between, and no method of
    /// the platform allocates.
    #[must_use]
    pub const unsafe fn new(platform: P) -> Self {
        Self {
            platform,
            system: OnceSlot::new(),
        }
    }

    /// Returns the platform.
    #[must_use]
    pub const fn platform(&self) -> &P {
        &self.platform
    }

    /// Builds the heap over frames that others use too. `metadata` holds what the heap keeps for
    /// itself: [`KernelHeap::bytes_over`].
    ///
    /// # Safety
    /// For ever, since the heap is used so long:
    ///
    /// - Invariant `heap-map`: frame `i` of the map's span is the memory at address `(i << 12) +`
    ///   the map's offset, wherever `frames` hands it out. It can be read and written there, and
    ///   its provenance has been exposed (by whoever made the map, if by anybody).
    /// - Invariant `heap-frames`: `frames` hands out each frame to one owner, and its own platform
    ///   keeps its contract. All frames that it hands out lie in the span. What it has handed to
    ///   the heap is left alone by all others until the heap gives it back: nobody frees a frame
    ///   that they do not hold ([`Zone::free`] is safe, and takes any frame from any caller).
    ///
    /// # Errors
    /// [`HeapError`]; the heap is then as it was.
    pub unsafe fn init_over(
        &'static self,
        plan: &HeapPlan,
        frames: F,
        map: Map,
        metadata: &'static mut [MaybeUninit<u8>],
    ) -> Result<(), HeapError> {
        self.is_vacant()?;
        let layouts = Layouts::over::<&'static P, K, F>(plan, &map)?;
        // SAFETY: `heap-platform`, and the caller's promises.
        let system = unsafe { System::over(&layouts, frames, map, &self.platform, metadata)? };
        self.put(system)
    }

    /// Returns the bytes of metadata that [`KernelHeap::init_over`] needs, at any address: 65 for
    /// each page of the map's span, and some 28 KiB, with 2 KiB for each CPU.
    ///
    /// # Errors
    /// [`HeapError::Map`].
    pub fn bytes_over(plan: &HeapPlan, map: &Map) -> Result<usize, HeapError> {
        Ok(Layouts::over::<&'static P, K, F>(plan, map)?.bytes())
    }

    fn is_vacant(&self) -> Result<(), HeapError> {
        match self.system.get() {
            None => Ok(()),
            Some(_) => Err(HeapError::Built),
        }
    }

    fn put(&self, system: &'static System<&'static P, K, F>) -> Result<(), HeapError> {
        match self.system.set(system) {
            Ok(_) => Ok(()),
            Err(_) => Err(HeapError::Built),
        }
    }

    #[inline(always)]
    fn system(&self) -> Option<&'static System<&'static P, K, F>> {
        self.system.get().copied()
    }

    /// Returns the slabs, for caches of one's own, statistics and
    /// [`trim`](brickyard_slab::Slabs::trim); `None` before the heap is built.
    #[must_use]
    pub fn slabs(&self) -> Option<&'static Slabs<'static, HeapSlabs<&'static P, K, F>>> {
        self.system().map(System::slabs)
    }

    /// Returns how many frees were refused: twice the same memory, memory of another size, or not
    /// of this heap. `GlobalAlloc` has no error for them, and does not have to notice: a second
    /// free that finds the object in a CPU's queue goes unnoticed, unless it was the last one
    /// freed. For more, plan the slabs with checks.
    #[must_use]
    pub fn refused(&self) -> usize {
        self.system().map_or(0, System::refused)
    }
}

impl<P: Platform, K: RawLock> KernelHeap<P, K> {
    /// Builds the heap in memory of its own. Its metadata lies at the start: 30 KiB, 17 KiB for
    /// each CPU, and 66 bytes for each page of the span. What is left is the heap's pages.
    ///
    /// ```
    /// # use core::mem::MaybeUninit;
    /// # use brickyard::{FrameRange, OneCpu};
    /// # use brickyard_adapters::{HeapPlan, KernelHeap};
    /// // SAFETY: one thread uses it, and no interrupt.
    /// static HEAP: KernelHeap<OneCpu> = unsafe { KernelHeap::new(OneCpu) };
    ///
    /// let all: &'static mut [MaybeUninit<u8>] = vec![MaybeUninit::uninit(); 16 << 20].leak();
    /// let frame = |address: usize| address >> 12;
    /// let span = all.as_ptr_range();
    /// let span = FrameRange::new(frame(span.start.addr()), frame(span.end.addr()));
    /// let (early, late) = all.split_at_mut(8 << 20);
    /// HEAP.init(&HeapPlan::new(1).spanning(span), early)?;
    /// HEAP.add(late)?; // once it is mapped
    /// assert!(HEAP.numbers().pages > 14 << 8);
    /// # Ok::<(), brickyard_adapters::HeapError>(())
    /// ```
    ///
    /// # Errors
    /// [`HeapError`]; the heap is then as it was.
    pub fn init(
        &'static self,
        plan: &HeapPlan,
        memory: &'static mut [MaybeUninit<u8>],
    ) -> Result<(), HeapError> {
        self.is_vacant()?;
        // SAFETY: `heap-platform`.
        let system = unsafe { System::owning(plan, &self.platform, memory)? };
        self.put(system)
    }

    /// Gives the heap more memory, in the span that was planned. Returns the pages that it got:
    /// those that lie in `memory` as a whole.
    ///
    /// # Errors
    /// [`HeapError::NotBuilt`], [`HeapError::Outside`].
    pub fn add(&self, memory: &'static mut [MaybeUninit<u8>]) -> Result<usize, HeapError> {
        self.system().ok_or(HeapError::NotBuilt)?.add(memory)
    }

    /// Returns how much memory is where. A hint while others use the heap.
    #[must_use]
    pub fn numbers(&self) -> HeapNumbers {
        self.system().map_or(
            HeapNumbers {
                pages: 0,
                free: 0,
                refused: 0,
            },
            System::numbers,
        )
    }

    /// Returns the zone that the pages come from, for its statistics and for
    /// [`check`](Zone::check).
    ///
    /// # Safety
    /// The caller frees nothing to it that it did not take from it, and neither removes nor adds
    /// memory (`heap-frames`).
    #[must_use]
    pub unsafe fn zone(&self) -> Option<OwnZone<&'static P>> {
        self.system().map(System::zone)
    }
}

impl<P: Platform, K: RawLock, F: Frames> fmt::Debug for KernelHeap<P, K, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KernelHeap")
            .field("built", &self.system().is_some())
            .field("refused", &self.refused())
            .finish_non_exhaustive()
    }
}

impl From<PlanError> for HeapError {
    fn from(error: PlanError) -> Self {
        Self::Zone(error)
    }
}

impl From<BuildError> for HeapError {
    fn from(error: BuildError) -> Self {
        Self::Slabs(error)
    }
}

impl From<CacheError> for HeapError {
    fn from(error: CacheError) -> Self {
        Self::Caches(error)
    }
}

impl HeapError {
    /// Memory that the zone's span does not cover.
    pub(crate) const fn outside(memory: FrameRange, error: RangeError) -> Self {
        match error {
            RangeError::OutsideSpan { span } => Self::Outside { memory, span },
            // `add` fails in no other way.
            _ => Self::Map,
        }
    }
}
