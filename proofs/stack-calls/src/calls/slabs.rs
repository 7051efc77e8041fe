// The calls of `brickyard-slab`, on pages of a zone. Included once for each kind of slots,
// `Access`. `RawCache` stands for caches whose callers may be interrupts, the others for caches of
// tasks.

use brickyard_slab as slab;
use core::alloc::Layout;
use core::panic::Location;
use core::ptr::NonNull;
use slab::{
    BuildError, CacheError, CacheId, CacheNumbers, CacheSpec, Everywhere, FreeFault, SlabError,
    SlabPlan, TaskOnly,
};

pub(crate) type Mapped<'z> = slab::DirectMapped<'z, Embedder, Access>;
pub(crate) type Pages<'m, 'z> =
    slab::ZonePages<'m, brickyard::Zone<'z, slab::DirectMap<Embedder>, Access>>;
pub(crate) type TheSource<'m> = Pages<'m, 'm>;
pub(crate) type Machine<'z> = slab::NodesPages<'z, TheZone<'z>, Embedder>;
pub(crate) type Design<'m> = slab::Sheafed<'m, TheSource<'m>, slab::Pinned<Embedder>>;
pub(crate) type TheSlabs<'m> = slab::Slabs<'m, Design<'m>>;
pub(crate) type TheCache<'s, 'm> = slab::RawCache<'s, 'm, Design<'m>, Everywhere>;
pub(crate) type Typed<'s, 'm> = slab::Cache<'s, 'm, [u64; 3], Design<'m>, TaskOnly>;
pub(crate) type TheObject<'c, 's, 'm> = slab::Object<'c, 's, 'm, [u64; 3], Design<'m>, TaskOnly>;
pub(crate) type TheGeneral<'s, 'm> = slab::General<'s, 'm, Design<'m>, TaskOnly>;
pub(crate) type TheReserve<'c, 's, 'm> = slab::Reserve<'c, 's, 'm, Design<'m>, Everywhere, 4>;

/// A plan all of whose checks are on for caches with a name that begins so, by a text.
pub(crate) fn plan(rules: slab::RuleText) -> SlabPlan {
    SlabPlan::new(48, 2).debug_text(rules, crate::embedder::embedder_reports)
}

/// Says that the caller keeps what the slabs require.
pub(crate) fn pinned() -> slab::Pinned<Embedder> {
    // SAFETY: there is one CPU, and its interrupts do not come here.
    unsafe { slab::Pinned::new(Embedder) }
}

calls! {
    Slabs {
        bytes(plan: &SlabPlan) -> usize = TheSlabs::bytes(plan);
        bytes_beside_rows(plan: &SlabPlan) -> usize = TheSlabs::bytes_beside_rows(plan);
        row_bytes(plan: &SlabPlan) -> usize = TheSlabs::row_bytes(plan);
        new<'m>(plan: &SlabPlan, source: TheSource<'m>, memory: &'m mut [MaybeUninit<u8>])
            -> Result<TheSlabs<'m>, BuildError>
            = TheSlabs::new(*plan, source, pinned(), memory);
        in_parts<'m>(plan: &SlabPlan, source: TheSource<'m>, parts: slab::Parts<'m>)
            -> Result<TheSlabs<'m>, BuildError>
            = TheSlabs::in_parts(*plan, source, pinned(), parts);
        new_in<'p, 'm>(place: &'p mut MaybeUninit<TheSlabs<'m>>, plan: &SlabPlan,
            source: TheSource<'m>, memory: &'m mut [MaybeUninit<u8>])
            -> Result<&'p mut TheSlabs<'m>, BuildError>
            = TheSlabs::new_in(place, *plan, source, pinned(), memory);
        over_zone<'m>(plan: &SlabPlan, zone: &'m mut Mapped<'m>,
            memory: &'m mut [MaybeUninit<u8>]) -> Result<TheSlabs<'m>, BuildError>
            = TheSlabs::over_zone(*plan, zone, pinned(), memory);
        cache<'s, 'm>(slabs: &'s TheSlabs<'m>, spec: CacheSpec)
            -> Result<TheCache<'s, 'm>, CacheError> = slabs.cache(spec);
        typed<'s, 'm>(slabs: &'s TheSlabs<'m>) -> Result<Typed<'s, 'm>, CacheError>
            = slabs.typed("typed");
        general<'s, 'm>(slabs: &'s TheSlabs<'m>) -> Result<TheGeneral<'s, 'm>, CacheError>
            = slabs.general();
        alloc_slow(slabs: &TheSlabs<'_>, cache: CacheId) -> Result<NonNull<u8>, SlabError>
            = slabs.alloc_slow::<Everywhere>(cache, Location::caller());
        free_slow(slabs: &TheSlabs<'_>, cache: CacheId, object: NonNull<u8>)
            -> Result<(), FreeFault>
            // SAFETY: the caller gives an object of the cache.
            = unsafe { slabs.free_slow::<Everywhere>(cache, object, Location::caller()) };
        pages<'m>(slabs: &TheSlabs<'m>) -> *const slab::PageCaches<'m> = slabs.pages();
        trim(slabs: &TheSlabs<'_>) -> () = slabs.trim();
        drain(slabs: &TheSlabs<'_>) -> () = slabs.drain();
        shrink(slabs: &TheSlabs<'_>) -> () = slabs.shrink();
        numbers(slabs: &TheSlabs<'_>) -> Option<CacheNumbers> = slabs.numbers().next();
    }
    Homes {
        zeroed(memory: &'static mut [MaybeUninit<u8>]) -> slab::Homes<'static>
            // SAFETY: the caller's memory is zero.
            = unsafe { slab::Homes::zeroed(memory) };
    }
    Sheafed {
        away(slabs: &TheSlabs<'_>, cache: CacheId) -> usize = slabs.queues().away(cache);
    }
    RawCache {
        alloc(cache: &TheCache<'_, '_>) -> Result<NonNull<u8>, SlabError> = cache.alloc();
        alloc_on(cache: &TheCache<'_, '_>, node: usize) -> Result<NonNull<u8>, SlabError>
            = cache.alloc_on(node);
        alloc_zeroed(cache: &TheCache<'_, '_>) -> Result<NonNull<u8>, SlabError>
            = cache.alloc_zeroed();
        alloc_bulk(cache: &TheCache<'_, '_>, out: &mut [MaybeUninit<NonNull<u8>>])
            -> Result<usize, SlabError> = cache.alloc_bulk(out);
        free(cache: &TheCache<'_, '_>, object: NonNull<u8>) -> Result<(), FreeFault>
            // SAFETY: the caller gives an object of the cache.
            = unsafe { cache.free(object) };
        free_bulk(cache: &TheCache<'_, '_>, objects: &[NonNull<u8>])
            -> Result<(), (usize, FreeFault)>
            // SAFETY: the caller gives objects of the cache.
            = unsafe { cache.free_bulk(objects) };
        size(cache: &TheCache<'_, '_>) -> usize = cache.size();
        name(cache: &TheCache<'_, '_>) -> &'static str = cache.name();
        numbers(cache: &TheCache<'_, '_>) -> CacheNumbers = cache.numbers();
        shrink(cache: &TheCache<'_, '_>) -> () = cache.shrink();
        destroy<'s, 'm>(cache: TheCache<'s, 'm>) -> Result<(), (TheCache<'s, 'm>, slab::Leak)>
            = cache.destroy();
        each_in_use(cache: &TheCache<'_, '_>) -> usize = {
            let mut objects = 0;
            cache.each_in_use(|_, _| objects += 1);
            objects
        };
        reserve<'c, 's, 'm>(cache: &'c TheCache<'s, 'm>)
            -> Result<TheReserve<'c, 's, 'm>, SlabError> = cache.reserve();
    }
    Reserve {
        refill(reserve: &mut TheReserve<'_, '_, '_>) -> Result<(), SlabError> = reserve.refill();
        alloc(reserve: &mut TheReserve<'_, '_, '_>) -> Option<NonNull<u8>> = reserve.alloc();
        drop(reserve: TheReserve<'_, '_, '_>) -> () = core::mem::drop(reserve);
    }
    Cache {
        alloc<'c, 's, 'm>(cache: &'c Typed<'s, 'm>, value: &[u64; 3])
            -> Result<TheObject<'c, 's, 'm>, SlabError> = cache.alloc(*value);
        alloc_uninit(cache: &Typed<'_, '_>)
            -> Result<NonNull<MaybeUninit<[u64; 3]>>, SlabError> = cache.alloc_uninit();
        free(cache: &Typed<'_, '_>, object: NonNull<MaybeUninit<[u64; 3]>>)
            -> Result<(), FreeFault>
            // SAFETY: the caller gives an object of the cache.
            = unsafe { cache.free(object) };
        destroy<'s, 'm>(cache: Typed<'s, 'm>) -> Result<(), (Typed<'s, 'm>, slab::Leak)>
            = cache.destroy();
        shrink(cache: &Typed<'_, '_>) -> () = cache.raw().shrink();
    }
    Object {
        into_raw(object: TheObject<'_, '_, '_>) -> NonNull<[u64; 3]> = object.into_raw();
        drop(object: TheObject<'_, '_, '_>) -> () = core::mem::drop(object);
    }
    General {
        cache_of(general: &TheGeneral<'_, '_>, layout: Layout) -> Option<CacheId>
            = general.cache_of(layout);
        alloc(general: &TheGeneral<'_, '_>, layout: Layout) -> Result<NonNull<u8>, SlabError>
            = general.alloc(layout);
        free(general: &TheGeneral<'_, '_>, memory: NonNull<u8>, layout: Layout)
            -> Result<(), FreeFault>
            // SAFETY: the caller gives memory of these sizes.
            = unsafe { general.free(memory, layout) };
        free_unsized(general: &TheGeneral<'_, '_>, memory: NonNull<u8>) -> Result<(), FreeFault>
            // SAFETY: as above.
            = unsafe { general.free_unsized(memory) };
        alloc_slow(general: &TheGeneral<'_, '_>, cache: CacheId)
            -> Result<NonNull<u8>, SlabError> = general.alloc_slow(cache, Location::caller());
        free_slow(general: &TheGeneral<'_, '_>, cache: CacheId, memory: NonNull<u8>)
            -> Result<(), FreeFault>
            // SAFETY: as above.
            = unsafe { general.free_slow(cache, memory, Location::caller()) };
        usable(general: &TheGeneral<'_, '_>, memory: NonNull<u8>) -> usize
            = general.usable(memory);
        object_around(general: &TheGeneral<'_, '_>, memory: NonNull<u8>)
            -> Option<(NonNull<u8>, CacheId)> = general.object_around(memory);
    }
    ZonePages {
        new<'m>(zone: &'m mut Mapped<'m>) -> Result<TheSource<'m>, BuildError>
            = slab::ZonePages::new(zone);
        shared<'m>(zone: &'m Mapped<'m>) -> Option<TheSource<'m>>
            // SAFETY: the caller gives a zone of slabs only.
            = unsafe { slab::ZonePages::shared(&**zone, 12) };
        take(source: &TheSource<'_>, ask: slab::PageAsk) -> Option<NonNull<u8>>
            = slab::PageSource::take(source, ask);
        give(source: &TheSource<'_>, first: NonNull<u8>, order: Order) -> ()
            // SAFETY: the caller gives a block of the source.
            = unsafe { slab::PageSource::give(source, first, order) };
    }
    NodesPages {
        shared<'z>(nodes: &'z TheNodes<'z>) -> Result<Machine<'z>, BuildError>
            // SAFETY: the caller gives nodes of slabs only.
            = unsafe { slab::NodesPages::shared(nodes, 12) };
        near<'z>(source: Machine<'z>, near: fn(usize) -> usize) -> Machine<'z> = source.near(near);
        span_of<'z>(nodes: &'z TheNodes<'z>) -> FrameRange = Machine::span_of(nodes);
        take(source: &Machine<'_>, ask: slab::PageAsk) -> Option<NonNull<u8>>
            = slab::PageSource::take(source, ask);
        give(source: &Machine<'_>, first: NonNull<u8>, order: Order) -> ()
            // SAFETY: the caller gives a block of the source.
            = unsafe { slab::PageSource::give(source, first, order) };
    }
    Counted {
        new<'m>(memory: &'m mut [MaybeUninit<u8>])
            -> Option<slab::Counted<'m, slab::Pinned<Embedder>>>
            = slab::Counted::new(pinned(), 2, memory);
    }
}
