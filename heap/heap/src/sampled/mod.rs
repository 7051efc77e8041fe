//! Sampling: of a few requests among many more is noted than the heap needs.
//!
//! | variable | of which | what | where |
//! |---|---|---|---|
//! | `BRICKYARD_PROFILE=FILE` | one for each 512 KiB asked for | who asked for it, and whether it is in use | `profile.rs` |
//! | `BRICKYARD_SAMPLE=N` | one for each N of up to a page | its memory lies between pages that cannot be accessed | `guarded.rs` |
//!
//! **What it costs.** Every request is counted, so the fast path of requests is closed, and they take
//! objects from the queue of their CPU behind the count. Nothing that is sampled is an object of a
//! slab, so the fast path of frees stays open.

mod countdown;
mod fault;
mod guarded;
mod maps;
mod profile;
mod stack;
mod text;
mod write;

use core::alloc::Layout;
use core::mem::MaybeUninit;
use core::ptr::NonNull;
use core::sync::atomic::{AtomicPtr, Ordering};

use brickyard::Platform;
use brickyard_arena::rows::Cpus;
use brickyard_slab::sizes::MAX_GENERAL;

use super::build::{Heap, HeapError, built, for_ever, number, variable};
use super::gate::Thread;
use super::slow::enter;
use super::span::{Contents, RUN_BYTES_MAX};
use super::{FIRST_GENERAL, cache_of, hit, life, perturb};
use guarded::Guarded;
use profile::Profile;

pub use write::write_profile;

/// See the [module](self).
pub(super) struct Sampled {
    cpus: Cpus,
    profile: Option<Profile>,
    guarded: Option<Guarded>,
}

static SAMPLED: AtomicPtr<Sampled> = AtomicPtr::new(core::ptr::null_mut());

/// Returns what is sampled, if anything is.
#[inline]
pub(super) fn sampled() -> Option<&'static Sampled> {
    // Acquire: pairs with the release in `begin`.
    let sampled = SAMPLED.load(Ordering::Acquire);
    // SAFETY: `begin` gave a reference that lives for ever.
    unsafe { sampled.as_ref() }
}

/// What becomes of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Look {
    /// It is served: it was not its turn, and this CPU had an object at hand.
    Served(NonNull<u8>),
    /// It is one of the many others.
    Passes,
    /// It is to be in the profile.
    Profiled,
    /// It is to be guarded.
    Guarded,
}

/// Begins to sample what the environment asks for. Called once, when the heap is built, before
/// anybody can see it.
pub(super) fn begin(cpus: Cpus, is_hardened: bool) -> Result<(), HeapError> {
    let profile = variable(c"BRICKYARD_PROFILE").filter(|file| !file.is_empty());
    let every = variable(c"BRICKYARD_SAMPLE").filter(|text| !text.is_empty());
    if profile.is_none() && every.is_none() {
        return Ok(());
    }
    if is_hardened {
        life::say(format_args!(
            "the hardened heap looks at every request: BRICKYARD_PROFILE and BRICKYARD_SAMPLE are \
             not used"
        ));
        return Ok(());
    }
    let own = stack::own_library();
    let profile = match profile {
        Some(file) => Some(Profile::new(file, own.clone())?),
        None => None,
    };
    let guarded = match every.map(number) {
        Some(Some(every)) if every > 0 => Some(Guarded::new(every, own)?),
        Some(Some(_)) | None => None,
        Some(None) => {
            life::say(format_args!(
                "BRICKYARD_SAMPLE is a number: about one allocation in so many is guarded"
            ));
            None
        }
    };
    if profile.is_none() && guarded.is_none() {
        return Ok(());
    }
    let guards = guarded.is_some();
    let place = for_ever(size_of::<Sampled>())?;
    let place = place.as_mut_ptr().cast::<MaybeUninit<Sampled>>();
    // SAFETY: the mapping has room for it, begins with a page, and is this thread's.
    let this: &'static mut Sampled = unsafe {
        (*place).write(Sampled {
            cpus,
            profile,
            guarded,
        })
    };
    // Release: pairs with the acquire in `sampled`.
    SAMPLED.store(this, Ordering::Release);
    if guards {
        fault::watch();
    }
    write::watch();
    Ok(())
}

/// Returns true if the fast path of requests has to be closed.
pub(super) fn closes() -> bool {
    sampled().is_some()
}

/// Returns true if the calling thread is inside the heap already: something that the heap calls,
/// such as the unwinder, asks for memory itself, or a signal handler does.
fn is_nested(depth: u32) -> bool {
    Thread::this().inside.get() > depth
}

/// Writes the profile, if a signal has asked for it. Outside the gate.
pub(super) fn write_if_wanted() {
    if let Some(profile) = sampled().and_then(Sampled::profile) {
        profile.write_if_wanted();
    }
}

impl Sampled {
    /// Counts a request for the profile, outside the gate. If it is not its turn, it is served as by
    /// the fast path, where that can be.
    #[inline]
    pub(super) fn look(&self, layout: Layout) -> Look {
        let cpu = self.cpus.cpu();
        if let Some(guarded) = &self.guarded
            && guarded.is_due(cpu, layout)
            && !is_nested(0)
        {
            return Look::Guarded;
        }
        if let Some(profile) = &self.profile
            && profile.is_due(cpu, layout.size())
            && !is_nested(0)
        {
            return Look::Profiled;
        }
        if let Some(cache) = cache_of(layout)
            && !perturb::has_closed()
            // SAFETY: the heap is built, and the number is a general size's.
            && let Some(object) = NonNull::new(unsafe { hit(usize::from(cache)) })
        {
            return Look::Served(object);
        }
        Look::Passes
    }

    /// Serves a request, inside the gate: one for the profile by pages, so that its free is seen, and
    /// `others` as the heap does it. The layout lies in the frame of the heap's function that was
    /// called: those below are left out of stacks.
    #[inline]
    pub(super) fn serve(
        &self,
        heap: &'static Heap,
        (layout, look): (&Layout, Look),
        others: impl FnOnce() -> Option<(NonNull<u8>, Contents)>,
    ) -> Option<(NonNull<u8>, Contents)> {
        match (look, &self.guarded) {
            (Look::Profiled, _) => self.serve_profiled(heap, layout, others),
            (Look::Guarded, Some(guarded)) => match guarded.allocate(*layout, layout) {
                Some(memory) => Some((memory, Contents::Zeros)),
                None => others(),
            },
            _ => others(),
        }
    }

    #[cold]
    fn serve_profiled(
        &self,
        heap: &'static Heap,
        layout: &Layout,
        others: impl FnOnce() -> Option<(NonNull<u8>, Contents)>,
    ) -> Option<(NonNull<u8>, Contents)> {
        let (bytes, align) = (layout.size().max(1), layout.align());
        let given = if bytes <= MAX_GENERAL && align <= RUN_BYTES_MAX {
            let pages = |bytes: usize| bytes.div_ceil(heap.span.page_bytes());
            heap.span.take_run(pages(bytes).max(pages(align)))
        } else {
            others()
        };
        if let (Some(profile), Some((memory, _))) = (&self.profile, given) {
            profile.allocated(memory, layout.size(), layout);
        }
        given
    }

    /// Returns true if memory is a sample's, and no large block. Outside the gate.
    pub(super) fn notes_run(&self, memory: NonNull<u8>) -> bool {
        let Some((profile, heap)) = self.profile.as_ref().zip(built()) else {
            return false;
        };
        let is_run = heap.span.contains(memory.as_ptr())
            && heap.slabs.pages().cache_of(memory) < FIRST_GENERAL;
        is_run && enter(heap).is_some_and(|_inside| profile.has(memory))
    }

    /// Counts a large block that has been resized as one that is new. Inside the gate.
    pub(super) fn resized(&self, memory: NonNull<u8>, bytes: usize) {
        if let Some(profile) = &self.profile
            && profile.is_due(self.cpus.cpu(), bytes)
            && !is_nested(1)
        {
            profile.allocated(memory, bytes, &bytes);
        }
    }

    /// Notes that memory that is no slab's object is about to be freed, or resized. Inside the gate.
    pub(super) fn freed(&self, memory: NonNull<u8>) {
        if let Some(profile) = &self.profile {
            profile.freed(memory);
        }
    }

    /// Returns the guarded memory, if `memory` points into it.
    #[inline]
    pub(super) fn guarding(&self, memory: NonNull<u8>) -> Option<&Guarded> {
        let guarded = self.guarded.as_ref()?;
        guarded.contains(memory.addr().get()).then_some(guarded)
    }

    /// Returns the bytes of guarded pages in use.
    pub(super) fn guarded_bytes(&self) -> usize {
        self.guarded.as_ref().map_or(0, Guarded::bytes)
    }

    fn profile(&self) -> Option<&Profile> {
        self.profile.as_ref()
    }

    fn guarded(&self) -> Option<&Guarded> {
        self.guarded.as_ref()
    }
}
