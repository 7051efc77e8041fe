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
}

/// Lets the other CPU do what it does now, if it is time.
fn meanwhile() {
    let due = OTHER.with_borrow_mut(|other| match other {
        Some((0, _)) => other.take(),
        Some((left, _)) => {
            *left -= 1;
            None
        }
        None => None,
    });
    if let Some((_, work)) = due {
        let here = CPU.get();
        work();
        CPU.set(here);
    }
}

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
    }
}
