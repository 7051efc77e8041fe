//! Our own heaps as contestants: each sets itself up and runs the turn. They are the first columns
//! of the table.
//!
//! | name | what it is |
//! |---|---|
//! | `brickyard` | the process's heap, as `#[global_allocator]`: a row per CPU by restartable sequences |
//! | `brickyard-pinned` | the library's general sizes as a kernel has them: a thread acts as a CPU, always the same one |
//! | `slqb-2008` | the same, by the design of 2008 |

use core::alloc::Layout;
use core::ptr::{NonNull, null_mut};

use brickyard_arena::rows::Cpus;
use brickyard_arena::{Mapped, Threads};
use brickyard_designs::slqb::Slqb2008;
use brickyard_heap::{SPAN_BYTES, Span};
use brickyard_slab::sizes::SIZES;
use brickyard_slab::{
    General, PageSource, Parts, Pinned, Sheafed, SlabDesign, SlabPlan, Slabs, Tables, TaskOnly,
};

use super::heap::{Content, Global, Heap, HeapHandle};
use super::turn::{HeapPeer, HeapTaken, HeapTurn};

/// Our heaps, in the order of their columns.
pub(crate) const HEAPS: &[&dyn HeapPeer] = &[&Process, &DefaultPinned, &Design2008];

struct Process;

impl HeapPeer for Process {
    fn name(&self) -> &'static str {
        "brickyard"
    }

    fn measure(&self, turn: &HeapTurn<'_>) -> anyhow::Result<HeapTaken> {
        turn.on(&Global(brickyard_heap::Global))
    }
}

struct DefaultPinned;

impl HeapPeer for DefaultPinned {
    fn name(&self) -> &'static str {
        "brickyard-pinned"
    }

    fn measure(&self, turn: &HeapTurn<'_>) -> anyhow::Result<HeapTaken> {
        on_slabs::<Sheafed<'static, &'static Span, Pinned<Threads>>>(turn)
    }
}

struct Design2008;

impl HeapPeer for Design2008 {
    fn name(&self) -> &'static str {
        "slqb-2008"
    }

    fn measure(&self, turn: &HeapTurn<'_>) -> anyhow::Result<HeapTaken> {
        on_slabs::<Slqb2008<'static, &'static Span, Pinned<Threads>>>(turn)
    }
}

/// The number of threads with queues of their own: more than any workload starts.
const THREADS: usize = 64;

/// Builds slabs of this design over pages of a span, and runs the turn on their general sizes. The
/// turn's process ends after it, so the memory is leaked.
fn on_slabs<D>(turn: &HeapTurn<'_>) -> anyhow::Result<HeapTaken>
where
    D: SlabDesign<'static, Source = &'static Span, Local = Pinned<Threads>>,
{
    let span: &'static Span = Box::leak(Box::new(
        Span::reserve(SPAN_BYTES.1)?.with_cpus(Cpus::threads()),
    ));
    let plan = SlabPlan::new(SIZES.len(), THREADS);
    let memory = Box::leak(Box::new(Mapped::new(Slabs::<D>::bytes(&plan))?));
    let tables = Box::leak(Box::new(Mapped::new(Tables::bytes(span.pages()))?));
    // SAFETY: a fresh mapping is all zeroes, and nothing has been written to this one.
    let tables = unsafe { Tables::zeroed(tables.as_uninit()) };
    // SAFETY: each thread has a number of its own, and no interrupts.
    let threads = unsafe { Pinned::new(Threads) };
    let parts = Parts {
        tables: Some(tables),
        ..Parts::of(memory.as_uninit())
    };
    let slabs = Slabs::<D>::in_parts(plan, span, threads, parts)?;
    let slabs = Box::leak(Box::new(slabs));
    turn.on(&OfSlabs(slabs.general()?))
}

/// The general sizes of slabs, as a heap.
struct OfSlabs<D: SlabDesign<'static>>(General<'static, 'static, D, TaskOnly>);

/// A thread's access to them.
struct OfSlabsHandle<'h, D: SlabDesign<'static>>(&'h General<'static, 'static, D, TaskOnly>);

impl<D: SlabDesign<'static>> Heap for OfSlabs<D>
where
    General<'static, 'static, D, TaskOnly>: Sync,
{
    type Handle<'h>
        = OfSlabsHandle<'h, D>
    where
        Self: 'h;

    fn handle(&self) -> OfSlabsHandle<'_, D> {
        OfSlabsHandle(&self.0)
    }
}

// SAFETY: an object of a general size is at least as large and as aligned as requested, and its
// holder's alone; it is zeroed here if requested.
unsafe impl<D: SlabDesign<'static>> HeapHandle for OfSlabsHandle<'_, D> {
    #[inline(always)]
    unsafe fn alloc(&mut self, layout: Layout, content: Content) -> *mut u8 {
        let object = self.0.alloc(layout).map_or(null_mut(), NonNull::as_ptr);
        if content == Content::Zeroed && !object.is_null() {
            // SAFETY: the object has so many bytes, and there is no other reference to it.
            unsafe { object.write_bytes(0, layout.size()) };
        }
        object
    }

    #[inline(always)]
    unsafe fn free(&mut self, object: *mut u8, layout: Layout) {
        if let Some(object) = NonNull::new(object) {
            // SAFETY: the caller promises that it was allocated here with this layout, and is not
            // used any more.
            let freed = unsafe { self.0.free(object, layout) };
            debug_assert!(freed.is_ok(), "an object of its own heap: {freed:?}");
        }
    }
}
