//! The embedder's side: functions that the analysis does not look into. Their names begin with
//! `embedder_`, and `proofs/stack` counts no stack for them; what they call counts.

use core::hint::black_box;
use core::ptr::NonNull;
use core::sync::atomic::{AtomicUsize, Ordering};

use brickyard::pressure::{Activity, Eviction, Migrate, Migration, Need, Reclaim};
use brickyard::{Frame, FrameRange, InterruptState, Order, Platform};
use brickyard_slab::Finding;

/// The CPU that the one thread of this program pretends to run on.
pub(crate) static CPU: AtomicUsize = AtomicUsize::new(0);

#[inline(never)]
fn embedder_cpu() -> usize {
    // Relaxed: one thread.
    CPU.load(Ordering::Relaxed)
}

#[inline(never)]
fn embedder_answers(number: usize) -> usize {
    black_box(number)
}

#[inline(never)]
fn embedder_notices(number: usize) {
    black_box(number);
}

/// Runs the library's work as if on `cpu`.
#[inline(never)]
fn embedder_runs_on(cpu: usize, work: &mut dyn FnMut()) -> bool {
    // Relaxed: one thread.
    let here = CPU.swap(cpu, Ordering::Relaxed);
    work();
    CPU.store(here, Ordering::Relaxed);
    true
}

#[inline(never)]
fn embedder_address(frame: Frame) -> Option<NonNull<u8>> {
    crate::memory::page(frame)
}

#[inline(never)]
fn embedder_oldest(zone: FrameRange) -> Option<(Frame, Activity)> {
    black_box(Some((zone.start, Activity::Inactive)))
}

#[inline(never)]
fn embedder_evicts(frame: Frame) -> Eviction {
    black_box(frame);
    black_box(Eviction::Unsuitable)
}

#[inline(never)]
fn embedder_migrates(from: Frame, to: Frame) -> Migration {
    black_box((from, to));
    black_box(Migration::Later)
}

/// Is told what checks of slabs find.
#[inline(never)]
pub(crate) fn embedder_reports(finding: &Finding) {
    black_box(finding);
}

/// Makes an object, which has eight bytes at least.
#[inline(never)]
pub(crate) fn embedder_constructs(object: NonNull<u8>) {
    black_box(object);
}

/// The platform and the hooks.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Embedder;

impl Platform for Embedder {
    fn cpu(&self) -> usize {
        embedder_cpu()
    }

    fn pin(&self) -> usize {
        embedder_cpu()
    }

    fn unpin(&self) {
        embedder_notices(1);
    }

    fn in_interrupt(&self) -> bool {
        embedder_answers(0) == 1
    }

    fn mask_interrupts(&self) -> InterruptState {
        InterruptState(embedder_answers(2))
    }

    fn restore_interrupts(&self, found: InterruptState) {
        embedder_notices(found.0);
    }

    fn relax(&self) {
        embedder_notices(3);
    }

    fn run_on(&self, cpu: usize, work: &mut dyn FnMut()) -> bool {
        embedder_runs_on(cpu, work)
    }

    fn ticks(&self) -> u64 {
        embedder_answers(4) as u64
    }

    fn task(&self) -> u64 {
        embedder_answers(5) as u64
    }

    fn address(&self, frame: Frame) -> Option<NonNull<u8>> {
        embedder_address(frame)
    }
}

impl Reclaim for Embedder {
    fn reclaim(&self, need: &Need) -> usize {
        // As if it had freed something: then all is tried again.
        embedder_answers(need.frames)
    }

    fn oldest(&self, zone: FrameRange) -> Option<(Frame, Activity)> {
        embedder_oldest(zone)
    }

    fn evict(&self, frame: Frame, _activity: Activity) -> Eviction {
        embedder_evicts(frame)
    }

    fn wake(&self, need: &Need) {
        embedder_notices(need.frames);
    }
}

impl Migrate for Embedder {
    fn can_move(&self, frame: Frame, _order: Order) -> bool {
        embedder_answers(frame.number()) == frame.number()
    }

    fn migrate(&self, from: Frame, _order: Order, to: Frame) -> Migration {
        embedder_migrates(from, to)
    }
}

/// What is called only through pointers stays in the program.
#[used]
static KEPT: [crate::Kept; 2] = [
    crate::Kept(embedder_reports as *const ()),
    crate::Kept(embedder_constructs as *const ()),
];
