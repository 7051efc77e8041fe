//! What the embedder says of its CPUs, as [`Platform`].
//!
//! A table of functions per machine ([`by_platform`]). With the feature `linked`, functions of
//! fixed names that the embedder links: one set per program, no indirect call.

use core::ffi::c_void;
use core::ptr::NonNull;

use brickyard::{Frame, InterruptState, Platform};

/// Work for another CPU: to be called once, there, with its argument.
pub type by_work = unsafe extern "C" fn(argument: *mut c_void);

/// Calls the closure that `argument` points to.
unsafe extern "C" fn call(argument: *mut c_void) {
    // SAFETY: `argument` comes from `run_on` below, which waits until this has returned, and the
    // embedder calls this at most once.
    unsafe { (*argument.cast::<&mut dyn FnMut()>())() }
}

/// What the embedder says of its CPUs. A function that is null is not needed: with one CPU, and no
/// interrupts that use Brickyard, all of them may be (slabs need `address`). With such interrupts,
/// `in_interrupt`, `mask_interrupts` and `restore_interrupts` must be there. Each is called with
/// `context`, from every CPU, and must not call Brickyard.
///
/// `cpu`, `pin`, `unpin` and `in_interrupt` are called by every request and free.
#[cfg(not(feature = "linked"))]
#[derive(Clone, Copy)]
#[repr(C)]
pub struct by_platform {
    /// Passed to every function.
    pub context: *mut c_void,
    /// Returns the CPU that runs the caller, counted from 0. Null: always 0.
    pub cpu: Option<unsafe extern "C" fn(context: *mut c_void) -> usize>,
    /// Keeps the caller on its CPU, and all other tasks from it, until `unpin`; returns the CPU.
    /// Pins nest. Null: there is nothing to do.
    pub pin: Option<unsafe extern "C" fn(context: *mut c_void) -> usize>,
    /// Ends a `pin`.
    pub unpin: Option<unsafe extern "C" fn(context: *mut c_void)>,
    /// Returns true if the caller may have interrupted other code on this CPU. Null: never.
    pub in_interrupt: Option<unsafe extern "C" fn(context: *mut c_void) -> bool>,
    /// Masks interrupts on this CPU, and returns the state found.
    pub mask_interrupts: Option<unsafe extern "C" fn(context: *mut c_void) -> usize>,
    /// Restores the state that `mask_interrupts` found.
    pub restore_interrupts: Option<unsafe extern "C" fn(context: *mut c_void, found: usize)>,
    /// Called while waiting for another CPU. Null: the processor's instruction for that.
    pub relax: Option<unsafe extern "C" fn(context: *mut c_void)>,
    /// Calls `work(argument)` once, as a task on `cpu`, waits for its end and returns true. Returns
    /// false without calling it if that cannot be done. `cpu` may be the caller's own. Called only
    /// by callers that may sleep. Null: it never can.
    pub run_on: Option<
        unsafe extern "C" fn(
            context: *mut c_void,
            cpu: usize,
            work: by_work,
            argument: *mut c_void,
        ) -> bool,
    >,
    /// Returns the address of a frame, or null if it has none; for slabs only.
    pub address: Option<unsafe extern "C" fn(context: *mut c_void, frame: usize) -> *mut c_void>,
}

// The contract of the header. Invariant `platform-in-c`: the functions may be called
// with `context` on every CPU, at any time as long as the machine lives.

// SAFETY: by `platform-in-c`.
#[cfg(not(feature = "linked"))]
unsafe impl Sync for by_platform {}
// SAFETY: as above.
#[cfg(not(feature = "linked"))]
unsafe impl Send for by_platform {}

#[cfg(not(feature = "linked"))]
impl Platform for by_platform {
    #[inline]
    fn cpu(&self) -> usize {
        // SAFETY: by `platform-in-c`, here and below.
        self.cpu.map_or(0, |cpu| unsafe { cpu(self.context) })
    }

    #[inline]
    fn pin(&self) -> usize {
        match self.pin {
            // SAFETY: as above.
            Some(pin) => unsafe { pin(self.context) },
            None => self.cpu(),
        }
    }

    #[inline]
    fn unpin(&self) {
        if let Some(unpin) = self.unpin {
            // SAFETY: as above.
            unsafe { unpin(self.context) }
        }
    }

    #[inline]
    fn in_interrupt(&self) -> bool {
        // SAFETY: as above.
        self.in_interrupt
            .is_some_and(|asked| unsafe { asked(self.context) })
    }

    #[inline]
    fn mask_interrupts(&self) -> InterruptState {
        // SAFETY: as above.
        InterruptState(
            self.mask_interrupts
                .map_or(0, |mask| unsafe { mask(self.context) }),
        )
    }

    #[inline]
    fn restore_interrupts(&self, found: InterruptState) {
        if let Some(restore) = self.restore_interrupts {
            // SAFETY: as above.
            unsafe { restore(self.context, found.0) }
        }
    }

    #[inline]
    fn relax(&self) {
        match self.relax {
            // SAFETY: as above.
            Some(relax) => unsafe { relax(self.context) },
            None => core::hint::spin_loop(),
        }
    }

    fn run_on(&self, cpu: usize, work: &mut dyn FnMut()) -> bool {
        let mut work: &mut dyn FnMut() = work;
        let Some(run_on) = self.run_on else {
            return false;
        };
        // SAFETY: as above; `work` lives until `run_on` has returned.
        unsafe { run_on(self.context, cpu, call, (&raw mut work).cast()) }
    }

    #[inline]
    fn address(&self, frame: Frame) -> Option<NonNull<u8>> {
        let address = self.address?;
        // SAFETY: as above.
        NonNull::new(unsafe { address(self.context, frame.number()) }.cast())
    }
}

/// The platform is the functions `by_cpu`, `by_pin` and the others that the embedder links.
#[cfg(feature = "linked")]
#[derive(Clone, Copy)]
#[repr(C)]
pub struct by_platform {
    /// Not used: a structure of C has a member.
    pub unused: u8,
}

#[cfg(feature = "linked")]
unsafe extern "C" {
    /// Returns the CPU that runs the caller, counted from 0.
    safe fn by_cpu() -> usize;
    /// Keeps the caller on its CPU, and all other tasks from it, until `by_unpin`; returns the CPU.
    safe fn by_pin() -> usize;
    /// Ends a `by_pin`.
    safe fn by_unpin();
    /// Returns true if the caller may have interrupted other code on this CPU.
    safe fn by_in_interrupt() -> bool;
    /// Masks interrupts on this CPU, and returns the state found.
    safe fn by_mask_interrupts() -> usize;
    /// Restores the state that `by_mask_interrupts` found.
    safe fn by_restore_interrupts(found: usize);
    /// Called while waiting for another CPU.
    safe fn by_relax();
    /// Calls `work(argument)` once, as a task on `cpu`, which may be the caller's own, waits for its
    /// end and returns true; or returns false without calling it.
    fn by_run_on(cpu: usize, work: by_work, argument: *mut c_void) -> bool;
    /// Returns the address of a frame, or null if it has none; for slabs only.
    safe fn by_address(frame: usize) -> *mut c_void;
}

#[cfg(feature = "linked")]
impl Platform for by_platform {
    #[inline]
    fn cpu(&self) -> usize {
        by_cpu()
    }

    #[inline]
    fn pin(&self) -> usize {
        by_pin()
    }

    #[inline]
    fn unpin(&self) {
        by_unpin();
    }

    #[inline]
    fn in_interrupt(&self) -> bool {
        by_in_interrupt()
    }

    #[inline]
    fn mask_interrupts(&self) -> InterruptState {
        InterruptState(by_mask_interrupts())
    }

    #[inline]
    fn restore_interrupts(&self, found: InterruptState) {
        by_restore_interrupts(found.0);
    }

    #[inline]
    fn relax(&self) {
        by_relax();
    }

    fn run_on(&self, cpu: usize, work: &mut dyn FnMut()) -> bool {
        let mut work: &mut dyn FnMut() = work;
        // SAFETY: `platform-in-c`; `work` lives until `by_run_on` has returned.
        unsafe { by_run_on(cpu, call, (&raw mut work).cast()) }
    }

    #[inline]
    fn address(&self, frame: Frame) -> Option<NonNull<u8>> {
        NonNull::new(by_address(frame.number()).cast())
    }
}
