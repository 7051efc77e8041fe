//! The heaps that the experiment of 2008 compares on this host. Each runs a loop of objects in a
//! process of its own, so that no turn is affected by the one before.
//!
//! | name | what it is |
//! |---|---|
//! | `brickyard-pinned` | the library's general sizes as a kernel has them: a thread acts as a CPU, always the same one; pages come from a zone |
//! | `slqb-2008` | the same, by the design of 2008 |
//! | `system` | the C library's malloc |

use core::alloc::Layout;
use core::mem::MaybeUninit;
use core::ptr::{NonNull, null_mut};
use core::time::Duration;
use std::alloc::System;
use std::collections::HashMap;

use anyhow::{Context, bail};
use brickyard::ZoneKind;
use brickyard::zone::{Zone, ZonePlan};
use brickyard_designs::slqb::Slqb2008;
use brickyard_measure::callgrind::this_program;
use brickyard_measure::memory::{FRAME_BYTES, FrameMemory};
use brickyard_measure::objects::crowd::Clock;
use brickyard_measure::objects::heap::{Content, Global, Heap, HeapHandle};
use brickyard_measure::objects::object::Shape;
use brickyard_measure::objects::taken::{self, Taken};
use brickyard_measure::objects::{socket, tail};
use brickyard_measure::threads::Threads;
use brickyard_run::named;
use brickyard_slab::sizes::SIZES;
use brickyard_slab::{
    DirectMap, DirectMapped, General, Pinned, Sheafed, SlabDesign, SlabPlan, Slabs, TaskOnly,
    ZonePages,
};

named! {
    /// The loops.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum Loop {
        /// The objects of a socket.
        Socket => "socket",
        /// The slowest allocations, of 64 bytes.
        Tail => "tail",
    }
}

/// The names of the heaps.
pub const HEAPS: [&str; 3] = ["slqb-2008", "brickyard-pinned", "system"];

/// The bytes of an object of [`Loop::Tail`].
const TAIL_BYTES: u32 = 64;

/// A loop on a heap.
#[derive(Debug, Clone, Copy)]
pub struct Turn {
    /// What is done.
    pub of: Loop,
    /// How many threads do it at the same time.
    pub threads: usize,
    /// The approximate time of a sample, in microseconds.
    pub sample_us: u64,
}

/// The command with which a process of this program does only a turn.
const TURN: [&str; 2] = ["turn", "slab"];

impl Turn {
    /// Starts a process that [runs](Self::run) this on a heap. Returns its values by name.
    ///
    /// # Errors
    /// The process fails.
    pub fn in_a_process(&self, heap: &str) -> anyhow::Result<HashMap<String, f64>> {
        let mut command = this_program(&[])?;
        command.args(TURN);
        command.args(["--heap", heap, "--of", self.of.name()]);
        command.args(["--threads", &self.threads.to_string()]);
        command.args(["--sample-us", &self.sample_us.to_string()]);
        // The system's malloc is what it says.
        command.env_remove("LD_PRELOAD");
        let done = command
            .output()
            .context("cannot start this program again")?;
        if !done.status.success() {
            let told = String::from_utf8_lossy(&done.stderr);
            bail!(
                "its process ended with {}: {}",
                done.status,
                told.trim_end()
            );
        }
        let told = String::from_utf8_lossy(&done.stdout);
        taken::read(&told).with_context(|| format!("unexpected output of a turn: {told:?}"))
    }

    /// Runs the loop on this thread, or on threads that it starts.
    ///
    /// # Errors
    /// There is no such heap, or it cannot be built.
    pub fn run(&self, heap: &str) -> anyhow::Result<Taken> {
        match heap {
            "brickyard-pinned" => self.on_slabs::<Sheafed<'static, Source, Pinned<Threads>>>(),
            "slqb-2008" => self.on_slabs::<Slqb2008<'static, Source, Pinned<Threads>>>(),
            "system" => Ok(self.on(&Global(System))),
            other => bail!("there is no heap {other:?}"),
        }
    }

    fn on<H: Heap>(&self, heap: &H) -> Taken {
        let sample = (Duration::from_micros(self.sample_us), Clock::Cpu);
        match self.of {
            Loop::Socket => socket::run(heap, self.threads, sample),
            Loop::Tail => tail::run(heap, const { Shape::of(TAIL_BYTES) }, self.sample_us),
        }
    }

    /// Builds slabs of this design over pages of a zone, and runs the loop on their general sizes.
    /// The process ends after it, so the memory is leaked.
    fn on_slabs<D>(&self) -> anyhow::Result<Taken>
    where
        D: SlabDesign<'static, Source = Source, Local = Pinned<Threads>>,
        General<'static, 'static, D, TaskOnly>: Sync,
    {
        let memory: &'static FrameMemory = Box::leak(Box::new(FrameMemory::new(MEMORY)?));
        let plan = ZonePlan::new(ZoneKind::Normal, memory.frames(), CPUS);
        let bytes = DirectMapped::<&FrameMemory>::bytes(&plan);
        // SAFETY: all of the memory can be written, and only this zone uses it. Each thread has a
        // number of its own, and no interrupts.
        let map = unsafe { DirectMap::new(memory, FRAME_BYTES.trailing_zeros()) };
        let zone = DirectMapped::<&FrameMemory>::new(&plan, map, uninit(bytes))?;
        let zone = Box::leak(Box::new(zone));
        zone.add(memory.frames())?;
        let source = ZonePages::new(zone)?;
        let plan = SlabPlan::new(SIZES.len(), CPUS);
        let bytes = Slabs::<D>::bytes(&plan.over(&source));
        // SAFETY: each thread has a number of its own, and no interrupts.
        let threads = unsafe { Pinned::new(Threads) };
        let slabs = Slabs::<D>::new(plan, source, threads, uninit(bytes))?;
        let slabs = Box::leak(Box::new(slabs));
        Ok(self.on(&OfSlabs(slabs.general()?)))
    }
}

/// Where the slabs' pages come from.
type Source = ZonePages<'static, Zone<'static, DirectMap<&'static FrameMemory>>>;

/// The bytes of the zone.
const MEMORY: usize = 64 << 20;

/// CPUs with queues of their own.
const CPUS: usize = 64;

/// The most threads of a turn: the one that starts them is a CPU too.
pub const MOST_THREADS: usize = CPUS - 1;

/// Returns memory that is never freed.
fn uninit(bytes: usize) -> &'static mut [MaybeUninit<u8>] {
    vec![MaybeUninit::uninit(); bytes].leak()
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
