//! A ring of addresses that passes objects from one sender to one receiver. A null entry is empty;
//! the sender fills entries, the receiver empties them, and neither reads the other's position. So
//! only the ring itself is shared.

use core::marker::PhantomData;
use core::ptr::null_mut;
use core::sync::atomic::{AtomicPtr, Ordering};

use brickyard::Platform;
use brickyard_arena::Threads;

use brickyard_measure::objects::object::Object;

/// The number of entries: 8 KiB of addresses.
const PLACES: usize = 1024;

#[derive(Debug)]
pub(crate) struct Ring(Box<[AtomicPtr<u8>]>);

impl Ring {
    pub(crate) fn new() -> Self {
        Self((0..PLACES).map(|_| AtomicPtr::new(null_mut())).collect())
    }

    /// Returns its two ends. They borrow it exclusively, so there are no others.
    pub(crate) fn ends(&mut self) -> (Sender<'_>, Receiver<'_>) {
        let receiver = Receiver {
            places: &self.0,
            next: 0,
            alone: PhantomData,
        };
        (
            Sender {
                places: &self.0,
                next: 0,
            },
            receiver,
        )
    }
}

/// The sending end.
#[derive(Debug)]
pub(crate) struct Sender<'r> {
    places: &'r [AtomicPtr<u8>],
    next: usize,
}

impl Sender<'_> {
    /// Sends an object; waits for an empty entry if there is none.
    #[inline(always)]
    pub(crate) fn send(&mut self, object: Object) {
        let place = &self.places[self.next % PLACES];
        self.next += 1;
        // Acquire pairs with the release of `try_receive`: the entry is written after it was read.
        while !place.load(Ordering::Acquire).is_null() {
            Threads.relax();
        }
        // Release pairs with the acquire of `try_receive`, which publishes the object's contents.
        place.store(object.into_raw(), Ordering::Release);
    }
}

/// The receiving end.
#[derive(Debug)]
pub(crate) struct Receiver<'r> {
    places: &'r [AtomicPtr<u8>],
    next: usize,
    /// Makes the type `Send` but not `Sync`.
    alone: PhantomData<core::cell::Cell<()>>,
}

impl Receiver<'_> {
    /// Returns the next object, if there is one.
    #[inline(always)]
    pub(crate) fn try_receive(&mut self) -> Option<Object> {
        let place = &self.places[self.next % PLACES];
        // Acquire and release pair with `send`'s.
        let object = place.load(Ordering::Acquire);
        if object.is_null() {
            return None;
        }
        place.store(null_mut(), Ordering::Release);
        self.next += 1;
        // SAFETY: `send` stored it as an object, and the entry is empty now, so it is made an
        // object only once.
        unsafe { Object::from_raw(object) }
    }

    /// Waits for the next object, and returns it.
    #[inline(always)]
    pub(crate) fn receive(&mut self) -> Object {
        loop {
            match self.try_receive() {
                Some(object) => return object,
                None => Threads.relax(),
            }
        }
    }
}
