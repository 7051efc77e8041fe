//! CPUs on one thread, whose tasks are interrupted, preempted and moved wherever a platform lets
//! that happen.
//!
//! Every call of the platform is a moment: while nothing is masked an interrupt may come, while
//! nothing is pinned another task may run, and the caller may find itself on another CPU. What
//! happens then is the driver's to say ([`Cpus::with_events`]). So whoever reads a CPU's words and
//! changes them in two steps is caught, and whoever holds a lock across such a moment waits for
//! ever, which is noticed too.

use core::cell::Cell;
use core::fmt;
use core::ptr::NonNull;
use core::sync::atomic::{AtomicUsize, Ordering};

use brickyard::{InterruptState, Platform};

/// What may happen at a moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Moment {
    /// An interrupt may come; nobody else runs on this CPU.
    Pinned,
    /// Anything, but the caller stays on this CPU.
    Bound,
    /// Anything.
    Free,
}

/// What happens at a moment, for as long as [`Cpus::with_events`] runs.
#[derive(Clone, Copy)]
struct Events(NonNull<dyn Fn(Moment)>);

thread_local! {
    // Invariant `events-in-scope`: set only while the frame of `with_events` that set it is on this
    // thread's stack.
    static EVENTS: Cell<Option<Events>> = const { Cell::new(None) };
    // How often interrupts are masked, and whether one is running: on this thread, so that locks
    // can ask too.
    static MASKED: Cell<usize> = const { Cell::new(0) };
    static INTERRUPT: Cell<bool> = const { Cell::new(false) };
}

/// An interrupt may come, while a lock is held.
pub(super) fn locked_moment() {
    happens(Moment::Pinned);
}

fn happens(moment: Moment) {
    if MASKED.get() > 0 || INTERRUPT.get() {
        return;
    }
    if let Some(Events(events)) = EVENTS.get() {
        // SAFETY: `events-in-scope`.
        unsafe { events.as_ref()(moment) };
    }
}

/// A machine of several CPUs of which one runs at a time; nested runs are interrupts and
/// preemptions. One a thread.
pub(super) struct Cpus {
    cpu: AtomicUsize,
    pinned: AtomicUsize,
    bound: AtomicUsize,
    waits: AtomicUsize,
    ticks: AtomicUsize,
}

impl fmt::Debug for Cpus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cpus")
            .field("cpu", &self.cpu)
            .finish_non_exhaustive()
    }
}

// One thread uses all of it, so every access can be relaxed.
const ONE_THREAD: Ordering = Ordering::Relaxed;

/// How often one operation may wait between two tries of its own.
const PATIENCE: usize = 10_000;

impl Cpus {
    /// CPU 0 runs, outside any interrupt.
    pub(super) fn new() -> Self {
        MASKED.set(0);
        INTERRUPT.set(false);
        Self {
            cpu: AtomicUsize::new(0),
            pinned: AtomicUsize::new(0),
            bound: AtomicUsize::new(0),
            waits: AtomicUsize::new(0),
            ticks: AtomicUsize::new(0),
        }
    }

    /// The CPU that runs now.
    pub(super) fn here(&self) -> usize {
        self.cpu.load(ONE_THREAD)
    }

    /// From now on `cpu` runs.
    pub(super) fn switch_to(&self, cpu: usize) {
        self.cpu.store(cpu, ONE_THREAD);
    }

    /// From now on the running CPU is in an interrupt, or no longer.
    pub(super) fn set_interrupt(&self, interrupt: bool) {
        INTERRUPT.set(interrupt);
    }

    /// Is the running CPU in an interrupt?
    pub(super) fn is_in_interrupt(&self) -> bool {
        INTERRUPT.get()
    }

    /// A new operation begins, with new patience.
    pub(super) fn begin_operation(&self) {
        self.waits.store(0, ONE_THREAD);
    }

    /// Nothing is masked and nobody pinned?
    pub(super) fn is_at_rest(&self) -> bool {
        MASKED.get() == 0 && self.pinned.load(ONE_THREAD) == 0
    }

    /// May the caller sleep now?
    pub(super) fn may_sleep(&self) -> bool {
        self.is_at_rest() && !self.is_in_interrupt()
    }

    /// Runs `work`; `events` is called at every moment where something may happen meanwhile.
    pub(super) fn with_events<R>(events: &dyn Fn(Moment), work: impl FnOnce() -> R) -> R {
        struct Undo(Option<Events>);
        impl Drop for Undo {
            fn drop(&mut self) {
                EVENTS.set(self.0);
            }
        }
        let events = NonNull::from(events);
        // SAFETY: a longer lifetime of the same pointer; `events-in-scope`: it is taken out again,
        // by `Undo`, before the borrow ends.
        let events = unsafe {
            core::mem::transmute::<NonNull<dyn Fn(Moment)>, NonNull<dyn Fn(Moment)>>(events)
        };
        let _undo = Undo(EVENTS.replace(Some(Events(events))));
        work()
    }

    /// Something may happen now.
    fn moment(&self) {
        let moment = if self.pinned.load(ONE_THREAD) > 0 {
            Moment::Pinned
        } else if self.bound.load(ONE_THREAD) > 0 {
            Moment::Bound
        } else {
            Moment::Free
        };
        happens(moment);
    }
}

impl Platform for Cpus {
    fn cpu(&self) -> usize {
        self.moment();
        self.here()
    }

    fn pin(&self) -> usize {
        self.moment();
        self.pinned.fetch_add(1, ONE_THREAD);
        self.here()
    }

    fn unpin(&self) {
        let pinned = self.pinned.fetch_sub(1, ONE_THREAD);
        assert!(pinned > 0, "unpinned, but not pinned");
        self.moment();
    }

    fn in_interrupt(&self) -> bool {
        self.moment();
        self.is_in_interrupt()
    }

    fn mask_interrupts(&self) -> InterruptState {
        self.moment();
        InterruptState(MASKED.replace(MASKED.get() + 1))
    }

    fn restore_interrupts(&self, found: InterruptState) {
        let masked = MASKED.get();
        MASKED.set(masked - 1);
        assert_eq!(masked, found.0 + 1, "interrupts restored out of order");
        self.moment();
    }

    fn run_on(&self, cpu: usize, work: &mut dyn FnMut()) -> bool {
        assert!(self.may_sleep(), "asks another CPU, but may not sleep");
        let here = self.cpu.swap(cpu, ONE_THREAD);
        self.bound.fetch_add(1, ONE_THREAD);
        work();
        self.bound.fetch_sub(1, ONE_THREAD);
        self.cpu.store(here, ONE_THREAD);
        true
    }

    fn relax(&self) {
        let waits = self.waits.fetch_add(1, ONE_THREAD);
        assert!(
            waits < PATIENCE,
            "one thread waits for nobody: a lock was not given up"
        );
    }

    fn ticks(&self) -> u64 {
        self.ticks.fetch_add(1, ONE_THREAD) as u64
    }
}
