//! The platform: what the allocator asks of the kernel, hypervisor or process that it is embedded
//! in.

use core::ptr::NonNull;

use crate::Frame;

/// What [`Platform::mask_interrupts`] found, to be given back to [`Platform::restore_interrupts`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InterruptState(pub usize);

/// What the allocator asks of its embedder. Every method is called often, and should be a few
/// instructions.
///
/// The methods are safe to write, but the allocator believes them: a platform that lets two CPUs
/// into one pinned section makes it hand out one frame twice.
pub trait Platform: Sync {
    /// The CPU that runs the caller, counted from 0. Where the caller is not pinned it may be out
    /// of date at once.
    fn cpu(&self) -> usize;

    /// Keeps the caller running on its CPU until [`Platform::unpin`], and says which CPU that is:
    /// it is neither moved nor preempted, since it may hold a magazine's lock. Pins nest. Where
    /// threads own slots, a thread is a CPU and nothing is to be done.
    #[inline]
    fn pin(&self) -> usize {
        self.cpu()
    }

    /// Ends a [`Platform::pin`].
    #[inline]
    fn unpin(&self) {}

    /// Does the caller run in an interrupt, or with interrupts masked? Then it may have interrupted
    /// anything.
    #[inline]
    fn in_interrupt(&self) -> bool {
        false
    }

    /// Keeps interrupts away from this CPU; nests by what it returns.
    #[inline]
    fn mask_interrupts(&self) -> InterruptState {
        InterruptState(0)
    }

    /// Back to what [`Platform::mask_interrupts`] found.
    #[inline]
    fn restore_interrupts(&self, _found: InterruptState) {}

    /// Called while waiting for another CPU: a pause instruction, a yield of the virtual CPU or of
    /// the thread.
    #[inline]
    fn relax(&self) {
        brickyard_sync::spin_hint();
    }

    /// Runs `work` on `cpu` (by an interrupt sent there) and waits for its end, or runs it here
    /// while that CPU is known to be outside the allocator (offline, stopped). False, and nothing
    /// run, where neither can be done.
    ///
    /// A front that masks interrupts (per-CPU lists) takes an interrupt for it. A stash masks none,
    /// so there `work` must run as a task on that CPU: in an interrupt it leaves the stash alone.
    ///
    /// Asked only by callers that may sleep, with no lock held and interrupts not masked by the
    /// allocator, so that two CPUs can ask each other at once.
    fn run_on(&self, cpu: usize, work: &mut dyn FnMut()) -> bool {
        let _ = (cpu, work);
        false
    }

    /// A clock for wait and hold times, in any unit that only grows. Asked only where a zone
    /// measures its lock.
    #[inline]
    fn ticks(&self) -> u64 {
        0
    }

    /// The task or thread that runs the caller, for reports; 0 where nobody can tell.
    #[inline]
    fn task(&self) -> u64 {
        0
    }

    /// Where the caller can reach a frame, if it is mapped. The page allocator itself never asks;
    /// slabs and zeroing do.
    #[inline]
    fn address(&self, _frame: Frame) -> Option<NonNull<u8>> {
        None
    }
}

impl<P: Platform> Platform for &P {
    #[inline]
    fn cpu(&self) -> usize {
        (**self).cpu()
    }

    #[inline]
    fn pin(&self) -> usize {
        (**self).pin()
    }

    #[inline]
    fn unpin(&self) {
        (**self).unpin();
    }

    #[inline]
    fn in_interrupt(&self) -> bool {
        (**self).in_interrupt()
    }

    #[inline]
    fn mask_interrupts(&self) -> InterruptState {
        (**self).mask_interrupts()
    }

    #[inline]
    fn restore_interrupts(&self, found: InterruptState) {
        (**self).restore_interrupts(found);
    }

    #[inline]
    fn relax(&self) {
        (**self).relax();
    }

    #[inline]
    fn run_on(&self, cpu: usize, work: &mut dyn FnMut()) -> bool {
        (**self).run_on(cpu, work)
    }

    #[inline]
    fn ticks(&self) -> u64 {
        (**self).ticks()
    }

    #[inline]
    fn task(&self) -> u64 {
        (**self).task()
    }

    #[inline]
    fn address(&self, frame: Frame) -> Option<NonNull<u8>> {
        (**self).address(frame)
    }
}

/// One CPU, no interrupts, no clock: boot code, tests, a single-threaded program.
#[derive(Debug, Clone, Copy, Default)]
pub struct OneCpu;

impl Platform for OneCpu {
    #[inline]
    fn cpu(&self) -> usize {
        0
    }

    /// The only CPU is the caller's own.
    fn run_on(&self, _cpu: usize, work: &mut dyn FnMut()) -> bool {
        work();
        true
    }
}

/// Interrupts are masked as long as this lives.
#[derive(Debug)]
pub struct MaskGuard<'p, P: Platform> {
    platform: &'p P,
    found: InterruptState,
}

impl<'p, P: Platform> MaskGuard<'p, P> {
    /// Masks them.
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

/// The caller stays on its CPU as long as this lives.
#[derive(Debug)]
pub struct PinGuard<'p, P: Platform> {
    platform: &'p P,
    /// Which one that is.
    pub cpu: usize,
}

impl<'p, P: Platform> PinGuard<'p, P> {
    /// Keeps the caller where it is.
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
