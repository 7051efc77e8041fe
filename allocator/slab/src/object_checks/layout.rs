//! Where an object lies in its place in a slab, and what lies around it there.
//!
//! ```text
//! | red zone | object | red zone, up to what follows | tail | who allocated | who freed |
//! 0          before   before + size                   tail_at                          stride
//! ```
//!
//! The left red zone is as long as the object's alignment (a word at least), so the object stays
//! aligned. The right one begins directly behind the object's last byte, so that not one byte can
//! be written past it unnoticed. The tracks of users stand at the end, behind the red zone, where a
//! small overflow does not reach them. The tail is the design's. A design needs one if what it
//! keeps in a free object may not lie in the object itself.

use crate::cache_info::{CacheInfo, CacheSpec};
use crate::debug::{Checks, TRACK_BYTES};
use crate::geometry::MAX_SIZE_OF_HEAP;

const WORD: usize = 8;

/// The places of checked objects are a multiple of this: the bitmap's grid, so that nothing is
/// added to them later.
const GRID: usize = 16;

/// Where an object lies in its place in a slab.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ObjectLayout {
    /// The bytes from the begin of the place to the object.
    pub(crate) before: usize,
    /// The bytes behind it that belong to the design.
    pub(crate) tail: usize,
    /// The bytes of the place.
    pub(crate) bytes: usize,
    /// The alignment of the place.
    pub(crate) align: usize,
}

impl ObjectLayout {
    /// Returns the place of objects of `spec`, with `tail` bytes for the design. If the
    /// specification is impossible, its values are passed through as they are.
    pub(crate) const fn of(spec: &CacheSpec, tail: usize) -> Self {
        let plain = Self {
            before: 0,
            tail: 0,
            bytes: spec.size,
            align: spec.align,
        };
        let impossible = spec.size == 0
            || spec.size > MAX_SIZE_OF_HEAP
            || !spec.align.is_power_of_two()
            || spec.align > MAX_SIZE_OF_HEAP;
        if impossible {
            return plain;
        }
        let zones = spec.checks.has(Checks::RED_ZONES);
        let tracks = tracks_of(spec.checks);
        if !zones && tail + tracks == 0 {
            return plain;
        }
        let align = if spec.align > WORD { spec.align } else { WORD };
        let before = if zones { align } else { 0 };
        let right = if zones { WORD } else { 0 };
        let used = (before + spec.size + right).next_multiple_of(WORD) + tail + tracks;
        let grid = if spec.checks.is_empty() { align } else { GRID };
        let bytes = used.next_multiple_of(if align > grid { align } else { grid });
        Self {
            before,
            tail,
            bytes,
            align,
        }
    }
}

const fn tracks_of(checks: Checks) -> usize {
    if checks.has(Checks::TRACK) {
        2 * TRACK_BYTES
    } else {
        0
    }
}

impl CacheInfo {
    /// Returns true if its free objects are poisoned.
    pub(super) const fn is_poisoned(&self) -> bool {
        self.spec.checks.has(Checks::POISON) && self.spec.constructor.is_none()
    }

    /// Returns where the tracks begin, from the begin of the place; the stride where there are
    /// none.
    pub(super) const fn tracks_at(&self) -> usize {
        self.geometry.stride as usize - tracks_of(self.spec.checks)
    }

    /// Returns where the tail begins, from the begin of the place.
    #[must_use]
    pub const fn tail_at(&self) -> usize {
        self.tracks_at() - self.tail
    }

    /// Returns where the right red zone begins and how many bytes it has.
    pub(super) const fn right_zone(&self) -> (usize, usize) {
        let begin = self.before + self.spec.size;
        (begin, self.tail_at() - begin)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::geometry::Geometry;

    /// Cache descriptions with all sets of checks, with and without a tail.
    fn caches() -> impl Iterator<Item = CacheInfo> {
        let sets = (0..16).map(|set: u32| {
            let members = Checks::LETTERS.iter().enumerate();
            members.fold(Checks::NONE, |checks, (i, (_, check))| {
                if set & (1 << i) == 0 {
                    checks
                } else {
                    checks.with(*check)
                }
            })
        });
        let sizes = [
            1, 2, 7, 8, 9, 16, 24, 60, 64, 100, 600, 1216, 4096, 32768, 131_072,
        ];
        let aligns = [1, 4, 8, 16, 64, 512, 4096];
        sets.flat_map(move |checks| {
            let each = sizes.into_iter().flat_map(move |size| {
                let each = aligns.into_iter().map(move |align| (size, align));
                each.flat_map(|(size, align)| [0, WORD].map(|tail| (size, align, tail)))
            });
            each.map(move |(size, align, tail)| {
                let spec = CacheSpec::new("", size).align(align).checks(checks);
                let layout = ObjectLayout::of(&spec, tail);
                CacheInfo {
                    id: 2,
                    spec,
                    callers: crate::caller::Callers::Tasks,
                    geometry: Geometry::of_heap(layout.bytes, layout.align, 4096).unwrap(),
                    before: layout.before,
                    tail: layout.tail,
                }
            })
        })
    }

    #[test]
    fn nothing_in_a_place_meets_anything_else() {
        for info in caches() {
            let (spec, stride) = (info.spec, info.geometry.stride as usize);
            assert!(info.before.is_multiple_of(spec.align), "{info:?}");
            let object_end = info.before + spec.size;
            let (right, right_bytes) = info.right_zone();
            assert_eq!(right, object_end);
            assert_eq!(right + right_bytes, info.tail_at());
            if spec.checks.has(Checks::RED_ZONES) {
                assert!(info.before >= 8 && right_bytes >= 8, "{info:?}");
            }
            if spec.checks.has(Checks::TRACK) {
                assert!(info.tracks_at() % 8 == 0);
                assert_eq!(info.tracks_at() + 2 * TRACK_BYTES, stride);
            }
            assert_eq!(info.tail_at() + info.tail, info.tracks_at());
            assert!(info.tail == 0 || info.tail_at() % 8 == 0, "{info:?}");
        }
    }

    #[test]
    fn what_is_not_checked_costs_nothing() {
        for info in caches() {
            let plain = info.spec.checks.is_empty() || info.spec.checks == Checks::FREES;
            if plain && info.tail == 0 {
                let geometry = Geometry::of_heap(info.spec.size, info.spec.align, 4096).unwrap();
                assert_eq!(info.geometry, geometry);
            }
        }
    }
}
