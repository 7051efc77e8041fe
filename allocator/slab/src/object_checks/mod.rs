//! The checks of objects of checked caches: at an allocation, at a free, and when a slab begins
//! and ends. And what is reported of frees that are refused, in any cache.
//!
//! | file | what it holds |
//! |---|---|
//! | `layout.rs` | the layout of an object and what is checked around it |
//! | `patterns.rs`, `object_place.rs` | red zones and poison; an object's place in memory |
//! | `mod.rs` | what happens when |

mod layout;
mod object_place;
mod patterns;

use core::panic::Location;
use core::ptr::NonNull;

use object_place::Spot;

use crate::backend::Backend;
use crate::cache_info::CacheInfo;
use crate::debug::{Checks, Fault, Finding, Moment, Track, User};
use crate::design::{BackendOf, SlabDesign, Whereabouts};
use crate::error::FreeFault;
use crate::local::Local;
use crate::source::PageSource;

pub(crate) use layout::ObjectLayout;

/// Reports what was noticed of an object, and when.
fn tell<S: PageSource, L: Local>(
    backend: &Backend<'_, S, L>,
    spot: &Spot<'_>,
    fault: Fault,
    (moment, caller): (Moment, &'static Location<'static>),
) {
    let noticed = Track::now(&backend.local, caller);
    backend.report.tell(&spot.finding(fault, moment, noticed));
}

/// Returns all places of a slab.
fn places<S: PageSource, L: Local>(
    backend: &Backend<'_, S, L>,
    info: &CacheInfo,
    first: usize,
) -> impl Iterator<Item = NonNull<u8>> {
    let stride = info.geometry.stride as usize;
    (0..info.geometry.objects as usize).map(move |index| backend.pointer(first + index * stride))
}

/// Paints the objects of a new slab, whose first place begins at `first`. They are free.
pub(crate) fn new_slab<S: PageSource, L: Local>(
    backend: &Backend<'_, S, L>,
    info: &CacheInfo,
    first: usize,
) {
    if !info.is_checked() {
        return;
    }
    for place in places(backend, info, first) {
        let spot = Spot { info, place };
        spot.paint_zones(patterns::ZONE_FREE);
        spot.poison();
        spot.clear_tracks();
    }
}

/// Checks the free objects of the slab that begins at page `head`, whose pages are about to be
/// given back. Nobody would notice later what was written to them. Damage is only reported.
#[track_caller]
#[inline(never)]
pub(crate) fn old_slab<S: PageSource, L: Local>(
    backend: &Backend<'_, S, L>,
    info: &CacheInfo,
    head: usize,
) {
    let painted = info.is_poisoned() || info.spec.checks.has(Checks::RED_ZONES);
    if !painted {
        return;
    }
    for place in places(backend, info, backend.pages.first_of(head)) {
        let spot = Spot { info, place };
        if let Some(fault) = spot.damage_while_free() {
            tell(backend, &spot, fault, (Moment::Return, Location::caller()));
        }
    }
}

/// Checks the object at `place`, which has left its slab, before it is handed out. An error means
/// that it is damaged and must be left out; that has been reported.
#[inline(never)]
pub(crate) fn on_alloc<S: PageSource, L: Local>(
    backend: &Backend<'_, S, L>,
    info: &CacheInfo,
    place: NonNull<u8>,
    caller: &'static Location<'static>,
) -> Result<(), ()> {
    let spot = Spot { info, place };
    if let Some(fault) = spot.damage_while_free() {
        tell(backend, &spot, fault, (Moment::Alloc, caller));
        return Err(());
    }
    spot.paint_zones(patterns::ZONE_USED);
    if let Some([allocated, _]) = spot.stored() {
        allocated.set(&Track::now(&backend.local, caller));
    }
    Ok(())
}

/// Checks an object that is freed. Returns its place, if it may be put back into its slab.
#[inline(never)]
pub(crate) fn on_free<'m, D: SlabDesign<'m>>(
    backend: &BackendOf<'m, D>,
    design: &D,
    info: &CacheInfo,
    object: NonNull<u8>,
    caller: &'static Location<'static>,
) -> Result<NonNull<u8>, FreeFault> {
    let refused = |fault| {
        let when = (Moment::Free, caller);
        refuse(backend, design, info, object, fault, when);
        fault
    };
    let (head, index, spot) = locate(backend, info, object).map_err(refused)?;
    // If it is out, it is its caller's, and keeps its slab.
    match design.look(backend, info, head, index, |_, at| at) {
        Some(Whereabouts::Out) => {}
        Some(Whereabouts::InSlab) => return Err(refused(FreeFault::DoubleFree)),
        // It was no object in use, and the slab has just gone.
        None => return Err(refused(FreeFault::NotASlab)),
    }
    if let Some(fault) = spot.zones(patterns::ZONE_USED) {
        // An object that was left out, or that another CPU is freeing at the same time.
        if spot.zones(patterns::ZONE_FREE).is_none() {
            return Err(refused(FreeFault::DoubleFree));
        }
        tell(backend, &spot, fault, (Moment::Free, caller));
        return Err(FreeFault::Damaged);
    }
    spot.paint_zones(patterns::ZONE_FREE);
    spot.poison();
    if let Some([_, freed]) = spot.stored() {
        freed.set(&Track::now(&backend.local, caller));
    }
    Ok(spot.place)
}

/// Finds which object of which slab of the cache begins at an address. Returns the slab's first
/// page, the object's number, and its place.
fn locate<'k, S: PageSource, L: Local>(
    backend: &Backend<'_, S, L>,
    info: &'k CacheInfo,
    object: NonNull<u8>,
) -> Result<(usize, usize, Spot<'k>), FreeFault> {
    match backend.find(info, object) {
        // The place is on the grid, and not the object: whether this is an object is decided below.
        Ok(_) | Err(FreeFault::OffGrid) => {}
        Err(fault) => return Err(fault),
    }
    let spot = spot_around(backend, info, object).ok_or(FreeFault::OffGrid)?;
    if spot.object() != object {
        return Err(FreeFault::OffGrid);
    }
    let (head, index) = backend.find(info, spot.place)?;
    Ok((head, index, spot))
}

/// Reports a free that turned out bad when the object was put back into its slab.
#[cold]
#[inline(never)]
#[track_caller]
pub fn refuse_late<'m, D: SlabDesign<'m>>(
    backend: &BackendOf<'m, D>,
    design: &D,
    info: &CacheInfo,
    object: NonNull<u8>,
    fault: FreeFault,
) {
    let caller = Location::caller();
    refuse(
        backend,
        design,
        info,
        object,
        fault,
        (Moment::Flush, caller),
    );
}

/// Reports a free that is refused because of what `object` is: whose it is, and who allocated and
/// freed it.
#[cold]
#[inline(never)]
pub(crate) fn refuse<'m, D: SlabDesign<'m>>(
    backend: &BackendOf<'m, D>,
    design: &D,
    info: &CacheInfo,
    object: NonNull<u8>,
    fault: FreeFault,
    (moment, caller): (Moment, &'static Location<'static>),
) {
    let other;
    let owner = match fault {
        FreeFault::WrongCache { cache } => {
            other = backend.lease(cache);
            other.as_deref()
        }
        FreeFault::NotASlab => None,
        _ => Some(info),
    };
    let spot = owner.and_then(|owner| spot_around(backend, owner, object));
    let name = owner.map_or("", |owner| owner.spec.name);
    let inside = spot.map(|spot| spot.object().addr().get());
    let Some(fault) = Fault::of(fault, name, inside) else {
        return;
    };
    let [allocated, freed] = spot
        .and_then(|spot| users_of(backend, design, spot))
        .unwrap_or([User::Untracked; 2]);
    backend.report.tell(&Finding {
        cache: info.spec.name,
        size: info.spec.size,
        object: object.addr().get(),
        fault,
        moment,
        noticed: Track::now(&backend.local, caller),
        allocated,
        freed,
    });
}

/// Returns who allocated and freed an object that the caller does not hold, read while its slab
/// cannot go. `None` if the slab has gone, or if the caller must not look.
fn users_of<'m, D: SlabDesign<'m>>(
    backend: &BackendOf<'m, D>,
    design: &D,
    spot: Spot<'_>,
) -> Option<[User; 2]> {
    let info = spot.info;
    // The cache may be another one than the caller used.
    if !backend.may_touch(info) {
        return None;
    }
    let (head, index) = backend.find(info, spot.place).ok()?;
    design.look(backend, info, head, index, |place, _| {
        Spot { info, place }.users()
    })
}

/// Reports that what the design keeps in the free object at `place` was written over. `lost` others
/// hung on that object.
#[cold]
#[inline(never)]
#[track_caller]
pub fn overwritten<S: PageSource, L: Local>(
    backend: &Backend<'_, S, L>,
    info: &CacheInfo,
    place: usize,
    (title, lost): (&'static str, u32),
) {
    let spot = Spot {
        info,
        place: backend.pointer(place),
    };
    let fault = Fault::Overwritten { title, lost };
    tell(backend, &spot, fault, (Moment::Queue, Location::caller()));
}

/// Returns the place of the cache that an address lies in, if it lies in one.
fn spot_around<'k, S: PageSource, L: Local>(
    backend: &Backend<'_, S, L>,
    info: &'k CacheInfo,
    address: NonNull<u8>,
) -> Option<Spot<'k>> {
    let head = backend.pages.head_of(backend.pages.page_of(address)?);
    let first = backend.pages.first_of(head);
    let stride = info.geometry.stride as usize;
    let index = address.addr().get().checked_sub(first)? / stride;
    let place = (index < info.geometry.objects as usize)
        .then(|| backend.pointer(first + index * stride))?;
    Some(Spot { info, place })
}

/// Returns the object whose place this is.
pub(crate) fn object_at(info: &CacheInfo, place: NonNull<u8>) -> NonNull<u8> {
    Spot { info, place }.object()
}

/// Returns who allocated the object whose place this is, if that is tracked and the record is not
/// written over. The slab must stay there meanwhile.
pub(crate) fn last_alloc(info: &CacheInfo, place: NonNull<u8>) -> Option<Track> {
    let [allocated, _] = Spot { info, place }.users();
    allocated.track()
}
