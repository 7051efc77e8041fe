//! Sampling: of a few requests among many more is noted than the heap needs.
//!
//! | variable | of which | what | where |
//! |---|---|---|---|
//! | `BRICKYARD_PROFILE=FILE` | one for each 512 KiB asked for | who asked for it, and whether it is in use | `profile.rs` |
//! | `BRICKYARD_SAMPLE=N` | one for each N of up to a page | its memory lies between pages that cannot be accessed | `guarded.rs` |
//!
//! **What it costs.** Every request is counted, so the fast path of requests is closed, and they
//! take objects from the queue of their CPU behind the count. Nothing that is sampled is an object
//! of a slab, so the fast path of frees stays open.

mod countdown;
mod dump;
mod fault;
mod guarded;
mod maps;
mod objects;
mod profile;
mod report;
mod stack;
mod text;
mod walk;
mod writer;

use core::alloc::Layout;
use core::mem::MaybeUninit;
use core::ptr::NonNull;
use core::sync::atomic::{AtomicPtr, Ordering};

use brickyard::Platform;
use brickyard_arena::rows::Cpus;
use brickyard_slab::sizes::process::MAX_GENERAL;

use guarded::Guarded;
use objects::Object;
use profile::Profile;

use crate::fast_path::{FIRST_GENERAL, hit_slowly};
use crate::gate::Thread;
use crate::instance::{Heap, HeapError, built, enter, for_ever};
use crate::perturb;
use crate::span::{Contents, RUN_BYTES_MAX};
use brickyard_arena::environment::{number, variable};
use brickyard_arena::messages;

pub use dump::write_profile;

/// See the [module](self).
pub(super) struct Sampled {
    cpus: Cpus,
    /// What holds the heap, whether that is a library, and whether a loader has loaded others.
    own: Object,
    is_library: bool,
    has_loader: bool,
    profile: Option<Profile>,
    guarded: Option<Guarded>,
}

static SAMPLED: AtomicPtr<Sampled> = AtomicPtr::new(core::ptr::null_mut());

/// Returns what is sampled, if anything is.
#[inline]
pub(super) fn sampled() -> Option<&'static Sampled> {
    // Acquire: pairs with the release in `publish`.
    let sampled = SAMPLED.load(Ordering::Acquire);
    // SAFETY: `publish` gave a reference that lives for ever.
    unsafe { sampled.as_ref() }
}

/// What becomes of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sampling {
    /// It is served: it was not its turn, and this CPU had an object at hand.
    Served(NonNull<u8>),
    /// It is one of the many others.
    Passes,
    /// It is to be in the profile.
    Profiled,
    /// It is to be guarded.
    Guarded,
}

/// Returns what the environment asks to be sampled, if anything. What there is no memory for is
/// told, and left out.
pub(super) fn new(cpus: Cpus, is_hardened: bool) -> Option<&'static Sampled> {
    let profile = variable(c"BRICKYARD_PROFILE").filter(|file| !file.is_empty());
    let every = variable(c"BRICKYARD_SAMPLE").filter(|text| !text.is_empty());
    if profile.is_none() && every.is_none() {
        return None;
    }
    made(profile, every, cpus, is_hardened)
}

/// Makes what is asked for.
#[cold]
#[inline(never)]
fn made(
    profile: Option<&'static [u8]>,
    every: Option<&'static [u8]>,
    cpus: Cpus,
    is_hardened: bool,
) -> Option<&'static Sampled> {
    if is_hardened {
        messages::say(format_args!(
            "the hardened heap looks at every request: BRICKYARD_PROFILE and BRICKYARD_SAMPLE are \
             not used"
        ));
        return None;
    }
    let every = match every.map(number) {
        Some(None) => {
            messages::say(format_args!(
                "BRICKYARD_SAMPLE is a number: about one allocation in so many is guarded"
            ));
            None
        }
        every => every.flatten().filter(|&every| every > 0),
    };
    let (profile, guarded) = (profile.map(Profile::new), every.map(Guarded::new));
    let (profile, guarded) = (
        told("BRICKYARD_PROFILE", profile),
        told("BRICKYARD_SAMPLE", guarded),
    );
    if profile.is_none() && guarded.is_none() {
        return None;
    }
    let place = for_ever(size_of::<Sampled>()).ok()?;
    let place = place.as_mut_ptr().cast::<MaybeUninit<Sampled>>();
    let own = Object::own();
    // SAFETY: plain calls, both.
    let [program, loader] =
        [libc::AT_PHDR, libc::AT_BASE].map(|what| unsafe { libc::getauxval(what) as usize });
    let is_library = own.as_ref().is_some_and(|own| !own.contains(program));
    let sampled = Sampled {
        cpus,
        own: own.unwrap_or_default(),
        is_library,
        has_loader: is_library || loader != 0,
        profile,
        guarded,
    };
    // SAFETY: the mapping has room for it, begins with a page, and is this thread's.
    Some(unsafe { (*place).write(sampled) })
}

/// Says if there is no memory for what a variable asks for.
fn told<T>(variable: &str, made: Option<Result<T, HeapError>>) -> Option<T> {
    made?
        .inspect_err(|_| {
            messages::say(format_args!(
                "{variable} is not used: the system gives no addresses for it"
            ));
        })
        .ok()
}

/// Returns true if the calling thread is inside the heap already: a signal handler asks for memory,
/// or something that the heap calls.
fn is_nested(depth: u32) -> bool {
    Thread::this().inside.get() > depth
}

/// Writes the profile, if a signal has asked for it. Outside the gate.
pub(super) fn write_if_wanted() {
    if let Some(profile) = sampled().and_then(Sampled::profile)
        && !is_nested(0)
    {
        profile.write_if_wanted();
    }
}

/// To be called when a request has been served, outside the gate.
#[inline]
pub(super) fn after(look: Sampling) {
    if look == Sampling::Profiled {
        write_if_wanted();
    }
}

/// Notes that memory has another size from now on, and is where it was.
#[inline]
pub(super) fn stays(memory: *mut u8, bytes: usize) {
    if let (Some(sampled), Some(memory)) = (sampled(), NonNull::new(memory)) {
        sampled.stays(memory, bytes);
    }
}

impl Sampled {
    /// Begins: requests see it from now on. The heap's rows are known.
    pub(super) fn publish(&'static self) {
        let this = core::ptr::from_ref(self).cast_mut();
        // Release: pairs with the acquire in `sampled`.
        SAMPLED.store(this, Ordering::Release);
        dump::watch();
    }

    /// Counts a request for the profile, outside the gate. If it is not its turn, it is served as
    /// by the fast path of `cache`, if an object will do and there is one.
    #[inline]
    pub(super) fn look(&self, layout: Layout, cache: Option<u8>) -> Sampling {
        let cpu = self.cpus.cpu();
        if let Some(guarded) = &self.guarded
            && guarded.is_due(cpu, layout)
            && !is_nested(0)
        {
            return Sampling::Guarded;
        }
        if let Some(profile) = &self.profile
            && profile.is_due(cpu, layout.size())
            && !is_nested(0)
        {
            return Sampling::Profiled;
        }
        if let Some(cache) = cache
            && !perturb::has_closed()
            // SAFETY: the heap is built, and the number is a general size's.
            && let Some(object) = NonNull::new(unsafe { hit_slowly(usize::from(cache)) })
        {
            return Sampling::Served(object);
        }
        Sampling::Passes
    }

    /// Serves a request, inside the gate: one for the profile by pages, so that its free is seen,
    /// and `others` as the heap does it. The layout lies in the frame of the heap's function that
    /// was called: those below are left out of stacks.
    #[inline]
    pub(super) fn serve(
        &self,
        heap: &'static Heap,
        (layout, look): (&Layout, Sampling),
        others: impl FnOnce() -> Option<(NonNull<u8>, Contents)>,
    ) -> Option<(NonNull<u8>, Contents)> {
        match (look, &self.guarded) {
            (Sampling::Profiled, _) => self.serve_profiled(heap, layout, others),
            (Sampling::Guarded, Some(guarded)) => match guarded.allocate(*layout, layout) {
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
        let note = |memory| {
            if let Some(profile) = &self.profile {
                profile.allocated(memory, layout.size(), layout);
            }
        };
        if bytes <= MAX_GENERAL && align <= RUN_BYTES_MAX {
            let Some(run) = heap.span.take_run_for(bytes, align) else {
                // There are no pages, but perhaps an object.
                return others();
            };
            note(run.0);
            return Some(run);
        }
        let given = others()?;
        note(given.0);
        Some(given)
    }

    /// Has a large block resized, which may move, and counts it as one that is new. Inside the
    /// gate.
    #[cold]
    pub(super) fn resizing(
        &self,
        memory: NonNull<u8>,
        bytes: usize,
        resize: impl FnOnce() -> Option<NonNull<u8>>,
    ) -> Option<NonNull<u8>> {
        let Some(profile) = &self.profile else {
            return resize();
        };
        // First: once it has moved, its address may be another's.
        let sample = profile.take(memory);
        let resized = resize();
        match (resized, sample) {
            (None, Some(sample)) => profile.put_back(sample),
            (None, None) => {}
            (Some(resized), sample) => {
                if let Some(sample) = sample {
                    profile.forget(sample);
                }
                if profile.is_due(self.cpus.cpu(), bytes) && !is_nested(1) {
                    profile.allocated(resized, bytes, &bytes);
                }
            }
        }
        resized
    }

    fn stays(&self, memory: NonNull<u8>, bytes: usize) {
        if let (Some(profile), Some(heap)) = (&self.profile, built())
            && heap.cache_of(memory) < FIRST_GENERAL
            && let Some(_inside) = enter(heap)
        {
            profile.stays(memory, bytes);
        }
    }

    /// Notes that memory that is no slab's object is about to be freed. Inside the gate.
    pub(super) fn freed(&self, memory: NonNull<u8>) {
        if let Some(profile) = &self.profile
            && let Some(sample) = profile.take(memory)
        {
            profile.forget(sample);
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
