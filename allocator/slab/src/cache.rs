//! A cache of objects that it treats as bytes.

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
use crate::object_checks;
use crate::slabs::Slabs;
use crate::statistics::CacheNumbers;

/// A cache of equal objects, for callers of kind `C`.
///
/// A hit costs a few instructions and no lock ([`Sheafed`](crate::Sheafed) touches no object). A
/// miss takes a lock, for many objects at once. What the CPUs do not have comes from slabs, and
/// slabs come from the source of pages.
///
/// **Who may call**: a cache for [`TaskOnly`](crate::TaskOnly) masks no interrupts, and refuses
/// callers in an interrupt. A cache for [`Everywhere`](crate::Everywhere) masks them. They are
/// different types, so one cannot be used as the other.
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
#[non_exhaustive]
pub struct Leak {
    /// Objects that are still in use.
    pub objects: u64,
    /// The reason that keeps the cache from being destroyed.
    pub remains: Remains,
}

/// The reasons that keep a cache from being destroyed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Remains {
    /// Objects in use, or in queues of CPUs that were not reached: the platform cannot run on them,
    /// or the caller is an interrupt.
    Objects,
    /// Empty queues of CPUs that were not reached: the next cache of the same number would take
    /// them for its own.
    Queues,
    /// A caller that is trimming or counting all caches at this moment, or that uses this one by
    /// its number. Or the caller is an interrupt, and the cache is task-only.
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

    /// Returns its number.
    #[must_use]
    pub const fn id(&self) -> CacheId {
        self.id
    }

    /// Allocates an object, with any content. If there is a constructor, the content is what it
    /// made.
    ///
    /// # Errors
    /// [`SlabError`].
    #[inline(always)]
    #[track_caller]
    pub fn alloc(&self) -> Result<NonNull<u8>, SlabError> {
        self.slabs.take::<C>(self.id, self.handle)
    }

    /// Allocates an object from the memory of a node, if there is some; else from any. For callers
    /// that know where the object will be used. Slower than [`RawCache::alloc`].
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

    /// Allocates an object of zeros. Not for caches with a constructor, whose work it would undo.
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

    /// Fills `out` with objects and returns how many. Fewer only if there is no memory for more.
    ///
    /// # Errors
    /// [`SlabError`], if there is not even one.
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
    /// Some bad frees are noticed at no cost. The fast path refuses the object that was freed last
    /// on this CPU. The slow path checks that the object is one of this cache's; it runs once in as
    /// many frees as a sheaf or a batch holds. Bad frees that are noticed only when the object
    /// reaches its slab are refused there and counted ([`CacheNumbers::refused`]). All of these are
    /// also told to the plan's `report`. See [`debug`](crate::debug) for what can be checked beyond
    /// that. A bad free that nothing notices goes into a queue like a good one, and its object is
    /// handed out next.
    ///
    /// # Safety
    /// It is an object that this cache handed out and that was not freed since. Nobody uses it any
    /// more. For a cache that is checked ([`Checks::FREES`](crate::Checks::FREES) or any other) it
    /// may be any address: what is no object in use is refused. There it is enough that, if it is
    /// an object in use, nobody uses it any more, and nobody else frees it at the same time.
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
    /// The conditions of [`RawCache::free`], of each; no two are the same.
    ///
    /// # Errors
    /// The number freed before a bad one, and what is wrong with that one.
    #[track_caller]
    pub unsafe fn free_bulk(&self, objects: &[NonNull<u8>]) -> Result<(), (usize, FreeFault)> {
        for (done, &object) in objects.iter().enumerate() {
            // SAFETY: passed on.
            unsafe { self.free(object) }.map_err(|fault| (done, fault))?;
        }
        Ok(())
    }

    /// Returns the bytes of an object.
    #[must_use]
    pub fn size(&self) -> usize {
        self.info().spec.size
    }

    /// Returns its name.
    #[must_use]
    pub fn name(&self) -> &'static str {
        self.info().spec.name
    }

    /// Returns its statistics. In an interrupt the counts of a task-only cache are 0, since the
    /// interrupt may have interrupted a holder of its locks.
    #[must_use]
    pub fn numbers(&self) -> CacheNumbers {
        self.slabs.numbers_of(self.info())
    }

    /// Gives back all that is free: this CPU's queues, those of the CPUs that the platform can run
    /// on, and those that CPUs share. For callers that may sleep. An interrupt asks no other CPU,
    /// and skips a task-only cache. So a platform that runs work on other CPUs by an interrupt does
    /// not reach their queues of such a cache.
    pub fn shrink(&self) {
        let Slabs {
            backend, queues, ..
        } = self.slabs;
        if !backend.admits::<C>() {
            return;
        }
        let info = self.info();
        // Asked on each CPU: an interrupt may do the work there.
        let mut drain = || {
            if backend.admits::<C>() {
                queues.drain::<C>(backend, info);
            }
        };
        if !backend.local.in_interrupt() {
            for cpu in 0..self.slabs.plan.cpus {
                backend.local.run_on(cpu, &mut drain);
            }
        }
        drain();
        queues.shrink::<C>(backend, info);
    }

    /// Ends the cache, if no object is in use any more. What is free goes back, as by
    /// [`RawCache::shrink`], and the number is free for the next cache.
    ///
    /// # Errors
    /// The cache and the reason. The cache is as it was, except that what its queues held may have
    /// gone back. If objects are in use, [`RawCache::each_in_use`] names them.
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
        // Users that come by the number are not turned away before it is known that nothing is in
        // use.
        self.shrink();
        self.is_unused()?;
        let closed = Closed::of(slot).ok_or(users)?;
        // For what users left that were here until just now.
        queues.drain::<C>(backend, info);
        queues.shrink::<C>(backend, info);
        self.is_unused()?;
        // SAFETY: `one-handle`: this is the handle, nothing borrows it, and the slot is closed.
        unsafe { closed.clear() };
        Ok(())
    }

    /// Succeeds if nothing is left of the cache: no object is out, and no CPU has a queue of it.
    fn is_unused(&self) -> Result<(), Leak> {
        let objects = self.numbers().out;
        let remains = match objects {
            0 if self.slabs.queues.is_clear(self.info()) => return Ok(()),
            0 => Remains::Queues,
            _ => Remains::Objects,
        };
        Err(Leak { objects, remains })
    }

    /// Calls `each` for every object that is in no slab: it is in use, or in a queue of a CPU
    /// (none, after [`RawCache::shrink`]). Also tells who allocated it, where that is tracked.
    /// Looks at every page of the span and takes a lock for each object, so it is for reports.
    /// Exact while nobody else uses the cache. Otherwise objects that others take and free
    /// meanwhile may be missed, and those told may be free by then. In an interrupt a task-only
    /// cache tells none.
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
                // The track of who allocated it lies in the slab's own pages. So it is read while
                // the slab cannot go.
                let found = queues.look(backend, info, page, index, |place, at| {
                    let is_out = at == Whereabouts::Out;
                    is_out.then(|| (place, object_checks::last_alloc(info, place)))
                });
                if let Some((place, track)) = found.flatten() {
                    each(object_checks::object_at(info, place), track);
                }
            }
        }
    }
}

/// A cache that lets nobody in any more until this is dropped, or for good once the cache has gone.
struct Closed<'m>(&'m OnceSlot<CacheInfo>);

impl<'m> Closed<'m> {
    fn of(slot: &'m OnceSlot<CacheInfo>) -> Option<Self> {
        slot.close().then_some(Self(slot))
    }

    /// # Safety
    /// The conditions of [`OnceSlot::clear`].
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

    /// Allocates an object of the cache with this number and [handle](SlabDesign::handle). For
    /// holders of its handle (`one-handle`).
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
            None => self.alloc_by_handle::<C>(cache, Location::caller()),
        }
    }

    /// Takes an object back to the cache with this number and handle.
    ///
    /// # Safety
    /// The conditions of [`RawCache::free`].
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
            self.free_by_handle::<C>(cache, object, Location::caller())
        }
    }

    /// Allocates an object of the cache with this number by the slow path. For callers with a fast
    /// path of their own.
    ///
    /// # Errors
    /// [`SlabError`]. [`SlabError::Exhausted`] too if there is no such cache, or it is being
    /// destroyed. [`SlabError::TaskOnly`] too if it was made for another kind of callers.
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

    /// Allocates by the slow path, for holders of the cache's handle (`one-handle`).
    #[cold]
    #[inline(never)]
    pub(crate) fn alloc_by_handle<C: Caller>(
        &self,
        cache: CacheId,
        caller: &'static Location<'static>,
    ) -> Result<NonNull<u8>, SlabError> {
        let info = self.backend.info(cache).ok_or(SlabError::Exhausted)?;
        self.alloc_by(info, caller, |info| {
            self.queues.miss::<C>(&self.backend, info)
        })
    }

    /// Allocates an object by `miss`, and checks and marks it if the cache is checked.
    fn alloc_by(
        &self,
        info: &CacheInfo,
        caller: &'static Location<'static>,
        miss: impl Fn(&CacheInfo) -> Option<NonNull<u8>>,
    ) -> Result<NonNull<u8>, SlabError> {
        // Each pass but the last leaves a damaged object out, and there are no more of those than
        // objects.
        loop {
            let place = miss(info).ok_or(SlabError::Exhausted)?;
            if !info.is_checked() {
                return Ok(place);
            }
            // An object that was written to while it was free is left out for good.
            if object_checks::on_alloc(&self.backend, info, place, caller).is_ok() {
                // SAFETY: an object's place is larger than what lies before the object.
                return Ok(unsafe { place.add(info.before) });
            }
        }
    }

    /// Takes an object back to the cache with this number by the slow path. An address that is no
    /// object of the cache, by the tables, is refused.
    ///
    /// # Safety
    /// If it is an object of this cache, it was handed out and not freed since, and nobody uses it
    /// any more.
    ///
    /// # Errors
    /// [`FreeFault`]; nothing has changed. [`FreeFault::NotASlab`] too if the cache is being
    /// destroyed, [`FreeFault::TaskOnly`] if it was made for another kind of callers.
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

    /// Frees by the slow path, for holders of the cache's handle (`one-handle`).
    ///
    /// # Safety
    /// The conditions of [`Slabs::free_slow`].
    #[cold]
    #[inline(never)]
    pub(crate) unsafe fn free_by_handle<C: Caller>(
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
    /// The conditions of [`Slabs::free_slow`].
    unsafe fn free_by<C: Caller>(
        &self,
        info: &CacheInfo,
        object: NonNull<u8>,
        caller: &'static Location<'static>,
    ) -> Result<(), FreeFault> {
        let mut place = object;
        if info.is_checked() {
            place = object_checks::on_free(&self.backend, &self.queues, info, object, caller)?;
        }
        // SAFETY: passed on.
        let taken = unsafe { self.queues.overflow::<C>(&self.backend, info, place) };
        taken.inspect_err(|&fault| {
            // The faults that are always checked. For a checked object, also that another CPU freed
            // it at the same time.
            let when = (Moment::Free, caller);
            object_checks::refuse(&self.backend, &self.queues, info, object, fault, when);
        })
    }
}
