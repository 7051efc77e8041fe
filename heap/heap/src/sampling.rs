//! The one place where the heap knows of what is sampled (`brickyard-sampled`): a few requests of
//! which more is noted. Where nothing is, each of these functions is at most a load and a branch.

use core::alloc::Layout;
use core::ptr::NonNull;

use brickyard_arena::messages::say;
use brickyard_arena::rows::Cpus;
use brickyard_sampled::{Host, Turn};
use brickyard_slab::sizes::process::MAX_GENERAL;

use crate::fast_path::{FIRST_GENERAL, hit_slowly};
use crate::gate::Thread;
use crate::instance::{Heap, INSTANCE, built, enter};
use crate::perturb;
use crate::span::{Contents, RUN_BYTES_MAX};

pub(crate) use brickyard_sampled::{
    Sampled, free, freed, guarded_bytes, resizing, sampled, usable_size, write_if_wanted,
};

/// The heap, to those who sample.
struct Sampling;

impl Host for Sampling {
    fn depth(&self) -> u32 {
        Thread::this().inside.get()
    }

    fn inside(&self, work: &mut dyn FnMut()) -> bool {
        /// So often the gate is waited for: for ten seconds.
        const TRIES: usize = 500;
        let inside = (0..TRIES).find_map(|_| INSTANCE.gate.try_enter(0));
        inside.map(|_inside| work()).is_some()
    }
}

/// What becomes of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Look {
    /// It is served: it was not its turn, and this CPU had an object at hand.
    Served(NonNull<u8>),
    /// It is one of the many others.
    Passes,
    /// It is to be in the profile.
    Profiled,
    /// It is to be guarded.
    Guarded,
}

/// Begins to sample what the environment asks for, if it does, once the heap's rows are known.
pub(crate) fn begins(cpus: Cpus, is_hardened: bool) -> bool {
    if is_hardened && brickyard_sampled::is_wanted() {
        say(format_args!(
            "the hardened heap looks at every request: BRICKYARD_PROFILE and BRICKYARD_SAMPLE are \
             not used"
        ));
    }
    !is_hardened && brickyard_sampled::begin(cpus, &Sampling)
}

/// Counts a request, if requests are counted.
#[inline(always)]
pub(crate) fn look(layout: Layout, cache: impl FnOnce() -> Option<u8>) -> Look {
    match sampled() {
        Some(sampled) => look_at(sampled, layout, cache()),
        None => Look::Passes,
    }
}

/// Counts a request, outside the gate. If it is not its turn, it is served as by the fast path of
/// `cache`, if an object will do and there is one.
#[inline]
pub(crate) fn look_at(sampled: &Sampled, layout: Layout, cache: Option<u8>) -> Look {
    match sampled.turn(layout) {
        Some(Turn::Profile) => return Look::Profiled,
        Some(Turn::Guard) => return Look::Guarded,
        None => {}
    }
    if let Some(cache) = cache
        && !perturb::has_closed()
        // SAFETY: the heap is built, and the number is a general size's.
        && let Some(object) = NonNull::new(unsafe { hit_slowly(usize::from(cache)) })
    {
        return Look::Served(object);
    }
    Look::Passes
}

/// Memory for a request, and what it holds.
type Given = Option<(NonNull<u8>, Contents)>;

/// Serves a request, inside the gate: `others` as the heap does it. The layout lies in the frame of
/// the heap's function that was called.
#[inline]
pub(crate) fn serve(
    heap: &'static Heap,
    (layout, look): (&Layout, Look),
    others: impl FnOnce() -> Given,
) -> Given {
    match look {
        Look::Profiled | Look::Guarded => serve_due(heap, (layout, look), others),
        _ => others(),
    }
}

/// Serves a request whose turn it is: by pages, so that its free is seen.
#[cold]
fn serve_due(
    heap: &'static Heap,
    (layout, look): (&Layout, Look),
    others: impl FnOnce() -> Given,
) -> Given {
    let Some(sampled) = sampled() else {
        return others();
    };
    if look == Look::Guarded {
        let memory = sampled.guard(*layout, layout);
        return memory.map_or_else(others, |memory| Some((memory, Contents::Zeros)));
    }
    let (bytes, align) = (layout.size().max(1), layout.align());
    let given = if bytes <= MAX_GENERAL && align <= RUN_BYTES_MAX {
        let Some(run) = heap.span.take_run_for(bytes, align) else {
            // There are no pages, but perhaps an object.
            return others();
        };
        run
    } else {
        others()?
    };
    sampled.note(given.0, layout.size(), layout);
    Some(given)
}

/// To be called when a request has been served, outside the gate.
#[inline]
pub(crate) fn after(look: Look) {
    if look == Look::Profiled {
        write_if_wanted();
    }
}

/// Notes that memory has another size from now on, and is where it was.
#[inline]
pub(crate) fn stays(memory: NonNull<u8>, bytes: usize) {
    if let Some(sampled) = sampled()
        && sampled.has_profile()
        && let Some(heap) = built()
        && heap.cache_of(memory) < FIRST_GENERAL
        && let Some(_inside) = enter(heap)
    {
        sampled.stays(memory, bytes);
    }
}
