//! One thread as several CPUs, of which another does something before a chosen step of the one that
//! asks.

use core::cell::{Cell, RefCell};

use brickyard::{InterruptState, Mobility, Platform, Request};

pub(crate) const PAGE: Request = Request::page(Mobility::Movable);

/// What another CPU does before the n-th pin or mask from here on.
pub(crate) type Meanwhile = (usize, Box<dyn FnOnce()>);

thread_local! {
    pub(crate) static CPU: Cell<usize> = const { Cell::new(0) };
    /// How often somebody waited.
    pub(crate) static LOOKS: Cell<u64> = const { Cell::new(0) };
    pub(crate) static OTHER: RefCell<Option<Meanwhile>> = const { RefCell::new(None) };
    /// What it does at each pin and mask.
    pub(crate) static ALWAYS: RefCell<Option<Box<dyn Fn()>>> = const { RefCell::new(None) };
    /// How often the CPU with this number was asked to run something.
    pub(crate) static ASKED: Cell<[u64; 4]> = const { Cell::new([0; 4]) };
}

/// What the other CPU does now, if it is time.
pub(crate) fn due() -> Option<Box<dyn FnOnce()>> {
    let due = OTHER.with_borrow_mut(|other| match other {
        Some((0, _)) => other.take(),
        Some((left, _)) => {
            *left -= 1;
            None
        }
        None => None,
    });
    due.map(|(_, work)| work)
}

fn meanwhile() {
    let here = CPU.get();
    if let Some(work) = due() {
        work();
    }
    if let Some(work) = ALWAYS.take() {
        work();
        ALWAYS.set(Some(work));
    }
    CPU.set(here);
}

/// No CPU can be made to run anything.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Here;
impl Platform for Here {
    fn cpu(&self) -> usize {
        CPU.get()
    }
    fn pin(&self) -> usize {
        meanwhile();
        CPU.get()
    }
    fn mask_interrupts(&self) -> InterruptState {
        meanwhile();
        InterruptState(0)
    }
    fn relax(&self) {
        LOOKS.set(LOOKS.get() + 1);
        assert!(LOOKS.get() < 1 << 22, "it waits without end");
    }
    // `Threads` waits for a second here, for a visitor that stands still.
    fn run_on(&self, cpu: usize, _: &mut dyn FnMut()) -> bool {
        let mut asked = ASKED.get();
        asked[cpu] += 1;
        ASKED.set(asked);
        false
    }
}
