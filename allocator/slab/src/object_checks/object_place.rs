//! An object's place in memory: what is painted and written around the object, and what is found
//! there.

use core::ptr::NonNull;

use super::patterns;
use crate::cache_info::CacheInfo;
use crate::debug::{Checks, Damage, Fault, Finding, Moment, Stored, TRACK_BYTES, Track, User};

/// An object's place in its slab, with its cache.
///
/// Invariant `in-its-place`: the place is a stride long and lies in its slab.
///
/// Invariant `painted`: what lies around the object is written by the maker of the slab, before
/// anybody else knows of it. After that it is written only by a caller that takes or frees the
/// object, while the object is neither in its slab nor in use.
#[derive(Clone, Copy)]
pub(super) struct Spot<'k> {
    pub(super) info: &'k CacheInfo,
    pub(super) place: NonNull<u8>,
}

impl<'k> Spot<'k> {
    fn at(&self, offset: usize) -> NonNull<u8> {
        debug_assert!(offset < self.info.geometry.stride as usize);
        // SAFETY: `in-its-place`: a place is a stride long, and all offsets here are below that.
        unsafe { self.place.add(offset) }
    }

    pub(super) fn object(&self) -> NonNull<u8> {
        self.at(self.info.before)
    }

    /// Fills both red zones with this value, if the cache has them.
    pub(super) fn paint_zones(&self, value: u8) {
        if !self.info.spec.checks.has(Checks::RED_ZONES) {
            return;
        }
        let (right, bytes) = self.info.right_zone();
        // SAFETY: `painted`; both zones lie in the place.
        unsafe {
            patterns::fill(self.place, self.info.before, value);
            patterns::fill(self.at(right), bytes, value);
        }
    }

    pub(super) fn poison(&self) {
        if self.info.is_poisoned() {
            // SAFETY: `painted`; an object has at least a byte.
            unsafe { patterns::poison(self.object(), self.info.spec.size) };
        }
    }

    /// Checks that both red zones have this value. Returns what is wrong, if anything.
    pub(super) fn zones(&self, value: u8) -> Option<Fault> {
        if !self.info.spec.checks.has(Checks::RED_ZONES) {
            return None;
        }
        let before = self.info.before;
        let (right, bytes) = self.info.right_zone();
        // SAFETY: `painted`: the zones have been written when the slab was made.
        if unsafe { !patterns::is_all(self.place, before, value) } {
            let found = |i| self.read(i);
            let damage = Damage::between(-(before as isize), before, found, |_| value);
            return damage.map(Fault::WrittenBefore);
        }
        // SAFETY: as above.
        if unsafe { !patterns::is_all(self.at(right), bytes, value) } {
            let found = |i| self.read(right + i);
            let offset = self.info.spec.size as isize;
            let damage = Damage::between(offset, bytes, found, |_| value);
            return damage.map(Fault::WrittenBehind);
        }
        None
    }

    /// Checks that the free object is as it was painted. Returns what is wrong, if anything.
    fn poisoned(&self) -> Option<Fault> {
        let (object, size) = (self.object(), self.info.spec.size);
        // SAFETY: `painted`: the object has been written when the slab was made.
        if !self.info.is_poisoned() || unsafe { patterns::is_poisoned(object, size) } {
            return None;
        }
        let end = size - 1;
        let expected = |i| {
            if i == end {
                patterns::POISON_END
            } else {
                patterns::POISON
            }
        };
        let found = |i| self.read(self.info.before + i);
        Damage::between(0, size, found, expected).map(Fault::UseAfterFree)
    }

    /// Returns what is wrong with the free object or around it, if anything.
    pub(super) fn damage_while_free(&self) -> Option<Fault> {
        self.zones(patterns::ZONE_FREE).or_else(|| self.poisoned())
    }

    /// Returns a byte of what is painted.
    fn read(&self, offset: usize) -> u8 {
        // SAFETY: `painted`.
        unsafe { self.at(offset).read() }
    }

    /// Returns the records of who allocated and who freed last, in memory.
    pub(super) fn stored(&self) -> Option<[&'k Stored; 2]> {
        if !self.info.spec.checks.has(Checks::TRACK) {
            return None;
        }
        let at = self.info.tracks_at();
        // SAFETY: `painted`: both have been written when the slab was made.
        Some(unsafe {
            [
                Stored::at(self.at(at)),
                Stored::at(self.at(at + TRACK_BYTES)),
            ]
        })
    }

    /// Returns who allocated and who freed last.
    pub(super) fn users(&self) -> [User; 2] {
        match self.stored() {
            Some(stored) => stored.map(Stored::user),
            None => [User::Untracked; 2],
        }
    }

    pub(super) fn finding(&self, fault: Fault, moment: Moment, noticed: Track) -> Finding {
        let [allocated, freed] = self.users();
        Finding {
            cache: self.info.spec.name,
            size: self.info.spec.size,
            object: self.object().addr().get(),
            fault,
            moment,
            noticed,
            allocated,
            freed,
        }
    }

    /// Records that nobody has allocated or freed it yet.
    pub(super) fn clear_tracks(&self) {
        if self.info.spec.checks.has(Checks::TRACK) {
            for offset in [self.info.tracks_at(), self.info.tracks_at() + TRACK_BYTES] {
                // SAFETY: `painted`; tracks lie in the place, at multiples of a word.
                unsafe { Stored::clear(self.at(offset)) };
            }
        }
    }
}
