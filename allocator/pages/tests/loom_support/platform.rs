//! The modelled CPUs.

use core::cell::{Cell, RefCell};

use brickyard::Platform;
use brickyard::sync::{AtomicU32, SlotAccess};
use core::sync::atomic::Ordering;
use loom::sync::{Mutex, MutexGuard};
use loom::thread::{self, JoinHandle};

/// What becomes of a thread that looks in vain, as a zone's last resort does and whoever waits for
/// a slot or a lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Looks {
    /// After so many looks, those of a model before its threads start included, loom tries no other
    /// schedules for what follows. A look in vain changes nothing, so what happens after many is
    /// what happens after a few; but that it ever ends is not proved.
    Cut(usize),
    /// Others go on meanwhile, and a request that looks more often fails the model. From the first
    /// look on no other schedules are tried for the rest of the run, but it goes on to its end.
    AtMost(usize),
    /// The same, and whoever was interrupted to let this thread run stands still as long as it
    /// looks.
    Alone(usize),
}

loom::thread_local! {
    static CPU: Cell<usize> = Cell::new(0);
    static LOOKED: Cell<usize> = Cell::new(0);
    // How often somebody was in a slot.
    static SHUT_OUT: Cell<usize> = Cell::new(0);
    static IN_INTERRUPT: Cell<bool> = Cell::new(false);
    static PINS: Cell<usize> = Cell::new(0);
    static HELD: RefCell<Option<MutexGuard<'static, ()>>> = RefCell::new(None);
}

std::thread_local! {
    // Of the model that runs on this thread of the system.
    pub(crate) static LOOKS: Cell<Looks> = const { Cell::new(Looks::Cut(1)) };
}

/// Each modelled thread runs on the CPU that it says.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Modelled;

impl Platform for Modelled {
    fn cpu(&self) -> usize {
        CPU.with(Cell::get)
    }

    fn in_interrupt(&self) -> bool {
        IN_INTERRUPT.with(Cell::get)
    }

    fn relax(&self) {
        relax();
    }
}

pub(crate) fn relax() {
    let looked = LOOKED.with(|looked| looked.replace(looked.get() + 1));
    match LOOKS.get() {
        Looks::Cut(most) => {
            if looked >= most {
                loom::skip_branch();
            }
            thread::yield_now();
        }
        Looks::AtMost(most) => {
            count(looked, most);
            thread::yield_now();
        }
        Looks::Alone(most) => count(looked, most),
    }
}

fn count(looked: usize, most: usize) {
    assert!(looked < most, "more than {most} looks");
    if looked == 0 {
        loom::skip_branch();
    }
}

/// A request begins: its looks are counted from here on, where they are counted.
pub(crate) fn look_anew() {
    if !matches!(LOOKS.get(), Looks::Cut(_)) {
        LOOKED.with(|looked| looked.set(0));
    }
}

pub(crate) fn move_to(cpu: usize) {
    CPU.with(|own| own.set(cpu));
}

/// Does something as an interrupt would.
pub(crate) fn in_interrupt<T>(work: impl FnOnce() -> T) -> T {
    IN_INTERRUPT.with(|inside| inside.set(true));
    let done = work();
    IN_INTERRUPT.with(|inside| inside.set(false));
    done
}

/// Models run on at most so many CPUs.
pub(crate) const CPUS: usize = 3;

/// The stack of a modelled thread, in words: stashes are large where each of their words is a model
/// of one.
pub(crate) const STACK: usize = 1 << 16;

/// Starts a thread on `cpu`.
pub(crate) fn on_cpu<T: Send + 'static>(
    cpu: usize,
    work: impl FnOnce() -> T + Send + 'static,
) -> JoinHandle<T> {
    let other = thread::Builder::new().stack_size(STACK);
    let other = other.spawn(move || {
        move_to(cpu);
        work()
    });
    other.unwrap()
}

/// [`Shared`](brickyard::sync::Shared) with a compare-and-swap in place of its exchange. Loom
/// does not know that the 1 which a vain exchange puts in the place of a 1 comes before the 0 of
/// who goes out, and would let the slot be full for ever.
#[derive(Debug)]
pub(crate) struct Lent(AtomicU32);

impl Lent {
    fn go_in(&self) -> bool {
        let (acquire, relaxed) = (Ordering::Acquire, Ordering::Relaxed);
        let inside = self.0.compare_exchange(0, 1, acquire, relaxed).is_ok();
        if !inside && let Looks::Cut(most) = LOOKS.get() {
            // As after a look: what follows is what a CPU does that has no slot.
            if SHUT_OUT.with(|out| out.replace(out.get() + 1)) >= most {
                loom::skip_branch();
            }
        }
        inside
    }
}

// SAFETY: whoever turned the word from 0 to 1 is inside, and only `leave` turns it back.
unsafe impl SlotAccess for Lent {
    const EMPTY: Self = Self(AtomicU32::new(0));
    const LENDS: bool = true;

    fn try_enter(&self) -> bool {
        self.go_in()
    }

    fn try_visit(&self) -> bool {
        self.go_in()
    }

    unsafe fn leave(&self) {
        self.0.store(0, Ordering::Release);
    }
}

loom::lazy_static! {
    // One task at a time is pinned to a CPU.
    static ref RUNNING: [Mutex<()>; CPUS] = [Mutex::new(()), Mutex::new(()), Mutex::new(())];
}

/// CPUs whose slots nobody else enters: a task that is pinned has its CPU to itself, and what is to
/// run on another one waits until nobody is pinned there.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Exclusively;

fn run_alone(cpu: usize) {
    let guard = RUNNING[cpu].lock().unwrap();
    HELD.with(|held| *held.borrow_mut() = Some(guard));
}

fn let_others_run() {
    let guard = HELD.with(|held| held.borrow_mut().take());
    if std::thread::panicking() {
        // Another switch between threads would bury the report of the first panic.
        core::mem::forget(guard);
    }
}

impl Platform for Exclusively {
    fn cpu(&self) -> usize {
        CPU.with(Cell::get)
    }

    fn pin(&self) -> usize {
        let cpu = self.cpu();
        if PINS.with(|pins| pins.replace(pins.get() + 1)) == 0 {
            run_alone(cpu);
        }
        cpu
    }

    fn unpin(&self) {
        if PINS.with(|pins| pins.replace(pins.get() - 1)) == 1 {
            let_others_run();
        }
    }

    fn in_interrupt(&self) -> bool {
        IN_INTERRUPT.with(Cell::get)
    }

    fn relax(&self) {
        relax();
    }

    fn run_on(&self, cpu: usize, work: &mut dyn FnMut()) -> bool {
        assert_eq!(PINS.with(Cell::get), 0, "asked for with nothing held");
        let own = self.cpu();
        run_alone(cpu);
        move_to(cpu);
        // As the task that runs there it is pinned.
        PINS.with(|pins| pins.set(1));
        work();
        PINS.with(|pins| pins.set(0));
        move_to(own);
        let_others_run();
        true
    }
}
