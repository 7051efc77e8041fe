//! A task's own stack: code that can be left anywhere and gone on with later.

use core::cell::RefCell;
use core::fmt;

use corosensei::stack::DefaultStack;
use corosensei::{Coroutine, CoroutineResult, Yielder};

/// Bytes of a task's stack. The host gives memory only to what is touched of it.
const STACK_BYTES: usize = 256 << 10;

/// Stacks that a host thread keeps for later.
const STACKS_KEPT: usize = 600;

thread_local! {
    static STACKS: RefCell<Vec<DefaultStack>> = const { RefCell::new(Vec::new()) };
}

/// What a fiber leaves itself by. Invariant `exit-on-stack`: it lies on the fiber's own stack and
/// lives as long as its body runs.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Exit(*const Yielder<(), ()>);

impl Exit {
    /// Leaves the fiber; returns when it is gone on with.
    ///
    /// # Safety
    /// Called on the fiber that this is the exit of.
    pub(crate) unsafe fn leave(self) {
        // SAFETY: by `exit-on-stack`: the caller is that body.
        unsafe { (*self.0).suspend(()) }
    }
}

/// How a turn of a fiber ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Turn {
    /// It has left itself, and can be gone on with.
    Left,
    /// It is done.
    Done,
}

/// A body on a stack of its own.
pub(crate) struct Fiber {
    inner: Coroutine<(), (), ()>,
}

impl Fiber {
    /// A body that has not begun. It is told its exit first.
    ///
    /// # Safety
    /// What the body borrows outlives the fiber: it is run to its end or
    /// [abandoned](Fiber::abandon) before.
    pub(crate) unsafe fn new<'a>(body: Box<dyn FnOnce(Exit) + 'a>) -> Self {
        // SAFETY: only a lifetime is changed, and the caller answers for it.
        let body: Box<dyn FnOnce(Exit) + 'static> = unsafe { core::mem::transmute(body) };
        let kept = STACKS.with_borrow_mut(Vec::pop);
        let stack = kept.unwrap_or_else(|| {
            DefaultStack::new(STACK_BYTES).expect("the host has room for a task's stack")
        });
        Self {
            inner: Coroutine::with_stack(stack, move |exit, ()| {
                body(Exit(core::ptr::from_ref(exit)));
            }),
        }
    }

    /// Goes on with it, until it leaves itself or is done. A panic of the body comes out here.
    pub(crate) fn go_on(&mut self) -> Turn {
        match self.inner.resume(()) {
            CoroutineResult::Yield(()) => Turn::Left,
            CoroutineResult::Return(()) => Turn::Done,
        }
    }

    /// Ends it. What is on its stack is forgotten, not dropped, unless it is done.
    pub(crate) fn abandon(mut self) {
        if self.inner.started() && !self.inner.done() {
            // SAFETY: what its stack owns is leaked. Nothing else refers to the stack: the machine
            // has ended, and with it all that tasks left of themselves in wait queues.
            unsafe { self.inner.force_reset() };
        }
        if self.inner.done() {
            let stack = self.inner.into_stack();
            STACKS.with_borrow_mut(|stacks| {
                if stacks.len() < STACKS_KEPT {
                    stacks.push(stack);
                }
            });
        }
    }
}

impl fmt::Debug for Fiber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Fiber")
    }
}

#[cfg(test)]
mod tests {
    use core::cell::Cell;

    use super::*;

    #[test]
    fn goes_on_where_it_left() {
        let seen = Cell::new(0);
        // SAFETY: run to its end below.
        let mut fiber = unsafe {
            Fiber::new(Box::new(|exit: Exit| {
                seen.set(1);
                // SAFETY: this is its body.
                exit.leave();
                seen.set(2);
            }))
        };
        assert_eq!((fiber.go_on(), seen.get()), (Turn::Left, 1));
        assert_eq!((fiber.go_on(), seen.get()), (Turn::Done, 2));
        fiber.abandon();
        assert!(STACKS.with_borrow(Vec::len) > 0);
    }
}
