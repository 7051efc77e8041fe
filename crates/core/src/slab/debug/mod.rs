//! What is checked on request, per cache.
//!
//! Which caches, and what in them, is told when they are made: by [`CacheSpec::checks`](super::CacheSpec::checks), and by rules on their names ([`SlabPlan`](super::SlabPlan)), as a list in the
//! program ([`DebugRule`]) or as a text from outside ([`RuleText`], for example `FZPU,general-*;U,dentry`). What is found goes to the plan's `report` as a [`Finding`], which names the object, the
//! cache, and who had to do with it; then a bad free is refused, and a bad object is left out: it is never handed out again, and its slab never given back.
//!
//! | level | finds | bytes an object | an allocation does more | a free does more |
//! |---|---|---|---|---|
//! | none | double free of the last object freed on this CPU; on the slow path (once in a sheaf or a batch) what is no object of the cache; what comes back to its slab twice is refused there and counted | 0 | nothing | one comparison |
//! | `F` [`FREES`](Checks::FREES) | every double free, foreign object, address where no object begins | 0 | the slow path: a lock | the slow path: finds the slab, a lock twice |
//! | `Z` [`RED_ZONES`](Checks::RED_ZONES) | what `F` does; bytes written just before or behind an object, when it is freed or next allocated | its alignment, at least 8, before; 8 to 23 behind, more with larger alignments | reads and writes the zones | the same |
//! | `P` [`POISON`](Checks::POISON) | what `F` does; writes to a free object, when it is next allocated. A read of a free object sees 6b | 0 (`slqb-2008`: 8 to 23) | reads the object | writes the object |
//! | `U` [`TRACK`](Checks::TRACK) | what `F` does; and every finding, and each object in use, tells who allocated and who freed: caller, CPU, task, time | 64, up to 79 | reads the clock, writes 32 bytes | the same |
//!
//! A checked cache keeps no queues of free objects, so its free objects are in their slabs, and which ones are is exact; the fast path of other caches costs nothing for it. Objects with a constructor
//! are not poisoned: what the constructor made of them lasts. Their red zones and users are watched all the same.
//!
//! What is **not** found: a write that jumps over the red zone into another object; a read of any kind; a write to a free object that puts there what was there; an overflow inside what a general size
//! has more than was asked for. If two CPUs free one object at the same moment, one of them is refused when the object reaches its slab.
//!
//! | file | what it holds |
//! |---|---|
//! | `mod.rs` | what happens at an allocation, at a free, with a new slab |
//! | `checks.rs`, `rules.rs` | what can be checked; in which caches |
//! | `place.rs` | where all of it lies |
//! | `paint.rs` | red zones and poison |
//! | `track.rs` | who |
//! | `finding.rs` | what is told |

mod checks;
mod finding;
mod paint;
mod place;
mod rules;
mod track;

use core::panic::Location;
use core::ptr::NonNull;

use super::design::SlabDesign;
use super::error::FreeFault;
use super::ground::Ground;
use super::kind::Kind;
use super::queues::Queues;
use track::Stored;

pub use checks::Checks;
pub use finding::{Damage, Fault, Finding, Moment, SHOWN};
pub(super) use place::Place;
pub use rules::{DebugRule, RuleError, RuleText, Rules};
pub use track::{Track, User};

/// An object's place in its slab, with its kind.
///
/// Invariant `painted`: what lies around the object is written by whoever makes the slab, before anybody else knows of it, and then only by who takes or frees the object, while it is
/// neither in its slab nor in use.
#[derive(Clone, Copy)]
struct Spot<'k> {
    kind: &'k Kind,
    place: NonNull<u8>,
}

impl<'k> Spot<'k> {
    fn at(&self, offset: usize) -> NonNull<u8> {
        debug_assert!(offset < self.kind.geometry.stride as usize);
        // SAFETY: `in-its-place`: a place is a stride long, and all offsets here are below.
        unsafe { self.place.add(offset) }
    }

    fn object(&self) -> NonNull<u8> {
        self.at(self.kind.before)
    }

    /// Both red zones take this value, where the kind has them.
    fn paint_zones(&self, value: u8) {
        if !self.kind.spec.checks.has(Checks::RED_ZONES) {
            return;
        }
        let (right, bytes) = self.kind.right_zone();
        // SAFETY: `painted`; both zones lie in the place.
        unsafe {
            paint::fill(self.place, self.kind.before, value);
            paint::fill(self.at(right), bytes, value);
        }
    }

    fn poison(&self) {
        if self.kind.is_poisoned() {
            // SAFETY: `painted`; an object has at least a byte.
            unsafe { paint::poison(self.object(), self.kind.spec.size) };
        }
    }

    /// Have both red zones this value? If not, what is wrong.
    fn zones(&self, value: u8) -> Option<Fault> {
        if !self.kind.spec.checks.has(Checks::RED_ZONES) {
            return None;
        }
        let before = self.kind.before;
        let (right, bytes) = self.kind.right_zone();
        // SAFETY: `painted`: the zones have been written when the slab was made.
        if unsafe { !paint::is_all(self.place, before, value) } {
            let found = |i| self.read(i);
            let damage = Damage::between(-(before as isize), before, found, |_| value);
            return damage.map(Fault::WrittenBefore);
        }
        // SAFETY: as above.
        if unsafe { !paint::is_all(self.at(right), bytes, value) } {
            let found = |i| self.read(right + i);
            let offset = self.kind.spec.size as isize;
            let damage = Damage::between(offset, bytes, found, |_| value);
            return damage.map(Fault::WrittenBehind);
        }
        None
    }

    /// Is the free object as it was painted? If not, what is wrong.
    fn poisoned(&self) -> Option<Fault> {
        let (object, size) = (self.object(), self.kind.spec.size);
        // SAFETY: `painted`: the object has been written when the slab was made.
        if !self.kind.is_poisoned() || unsafe { paint::is_poisoned(object, size) } {
            return None;
        }
        let end = size - 1;
        let expected = |i| {
            if i == end {
                paint::POISON_END
            } else {
                paint::POISON
            }
        };
        let found = |i| self.read(self.kind.before + i);
        Damage::between(0, size, found, expected).map(Fault::UseAfterFree)
    }

    /// A byte of what is painted.
    fn read(&self, offset: usize) -> u8 {
        // SAFETY: `painted`.
        unsafe { self.at(offset).read() }
    }

    /// Who allocated and who freed last, in memory.
    fn stored(&self) -> Option<[&'k Stored; 2]> {
        if !self.kind.spec.checks.has(Checks::TRACK) {
            return None;
        }
        let at = self.kind.tracks_at();
        // SAFETY: `painted`: both have been written when the slab was made.
        Some(unsafe {
            [
                Stored::at(self.at(at)),
                Stored::at(self.at(at + track::TRACK_BYTES)),
            ]
        })
    }

    /// Who allocated and who freed last.
    fn users(&self) -> [User; 2] {
        match self.stored() {
            Some(stored) => stored.map(Stored::user),
            None => [User::Untracked; 2],
        }
    }

    fn finding(&self, fault: Fault, moment: Moment, noticed: Track) -> Finding {
        let [allocated, freed] = self.users();
        Finding {
            cache: self.kind.spec.name,
            size: self.kind.spec.size,
            object: self.object().addr().get(),
            fault,
            moment,
            noticed,
            allocated,
            freed,
        }
    }
}

/// A slab has been made, whose first place begins at `first`: its objects are free. Links, if there are any, lie where nothing is painted.
pub(super) fn new_slab<'m, D: SlabDesign<'m>>(ground: &Ground<'m, D>, kind: &Kind, first: usize) {
    if !kind.is_checked() {
        return;
    }
    for index in 0..kind.geometry.objects as usize {
        let place = ground.pointer(first + index * kind.geometry.stride as usize);
        let spot = Spot { kind, place };
        spot.paint_zones(paint::ZONE_FREE);
        spot.poison();
        if kind.spec.checks.has(Checks::TRACK) {
            for offset in [kind.tracks_at(), kind.tracks_at() + track::TRACK_BYTES] {
                // SAFETY: `painted`; tracks lie in the place, at multiples of a word.
                unsafe { Stored::clear(spot.at(offset)) };
            }
        }
    }
}

/// The object at `place` has left its slab and is to be handed out. An error: it is damaged, which has been reported, and must be left out.
pub(super) fn on_alloc<'m, D: SlabDesign<'m>>(
    ground: &Ground<'m, D>,
    kind: &Kind,
    place: NonNull<u8>,
    caller: &'static Location<'static>,
    report: fn(&Finding),
) -> Result<(), ()> {
    let spot = Spot { kind, place };
    let fault = spot.zones(paint::ZONE_FREE).or_else(|| spot.poisoned());
    if let Some(fault) = fault {
        report(&spot.finding(fault, Moment::Alloc, Track::now(ground, caller)));
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
    report: fn(&Finding),
) -> Result<NonNull<u8>, FreeFault> {
    let refused = |fault| {
        refuse(ground, kind, object, fault, caller, report);
        fault
    };
    let (head, index, spot) = locate(ground, kind, object).map_err(refused)?;
    if queues.in_slab(ground, kind, head, index) {
        return Err(refused(FreeFault::DoubleFree));
    }
    if let Some(fault) = spot.zones(paint::ZONE_USED) {
        // An object that was left out, or that another CPU is just freeing.
        if spot.zones(paint::ZONE_FREE).is_none() {
            return Err(refused(FreeFault::DoubleFree));
        }
        report(&spot.finding(fault, Moment::Free, Track::now(ground, caller)));
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
    kind: &Kind,
    object: NonNull<u8>,
    fault: FreeFault,
    caller: &'static Location<'static>,
    report: fn(&Finding),
) {
    let owner = match fault {
        FreeFault::WrongCache { cache } => ground.kind(cache),
        FreeFault::NotASlab => None,
        _ => Some(kind),
    };
    let spot = owner.and_then(|owner| spot_around(ground, owner, object));
    let name = owner.map_or("", |owner| owner.spec.name);
    let inside = spot.map(|spot| spot.object().addr().get());
    let Some(fault) = Fault::of(fault, name, inside) else {
        return;
    };
    let [allocated, freed] = spot.map_or([User::Untracked; 2], |spot| spot.users());
    report(&Finding {
        cache: kind.spec.name,
        size: kind.spec.size,
        object: object.addr().get(),
        fault,
        moment: Moment::Free,
        noticed: Track::now(ground, caller),
        allocated,
        freed,
    });
}

/// The place of `kind` that an address lies in, if it lies in one.
fn spot_around<'m, 'k, D: SlabDesign<'m>>(
    ground: &Ground<'m, D>,
    kind: &'k Kind,
    address: NonNull<u8>,
) -> Option<Spot<'k>> {
    let head = ground.pages.head_of(ground.pages.page_of(address)?);
    let first = ground.pages.address_of(head) + ground.pages.record(head).colour.get() as usize;
    let stride = kind.geometry.stride as usize;
    let index = address.addr().get().checked_sub(first)? / stride;
    let place =
        (index < kind.geometry.objects as usize).then(|| ground.pointer(first + index * stride))?;
    Some(Spot { kind, place })
}

/// Who took the object whose place this is, where that is tracked and nobody has written over it.
pub(super) fn last_alloc(kind: &Kind, place: NonNull<u8>) -> Option<Track> {
    let [allocated, _] = Spot { kind, place }.users();
    allocated.track()
}
