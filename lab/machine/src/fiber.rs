//! A task's own stack: code that can be suspended anywhere and resumed later.

use core::cell::RefCell;
use core::fmt;

use corosensei::stack::DefaultStack;
use corosensei::{Coroutine, CoroutineResult, Yielder};

/// Bytes of a task's stack. The host backs only the pages that are touched.
const STACK_BYTES: usize = 256 << 10;

/// Stacks that a host thread keeps for reuse, at most.
const STACKS_KEPT: usize = 600;

thread_local! {
    static STACKS: RefCell<Vec<DefaultStack>> = const { RefCell::new(Vec::new()) };
}

/// A fiber's handle to suspend itself. Invariant `exit-on-stack`: it is on the fiber's own stack
/// and lives as long as its body runs.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Exit(*const Yielder<(), ()>);

impl Exit {
    /// Suspends the fiber; returns when it is resumed.
    ///
    /// # Safety
    /// The caller runs on the fiber that this is the exit of.
    pub(crate) unsafe fn suspend(self) {
        // SAFETY: by `exit-on-stack`: the caller is that body.
        unsafe { (*self.0).suspend(()) }
    }
}

/// How a call of [`Fiber::resume`] ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Turn {
    /// The fiber suspended itself, and can be resumed.
    Suspended,
    /// Its body has returned.
    Done,
}

/// A body with its own stack.
pub(crate) struct Fiber {
    inner: Coroutine<(), (), ()>,
}

impl Fiber {
    /// A fiber that has not begun. Its body is passed the fiber's exit.
    ///
    /// # Safety
    /// What the body borrows outlives the fiber, which is run to its end or
    /// [abandoned](Fiber::abandon) before the borrows end.
    pub(crate) unsafe fn new<'a>(body: Box<dyn FnOnce(Exit) + 'a>) -> Self {
        // SAFETY: only a lifetime is changed, and the caller guarantees it.
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

    /// Resumes the fiber until it suspends itself or is done. A panic of the body comes out here.
    pub(crate) fn resume(&mut self) -> Turn {
        match self.inner.resume(()) {
            CoroutineResult::Yield(()) => Turn::Suspended,
            CoroutineResult::Return(()) => Turn::Done,
        }
    }

    /// Ends the fiber. Unless it is done, what its stack owns is leaked, not dropped.
    pub(crate) fn abandon(mut self) {
        if self.inner.started() && !self.inner.done() {
            // SAFETY: what its stack owns is leaked. Nothing else refers to the stack: the machine
            // has ended, and with it all entries of tasks in wait queues.
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
    fn resumes_where_it_suspended_itself() {
        let seen = Cell::new(0);
        // SAFETY: run to its end below.
        let mut fiber = unsafe {
            Fiber::new(Box::new(|exit: Exit| {
                seen.set(1);
                // SAFETY: this is its body.
                exit.suspend();
                seen.set(2);
            }))
        };
        assert_eq!((fiber.resume(), seen.get()), (Turn::Suspended, 1));
        assert_eq!((fiber.resume(), seen.get()), (Turn::Done, 2));
        fiber.abandon();
        assert!(STACKS.with_borrow(Vec::len) > 0);
    }
}
