//! A cache of objects that are bytes to it.

use core::fmt;
use core::marker::PhantomData;
use core::mem::{ManuallyDrop, MaybeUninit};
use core::panic::Location;
use core::ptr::NonNull;

use brickyard::Platform;
use brickyard_sync::OnceSlot;

use crate::cache_info::{CacheInfo, CacheSpec};
use crate::caller::{Caller, Callers};
use crate::debug::{Moment, Track};
use crate::design::{SlabDesign, Whereabouts};
use crate::error::{CacheError, FreeFault, SlabError};
use crate::layout::CacheId;
use crate::numbers::CacheNumbers;
use crate::slabs::Slabs;
use crate::watch;

/// A cache of equal objects, for callers of kind `C`.
///
/// A hit costs a few instructions and no lock ([`Sheafed`](crate::Sheafed) touches no object); a
/// miss takes a lock, for many objects at once; what the CPUs do not have comes from slabs, and
/// those from the source of pages.
///
/// **Who may call**: a cache for [`TaskOnly`](crate::TaskOnly) masks no interrupts, and refuses
/// whoever runs in one; a cache for [`Everywhere`](crate::Everywhere) masks them. They are
/// different types, so one cannot be handed on as the other.
pub struct RawCache<'s, 'm, D: SlabDesign<'m>, C> {
    slabs: &'s Slabs<'m, D>,
    id: CacheId,
    /// See [`SlabDesign::handle`].
    handle: usize,
    caller: PhantomData<fn() -> C>,
}

impl<'m, D: SlabDesign<'m>, C> fmt::Debug for RawCache<'_, 'm, D, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("RawCache").field(&self.id).finish()
    }
}

/// Why a cache could not be destroyed. It stays as it is, and none of its memory is lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Leak {
    /// Objects that are still in use.
    pub objects: u64,
    /// What keeps the cache.
    pub remains: Remains,
}

/// What keeps a cache from being destroyed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Remains {
    /// Objects in use, or in queues of CPUs that the platform cannot run on.
    Objects,
    /// Empty queues of CPUs that the platform cannot run on: the next cache of the same number
    /// would take them for its own.
    Queues,
    /// Somebody who is just trimming or counting all caches, or who comes to this one by its
    /// number; or the caller is an interrupt, and the cache for tasks only.
    Users,
}

impl fmt::Display for Leak {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.remains {
            Remains::Objects => write!(
                f,
                "{} objects are still in use: free them before the cache is destroyed",
                self.objects
            ),
            Remains::Queues => f.write_str(
                "CPUs that cannot be reached have queues of the cache: drain on each of them before it is destroyed",
            ),
            Remains::Users => f.write_str(
                "the cache is just being trimmed, counted or used by its number, or this is an interrupt: try again later, as a task",
            ),
        }
    }
}

impl core::error::Error for Leak {}

impl<'s, 'm, D: SlabDesign<'m>, C: Caller> RawCache<'s, 'm, D, C> {
    pub(crate) fn of(slabs: &'s Slabs<'m, D>, info: &CacheInfo) -> Self {
        Self {
            slabs,
            id: info.id,
            handle: slabs.queues.handle(info.id),
            caller: PhantomData,
        }
    }

    pub(crate) fn info(&self) -> &'m CacheInfo {
        let info = self.slabs.backend.info(self.id);
        info.expect("a cache's info is there as long as the cache")
    }

    /// Its number.
    #[must_use]
    pub const fn id(&self) -> CacheId {
        self.id
    }

    /// An object, with whatever is in it (what the constructor made of it, if there is one).
    ///
    /// # Errors
    /// [`SlabError`].
    #[inline(always)]
    #[track_caller]
    pub fn alloc(&self) -> Result<NonNull<u8>, SlabError> {
        self.slabs.take::<C>(self.id, self.handle)
    }

    /// An object of the memory of a node, if there is some; else of any. For who knows where it
    /// will be used; slower than [`RawCache::alloc`].
    ///
    /// # Errors
    /// [`SlabError`].
    #[track_caller]
    pub fn alloc_on(&self, node: usize) -> Result<NonNull<u8>, SlabError> {
        if !self.slabs.backend.admits::<C>() {
            return Err(SlabError::TaskOnly);
        }
        let Slabs {
            backend, queues, ..
        } = self.slabs;
        self.slabs
            .alloc_by(self.info(), Location::caller(), |info| {
                queues.miss_on::<C>(backend, info, node)
            })
    }

    /// An object of zeros. Not for caches with a constructor, whose work it would undo.
    ///
    /// # Errors
    /// [`SlabError`]; [`SlabError::Constructed`] if there is a constructor.
    #[inline]
    #[track_caller]
    pub fn alloc_zeroed(&self) -> Result<NonNull<u8>, SlabError> {
        let spec = &self.info().spec;
        if spec.constructor.is_some() {
            return Err(SlabError::Constructed);
        }
        let object = self.alloc()?;
        // SAFETY: `object-bytes`.
        unsafe { object.write_bytes(0, spec.size) };
        Ok(object)
    }

    /// Fills `out` with objects; how many. Fewer only if there is no memory for more.
    ///
    /// # Errors
    /// [`SlabError`], if there is not one.
    #[track_caller]
    pub fn alloc_bulk(&self, out: &mut [MaybeUninit<NonNull<u8>>]) -> Result<usize, SlabError> {
        for (done, place) in out.iter_mut().enumerate() {
            match self.alloc() {
                Ok(object) => {
                    place.write(object);
                }
                Err(error) if done == 0 => return Err(error),
                Err(_) => return Ok(done),
            }
        }
        Ok(out.len())
    }

    /// Takes an object back.
    ///
    /// Mistakes are looked for where that costs nothing: that the object was not the last one freed
    /// on this CPU; and on the slow path (once in as many frees as a sheaf or a batch holds) that
    /// it is one of this cache's. Bad frees that are noticed only when the object reaches its slab
    /// are refused there and counted ([`CacheNumbers::refused`]). All are told to the plan's
    /// `report` as well. What can be checked beyond that: see [`debug`](crate::debug). A bad free
    /// that nothing notices goes into a queue like a good one, and what it named is handed out
    /// next.
    ///
    /// # Safety
    /// It is an object of this cache, which this cache handed out and which was not freed since;
    /// nobody uses it any more. Of a cache that is checked ([`Checks::FREES`](crate::Checks::FREES)
    /// or any other) it may be any address: what is no object in use is refused. There it is enough
    /// that if it is one, nobody uses it any more, and nobody else frees it at the same time.
    ///
    /// # Errors
    /// [`FreeFault`]; nothing has changed.
    #[inline(always)]
    #[track_caller]
    pub unsafe fn free(&self, object: NonNull<u8>) -> Result<(), FreeFault> {
        // SAFETY: passed on.
        unsafe { self.slabs.give::<C>(self.id, self.handle, object) }
    }

    /// Takes objects back.
    ///
    /// # Safety
    /// As [`RawCache::free`], of each; no two are the same.
    ///
    /// # Errors
    /// How many were freed before a bad one, and what is wrong with that.
    #[track_caller]
    pub unsafe fn free_bulk(&self, objects: &[NonNull<u8>]) -> Result<(), (usize, FreeFault)> {
        for (done, &object) in objects.iter().enumerate() {
            // SAFETY: passed on.
            unsafe { self.free(object) }.map_err(|fault| (done, fault))?;
        }
        Ok(())
    }

    /// The bytes of an object.
    #[must_use]
    pub fn size(&self) -> usize {
        self.info().spec.size
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &'static str {
        self.info().spec.name
    }

    /// What is counted of it. An interrupt is not told counts of a cache for tasks, whose locks it
    /// may have interrupted: they are 0.
    #[must_use]
    pub fn numbers(&self) -> CacheNumbers {
        self.slabs.numbers_of(self.info())
    }

    /// Gives back all that is free: this CPU's queues, those of the CPUs that the platform can run
    /// on, and those that CPUs share. An interrupt leaves a cache for tasks alone, so a platform
    /// that runs work on other CPUs by an interrupt reaches no queues of such a cache there.
    pub fn shrink(&self) {
        let Slabs {
            backend, queues, ..
        } = self.slabs;
        let info = self.info();
        // Asked on each CPU: an interrupt may do the work there.
        let mut drain = || {
            if backend.admits::<C>() {
                queues.drain::<C>(backend, info);
            }
        };
        for cpu in 0..self.slabs.plan.cpus {
            backend.local.run_on(cpu, &mut drain);
        }
        drain();
        if backend.admits::<C>() {
            queues.shrink::<C>(backend, info);
        }
    }

    /// Ends the cache, if no object is in use any more: what is free goes back, and its number to
    /// the next cache.
    ///
    /// # Errors
    /// The cache, as it was but for what its queues held, and why. If it is for objects in use,
    /// [`RawCache::each_in_use`] names them.
    pub fn destroy(self) -> Result<(), (Self, Leak)> {
        match self.end() {
            Ok(()) => Ok(()),
            Err(leak) => Err((self, leak)),
        }
    }

    fn end(&self) -> Result<(), Leak> {
        let Slabs {
            backend, queues, ..
        } = self.slabs;
        let (info, slot) = (self.info(), &backend.caches[usize::from(self.id)]);
        let users = Leak {
            objects: 0,
            remains: Remains::Users,
        };
        if !self.slabs.backend.admits::<C>() {
            return Err(users);
        }
        // Nobody who comes by the number is turned away before it is known that nothing is in use.
        self.shrink();
        self.is_unused()?;
        let closed = Closed::of(slot).ok_or(users)?;
        // What users left who were here until just now.
        queues.drain::<C>(backend, info);
        queues.shrink::<C>(backend, info);
        self.is_unused()?;
        // SAFETY: `one-handle`: this is the handle, nothing borrows it, and the slot is closed.
        unsafe { closed.clear() };
        Ok(())
    }

    /// Is nothing left of the cache, but for what it is?
    fn is_unused(&self) -> Result<(), Leak> {
        let objects = self.numbers().out;
        let remains = match objects {
            0 if self.slabs.queues.is_clear(self.info()) => return Ok(()),
            0 => Remains::Queues,
            _ => Remains::Objects,
        };
        Err(Leak { objects, remains })
    }

    /// Calls `each` for every object that is in no slab: in use, or in a queue of a CPU (none,
    /// after [`RawCache::shrink`]). With who took it, where that is tracked. Looks at every page of
    /// the span and takes a lock for each object; for reports. Exact while nobody else uses the
    /// cache; else what others take and free meanwhile may be told or not, and what is told may be
    /// free by then. An interrupt is told none of a cache for tasks.
    pub fn each_in_use(&self, mut each: impl FnMut(NonNull<u8>, Option<Track>)) {
        if !self.slabs.backend.admits::<C>() {
            return;
        }
        let Slabs {
            backend, queues, ..
        } = self.slabs;
        let info = self.info();
        for page in 0..backend.pages.count() {
            if !backend.pages.begins(page, self.id) {
                continue;
            }
            for index in 0..info.geometry.objects as usize {
                // Who took it stands in the slab's own pages, so it is read while the slab cannot
                // go.
                let found = queues.look(backend, info, page, index, |place, at| {
                    let is_out = at == Whereabouts::Out;
                    is_out.then(|| (place, watch::last_alloc(info, place)))
                });
                if let Some((place, track)) = found.flatten() {
                    each(watch::object_at(info, place), track);
                }
            }
        }
    }
}

/// A cache that lets nobody in any more, until this is dropped; or for good, once the cache has
/// gone.
struct Closed<'m>(&'m OnceSlot<CacheInfo>);

impl<'m> Closed<'m> {
    fn of(slot: &'m OnceSlot<CacheInfo>) -> Option<Self> {
        slot.close().then_some(Self(slot))
    }

    /// # Safety
    /// As [`OnceSlot::clear`].
    unsafe fn clear(self) {
        let slot = ManuallyDrop::new(self).0;
        // SAFETY: passed on.
        unsafe { slot.clear() };
    }
}

impl Drop for Closed<'_> {
    fn drop(&mut self) {
        self.0.reopen();
    }
}

impl<'m, D: SlabDesign<'m>> Slabs<'m, D> {
    /// Makes a cache, for callers of kind `C`. It lives until [`RawCache::destroy`], or as long as
    /// these slabs do.
    ///
    /// # Errors
    /// [`CacheError`].
    pub fn cache<C: Caller>(&self, spec: CacheSpec) -> Result<RawCache<'_, 'm, D, C>, CacheError> {
        let info = self.make::<C>(spec, self.user_ids())?;
        Ok(RawCache::of(self, info))
    }

    /// An object of the cache with this number and [handle](SlabDesign::handle), for who has it
    /// (`one-handle`).
    #[inline(always)]
    #[track_caller]
    pub(crate) fn take<C: Caller>(
        &self,
        cache: CacheId,
        handle: usize,
    ) -> Result<NonNull<u8>, SlabError> {
        if !self.backend.admits::<C>() {
            return Err(SlabError::TaskOnly);
        }
        match self.queues.hit::<C>(&self.backend, handle) {
            Some(object) => Ok(object),
            None => self.alloc_missed::<C>(cache, Location::caller()),
        }
    }

    /// The way back.
    ///
    /// # Safety
    /// As [`RawCache::free`].
    #[inline(always)]
    #[track_caller]
    pub(crate) unsafe fn give<C: Caller>(
        &self,
        cache: CacheId,
        handle: usize,
        object: NonNull<u8>,
    ) -> Result<(), FreeFault> {
        if !self.backend.admits::<C>() {
            return Err(FreeFault::TaskOnly);
        }
        // SAFETY: passed on, twice.
        unsafe {
            if self.queues.put::<C>(&self.backend, handle, object) {
                return Ok(());
            }
            self.free_missed::<C>(cache, object, Location::caller())
        }
    }

    /// The slow way to an object of the cache with this number, for callers with a fast path of
    /// their own.
    ///
    /// # Errors
    /// [`SlabError`]; [`SlabError::Exhausted`] too if there is no such cache, or it is just being
    /// destroyed, and [`SlabError::TaskOnly`] if it was made for callers of another kind.
    #[cold]
    #[inline(never)]
    pub fn alloc_slow<C: Caller>(
        &self,
        cache: CacheId,
        caller: &'static Location<'static>,
    ) -> Result<NonNull<u8>, SlabError> {
        let info = self.backend.lease(cache).ok_or(SlabError::Exhausted)?;
        if info.callers != Callers::of::<C>() || !self.backend.admits::<C>() {
            return Err(SlabError::TaskOnly);
        }
        self.alloc_by(&info, caller, |info| {
            self.queues.miss::<C>(&self.backend, info)
        })
    }

    /// The slow way, for who has the cache's handle (`one-handle`).
    #[cold]
    #[inline(never)]
    pub(crate) fn alloc_missed<C: Caller>(
        &self,
        cache: CacheId,
        caller: &'static Location<'static>,
    ) -> Result<NonNull<u8>, SlabError> {
        let info = self.backend.info(cache).ok_or(SlabError::Exhausted)?;
        self.alloc_by(info, caller, |info| {
            self.queues.miss::<C>(&self.backend, info)
        })
    }

    /// An object that `miss` has, as its user is to have it.
    fn alloc_by(
        &self,
        info: &CacheInfo,
        caller: &'static Location<'static>,
        miss: impl Fn(&CacheInfo) -> Option<NonNull<u8>>,
    ) -> Result<NonNull<u8>, SlabError> {
        // Each pass but the last leaves a damaged object out, of which there are no more than
        // objects.
        loop {
            let place = miss(info).ok_or(SlabError::Exhausted)?;
            if !info.is_checked() {
                return Ok(place);
            }
            // An object that somebody has written to while it was free is left out for good.
            if watch::on_alloc(&self.backend, info, place, caller).is_ok() {
                // SAFETY: an object's place is larger than what lies before the object.
                return Ok(unsafe { place.add(info.before) });
            }
        }
    }

    /// The slow way back to the cache with this number. What is no object of the cache, by the
    /// tables, is refused.
    ///
    /// # Safety
    /// If it is an object of this cache, it was handed out and not freed since, and nobody uses it
    /// any more.
    ///
    /// # Errors
    /// [`FreeFault`]; nothing has changed. [`FreeFault::NotASlab`] too if the cache is just being
    /// destroyed, [`FreeFault::TaskOnly`] if it was made for callers of another kind.
    #[cold]
    #[inline(never)]
    pub unsafe fn free_slow<C: Caller>(
        &self,
        cache: CacheId,
        object: NonNull<u8>,
        caller: &'static Location<'static>,
    ) -> Result<(), FreeFault> {
        let info = self.backend.lease(cache).ok_or(FreeFault::NotASlab)?;
        if info.callers != Callers::of::<C>() || !self.backend.admits::<C>() {
            return Err(FreeFault::TaskOnly);
        }
        // SAFETY: passed on.
        unsafe { self.free_by::<C>(&info, object, caller) }
    }

    /// The slow way back, for who has the cache's handle (`one-handle`).
    ///
    /// # Safety
    /// As [`Slabs::free_slow`].
    #[cold]
    #[inline(never)]
    pub(crate) unsafe fn free_missed<C: Caller>(
        &self,
        cache: CacheId,
        object: NonNull<u8>,
        caller: &'static Location<'static>,
    ) -> Result<(), FreeFault> {
        let info = self.backend.info(cache).ok_or(FreeFault::NotASlab)?;
        // SAFETY: passed on.
        unsafe { self.free_by::<C>(info, object, caller) }
    }

    /// # Safety
    /// As [`Slabs::free_slow`].
    unsafe fn free_by<C: Caller>(
        &self,
        info: &CacheInfo,
        object: NonNull<u8>,
        caller: &'static Location<'static>,
    ) -> Result<(), FreeFault> {
        let mut place = object;
        if info.is_checked() {
            place = watch::on_free(&self.backend, &self.queues, info, object, caller)?;
        }
        // SAFETY: passed on.
        let taken = unsafe { self.queues.overflow::<C>(&self.backend, info, place) };
        taken.inspect_err(|&fault| {
            // What is always checked; of a checked object, that another CPU was just freeing it
            // too.
            let when = (Moment::Free, caller);
            watch::refuse(&self.backend, &self.queues, info, object, fault, when);
        })
    }
}
