//! How an object finds its way from one thread to another: a ring of addresses with one sender and
//! one receiver. A place that is null is empty; the sender fills places, the receiver empties them,
//! and neither reads where the other is. So what is shared is the ring alone.

use core::marker::PhantomData;
use core::ptr::null_mut;
use core::sync::atomic::{AtomicPtr, Ordering};

use brickyard::Platform;
use brickyard_arena::Threads;

use super::objects::Object;

/// The places: 8 KiB of addresses.
const PLACES: usize = 1024;

#[derive(Debug)]
pub(crate) struct Ring(Box<[AtomicPtr<u8>]>);

impl Ring {
    pub(crate) fn new() -> Self {
        Self((0..PLACES).map(|_| AtomicPtr::new(null_mut())).collect())
    }

    /// Its two ends. They borrow it exclusively, so there are no others.
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

/// Where objects go in.
#[derive(Debug)]
pub(crate) struct Sender<'r> {
    places: &'r [AtomicPtr<u8>],
    next: usize,
}

impl Sender<'_> {
    /// Sends an object, and waits for a place where there is none.
    #[inline(always)]
    pub(crate) fn send(&mut self, object: Object) {
        let place = &self.places[self.next % PLACES];
        self.next += 1;
        // Acquire pairs with the release of `try_receive`: the place is written after it was read.
        while !place.load(Ordering::Acquire).is_null() {
            Threads.relax();
        }
        // Release pairs with the acquire of `try_receive`: the object comes as it was left.
        place.store(object.into_raw(), Ordering::Release);
    }
}

/// Where objects come out.
#[derive(Debug)]
pub(crate) struct Receiver<'r> {
    places: &'r [AtomicPtr<u8>],
    next: usize,
    /// It may be sent to another thread, not shared.
    alone: PhantomData<core::cell::Cell<()>>,
}

impl Receiver<'_> {
    /// The next object, if it is there.
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
        // SAFETY: `send` put it there as an object, and the place is empty now: nobody else makes
        // an object of it.
        unsafe { Object::from_raw(object) }
    }

    /// The next object; waits for it.
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
