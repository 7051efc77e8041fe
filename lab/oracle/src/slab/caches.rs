//! One type for caches of both kinds of callers, and frees that consume the [`InHand`].

use core::alloc::Layout;
use core::mem::MaybeUninit;
use core::ptr::NonNull;

use brickyard_slab::{
    CacheError, CacheId, CacheNumbers, CacheSpec, Everywhere, FreeFault, General, Leak, RawCache,
    SlabDesign, SlabError, Slabs, TaskOnly,
};

use brickyard_measure::objects::in_hand::InHand;

/// The callers that may use a cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Users {
    Tasks,
    All,
}

/// A cache for either kind of callers.
#[derive(Debug)]
pub(super) enum AnyCache<'s, 'm, D: SlabDesign<'m>> {
    Tasks(RawCache<'s, 'm, D, TaskOnly>),
    All(RawCache<'s, 'm, D, Everywhere>),
}

macro_rules! either {
    ($self:expr, $cache:ident => $what:expr) => {
        match $self {
            Self::Tasks($cache) => $what,
            Self::All($cache) => $what,
        }
    };
}

/// Number of objects that a reserve sets aside.
pub(super) const RESERVED: usize = 9;

impl<'s, 'm, D: SlabDesign<'m>> AnyCache<'s, 'm, D> {
    pub(super) fn new(
        slabs: &'s Slabs<'m, D>,
        users: Users,
        spec: CacheSpec,
    ) -> Result<Self, CacheError> {
        Ok(match users {
            Users::Tasks => Self::Tasks(slabs.cache(spec)?),
            Users::All => Self::All(slabs.cache(spec)?),
        })
    }

    pub(super) const fn users(&self) -> Users {
        match self {
            Self::Tasks(_) => Users::Tasks,
            Self::All(_) => Users::All,
        }
    }

    pub(super) const fn id(&self) -> CacheId {
        either!(self, cache => cache.id())
    }

    fn in_hand(&self, object: NonNull<u8>) -> InHand {
        // SAFETY: `in-hand`: just allocated from the cache, for this caller alone, with this size.
        unsafe { InHand::of(object, either!(self, cache => cache.size())) }
    }

    pub(super) fn alloc(&self) -> Result<InHand, SlabError> {
        let object = either!(self, cache => cache.alloc())?;
        Ok(self.in_hand(object))
    }

    pub(super) fn alloc_on(&self, node: usize) -> Result<InHand, SlabError> {
        let object = either!(self, cache => cache.alloc_on(node))?;
        Ok(self.in_hand(object))
    }

    pub(super) fn alloc_zeroed(&self) -> Result<InHand, SlabError> {
        let object = either!(self, cache => cache.alloc_zeroed())?;
        Ok(self.in_hand(object))
    }

    pub(super) fn alloc_bulk(&self, many: usize) -> Result<Vec<InHand>, SlabError> {
        let mut objects = vec![MaybeUninit::uninit(); many];
        let got = either!(self, cache => cache.alloc_bulk(&mut objects))?;
        let got = objects[..got].iter();
        Ok(got
            .map(|object| {
                // SAFETY: `alloc_bulk` has filled the first `got` places.
                self.in_hand(unsafe { object.assume_init() })
            })
            .collect())
    }

    pub(super) fn free(&self, object: InHand) -> Result<(), FreeFault> {
        let start = object.start();
        drop(object);
        self.free_anything(start)
    }

    /// Frees an address that is not in use, or is no object of this cache.
    pub(super) fn free_anything(&self, object: NonNull<u8>) -> Result<(), FreeFault> {
        // SAFETY: `in-hand`: `free` has consumed the owner's `InHand`; or the object is not in use
        // or not this cache's, which callers ensure.
        unsafe { either!(self, cache => cache.free(object)) }
    }

    /// Frees objects, and then perhaps an address that must be refused.
    pub(super) fn free_bulk(
        &self,
        objects: Vec<InHand>,
        bad: Option<NonNull<u8>>,
    ) -> Result<(), (usize, FreeFault)> {
        let objects = objects.into_iter().map(|object| object.start());
        let objects: Vec<_> = objects.chain(bad).collect();
        // SAFETY: `in-hand`: as above.
        unsafe { either!(self, cache => cache.free_bulk(&objects)) }
    }

    /// Sets objects aside, runs `meanwhile`, and takes `want` of them; frees the rest.
    pub(super) fn reserve(
        &self,
        want: usize,
        meanwhile: impl FnOnce(),
    ) -> Result<Vec<InHand>, SlabError> {
        either!(self, cache => {
            let mut reserve = cache.reserve::<RESERVED>()?;
            meanwhile();
            assert_eq!(reserve.left(), RESERVED);
            let taken: Vec<_> = (0..want.min(RESERVED))
                .map(|_| reserve.alloc().expect("enough objects were set aside"))
                .map(|object| self.in_hand(object))
                .collect();
            assert_eq!(reserve.left() + taken.len(), RESERVED);
            Ok(taken)
        })
    }

    pub(super) fn numbers(&self) -> CacheNumbers {
        either!(self, cache => cache.numbers())
    }

    pub(super) fn shrink(&self) {
        either!(self, cache => cache.shrink());
    }

    /// Returns the addresses of the objects in use, by the cache's own records.
    pub(super) fn in_use(&self) -> Vec<usize> {
        let mut all = Vec::new();
        either!(self, cache => cache.each_in_use(|object, _| all.push(object.addr().get())));
        all
    }

    pub(super) fn destroy(self) -> Result<(), (Self, Leak)> {
        match self {
            Self::Tasks(cache) => cache
                .destroy()
                .map_err(|(cache, leak)| (Self::Tasks(cache), leak)),
            Self::All(cache) => cache
                .destroy()
                .map_err(|(cache, leak)| (Self::All(cache), leak)),
        }
    }
}

/// The general sizes, for either kind of callers.
#[derive(Debug)]
pub(super) enum AnyGeneral<'s, 'm, D: SlabDesign<'m>> {
    Tasks(General<'s, 'm, D, TaskOnly>),
    All(General<'s, 'm, D, Everywhere>),
}

impl<'s, 'm, D: SlabDesign<'m>> AnyGeneral<'s, 'm, D> {
    pub(super) fn new(slabs: &'s Slabs<'m, D>, users: Users) -> Result<Self, CacheError> {
        Ok(match users {
            Users::Tasks => Self::Tasks(slabs.general()?),
            Users::All => Self::All(slabs.general()?),
        })
    }

    pub(super) const fn users(&self) -> Users {
        match self {
            Self::Tasks(_) => Users::Tasks,
            Self::All(_) => Users::All,
        }
    }

    /// Returns true if a size serves `layout`.
    pub(super) fn serves(&self, layout: Layout) -> bool {
        either!(self, general => general.cache_of(layout)).is_some()
    }

    /// Allocates memory for `layout`, with all its usable bytes.
    pub(super) fn alloc(&self, layout: Layout) -> Result<InHand, SlabError> {
        let memory = either!(self, general => general.alloc(layout))?;
        let usable = either!(self, general => general.usable(memory));
        assert!(usable >= layout.size(), "{usable} bytes for {layout:?}");
        // SAFETY: `in-hand`: just allocated, for this caller alone; `usable` bytes of it.
        Ok(unsafe { InHand::of(memory, usable) })
    }

    pub(super) fn free(&self, object: InHand, layout: Layout) -> Result<(), FreeFault> {
        let start = object.start();
        drop(object);
        // SAFETY: `in-hand`: the owner's `InHand` is consumed.
        unsafe { either!(self, general => general.free(start, layout)) }
    }

    pub(super) fn free_unsized(&self, object: InHand) -> Result<(), FreeFault> {
        let start = object.start();
        drop(object);
        self.free_anything(start)
    }

    /// Frees an address that is not in use, or did not come from here.
    pub(super) fn free_anything(&self, memory: NonNull<u8>) -> Result<(), FreeFault> {
        // SAFETY: callers ensure that.
        unsafe { either!(self, general => general.free_unsized(memory)) }
    }
}
