//! A machine of threads: CPUs by number, frames with two words each, and a hook that comes in the
//! middle of operations, as an interrupt or another task would.

use core::cell::{Cell, RefCell};
use core::mem::MaybeUninit;
use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

use brickyard::sync::SlotAccess;
use brickyard::{Frame, FrameRange, InterruptState, Platform, Zone, ZoneKind, ZonePlan};
use brickyard_boot_test::{Contents, Oracle, Test};

/// What runs in the middle of operations of a thread.
type Hook = Box<dyn FnMut()>;

thread_local! {
    /// The CPU that this thread is.
    pub(crate) static CPU: Cell<usize> = const { Cell::new(0) };
    static IN_INTERRUPT: Cell<bool> = const { Cell::new(false) };
    static MASKED: Cell<usize> = const { Cell::new(0) };
    static HOOK: RefCell<Option<Hook>> = const { RefCell::new(None) };
    static ASKED: Cell<u64> = const { Cell::new(0) };
}

/// How the platform answers in a hook.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Truth {
    /// It says that this is an interrupt.
    Interrupt,
    /// It says that it is a task.
    Task,
}

/// Threads as CPUs.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Machine(pub(crate) Truth);

impl Machine {
    /// Runs the hook, unless this is one. It comes where the allocator asks for the CPU: also in
    /// the middle of a refill or a flush, inside the CPU's own slot.
    fn interrupt(self) {
        ASKED.set(ASKED.get() + 1);
        if !ASKED.get().is_multiple_of(3) || MASKED.get() > 0 {
            return;
        }
        let Some(mut hook) = HOOK.with(|hook| hook.try_borrow_mut().ok()?.take()) else {
            return;
        };
        IN_INTERRUPT.set(self.0 == Truth::Interrupt);
        hook();
        IN_INTERRUPT.set(false);
        HOOK.set(Some(hook));
    }
}

/// Sets what runs in the middle of this thread's operations.
pub(crate) fn set_hook(hook: Option<Hook>) {
    ASKED.set(0);
    HOOK.set(hook);
}

impl Platform for Machine {
    fn cpu(&self) -> usize {
        self.interrupt();
        CPU.get()
    }

    fn pin(&self) -> usize {
        CPU.get()
    }

    fn in_interrupt(&self) -> bool {
        IN_INTERRUPT.get() || MASKED.get() > 0
    }

    fn mask_interrupts(&self) -> InterruptState {
        MASKED.set(MASKED.get() + 1);
        InterruptState(0)
    }

    fn restore_interrupts(&self, _found: InterruptState) {
        MASKED.set(MASKED.get() - 1);
    }

    fn relax(&self) {
        std::thread::yield_now();
    }
}

/// The memory of frames: two words of each.
#[derive(Debug)]
pub(crate) struct Memory(Vec<[AtomicU64; 2]>);

impl Contents for Memory {
    const WORDS: usize = 2;

    fn write(&self, frame: Frame, word: usize, value: u64) {
        self.0[frame.number()][word].store(value, Relaxed);
    }

    fn read(&self, frame: Frame, word: usize) -> u64 {
        self.0[frame.number()][word].load(Relaxed)
    }
}

/// A test of a zone on threads.
pub(crate) type ThreadTest<A> = Test<'static, Zone<'static, Machine, A>, &'static Memory>;

/// The frames of the zone: not all of the span is memory.
pub(crate) const SPAN: FrameRange = FrameRange::new(0, 8192);
const HOLE: FrameRange = FrameRange::new(3000, 3700);

/// Returns a test of a new zone for so many CPUs, and the frames that were added.
pub(crate) fn test<A: SlotAccess>(machine: Machine, cpus: usize) -> (ThreadTest<A>, usize) {
    let plan = ZonePlan::new(ZoneKind::Normal, SPAN, cpus);
    let bytes = |bytes| vec![MaybeUninit::uninit(); bytes].leak();
    let metadata = bytes(Zone::<Machine, A>::bytes(&plan));
    let zone = Zone::<Machine, A>::new(&plan, machine, metadata).unwrap();
    let mut frames = zone.add(FrameRange::new(10, HOLE.start.number())).unwrap();
    frames += zone.add(FrameRange::new(HOLE.end.number(), 8100)).unwrap();
    let oracle = Oracle::new(SPAN, bytes(Oracle::bytes(SPAN))).unwrap();
    let words = || [AtomicU64::new(0), AtomicU64::new(0)];
    let memory = Memory((0..SPAN.len()).map(|_| words()).collect());
    let test = Test {
        zone: &*Box::leak(Box::new(zone)),
        oracle: &*Box::leak(Box::new(oracle)),
        contents: &*Box::leak(Box::new(memory)),
    };
    (test, frames)
}
