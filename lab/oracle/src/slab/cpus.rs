//! CPUs on one thread, whose tasks are interrupted, preempted and moved wherever a platform allows
//! that.
//!
//! Every call of the platform is a moment for events: while nothing is masked an interrupt may
//! come; while nothing is pinned another task may run, and the caller may be moved to another CPU.
//! The driver decides on the event ([`Cpus::with_events`]). So code that reads and then changes a
//! CPU's words in two steps, unprotected, is detected; and if a lock is held across such a moment,
//! the event may wait for it forever, which is detected too.

use core::cell::Cell;
use core::fmt;
use core::ptr::NonNull;
use core::sync::atomic::{AtomicUsize, Ordering};

use brickyard::{InterruptState, Platform};

/// What events may happen at a moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Moment {
    /// An interrupt; no other task runs on this CPU.
    Pinned,
    /// Any event, but the caller stays on this CPU.
    Bound,
    /// Any event.
    Free,
}

/// The function called at each moment, while [`Cpus::with_events`] runs.
#[derive(Clone, Copy)]
struct Events(NonNull<dyn Fn(Moment)>);

thread_local! {
    // Invariant `events-in-scope`: set only while the frame of `with_events` that set it is on this
    // thread's stack.
    static EVENTS: Cell<Option<Events>> = const { Cell::new(None) };
    // Nesting of masks, and whether an interrupt is running: thread-local, so that locks can read
    // it too.
    static MASKED: Cell<usize> = const { Cell::new(0) };
    static INTERRUPT: Cell<bool> = const { Cell::new(false) };
}

/// Marks a moment while a lock is held: an interrupt may come.
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

/// A machine of several CPUs, of which one runs at a time; nested runs are interrupts and
/// preemptions. One per thread.
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

/// How often one operation may call `relax`.
const PATIENCE: usize = 10_000;

impl Cpus {
    /// Makes a machine that runs CPU 0, outside any interrupt.
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

    /// Returns the running CPU.
    pub(super) fn here(&self) -> usize {
        self.cpu.load(ONE_THREAD)
    }

    /// Makes `cpu` the running CPU.
    pub(super) fn switch_to(&self, cpu: usize) {
        self.cpu.store(cpu, ONE_THREAD);
    }

    /// Begins or ends an interrupt on the running CPU.
    pub(super) fn set_interrupt(&self, interrupt: bool) {
        INTERRUPT.set(interrupt);
    }

    /// Returns true if the running CPU is in an interrupt.
    pub(super) fn is_in_interrupt(&self) -> bool {
        INTERRUPT.get()
    }

    /// Begins a new operation: resets the count of waits.
    pub(super) fn begin_operation(&self) {
        self.waits.store(0, ONE_THREAD);
    }

    /// Returns true if nothing is masked and no caller pinned.
    pub(super) fn is_at_rest(&self) -> bool {
        MASKED.get() == 0 && self.pinned.load(ONE_THREAD) == 0
    }

    /// Returns true if the caller may sleep now.
    pub(super) fn may_sleep(&self) -> bool {
        self.is_at_rest() && !self.is_in_interrupt()
    }

    /// Runs `work`, with `events` called at every moment at which an event may happen.
    pub(super) fn with_events<R>(events: &dyn Fn(Moment), work: impl FnOnce() -> R) -> R {
        struct Undo(Option<Events>);
        impl Drop for Undo {
            fn drop(&mut self) {
                EVENTS.set(self.0);
            }
        }
        let events = NonNull::from(events);
        // SAFETY: a longer lifetime of the same pointer; `events-in-scope`: `Undo` takes it out
        // again before the borrow ends.
        let events = unsafe {
            core::mem::transmute::<NonNull<dyn Fn(Moment)>, NonNull<dyn Fn(Moment)>>(events)
        };
        let _undo = Undo(EVENTS.replace(Some(Events(events))));
        work()
    }

    /// Marks a moment at which events may happen.
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
        assert!(self.may_sleep(), "`run_on` by a caller that may not sleep");
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
            "a wait without end on one thread: a lock was not released"
        );
    }

    fn ticks(&self) -> u64 {
        self.ticks.fetch_add(1, ONE_THREAD) as u64
    }
}
