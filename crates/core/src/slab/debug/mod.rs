//! What is checked on request, per cache.

use core::panic::Location;
use core::ptr::NonNull;

use super::design::SlabDesign;
use super::error::FreeFault;
use super::geometry::Shape;
use super::ground::Ground;
use super::kind::{CacheSpec, Kind};
use super::queues::Queues;

/// What is checked in a cache beyond what costs nothing: a set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Checks(u32);

impl Checks {
    /// Nothing.
    pub const NONE: Self = Self(0);
    /// Every free is looked at before it is done: foreign objects, addresses between objects, double frees.
    pub const FREES: Self = Self(1);
    /// Bytes before and behind each object are painted and looked at.
    pub const RED_ZONES: Self = Self(1 << 1);
    /// Free objects are painted, and looked at when they are handed out again.
    pub const POISON: Self = Self(1 << 2);
    /// Who allocated and who freed each object last.
    pub const TRACK: Self = Self(1 << 3);
    /// All of them.
    pub const ALL: Self = Self(0b1111);

    /// Both sets.
    #[must_use]
    pub const fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Does it have all of `other`?
    #[must_use]
    pub const fn has(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// Is it empty?
    #[must_use]
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }
}

/// Which checks the caches with certain names get.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DebugRule {
    /// A cache's name, in which `*` stands for any characters.
    pub pattern: &'static str,
    /// What is checked in them.
    pub checks: Checks,
}

/// Who did it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Track {
    /// From where in the source.
    pub caller: &'static Location<'static>,
}

/// Something that is not as it must be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Finding {
    /// The cache's name.
    pub cache: &'static str,
}

/// Where an object lies in the place that a slab has for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) before: usize,
    pub(super) link: usize,
    pub(super) bytes: usize,
    pub(super) align: usize,
}

impl Place {
    pub(super) const fn of(_shape: Shape, spec: &CacheSpec) -> Self {
        Self {
            before: 0,
            link: 0,
            bytes: spec.size,
            align: spec.align,
        }
    }
}

pub(super) fn checks_of(rules: &[DebugRule], name: &str) -> Checks {
    let rule = rules.iter().find(|rule| rule.pattern == name);
    rule.map_or(Checks::NONE, |rule| rule.checks)
}

pub(super) fn new_slab<'m, D: SlabDesign<'m>>(
    _ground: &Ground<'m, D>,
    _kind: &Kind,
    _first: usize,
) {
}

pub(super) fn on_alloc<'m, D: SlabDesign<'m>>(
    _ground: &Ground<'m, D>,
    _kind: &Kind,
    _place: NonNull<u8>,
    _caller: &'static Location<'static>,
    _report: fn(&Finding),
) -> Result<(), ()> {
    Ok(())
}

pub(super) fn on_free<'m, D: SlabDesign<'m>>(
    _ground: &Ground<'m, D>,
    _queues: &impl Queues<'m, D>,
    _kind: &Kind,
    object: NonNull<u8>,
    _caller: &'static Location<'static>,
    _report: fn(&Finding),
) -> Result<NonNull<u8>, FreeFault> {
    Ok(object)
}

pub(super) fn last_alloc(_kind: &Kind, _place: NonNull<u8>) -> Option<Track> {
    None
}
