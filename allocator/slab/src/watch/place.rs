//! Where an object lies in the place that a slab has for it, and what lies around it there.
//!
//! ```text
//! | red zone | object | red zone, up to what follows | link | who allocated | who freed |
//! 0          before   before + size                   link                             stride
//! ```
//!
//! The left red zone is as long as the object's alignment (a word at least), so the object stays
//! aligned; the right one begins at its last byte's end, so that not one byte can be written past
//! it unnoticed. What is known of users stands at the end, behind the red zone, where a small
//! overflow does not reach it. The link of a design that chains free objects lies in the object's
//! first word, or behind the red zone where the object's bytes have to last while it is free: a
//! constructor's state, poison; or where it is too small.

use crate::debug::{Checks, TRACK_BYTES};
use crate::geometry::{MAX_SIZE, Shape};
use crate::kind::{CacheSpec, Kind};

const WORD: usize = 8;

/// What places of checked objects are a multiple of: what the bitmap's grid asks for, so that
/// nothing is added to them later.
const GRID: usize = 16;

/// Where an object lies in the place that a slab has for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Place {
    /// From where the place begins to the object.
    pub(crate) before: usize,
    /// From where the place begins to the link of a design that has one.
    pub(crate) link: usize,
    /// The bytes of the place.
    pub(crate) bytes: usize,
    /// What its address is a multiple of.
    pub(crate) align: usize,
}

impl Place {
    /// The place of objects of `spec`, as they are where nothing can be made of the specification.
    pub(crate) const fn of(shape: Shape, spec: &CacheSpec) -> Self {
        let plain = Self {
            before: 0,
            link: 0,
            bytes: spec.size,
            align: spec.align,
        };
        let impossible = spec.size == 0
            || spec.size > MAX_SIZE
            || !spec.align.is_power_of_two()
            || spec.align > MAX_SIZE;
        if impossible {
            return plain;
        }
        let zones = spec.checks.has(Checks::RED_ZONES);
        let behind = matches!(shape, Shape::Linked) && links_behind(spec);
        let tracks = tracks_of(spec.checks);
        if !zones && !behind && tracks == 0 {
            return plain;
        }
        let align = if spec.align > WORD { spec.align } else { WORD };
        let before = if zones { align } else { 0 };
        let right = if zones { WORD } else { 0 };
        let link = if behind { WORD } else { 0 };
        let tail = link + tracks;
        let used = (before + spec.size + right).next_multiple_of(WORD) + tail;
        let grid = if spec.checks.is_empty() { align } else { GRID };
        let bytes = used.next_multiple_of(if align > grid { align } else { grid });
        Self {
            before,
            link: if behind { bytes - tail } else { before },
            bytes,
            align,
        }
    }
}

/// Must the link lie behind the object?
const fn links_behind(spec: &CacheSpec) -> bool {
    let small = spec.size < WORD && !spec.checks.is_empty();
    spec.constructor.is_some() || spec.checks.has(Checks::POISON) || small
}

const fn tracks_of(checks: Checks) -> usize {
    if checks.has(Checks::TRACK) {
        2 * TRACK_BYTES
    } else {
        0
    }
}

impl Kind {
    /// Are its free objects poisoned?
    pub(super) const fn is_poisoned(&self) -> bool {
        self.spec.checks.has(Checks::POISON) && self.spec.constructor.is_none()
    }

    /// Where the tracks begin, from where the place begins; the stride where there are none.
    pub(super) const fn tracks_at(&self) -> usize {
        self.geometry.stride as usize - tracks_of(self.spec.checks)
    }

    /// Where the right red zone begins and how many bytes it has.
    pub(super) const fn right_zone(&self) -> (usize, usize) {
        let begin = self.before + self.spec.size;
        let end = if self.link >= begin {
            self.link
        } else {
            self.tracks_at()
        };
        (begin, end - begin)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::geometry::Geometry;

    fn kinds() -> impl Iterator<Item = (Shape, Kind)> {
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
        sets.flat_map(|checks| {
            let shapes = [Shape::Linked, Shape::Bitmap].into_iter();
            shapes.flat_map(move |shape| {
                [1, 2, 7, 8, 9, 16, 24, 60, 64, 100, 600, 1216, 4096, 32768]
                    .into_iter()
                    .flat_map(move |size| {
                        [1, 4, 8, 16, 64, 512, 4096]
                            .into_iter()
                            .flat_map(move |align| {
                                [None, Some((|_| {}) as fn(_))]
                                    .into_iter()
                                    .map(move |made| {
                                        let mut spec =
                                            CacheSpec::new("", size).align(align).checks(checks);
                                        spec.constructor = made;
                                        let place = Place::of(shape, &spec);
                                        let geometry =
                                            Geometry::new(shape, place.bytes, place.align, 4096)
                                                .unwrap();
                                        let kind = Kind {
                                            id: 2,
                                            spec,
                                            callers: crate::caller::Callers::Tasks,
                                            geometry,
                                            before: place.before,
                                            link: place.link,
                                        };
                                        (shape, kind)
                                    })
                            })
                    })
            })
        })
    }

    #[test]
    fn nothing_in_a_place_meets_anything_else() {
        for (shape, kind) in kinds() {
            let (spec, stride) = (kind.spec, kind.geometry.stride as usize);
            assert!(kind.before.is_multiple_of(spec.align), "{kind:?}");
            let object_end = kind.before + spec.size;
            let (right, right_bytes) = kind.right_zone();
            assert_eq!(right, object_end);
            assert!(right + right_bytes <= stride, "{kind:?}");
            if spec.checks.has(Checks::RED_ZONES) {
                assert!(kind.before >= 8 && right_bytes >= 8, "{kind:?}");
            }
            if spec.checks.has(Checks::TRACK) {
                assert!(right + right_bytes <= kind.tracks_at() && kind.tracks_at() % 8 == 0);
                assert_eq!(kind.tracks_at() + 2 * TRACK_BYTES, stride);
            }
            if matches!(shape, Shape::Bitmap) {
                continue;
            }
            // The link: in the object or behind the right zone and before the tracks.
            assert!(kind.link % 8 == 0 && kind.link + 8 <= stride, "{kind:?}");
            let behind = kind.link >= object_end;
            if behind {
                assert!(kind.link + 8 <= kind.tracks_at(), "{kind:?}");
                assert_eq!(right + right_bytes, kind.link);
            } else {
                assert_eq!(kind.link, kind.before);
                assert!(spec.checks.is_empty() || spec.size >= 8, "{kind:?}");
            }
            let lasts = spec.constructor.is_some() || kind.is_poisoned();
            assert!(behind || !lasts, "{kind:?}");
        }
    }

    #[test]
    fn what_is_not_checked_costs_nothing() {
        for (shape, kind) in kinds() {
            let plain = kind.spec.checks.is_empty() || kind.spec.checks == Checks::FREES;
            let linked = matches!(shape, Shape::Linked);
            let small = kind.spec.size < 8 && !kind.spec.checks.is_empty();
            if plain && !(linked && (kind.spec.constructor.is_some() || small)) {
                let geometry = Geometry::new(shape, kind.spec.size, kind.spec.align, 4096).unwrap();
                assert_eq!(kind.geometry, geometry);
            }
        }
    }
}
