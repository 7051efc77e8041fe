//! Yardsticks: the cost of the machine itself, measured by the same loop in the same rounds, so
//! that a goal can be stated relative to them and applies to other machines too. Neither has memory
//! that could be full, scattered or locked: each thread has one of its own.

use brickyard::sync::{AtomicUsize, Ordering};
use brickyard::{Frame, Order};
use brickyard_run::named;

use super::subject::{Handle, Subject};

named! {
    /// The yardsticks by name.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum Yardstick {
        /// An allocation is one atomic fetch-add on a word that no other thread accesses, a free
        /// does nothing: the pair costs exactly one uncontended fetch-add.
        FetchAdd => "fetch-add",
        /// A bare array of frame numbers and the index of its top, without any lock: an allocation
        /// reads a number, a free writes one. The floor. It has no rows where one thread frees what
        /// another has allocated.
        ArrayStack => "array-stack",
    }
}

/// See [`Yardstick::FetchAdd`].
#[derive(Debug)]
pub(crate) struct FetchAdd;

/// A thread's own word, alone in two neighbouring cache lines.
#[derive(Debug)]
#[repr(align(128))]
pub(crate) struct Counter(AtomicUsize);

impl Subject for FetchAdd {
    type Handle<'s> = Counter;

    fn handle(&self, _order: Order) -> Counter {
        Counter(AtomicUsize::new(0))
    }
}

impl Handle for Counter {
    #[inline]
    fn alloc(&mut self) -> Option<Frame> {
        // Relaxed: the counter publishes no other data; only the instruction's cost matters.
        Some(Frame::new(self.0.fetch_add(1, Ordering::Relaxed)))
    }

    #[inline]
    fn free(&mut self, _block: Frame) {}
}

/// See [`Yardstick::ArrayStack`]. Each thread's stack has so many frames.
#[derive(Debug)]
pub(crate) struct ArrayStack(pub(crate) usize);

/// A thread's own stack: `frames[..top]` are on it.
#[derive(Debug)]
pub(crate) struct Stack {
    frames: Box<[Frame]>,
    top: usize,
}

impl Subject for ArrayStack {
    type Handle<'s> = Stack;

    fn handle(&self, _order: Order) -> Stack {
        Stack {
            frames: (0..self.0).map(Frame::new).collect(),
            top: self.0,
        }
    }
}

impl Handle for Stack {
    #[inline]
    fn alloc(&mut self) -> Option<Frame> {
        let top = self.top.checked_sub(1)?;
        let frame = *self.frames.get(top)?;
        self.top = top;
        Some(frame)
    }

    #[inline]
    fn free(&mut self, block: Frame) {
        if let Some(place) = self.frames.get_mut(self.top) {
            *place = block;
            self.top += 1;
        }
    }
}
