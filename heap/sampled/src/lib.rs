//! Sampling of the requests for memory: of a few among many more is noted than their heap needs.
//!
//! | variable | of which | what | where |
//! |---|---|---|---|
//! | `BRICKYARD_PROFILE=FILE` | one for each 512 KiB asked for | who asked for it, and whether it is in use | `profile.rs` |
//! | `BRICKYARD_SAMPLE=N` | one for each N of up to a page | its memory lies between pages that cannot be accessed | `guarded.rs` |
//!
//! The heap is the [`Host`], of which nothing else is known here. Once it is built, it
//! [begins](begin). It asks for each request whether it is [one's turn](Sampled::turn), and tells
//! what becomes of memory that may be a sample's.
//!
//! **What it costs.** Every request is counted, so the heap's fast path of requests is closed, and
//! they take objects from the queue of their CPU behind the count. Nothing that is sampled is an
//! object of a slab, so the fast path of frees stays open.
//!
//! From the ground up; a row uses only those above it, and what is here:
//!
//! | file | what it holds |
//! |---|---|
//! | `countdown.rs` | how long until the next sample |
//! | `maps.rs`, `objects.rs` | what is mapped where; loaded objects, and their tables of call frames |
//! | `walk.rs`, `stack.rs` | from a call frame to its caller's; return addresses |
//! | `report.rs`, `guarded.rs`, `fault.rs` | what is said of a mistake; guarded memory; accesses that the system refuses |
//! | `writer.rs`, `profile.rs`, `text.rs`, `dump.rs` | who writes the profile; the profile, as text, and in its file |

#![cfg(all(
    target_os = "linux",
    any(target_arch = "x86_64", target_arch = "aarch64")
))]

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
use core::fmt;
use core::mem::MaybeUninit;
use core::ptr::NonNull;
use core::sync::atomic::{AtomicPtr, Ordering};
use std::io;

use brickyard::Platform;
use brickyard_arena::Region;
use brickyard_arena::environment::{number, variable};
use brickyard_arena::messages::say;
use brickyard_arena::rows::Cpus;

use guarded::Guarded;
use objects::Object;
use profile::Profile;

pub use dump::write_profile;

/// What is asked of the heap whose requests are sampled.
pub trait Host: Sync {
    /// Returns how often the calling thread is inside the heap. It is above what its callers know
    /// of in a signal handler that has interrupted it there, and where something that the heap
    /// calls asks for memory.
    fn depth(&self) -> u32;

    /// Runs `work` inside the heap, so that no fork begins meanwhile. Waits for one that has begun,
    /// ten seconds at most: false, and it has not run, if that takes longer.
    fn inside(&self, work: &mut dyn FnMut()) -> bool;
}

/// What is sampled.
pub struct Sampled {
    host: &'static dyn Host,
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
#[must_use]
pub fn sampled() -> Option<&'static Sampled> {
    // Acquire: pairs with the release in `begin`.
    let sampled = SAMPLED.load(Ordering::Acquire);
    // SAFETY: `begin` gave a reference that lives for ever.
    unsafe { sampled.as_ref() }
}

/// For what a request is sampled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Turn {
    /// It is to be [noted](Sampled::note) in the profile.
    Profile,
    /// It is to be [guarded](Sampled::guard).
    Guard,
}

/// Returns the file of the profile, and which requests are to be guarded, as the environment has
/// them.
fn wanted() -> [Option<&'static [u8]>; 2] {
    [c"BRICKYARD_PROFILE", c"BRICKYARD_SAMPLE"]
        .map(|name| variable(name).filter(|text| !text.is_empty()))
}

/// Returns true if the environment asks for something to be sampled.
#[must_use]
pub fn is_wanted() -> bool {
    wanted().iter().any(Option::is_some)
}

/// Begins to sample what the environment asks for: requests see it from now on. Returns true if
/// that is something. What there is no memory for is told, and left out. To be called once, by a
/// heap that is built but for this.
pub fn begin(cpus: Cpus, host: &'static dyn Host) -> bool {
    if !is_wanted() {
        return false;
    }
    let Some(sampled) = made(cpus, host) else {
        return false;
    };
    // Release: pairs with the acquire in `sampled`.
    SAMPLED.store(core::ptr::from_ref(sampled).cast_mut(), Ordering::Release);
    dump::watch();
    true
}

/// Makes what is asked for.
#[cold]
#[inline(never)]
fn made(cpus: Cpus, host: &'static dyn Host) -> Option<&'static Sampled> {
    let [profile, every] = wanted();
    let every = match every.map(number) {
        Some(None) => {
            say(format_args!(
                "BRICKYARD_SAMPLE is a number: about one allocation in so many is guarded"
            ));
            None
        }
        every => every.flatten().filter(|&every| every > 0),
    };
    let profile = profile.map(|file| Profile::new(file, host));
    let (profile, guarded) = (
        told("BRICKYARD_PROFILE", profile),
        told("BRICKYARD_SAMPLE", every.map(Guarded::new)),
    );
    if profile.is_none() && guarded.is_none() {
        return None;
    }
    let place = Region::map_for_ever(size_of::<Sampled>()).ok()?;
    let place = place.as_mut_ptr().cast::<MaybeUninit<Sampled>>();
    let own = Object::own();
    // SAFETY: plain calls, both.
    let [program, loader] =
        [libc::AT_PHDR, libc::AT_BASE].map(|what| unsafe { libc::getauxval(what) as usize });
    let is_library = own.as_ref().is_some_and(|own| !own.contains(program));
    let sampled = Sampled {
        host,
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
fn told<T>(variable: &str, made: Option<io::Result<T>>) -> Option<T> {
    made?
        .inspect_err(|_| {
            say(format_args!(
                "{variable} is not used: the system gives no addresses for it"
            ));
        })
        .ok()
}

/// Writes the profile, if a signal has asked for it. Outside the heap.
pub fn write_if_wanted() {
    if let Some(profile) = sampled().and_then(Sampled::profile)
        && !profile.is_nested()
    {
        profile.write_if_wanted();
    }
}

/// Frees guarded memory, and ends the process where that is a mistake. False if `memory` does not
/// point into any. `mark` is as for [`Sampled::guard`].
///
/// # Safety
/// If it is memory in use, nobody uses it any more.
#[inline]
pub unsafe fn free<T>(memory: NonNull<u8>, mark: &T) -> bool {
    let Some(guarded) = sampled().and_then(|sampled| sampled.guarding(memory)) else {
        return false;
    };
    // SAFETY: passed on.
    unsafe { guarded.free(memory, mark) };
    true
}

/// Returns the usable bytes of guarded memory; `None` if `memory` does not point into any.
#[inline]
#[must_use]
pub fn usable_size(memory: NonNull<u8>) -> Option<usize> {
    let guarded = sampled()?.guarding(memory)?;
    Some(guarded.usable_size(memory))
}

/// Notes that memory that is no slab's object is about to be freed. Inside the heap.
#[inline]
pub fn freed(memory: NonNull<u8>) {
    if let Some(sampled) = sampled() {
        sampled.freed(memory);
    }
}

/// Has a large block resized, which may move, and counts it as one that is new. Inside the heap,
/// which the thread has entered once.
#[inline]
pub fn resizing(
    memory: NonNull<u8>,
    bytes: usize,
    resize: impl FnOnce() -> Option<NonNull<u8>>,
) -> Option<NonNull<u8>> {
    match sampled() {
        Some(sampled) => sampled.resizing(memory, bytes, resize),
        None => resize(),
    }
}

/// Returns the bytes of guarded pages in use.
#[must_use]
pub fn guarded_bytes() -> usize {
    let guarded = sampled().and_then(Sampled::guarded);
    guarded.map_or(0, Guarded::bytes)
}

impl Sampled {
    /// Counts a request, outside the heap. Returns for what it is sampled, if it is.
    #[inline]
    #[must_use]
    pub fn turn(&self, layout: Layout) -> Option<Turn> {
        let cpu = self.cpus.cpu();
        if let Some(guarded) = &self.guarded
            && guarded.is_due(cpu, layout)
            && self.host.depth() == 0
        {
            return Some(Turn::Guard);
        }
        if let Some(profile) = &self.profile
            && profile.is_due(cpu, layout.size())
            && self.host.depth() == 0
        {
            return Some(Turn::Profile);
        }
        None
    }

    /// Allocates guarded memory for `layout`, zero throughout. `None` if there is none at hand.
    ///
    /// `mark` lies in the frame of the heap's function that was called: those below are left out of
    /// the stack.
    #[must_use]
    pub fn guard<T>(&self, layout: Layout, mark: &T) -> Option<NonNull<u8>> {
        self.guarded.as_ref()?.allocate(layout, mark)
    }

    /// Notes in the profile that a request of so many bytes got this memory, which is no slab's
    /// object. Inside the heap. `mark` is as for [`Self::guard`].
    pub fn note<T>(&self, memory: NonNull<u8>, bytes: usize, mark: &T) {
        if let Some(profile) = &self.profile {
            profile.allocated(memory, bytes, mark);
        }
    }

    /// Returns true if there is a profile.
    #[must_use]
    pub const fn has_profile(&self) -> bool {
        self.profile.is_some()
    }

    /// Notes that memory has another size from now on, and is where it was. Inside the heap.
    pub fn stays(&self, memory: NonNull<u8>, bytes: usize) {
        if let Some(profile) = &self.profile {
            profile.stays(memory, bytes);
        }
    }

    fn freed(&self, memory: NonNull<u8>) {
        if let Some(profile) = &self.profile
            && let Some(sample) = profile.take(memory)
        {
            profile.forget(sample);
        }
    }

    #[cold]
    fn resizing(
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
                if profile.is_due(self.cpus.cpu(), bytes) && self.host.depth() <= 1 {
                    profile.allocated(resized, bytes, &bytes);
                }
            }
        }
        resized
    }

    #[inline]
    fn guarding(&self, memory: NonNull<u8>) -> Option<&Guarded> {
        let guarded = self.guarded.as_ref()?;
        guarded.contains(memory.addr().get()).then_some(guarded)
    }

    fn profile(&self) -> Option<&Profile> {
        self.profile.as_ref()
    }

    fn guarded(&self) -> Option<&Guarded> {
        self.guarded.as_ref()
    }
}

impl fmt::Debug for Sampled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sampled").finish_non_exhaustive()
    }
}
