//! What the embedder says of its CPUs, as [`Platform`].
//!
//! A table of functions per machine ([`by_platform`]). With the feature `linked`, functions of
//! fixed names that the embedder links: one set per program, no indirect call.

use core::ffi::c_void;
use core::ptr::NonNull;
#[cfg(not(feature = "linked"))]
use core::ptr::null_mut;

use brickyard::{Frame, InterruptState, Platform};

/// Work for another CPU: to be called once, there, with its argument.
pub type by_work = unsafe extern "C" fn(argument: *mut c_void);

/// Calls the closure that `argument` points to.
unsafe extern "C" fn run(argument: *mut c_void) {
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

// The contract of the header. Invariant `platform-in-c`: the functions, linked or with the table's
// `context`, may be called on every CPU, at any time as long as the machine lives.

// SAFETY: by `platform-in-c`.
#[cfg(not(feature = "linked"))]
unsafe impl Sync for by_platform {}
// SAFETY: as above.
#[cfg(not(feature = "linked"))]
unsafe impl Send for by_platform {}

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
    fn by_cpu() -> usize;
    /// Keeps the caller on its CPU, and all other tasks from it, until `by_unpin`; returns the CPU.
    fn by_pin() -> usize;
    /// Ends a `by_pin`.
    fn by_unpin();
    /// Returns true if the caller may have interrupted other code on this CPU.
    fn by_in_interrupt() -> bool;
    /// Masks interrupts on this CPU, and returns the state found.
    fn by_mask_interrupts() -> usize;
    /// Restores the state that `by_mask_interrupts` found.
    fn by_restore_interrupts(found: usize);
    /// Called while waiting for another CPU.
    fn by_relax();
    /// Calls `work(argument)` once, as a task on `cpu`, which may be the caller's own, waits for its
    /// end and returns true; or returns false without calling it.
    fn by_run_on(cpu: usize, work: by_work, argument: *mut c_void) -> bool;
    /// Returns the address of a frame, or null if it has none; for slabs only.
    fn by_address(frame: usize) -> *mut c_void;
}

/// Calls a function of the platform: the table's, or something else if it is null; or the linked one.
macro_rules! call {
    ($self:ident.$member:ident or $linked:ident($($argument:expr),*), else $none:expr) => {{
        #[cfg(not(feature = "linked"))]
        match $self.$member {
            // SAFETY: by `platform-in-c`.
            Some(function) => unsafe { function($self.context $(, $argument)*) },
            None => $none,
        }
        #[cfg(feature = "linked")]
        // SAFETY: by `platform-in-c`.
        unsafe {
            $linked($($argument),*)
        }
    }};
}

impl Platform for by_platform {
    #[inline]
    fn cpu(&self) -> usize {
        call!(self.cpu or by_cpu(), else 0)
    }

    #[inline]
    fn pin(&self) -> usize {
        call!(self.pin or by_pin(), else self.cpu())
    }

    #[inline]
    fn unpin(&self) {
        call!(self.unpin or by_unpin(), else ());
    }

    #[inline]
    fn in_interrupt(&self) -> bool {
        call!(self.in_interrupt or by_in_interrupt(), else false)
    }

    #[inline]
    fn mask_interrupts(&self) -> InterruptState {
        InterruptState(call!(self.mask_interrupts or by_mask_interrupts(), else 0))
    }

    #[inline]
    fn restore_interrupts(&self, found: InterruptState) {
        call!(self.restore_interrupts or by_restore_interrupts(found.0), else ());
    }

    #[inline]
    fn relax(&self) {
        call!(self.relax or by_relax(), else core::hint::spin_loop());
    }

    // A function of its own, since `proofs/stack` asks what is called through which pointer.
    #[inline(never)]
    fn run_on(&self, cpu: usize, work: &mut dyn FnMut()) -> bool {
        // It lives until `run_on` has returned.
        let mut work: &mut dyn FnMut() = work;
        let work = (&raw mut work).cast();
        call!(self.run_on or by_run_on(cpu, run, work), else false)
    }

    #[inline]
    fn address(&self, frame: Frame) -> Option<NonNull<u8>> {
        let address = call!(self.address or by_address(frame.number()), else null_mut());
        NonNull::new(address.cast())
    }
}
