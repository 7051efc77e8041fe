//! What is done to objects of caches that are checked: at an allocation, at a free, with a slab.
//! And what is told of frees that are refused, in any cache.
//!
//! | file | what it holds |
//! |---|---|
//! | `place.rs` | where all that is checked lies |
//! | `paint.rs`, `spot.rs` | red zones and poison; an object's place in memory |
//! | `mod.rs` | what happens when |

mod paint;
mod place;
mod spot;

use core::panic::Location;
use core::ptr::NonNull;

use spot::Spot;

use crate::debug::{Checks, Fault, Finding, Moment, Track, User};
use crate::design::{GroundOf, SlabDesign, Whereabouts};
use crate::error::FreeFault;
use crate::ground::Ground;
use crate::kind::Kind;
use crate::local::Local;
use crate::source::PageSource;

pub(crate) use place::Place;

/// Where the first object's place begins in the slab that begins at page `head`, in bytes.
fn colour_of<S: PageSource, L: Local>(ground: &Ground<'_, S, L>, head: usize) -> usize {
    ground.pages.record(head).colour.get() as usize
}

/// All places of a slab.
fn places<S: PageSource, L: Local>(
    ground: &Ground<'_, S, L>,
    kind: &Kind,
    first: usize,
) -> impl Iterator<Item = NonNull<u8>> {
    let stride = kind.geometry.stride as usize;
    (0..kind.geometry.objects as usize).map(move |index| ground.pointer(first + index * stride))
}

/// A slab has been made, whose first place begins at `first`: its objects are free.
pub(crate) fn new_slab<S: PageSource, L: Local>(
    ground: &Ground<'_, S, L>,
    kind: &Kind,
    first: usize,
) {
    if !kind.is_checked() {
        return;
    }
    for place in places(ground, kind, first) {
        let spot = Spot { kind, place };
        spot.paint_zones(paint::ZONE_FREE);
        spot.poison();
        spot.clear_tracks();
    }
}

/// The pages of the slab that begins at page `head` are about to be given back: what was written to
/// its free objects would be noticed by nobody any more. It is reported, no more.
#[track_caller]
pub(crate) fn old_slab<S: PageSource, L: Local>(
    ground: &Ground<'_, S, L>,
    kind: &Kind,
    head: usize,
) {
    let painted = kind.is_poisoned() || kind.spec.checks.has(Checks::RED_ZONES);
    if !painted {
        return;
    }
    for place in places(
        ground,
        kind,
        ground.pages.address_of(head) + colour_of(ground, head),
    ) {
        let spot = Spot { kind, place };
        if let Some(fault) = spot.damage_while_free() {
            let noticed = Track::now(&ground.local, Location::caller());
            (ground.report)(&spot.finding(fault, Moment::Return, noticed));
        }
    }
}

/// The object at `place` has left its slab and is to be handed out. An error: it is damaged, which
/// has been reported, and must be left out.
pub(crate) fn on_alloc<S: PageSource, L: Local>(
    ground: &Ground<'_, S, L>,
    kind: &Kind,
    place: NonNull<u8>,
    caller: &'static Location<'static>,
) -> Result<(), ()> {
    let spot = Spot { kind, place };
    if let Some(fault) = spot.damage_while_free() {
        (ground.report)(&spot.finding(fault, Moment::Alloc, Track::now(&ground.local, caller)));
        return Err(());
    }
    spot.paint_zones(paint::ZONE_USED);
    if let Some([allocated, _]) = spot.stored() {
        allocated.set(&Track::now(&ground.local, caller));
    }
    Ok(())
}

/// An object is freed: its place, if it may be put back into its slab.
pub(crate) fn on_free<'m, D: SlabDesign<'m>>(
    ground: &GroundOf<'m, D>,
    design: &D,
    kind: &Kind,
    object: NonNull<u8>,
    caller: &'static Location<'static>,
) -> Result<NonNull<u8>, FreeFault> {
    let refused = |fault| {
        let when = (Moment::Free, caller);
        refuse(ground, design, kind, object, fault, when);
        fault
    };
    let (head, index, spot) = locate(ground, kind, object).map_err(refused)?;
    // Out: then it is its caller's, and keeps its slab.
    match design.look(ground, kind, head, index, |_, at| at) {
        Some(Whereabouts::Out) => {}
        Some(Whereabouts::InSlab) => return Err(refused(FreeFault::DoubleFree)),
        // It was no object in use, and the slab has just gone.
        None => return Err(refused(FreeFault::NotASlab)),
    }
    if let Some(fault) = spot.zones(paint::ZONE_USED) {
        // An object that was left out, or that another CPU is just freeing.
        if spot.zones(paint::ZONE_FREE).is_none() {
            return Err(refused(FreeFault::DoubleFree));
        }
        (ground.report)(&spot.finding(fault, Moment::Free, Track::now(&ground.local, caller)));
        return Err(FreeFault::Damaged);
    }
    spot.paint_zones(paint::ZONE_FREE);
    spot.poison();
    if let Some([_, freed]) = spot.stored() {
        freed.set(&Track::now(&ground.local, caller));
    }
    Ok(spot.place)
}

/// Which object of which slab of `kind` begins at an address: the slab's first page, the object's
/// number, its place.
fn locate<'k, S: PageSource, L: Local>(
    ground: &Ground<'_, S, L>,
    kind: &'k Kind,
    object: NonNull<u8>,
) -> Result<(usize, usize, Spot<'k>), FreeFault> {
    match ground.find(kind, object) {
        // By the place, not the object: see below.
        Ok(_) | Err(FreeFault::OffGrid) => {}
        Err(fault) => return Err(fault),
    }
    let spot = spot_around(ground, kind, object).ok_or(FreeFault::OffGrid)?;
    if spot.object() != object {
        return Err(FreeFault::OffGrid);
    }
    let (head, index) = ground.find(kind, spot.place)?;
    Ok((head, index, spot))
}

/// Reports a free that turned out bad when the object was put back into its slab.
#[track_caller]
pub fn refuse_late<'m, D: SlabDesign<'m>>(
    ground: &GroundOf<'m, D>,
    design: &D,
    kind: &Kind,
    object: NonNull<u8>,
    fault: FreeFault,
) {
    let caller = Location::caller();
    refuse(ground, design, kind, object, fault, (Moment::Flush, caller));
}

/// Reports a free that is refused for what `object` is: whose it is, and who had to do with it.
pub(crate) fn refuse<'m, D: SlabDesign<'m>>(
    ground: &GroundOf<'m, D>,
    design: &D,
    kind: &Kind,
    object: NonNull<u8>,
    fault: FreeFault,
    (moment, caller): (Moment, &'static Location<'static>),
) {
    let other;
    let owner = match fault {
        FreeFault::WrongCache { cache } => {
            other = ground.lease(cache);
            other.as_deref()
        }
        FreeFault::NotASlab => None,
        _ => Some(kind),
    };
    let spot = owner.and_then(|owner| spot_around(ground, owner, object));
    let name = owner.map_or("", |owner| owner.spec.name);
    let inside = spot.map(|spot| spot.object().addr().get());
    let Some(fault) = Fault::of(fault, name, inside) else {
        return;
    };
    let [allocated, freed] = spot
        .and_then(|spot| users_of(ground, design, spot))
        .unwrap_or([User::Untracked; 2]);
    (ground.report)(&Finding {
        cache: kind.spec.name,
        size: kind.spec.size,
        object: object.addr().get(),
        fault,
        moment,
        noticed: Track::now(&ground.local, caller),
        allocated,
        freed,
    });
}

/// Who had to do with an object that the caller does not have: read while its slab cannot go.
/// `None` if it has gone, or the caller must not look.
fn users_of<'m, D: SlabDesign<'m>>(
    ground: &GroundOf<'m, D>,
    design: &D,
    spot: Spot<'_>,
) -> Option<[User; 2]> {
    let kind = spot.kind;
    // The cache may be another than the one that the caller came to.
    if !ground.may_touch(kind) {
        return None;
    }
    let (head, index) = ground.find(kind, spot.place).ok()?;
    design.look(ground, kind, head, index, |place, _| {
        Spot { kind, place }.users()
    })
}

/// Reports that what the design keeps in the free object at `place` was written over, on which
/// `lost` others hung.
#[track_caller]
pub fn overwritten<S: PageSource, L: Local>(
    ground: &Ground<'_, S, L>,
    kind: &Kind,
    place: usize,
    (title, lost): (&'static str, u32),
) {
    let spot = Spot {
        kind,
        place: ground.pointer(place),
    };
    let noticed = Track::now(&ground.local, Location::caller());
    (ground.report)(&spot.finding(Fault::Overwritten { title, lost }, Moment::Queue, noticed));
}

/// The place of `kind` that an address lies in, if it lies in one.
fn spot_around<'k, S: PageSource, L: Local>(
    ground: &Ground<'_, S, L>,
    kind: &'k Kind,
    address: NonNull<u8>,
) -> Option<Spot<'k>> {
    let head = ground.pages.head_of(ground.pages.page_of(address)?);
    let first = ground.pages.address_of(head) + colour_of(ground, head);
    let stride = kind.geometry.stride as usize;
    let index = address.addr().get().checked_sub(first)? / stride;
    let place =
        (index < kind.geometry.objects as usize).then(|| ground.pointer(first + index * stride))?;
    Some(Spot { kind, place })
}

/// The object whose place this is.
pub(crate) fn object_at(kind: &Kind, place: NonNull<u8>) -> NonNull<u8> {
    Spot { kind, place }.object()
}

/// Who took the object whose place this is, where that is tracked and nobody has written over it.
/// The slab is there meanwhile.
pub(crate) fn last_alloc(kind: &Kind, place: NonNull<u8>) -> Option<Track> {
    let [allocated, _] = Spot { kind, place }.users();
    allocated.track()
}
