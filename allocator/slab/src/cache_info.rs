//! What a cache is: its objects, its name, its rules. Written once, when it is made.

use core::ptr::NonNull;

use brickyard::Mobility;

use crate::caller::Callers;
use crate::debug::Checks;
use crate::geometry::Geometry;
use crate::layout::CacheId;

/// Brings an object into the state that it has whenever it is free: called once for each object
/// when its slab is made, not at every allocation.
///
/// Its rules: who frees an object leaves it in that state; it allocates nothing from its own cache;
/// objects of the cache are never asked for zeroed. What a design keeps in free objects lies behind
/// them then, and they are not poisoned, so the state lasts.
pub type Constructor = fn(NonNull<u8>);

/// What the objects of a cache are.
///
/// ```
/// use brickyard_slab::{CacheSpec, Checks};
/// let inodes = CacheSpec::new("inode", 600).align(8).reclaimable().checks(Checks::RED_ZONES);
/// assert_eq!(inodes.size, 600);
/// ```
#[derive(Debug, Clone, Copy)]
#[must_use = "a specification is no cache yet"]
pub struct CacheSpec {
    /// What statistics, findings and the rules of debugging call it.
    pub name: &'static str,
    /// Bytes of an object.
    pub size: usize,
    /// What its address is a multiple of: a power of two, at most a page.
    pub align: usize,
    /// See [`Constructor`].
    pub constructor: Option<Constructor>,
    /// What the page allocator is told of its slabs: [`Mobility::Reclaimable`] if the objects can
    /// be given back on request.
    pub mobility: Mobility,
    /// What is checked in any case; rules by name add to it.
    pub checks: Checks,
}

impl CacheSpec {
    /// Objects of `size` bytes, aligned to a word, that stay until they are freed.
    pub const fn new(name: &'static str, size: usize) -> Self {
        Self {
            name,
            size,
            align: size_of::<usize>(),
            constructor: None,
            mobility: Mobility::Unmovable,
            checks: Checks::NONE,
        }
    }

    /// The same, at multiples of `align` bytes.
    pub const fn align(self, align: usize) -> Self {
        Self { align, ..self }
    }

    /// The same, made by `constructor`.
    pub const fn constructor(self, constructor: Constructor) -> Self {
        Self {
            constructor: Some(constructor),
            ..self
        }
    }

    /// The same, of objects that can be given back on request: the page allocator keeps their slabs
    /// together.
    pub const fn reclaimable(self) -> Self {
        Self {
            mobility: Mobility::Reclaimable,
            ..self
        }
    }

    /// The same, with these checks.
    pub const fn checks(self, checks: Checks) -> Self {
        Self { checks, ..self }
    }
}

/// A cache, as all that serves it sees it.
#[derive(Debug, Clone, Copy)]
pub struct CacheInfo {
    /// Its number.
    pub id: CacheId,
    /// What its objects are.
    pub spec: CacheSpec,
    pub(crate) callers: Callers,
    /// The shape of its slabs.
    pub geometry: Geometry,
    /// From where an object's place in the slab begins to the object: the left red zone.
    pub before: usize,
    /// The bytes that are the design's in each place, behind the object and its red zone: as many
    /// as [`SlabDesign::tail_of`](crate::SlabDesign::tail_of) said.
    pub tail: usize,
}

impl CacheInfo {
    /// Is anything checked that the fast path does not check?
    #[inline]
    #[must_use]
    pub const fn is_checked(&self) -> bool {
        !self.spec.checks.is_empty()
    }
}
