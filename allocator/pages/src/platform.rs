//! The platform: what the allocator requires of the kernel, hypervisor or process that embeds it.

use core::ptr::NonNull;

use crate::Frame;

/// The state found by [`Platform::mask_interrupts`], for [`Platform::restore_interrupts`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InterruptState(pub usize);

/// What the allocator requires of its embedder. Every method is called often, and should take only
/// a few instructions.
///
/// The methods are safe to implement, but the allocator relies on them. A platform that lets two
/// CPUs into one pinned section makes the allocator hand out one frame twice.
pub trait Platform: Sync {
    /// Returns the CPU that runs the caller, counted from 0. If the caller is not pinned, the
    /// answer may be out of date at once.
    fn cpu(&self) -> usize;

    /// Keeps the caller running on its CPU until [`Platform::unpin`], and returns that CPU. The
    /// caller must be neither migrated nor preempted, since it may hold a magazine's lock. Pins
    /// nest. Where threads own slots, a thread counts as a CPU and nothing need be done.
    #[inline]
    fn pin(&self) -> usize {
        self.cpu()
    }

    /// Ends a [`Platform::pin`].
    #[inline]
    fn unpin(&self) {}

    /// Returns true if the caller runs in an interrupt of any kind, and so may have interrupted
    /// other code on this CPU. It is then served without this CPU's stash, and waits for no other
    /// CPU. An interrupt that cannot be masked may request and free frames like any other. It must
    /// do nothing that masks interrupts: change no ranges, and use no slabs for interrupts.
    ///
    /// A task that has only masked interrupts need not count as one, and keeps its stash if it does
    /// not. Its requests must then be [`Context::Atomic`](crate::Context::Atomic), and it must not
    /// allocate from slabs of tasks, since both may otherwise wait for another CPU.
    #[inline]
    fn in_interrupt(&self) -> bool {
        false
    }

    /// Masks interrupts on this CPU. Calls nest: each is undone with the state that it returned.
    #[inline]
    fn mask_interrupts(&self) -> InterruptState {
        InterruptState(0)
    }

    /// Restores the state that [`Platform::mask_interrupts`] returned.
    #[inline]
    fn restore_interrupts(&self, _found: InterruptState) {}

    /// Called while waiting for another CPU. Execute a pause instruction, or yield the virtual CPU
    /// or the thread.
    #[inline]
    fn relax(&self) {
        brickyard_sync::spin_hint();
    }

    /// Runs `work` on `cpu` (by an interrupt sent there) and waits for its end. If that CPU is
    /// known to be outside the allocator (offline, stopped), it may run `work` here instead.
    /// Returns false, without running `work`, if neither can be done.
    ///
    /// A front that masks interrupts (per-CPU lists) accepts an interrupt for this. A stash does
    /// not mask them, so for a stash `work` must run as a task on that CPU: in an interrupt it
    /// leaves the stash alone.
    ///
    /// Called only by callers that may sleep, with no lock held and interrupts not masked by the
    /// allocator. So two CPUs can ask each other at the same time. The caller is not pinned, so
    /// `cpu` may be its own; then `work` can run here and now.
    fn run_on(&self, cpu: usize, work: &mut dyn FnMut()) -> bool {
        let _ = (cpu, work);
        false
    }

    /// Returns a clock for wait and hold times. The unit is free, but the value never falls. Called
    /// only where a zone measures its lock.
    #[inline]
    fn ticks(&self) -> u64 {
        0
    }

    /// Returns the task or thread that runs the caller, for reports; 0 if unknown.
    #[inline]
    fn task(&self) -> u64 {
        0
    }

    /// Returns the address at which the caller can reach a frame, if it is mapped. The page
    /// allocator itself never calls this; slabs and zeroing do.
    #[inline]
    fn address(&self, _frame: Frame) -> Option<NonNull<u8>> {
        None
    }
}

/// Implements the platform for what wraps one: passes each call on to it.
#[doc(hidden)]
#[macro_export]
macro_rules! pass_on_platform {
    ($of:ident => $to:expr, impl<$($life:lifetime,)? $inner:ident> for $wrapper:ty) => {
        impl<$($life,)? $inner: $crate::Platform> $crate::Platform for $wrapper {
            #[inline]
            fn cpu(&$of) -> usize {
                $to.cpu()
            }

            #[inline]
            fn pin(&$of) -> usize {
                $to.pin()
            }

            #[inline]
            fn unpin(&$of) {
                $to.unpin();
            }

            #[inline]
            fn in_interrupt(&$of) -> bool {
                $to.in_interrupt()
            }

            #[inline]
            fn mask_interrupts(&$of) -> $crate::InterruptState {
                $to.mask_interrupts()
            }

            #[inline]
            fn restore_interrupts(&$of, found: $crate::InterruptState) {
                $to.restore_interrupts(found);
            }

            #[inline]
            fn relax(&$of) {
                $to.relax();
            }

            #[inline]
            fn run_on(&$of, cpu: usize, work: &mut dyn FnMut()) -> bool {
                $to.run_on(cpu, work)
            }

            #[inline]
            fn ticks(&$of) -> u64 {
                $to.ticks()
            }

            #[inline]
            fn task(&$of) -> u64 {
                $to.task()
            }

            #[inline]
            fn address(&$of, frame: $crate::Frame) -> Option<core::ptr::NonNull<u8>> {
                $to.address(frame)
            }
        }
    };
}

pass_on_platform!(self => (**self), impl<P> for &P);

/// One CPU, no interrupts, no clock: for boot code, tests, or a single-threaded program.
#[derive(Debug, Clone, Copy, Default)]
pub struct OneCpu;

impl Platform for OneCpu {
    #[inline]
    fn cpu(&self) -> usize {
        0
    }

    /// Runs `work` here: the only CPU is the caller's own.
    fn run_on(&self, _cpu: usize, work: &mut dyn FnMut()) -> bool {
        work();
        true
    }
}

/// Keeps interrupts masked as long as this value lives.
#[derive(Debug)]
pub struct MaskGuard<'p, P: Platform> {
    platform: &'p P,
    found: InterruptState,
}

impl<'p, P: Platform> MaskGuard<'p, P> {
    /// Masks interrupts.
    #[inline]
    pub fn new(platform: &'p P) -> Self {
        Self {
            platform,
            found: platform.mask_interrupts(),
        }
    }
}

impl<P: Platform> Drop for MaskGuard<'_, P> {
    #[inline]
    fn drop(&mut self) {
        self.platform.restore_interrupts(self.found);
    }
}

/// Keeps the caller on its CPU as long as this value lives.
#[derive(Debug)]
pub struct PinGuard<'p, P: Platform> {
    platform: &'p P,
    /// The CPU that the caller is kept on.
    pub cpu: usize,
}

impl<'p, P: Platform> PinGuard<'p, P> {
    /// Pins the caller to its CPU.
    #[inline]
    pub fn new(platform: &'p P) -> Self {
        Self {
            platform,
            cpu: platform.pin(),
        }
    }

    /// Waits a little for another CPU.
    pub fn relax(&self) {
        self.platform.relax();
    }
}

impl<P: Platform> Drop for PinGuard<'_, P> {
    #[inline]
    fn drop(&mut self) {
        self.platform.unpin();
    }
}
