//! A cache's description: its objects, its name, its rules. Written once, when it is made.

use core::ptr::NonNull;

use brickyard::Mobility;

use crate::caller::Callers;
use crate::debug::Checks;
use crate::geometry::Geometry;
use crate::layout::CacheId;

/// What brings an object into the state that it has whenever it is free. It is called once for each
/// object when its slab is made, not at every allocation.
///
/// Its rules: a caller that frees an object leaves it in that state. The constructor allocates
/// nothing from its own cache. Objects of the cache are never asked for zeroed. With a constructor,
/// what a design keeps in free objects lies behind them, and they are not poisoned, so the state
/// lasts.
#[derive(Debug, Clone, Copy)]
pub enum Constructor {
    /// A function of the object.
    Plain(fn(NonNull<u8>)),
    /// A function of the object and of this number, for constructors that are known at run time
    /// only: the address of something, for example.
    With(fn(NonNull<u8>, usize), usize),
}

impl Constructor {
    /// Calls the function for an object.
    pub(crate) fn run(self, object: NonNull<u8>) {
        match self {
            Self::Plain(function) => function(object),
            Self::With(function, number) => function(object, number),
        }
    }
}

/// A description of a cache's objects.
///
/// ```
/// use brickyard_slab::{CacheSpec, Checks};
/// let inodes = CacheSpec::new("inode", 600).align(8).reclaimable().checks(Checks::RED_ZONES);
/// assert_eq!(inodes.size, 600);
/// ```
#[derive(Debug, Clone, Copy)]
#[must_use = "a specification is no cache yet"]
pub struct CacheSpec {
    /// The name in statistics, findings and the rules of debugging.
    pub name: &'static str,
    /// Bytes of an object.
    pub size: usize,
    /// The alignment of an object: a power of two, at most a page.
    pub align: usize,
    /// See [`Constructor`].
    pub constructor: Option<Constructor>,
    /// The mobility that the page allocator is told of its slabs: [`Mobility::Reclaimable`] if the
    /// objects can be given back on request.
    pub mobility: Mobility,
    /// The checks that are made in any case. Rules by name add to them.
    pub checks: Checks,
}

impl CacheSpec {
    /// Describes objects of `size` bytes, aligned to a word, that stay until they are freed. The
    /// default design places objects at multiples of 16 bytes: one of 200 bytes takes 208.
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

    /// Returns the same description, with objects at multiples of `align` bytes.
    pub const fn align(self, align: usize) -> Self {
        Self { align, ..self }
    }

    /// Returns the same description, with objects made by `constructor`.
    pub const fn constructor(self, constructor: fn(NonNull<u8>)) -> Self {
        Self {
            constructor: Some(Constructor::Plain(constructor)),
            ..self
        }
    }

    /// Returns the same description, with objects made by `constructor`, which is passed `number`
    /// too.
    pub const fn constructor_with(
        self,
        constructor: fn(NonNull<u8>, usize),
        number: usize,
    ) -> Self {
        Self {
            constructor: Some(Constructor::With(constructor, number)),
            ..self
        }
    }

    /// Returns the same description, for objects that can be given back on request. The page
    /// allocator keeps their slabs together.
    pub const fn reclaimable(self) -> Self {
        Self {
            mobility: Mobility::Reclaimable,
            ..self
        }
    }

    /// Returns the same description, with these checks.
    pub const fn checks(self, checks: Checks) -> Self {
        Self { checks, ..self }
    }
}

/// A cache, as the code that serves it sees it.
#[derive(Debug, Clone, Copy)]
pub struct CacheInfo {
    /// Its number.
    pub id: CacheId,
    /// A description of its objects.
    pub spec: CacheSpec,
    pub(crate) callers: Callers,
    /// The shape of its slabs.
    pub geometry: Geometry,
    /// The bytes from the begin of an object's place to the object: the left red zone.
    pub before: usize,
    /// The bytes of each place that belong to the design, behind the object and its red zone: as
    /// many as [`SlabDesign::tail_of`](crate::SlabDesign::tail_of) said.
    pub tail: usize,
}

impl CacheInfo {
    /// Returns true if anything is checked that the fast path does not check.
    #[inline]
    #[must_use]
    pub const fn is_checked(&self) -> bool {
        !self.spec.checks.is_empty()
    }
}
