//! Who called: return addresses.

use core::ffi::c_void;
use core::mem::MaybeUninit;
use core::ptr::from_ref;

use crate::sampled;
use crate::walk::Walk;

/// So many return addresses are kept of a stack.
pub(crate) const DEPTH: usize = 48;

/// Return addresses, the innermost first.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Stack {
    frames: [usize; DEPTH],
    depth: usize,
}

impl Stack {
    /// Returns an empty one.
    pub(crate) const EMPTY: Self = Self {
        frames: [0; DEPTH],
        depth: 0,
    };

    /// Returns who called the function in whose frame `mark` lies: without the frames of the
    /// library that come first, where the heap is one.
    pub(crate) fn of_caller<T>(mark: &T) -> Self {
        Self::above(from_ref(mark).addr())
    }

    #[inline(never)]
    fn above(mark: usize) -> Self {
        let mut stack = Self::EMPTY;
        let mut walk = Walk::here();
        while walk.frame() <= mark || is_own(walk.instruction()) {
            if walk.step().is_none() {
                return stack;
            }
        }
        walk.leaves_heap();
        stack.take(&mut walk);
        stack
    }

    /// Makes it the stack that a signal has interrupted, by a walk that is not on the handler's.
    ///
    /// # Safety
    /// `context` is what the system passes to a handler.
    pub(crate) unsafe fn interrupted(
        &mut self,
        walk: &mut MaybeUninit<Walk>,
        context: *const c_void,
    ) {
        self.depth = 0;
        // SAFETY: passed on.
        self.take(walk.write(unsafe { Walk::interrupted(context) }));
    }

    /// Adds the addresses of the rest of a walk.
    fn take(&mut self, walk: &mut Walk) {
        while self.depth < DEPTH && walk.instruction() != 0 {
            self.frames[self.depth] = walk.instruction();
            self.depth += 1;
            if walk.step().is_none() {
                return;
            }
        }
    }

    /// Returns the addresses, the innermost first.
    pub(crate) fn frames(&self) -> &[usize] {
        &self.frames[..self.depth]
    }

    /// Makes it one of these addresses.
    pub(crate) fn set(&mut self, frames: impl Iterator<Item = usize>) {
        self.depth = 0;
        for frame in frames.take(DEPTH) {
            self.frames[self.depth] = frame;
            self.depth += 1;
        }
    }
}

/// Returns true if an address lies in the library that holds the heap. Where the program itself
/// does, that would tell nothing apart.
fn is_own(address: usize) -> bool {
    sampled().is_some_and(|sampled| sampled.is_library && sampled.own.contains(address))
}
