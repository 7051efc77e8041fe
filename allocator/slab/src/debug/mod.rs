//! What is checked on request, per cache.
//!
//! Which caches, and what in them, is told when they are made: by [`CacheSpec::checks`](crate::CacheSpec::checks), and by rules on their names ([`SlabPlan`](crate::SlabPlan)), as a list in the
//! program ([`DebugRule`]) or as a text from outside ([`RuleText`], for example `FZPU,general-*;U,dentry`). What is found goes to the plan's `report` as a [`Finding`], which names the object, the
//! cache, and who had to do with it. Then a bad free is refused, and nothing has changed; a damaged object is left out: it is never handed out again, and its slab never given back.
//!
//! | level | finds | bytes an object | an allocation does more | a free does more |
//! |---|---|---|---|---|
//! | none | a double free of the last object freed on this CPU; on the slow path (once in a sheaf; in `slqb-2008` always) what is no object of the cache; a double free of any other object when it reaches its slab: refused there, counted, and told | 0 | nothing | reads the last entry, one comparison: 0.2 ns |
//! | `F` [`FREES`](Checks::FREES) | every double free, foreign object, address where no object begins | 0 | the slow path: a lock | the slow path: finds the slab, a lock twice |
//! | `Z` [`RED_ZONES`](Checks::RED_ZONES) | what `F` does; bytes written just before or behind an object: at its free, its next allocation, the end of its slab | before it its alignment, at least 8; behind it 8 to 23, up to the alignment | reads and writes the zones | the same |
//! | `P` [`POISON`](Checks::POISON) | what `F` does; writes to a free object: at its next allocation, the end of its slab. Who reads a free object sees 6b | 0 (`slqb-2008`: 8 or 16) | reads the object | writes the object |
//! | `U` [`TRACK`](Checks::TRACK) | what `F` does; every finding, and each object in use, tells who allocated and who freed: caller, CPU, task, time | 64 (`slqb-2008`: up to 72) | asks for CPU, task and time, writes 32 bytes | the same |
//!
//! An allocation and its free together, one thread, objects of 64 / 1216 bytes, on a core as in the goals of this project (2.6 GHz): none 2.2 / 2.2 ns, `F` 37 / 84, `Z` 48 / 103, `P` 41 / 193,
//! `U` 37 / 109 (with a clock that costs nothing), all 73 / 232. On several CPUs each cache's lock is shared by all of them.
//!
//! A checked cache keeps no queues of free objects, so its free objects are in their slabs, and which ones are is exact; the fast path of other caches costs nothing for it. Objects with a constructor
//! are not poisoned: what the constructor made of them lasts. Their red zones and users are watched all the same.
//!
//! What is **not** found: a write that jumps over the red zone into another object; a read of any kind; a write to a free object that puts there what was there, or after its slab has gone; an overflow
//! inside what a general size has more than was asked for. If two CPUs free one object at the same moment, one of them is refused as it reaches the slab; but if a third has it by then, its bytes may have
//! been painted over.
//!
//! ```
//! use brickyard_slab::{CacheSpec, FreeFault, RuleText, Sheafed, SlabPlan, Slabs, TaskOnly};
//! # use brickyard_slab::{Pinned, Tables};
//! # use brickyard::OneCpu;
//! # mod support { include!("../../tests/support/pages.rs"); }
//! # fn main() -> Result<(), Box<dyn core::error::Error>> {
//! # let source = support::TestPages::new(64, 1);
//! let rules = RuleText::parse("ZU,inode*")?;
//! let plan = SlabPlan::new(8, 1).debug_text(rules, |finding| println!("{finding}"));
//! # let mut memory = vec![core::mem::MaybeUninit::uninit(); Slabs::<Sheafed<&support::TestPages, Pinned<OneCpu>>>::bytes(&plan, 1)];
//! # let mut tables = vec![core::mem::MaybeUninit::uninit(); Tables::bytes(64)];
//! # let cpus = unsafe { Pinned::new(OneCpu) };
//! # let slabs = Slabs::<Sheafed<_, _>>::new(plan, &source, cpus, &mut memory, Tables::Any(&mut tables))?;
//! let inodes = slabs.cache::<TaskOnly>(CacheSpec::new("inode", 600))?;
//! let object = inodes.alloc()?;
//! // SAFETY: a byte too many, but it is the slab's.
//! unsafe { object.add(600).write(0x41) };
//! // Printed: "slab: written behind an object's end: cache `inode`, object 0x... of 600 bytes", and so on.
//! // SAFETY: the object is not used any more.
//! assert_eq!(unsafe { inodes.free(object) }, Err(FreeFault::Damaged));
//! # Ok(()) }
//! ```
//!
//! | file | what it holds |
//! |---|---|
//! | `mod.rs` | what happens at an allocation, at a free, with a slab |
//! | `checks.rs`, `rules.rs` | what can be checked; in which caches |
//! | `place.rs` | where all of it lies |
//! | `spot.rs`, `paint.rs` | an object's place in memory; red zones and poison |
//! | `track.rs` | who |
//! | `finding.rs` | what is told |

mod checks;
mod finding;
mod paint;
mod place;
mod rules;
mod spot;
mod track;

use core::panic::Location;
use core::ptr::NonNull;

use spot::Spot;

use crate::design::SlabDesign;
use crate::error::FreeFault;
use crate::ground::Ground;
use crate::kind::Kind;
use crate::queues::{Queues, Whereabouts};

pub use checks::Checks;
pub use finding::{Damage, Fault, Finding, Moment, SHOWN};
pub(super) use place::Place;
pub use rules::{DebugRule, RuleError, RuleText, Rules};
pub use track::{Track, User};

/// Where the first object's place begins in the slab that begins at page `head`, in bytes.
fn colour_of<'m, D: SlabDesign<'m>>(ground: &Ground<'m, D>, head: usize) -> usize {
    ground.pages.record(head).colour.get() as usize
}

/// All places of a slab.
fn places<'m, D: SlabDesign<'m>>(
    ground: &Ground<'m, D>,
    kind: &Kind,
    first: usize,
) -> impl Iterator<Item = NonNull<u8>> {
    let stride = kind.geometry.stride as usize;
    (0..kind.geometry.objects as usize).map(move |index| ground.pointer(first + index * stride))
}

/// A slab has been made, whose first place begins at `first`: its objects are free. Links, if there are any, lie where nothing is painted.
pub(super) fn new_slab<'m, D: SlabDesign<'m>>(ground: &Ground<'m, D>, kind: &Kind, first: usize) {
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

/// The pages of the slab that begins at page `head` are about to be given back: what was written to its free objects would be noticed by nobody any more. It is reported, no more.
#[track_caller]
pub(super) fn old_slab<'m, D: SlabDesign<'m>>(ground: &Ground<'m, D>, kind: &Kind, head: usize) {
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
            let noticed = Track::now(ground, Location::caller());
            (ground.report)(&spot.finding(fault, Moment::Return, noticed));
        }
    }
}

/// The object at `place` has left its slab and is to be handed out. An error: it is damaged, which has been reported, and must be left out.
pub(super) fn on_alloc<'m, D: SlabDesign<'m>>(
    ground: &Ground<'m, D>,
    kind: &Kind,
    place: NonNull<u8>,
    caller: &'static Location<'static>,
) -> Result<(), ()> {
    let spot = Spot { kind, place };
    if let Some(fault) = spot.damage_while_free() {
        (ground.report)(&spot.finding(fault, Moment::Alloc, Track::now(ground, caller)));
        return Err(());
    }
    spot.paint_zones(paint::ZONE_USED);
    if let Some([allocated, _]) = spot.stored() {
        allocated.set(&Track::now(ground, caller));
    }
    Ok(())
}

/// An object is freed: its place, if it may be put back into its slab.
pub(super) fn on_free<'m, D: SlabDesign<'m>>(
    ground: &Ground<'m, D>,
    queues: &impl Queues<'m, D>,
    kind: &Kind,
    object: NonNull<u8>,
    caller: &'static Location<'static>,
) -> Result<NonNull<u8>, FreeFault> {
    let refused = |fault| {
        refuse(ground, queues, kind, object, fault, caller);
        fault
    };
    let (head, index, spot) = locate(ground, kind, object).map_err(refused)?;
    // Out: then it is its caller's, and keeps its slab.
    match queues.look(ground, kind, head, index, |_, at| at) {
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
        (ground.report)(&spot.finding(fault, Moment::Free, Track::now(ground, caller)));
        return Err(FreeFault::Damaged);
    }
    spot.paint_zones(paint::ZONE_FREE);
    spot.poison();
    if let Some([_, freed]) = spot.stored() {
        freed.set(&Track::now(ground, caller));
    }
    Ok(spot.place)
}

/// Which object of which slab of `kind` begins at an address: the slab's first page, the object's number, its place.
fn locate<'m, 'k, D: SlabDesign<'m>>(
    ground: &Ground<'m, D>,
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

/// Reports a free that is refused for what `object` is: whose it is, and who had to do with it.
pub(super) fn refuse<'m, D: SlabDesign<'m>>(
    ground: &Ground<'m, D>,
    queues: &impl Queues<'m, D>,
    kind: &Kind,
    object: NonNull<u8>,
    fault: FreeFault,
    caller: &'static Location<'static>,
) {
    report_free(ground, queues, kind, object, fault, (Moment::Free, caller));
}

/// Reports a free that turned out bad when the object was put back into its slab.
#[track_caller]
pub(super) fn refuse_late<'m, D: SlabDesign<'m>>(
    ground: &Ground<'m, D>,
    queues: &impl Queues<'m, D>,
    kind: &Kind,
    object: NonNull<u8>,
    fault: FreeFault,
) {
    let caller = Location::caller();
    report_free(ground, queues, kind, object, fault, (Moment::Flush, caller));
}

fn report_free<'m, D: SlabDesign<'m>>(
    ground: &Ground<'m, D>,
    queues: &impl Queues<'m, D>,
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
        .and_then(|spot| users_of(ground, queues, spot))
        .unwrap_or([User::Untracked; 2]);
    (ground.report)(&Finding {
        cache: kind.spec.name,
        size: kind.spec.size,
        object: object.addr().get(),
        fault,
        moment,
        noticed: Track::now(ground, caller),
        allocated,
        freed,
    });
}

/// Who had to do with an object that the caller does not have: read while its slab cannot go.
/// `None` if it has gone, or the caller must not look.
fn users_of<'m, D: SlabDesign<'m>>(
    ground: &Ground<'m, D>,
    queues: &impl Queues<'m, D>,
    spot: Spot<'_>,
) -> Option<[User; 2]> {
    let kind = spot.kind;
    // The cache may be another than the one that the caller came to.
    if !ground.may_touch(kind) {
        return None;
    }
    let (head, index) = ground.find(kind, spot.place).ok()?;
    queues.look(ground, kind, head, index, |place, _| {
        Spot { kind, place }.users()
    })
}

/// Reports that the link of the free object at `place` was written over, on which `lost` others hung.
#[track_caller]
pub(super) fn broken_link<'m, D: SlabDesign<'m>>(
    ground: &Ground<'m, D>,
    kind: &Kind,
    place: usize,
    lost: u32,
) {
    let spot = Spot {
        kind,
        place: ground.pointer(place),
    };
    let noticed = Track::now(ground, Location::caller());
    (ground.report)(&spot.finding(Fault::BrokenLink { lost }, Moment::Queue, noticed));
}

/// The place of `kind` that an address lies in, if it lies in one.
fn spot_around<'m, 'k, D: SlabDesign<'m>>(
    ground: &Ground<'m, D>,
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
pub(super) fn object_at(kind: &Kind, place: NonNull<u8>) -> NonNull<u8> {
    Spot { kind, place }.object()
}

/// Who took the object whose place this is, where that is tracked and nobody has written over it.
/// The slab is there meanwhile.
pub(super) fn last_alloc(kind: &Kind, place: NonNull<u8>) -> Option<Track> {
    let [allocated, _] = Spot { kind, place }.users();
    allocated.track()
}
