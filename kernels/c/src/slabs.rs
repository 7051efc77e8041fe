//! Caches of objects, and memory by size, over a machine.

use core::alloc::Layout;
use core::ffi::{CStr, c_char, c_void};
use core::mem::MaybeUninit;
use core::ptr::{self, NonNull};
use core::slice;

use brickyard::AnyZone;
use brickyard_slab::{
    CacheSpec, Everywhere, Finding, General, MAX_PAGES, NodesPages, PageSource, Pinned, RawCache,
    Reporter, RuleText, Sheafed, SlabError, SlabPlan, Slabs, TaskOnly,
};

use crate::error::{
    self, BY_BUSY, BY_INVALID, BY_NOT_AN_OBJECT, BY_TOO_LARGE, BY_TOO_LITTLE_MEMORY, count,
};
use crate::hooks::by_hooks;
use crate::machine::{AZone, by_machine};
use crate::platform::by_platform;
use crate::text;

type MachinePages = NodesPages<'static, AZone, by_hooks>;
type Design = Sheafed<'static, MachinePages, Pinned<by_platform>>;
type System = Slabs<'static, Design>;

/// All caches of a machine. Opaque, and in the embedder's memory.
pub struct by_slabs {
    system: System,
    general: MaybeUninit<General<'static, 'static, Design, Everywhere>>,
}

/// What slabs are built from.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct by_slab_plan {
    /// The machine that pages come from. Its users must leave alone what slabs took. The platform's
    /// `address` must be linear over all zones up to BY_NORMAL: page i after the first frame of
    /// them is at its address plus i pages. That frame, rounded down to the largest block of any
    /// zone, must have an address, too, which is aligned to such a block; else BY_UNMAPPED. Tables
    /// of 65 bytes a page cover all from there to the last of these zones, holes included.
    pub machine: *const by_machine,
    /// log2 of the bytes of a page, 10 to 16. 0: 12.
    pub page_shift: u32,
    /// The most caches at a time beside the general sizes, at most 200. 0: 64.
    pub caches: u32,
    /// The number of CPUs that have queues of their own; others use slabs without. 0: 1.
    pub cpus: usize,
    /// Checks by names of caches, such as "FZPU,inode;U,dentry", as Linux's slab_debug. Null: none.
    /// UTF-8; the text stays as it is while the slabs are used.
    pub checks: *const c_char,
    /// Told what is found, with checks or without (some double frees), as a text of `length` bytes,
    /// at most 511, without a zero behind it. May be called by any user of slabs, also in
    /// interrupts. Must not use the cache that it is about. Null: nobody is told.
    pub report: Option<unsafe extern "C" fn(text: *const c_char, length: usize)>,
}

/// The type of `by_slab_plan::report`.
type Report = unsafe extern "C" fn(text: *const c_char, length: usize);

/// The bytes that a report has room for, with the zero that [`text::write`] puts behind it.
const REPORT: usize = 512;

/// Calls C's function for reports, whose address is `number`, with as many whole characters of the
/// text as there is room for.
fn tell(finding: &Finding, number: usize) {
    let mut buffer = [0_u8; REPORT];
    // SAFETY: the buffer has that many bytes.
    let length = unsafe { text::write(finding, buffer.as_mut_ptr().cast(), buffer.len()) };
    let shown = text::whole(&buffer[..length.cast_unsigned().min(REPORT - 1)]);
    // SAFETY: `read` made the number of such a function.
    unsafe {
        let report: Report = core::mem::transmute(ptr::with_exposed_provenance::<()>(number));
        report(shown.as_ptr().cast(), shown.len());
    }
}

/// The number of caches of general sizes.
const GENERAL: usize = 40;

/// Returns the plan in the library's terms, and the source of pages.
///
/// # Safety
/// `plan` points to a plan, or is null; its machine is one, and keeps what is said there.
#[inline(never)]
unsafe fn read(plan: *const by_slab_plan) -> Result<(SlabPlan, MachinePages, by_platform), isize> {
    // SAFETY: the caller's promise, here and below.
    let plan = unsafe { plan.as_ref() }.ok_or(BY_INVALID)?;
    // SAFETY: as above.
    let machine = unsafe { plan.machine.as_ref() }.ok_or(BY_INVALID)?;
    let page_shift = match plan.page_shift {
        0 => 12,
        shift @ 10..=16 => shift,
        _ => return Err(BY_INVALID),
    };
    let caches = match plan.caches {
        0 => 64,
        caches @ 1..=200 => caches as usize,
        _ => return Err(BY_TOO_LARGE),
    };
    // SAFETY: as above.
    let pages =
        unsafe { MachinePages::shared(&machine.nodes, page_shift) }.map_err(error::of_build)?;
    let mut slabs = SlabPlan::new(caches + GENERAL, plan.cpus.max(1)).over(&pages);
    if !plan.checks.is_null() {
        // SAFETY: as above: the text has an end, and stays.
        let text = unsafe { CStr::from_ptr(plan.checks) }
            .to_str()
            .map_err(|_| BY_INVALID)?;
        let rules = RuleText::parse(text).map_err(|_| BY_INVALID)?;
        slabs = slabs.debug_text(rules, |_| {});
    }
    // Some bad frees are noticed without checks.
    if let Some(report) = plan.report {
        slabs.report = Reporter::With(tell, report as usize);
    }
    let platform = *machine.zones[0].platform();
    Ok((slabs, pages, platform))
}

/// Returns the bytes of memory that slabs of this plan need, at any address: 65 for each frame of
/// the zones up to BY_NORMAL, holes included, and some for each cache and CPU. Or BY_INVALID,
/// BY_TOO_LARGE, BY_UNMAPPED.
///
/// # Safety
/// `plan` points to a plan, or is null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn by_slabs_bytes(plan: *const by_slab_plan) -> isize {
    // SAFETY: the caller's promise.
    match unsafe { read(plan) } {
        Ok((plan, ..)) => bytes(&plan).map_or_else(|code| code, count),
        Err(code) => code,
    }
}

/// Returns the bytes of memory for slabs of this plan, or BY_TOO_LARGE.
fn bytes(plan: &SlabPlan) -> Result<usize, isize> {
    let own = size_of::<by_slabs>() + align_of::<by_slabs>() - 1;
    let sum = System::bytes(plan).checked_add(own);
    sum.filter(|&sum| plan.pages <= MAX_PAGES && isize::try_from(sum).is_ok())
        .ok_or(BY_TOO_LARGE)
}

/// Builds slabs in `memory`, with a cache for each general size, and writes where they are to
/// `*slabs`. Returns 0; or what by_slabs_bytes returns, or BY_TOO_LITTLE_MEMORY.
///
/// # Safety
/// `plan` points to a plan that keeps what is said there; `memory` is `bytes` bytes that nobody
/// else uses from now on; `slabs` can be written. The platform keeps its promises.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn by_slabs_init(
    plan: *const by_slab_plan,
    memory: *mut c_void,
    bytes: usize,
    slabs: *mut *const by_slabs,
) -> isize {
    // SAFETY: the caller's promise.
    let built = match unsafe { begin(plan, memory, bytes, slabs) } {
        Ok(built) => built,
        Err(code) => return code,
    };
    // SAFETY: nobody but this function knows the slabs yet; the system is not moved any more, and
    // `general`, which is written here, is another member. The caller's promise for `slabs`.
    unsafe {
        let system: &'static System = &(*built).system;
        match system.general() {
            Ok(general) => (*built).general.write(general),
            Err(error) => return error::of_cache(error),
        };
        slabs.write(built);
    }
    0
}

/// Builds slabs that lack the caches of general sizes. A function of its own: what it has on the
/// stack does not lie there while these are made.
///
/// # Safety
/// The conditions of [`by_slabs_init`].
#[inline(never)]
unsafe fn begin(
    plan: *const by_slab_plan,
    memory: *mut c_void,
    bytes: usize,
    slabs: *const *const by_slabs,
) -> Result<*mut by_slabs, isize> {
    // SAFETY: the caller's promise.
    let (plan, pages, platform) = unsafe { read(plan) }?;
    let needed = self::bytes(&plan)?;
    if memory.is_null() || slabs.is_null() {
        return Err(BY_INVALID);
    }
    let short = BY_TOO_LITTLE_MEMORY;
    if bytes < needed {
        return Err(short);
    }
    // SAFETY: the caller's promise: the memory is the slabs' for ever.
    let memory = unsafe { slice::from_raw_parts_mut(memory.cast::<MaybeUninit<u8>>(), needed) };
    let (place, rest) =
        brickyard::sync::place(memory, 1, MaybeUninit::<by_slabs>::uninit).ok_or(short)?;
    // SAFETY: `platform-in-c`: a pinned caller is alone on its CPU, and an interrupt says that it
    // is one.
    let local = unsafe { Pinned::new(platform) };
    let built = place[0].as_mut_ptr();
    // SAFETY: a member of the slabs, which may be without content.
    let system = unsafe { &mut *(&raw mut (*built).system).cast::<MaybeUninit<System>>() };
    Slabs::new_in(system, plan, pages, local, rest).map_err(error::of_build)?;
    Ok(built)
}

impl by_slabs {
    fn general(&self) -> &General<'static, 'static, Design, Everywhere> {
        // SAFETY: `build` wrote it before anybody was told of the slabs.
        unsafe { self.general.assume_init_ref() }
    }
}

// ---- memory by size ----

/// Returns memory of at least `size` bytes, up to 32 KiB, aligned to `align` (a power of two up to
/// a page; 0: 16), with any content; or null, also for any other size or alignment. To be called by
/// tasks and interrupts, except those that nothing masks. For more, by_alloc.
#[unsafe(no_mangle)]
pub extern "C" fn by_malloc(slabs: &by_slabs, size: usize, align: usize) -> *mut c_void {
    let align = if align == 0 { 16 } else { align };
    // Beyond a page, slabs that are checked keep no alignment.
    if align > 1 << slabs.system.source().page_shift() {
        return ptr::null_mut();
    }
    let Ok(layout) = Layout::from_size_align(size.max(1), align) else {
        return ptr::null_mut();
    };
    slabs
        .general()
        .alloc(layout)
        .map_or(ptr::null_mut(), |memory| memory.as_ptr().cast())
}

/// Takes back what by_malloc returned; null is nothing. Returns 0; or BY_NOT_AN_OBJECT,
/// BY_DOUBLE_FREE, and then nothing has changed.
///
/// # Safety
/// `memory` is null, or nobody uses it any more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn by_mfree(slabs: &by_slabs, memory: *mut c_void) -> isize {
    let Some(memory) = NonNull::new(memory.cast()) else {
        return 0;
    };
    // SAFETY: the caller's promise.
    let freed = unsafe { slabs.general().free_unsized(memory) };
    freed.map_or_else(error::of_fault, |()| 0)
}

/// Returns how many bytes can be used of what by_malloc returned; 0 for an address that lies in
/// none of its slabs.
#[unsafe(no_mangle)]
pub extern "C" fn by_usable(slabs: &by_slabs, memory: *mut c_void) -> usize {
    NonNull::new(memory.cast()).map_or(0, |memory| slabs.general().usable(memory))
}

// ---- caches ----

/// The cache is used in interrupts too, so that calls mask them: not in those that nothing masks.
pub const BY_CACHE_INTERRUPTS: u32 = 1;
/// The objects can be given back on request: their pages are grouped.
pub const BY_CACHE_RECLAIMABLE: u32 = 2;

/// What a cache is made from.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct by_cache_spec {
    /// The name in statistics and checks, in UTF-8. The text stays as it is while the cache lives.
    pub name: *const c_char,
    /// The bytes of an object.
    pub size: usize,
    /// A power of two up to a page. 0: a word.
    pub align: usize,
    /// BY_CACHE_INTERRUPTS, BY_CACHE_RECLAIMABLE, both or neither.
    pub flags: u32,
    /// Called for each object when its slab is made; an object that is freed is as this left it.
    /// Must not use its own cache: each object would need another slab. Null: none.
    pub constructor: Option<unsafe extern "C" fn(object: *mut c_void)>,
}

/// A cache: in memory of the embedder, who must not copy it. All zeros are no cache, and so is what
/// by_cache_destroy leaves: nothing can be requested from it.
#[repr(C)]
pub struct by_cache {
    /// Not for the embedder.
    pub opaque: [usize; 6],
}

/// What lies in a [`by_cache`]. The numbers say that zeros are no cache.
#[repr(usize)]
enum CacheHandle {
    None = 0,
    Tasks(RawCache<'static, 'static, Design, TaskOnly>) = 1,
    Everywhere(RawCache<'static, 'static, Design, Everywhere>) = 2,
}

const _: () = assert!(size_of::<CacheHandle>() <= size_of::<by_cache>());
const _: () = assert!(align_of::<CacheHandle>() <= align_of::<by_cache>());

impl by_cache {
    fn inner(&self) -> &CacheHandle {
        // SAFETY: it is all zeros, or `by_cache_init` or `by_cache_destroy` wrote it, as the header
        // demands.
        unsafe { &*ptr::from_ref(self).cast::<CacheHandle>() }
    }
}

/// Runs something with the cache, whatever its callers.
macro_rules! with {
    ($cache:expr, $name:ident => $work:expr, $none:expr) => {
        match $cache.inner() {
            CacheHandle::Tasks($name) => $work,
            CacheHandle::Everywhere($name) => $work,
            CacheHandle::None => $none,
        }
    };
}

/// Makes a cache in `*cache`. Returns 0; or BY_INVALID, BY_TOO_LARGE, and then `*cache` is as it
/// was.
///
/// # Safety
/// `spec` points to one whose constructor may be called; `cache` is memory of any content, but no
/// cache that still is to be used: it would be lost.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn by_cache_init(
    slabs: &'static by_slabs,
    spec: *const by_cache_spec,
    cache: *mut by_cache,
) -> isize {
    // SAFETY: the caller's promise.
    let Some(spec) = (unsafe { spec.as_ref() }) else {
        return BY_INVALID;
    };
    if cache.is_null() || spec.name.is_null() || spec.flags > 3 {
        return BY_INVALID;
    }
    // SAFETY: as above: the name has an end, and stays.
    let Ok(name) = unsafe { CStr::from_ptr(spec.name) }.to_str() else {
        return BY_INVALID;
    };
    let align = if spec.align == 0 {
        align_of::<usize>()
    } else {
        spec.align
    };
    let mut wanted = CacheSpec::new(name, spec.size).align(align);
    if spec.flags & BY_CACHE_RECLAIMABLE != 0 {
        wanted = wanted.reclaimable();
    }
    if let Some(constructor) = spec.constructor {
        wanted = wanted.constructor_with(construct, constructor as usize);
    }
    let made = match spec.flags & BY_CACHE_INTERRUPTS {
        0 => slabs.system.cache(wanted).map(CacheHandle::Tasks),
        _ => slabs.system.cache(wanted).map(CacheHandle::Everywhere),
    };
    match made {
        Ok(inner) => {
            // SAFETY: the caller's promise; the sizes were compared above.
            unsafe { cache.cast::<CacheHandle>().write(inner) };
            0
        }
        Err(error) => error::of_cache(error),
    }
}

/// Calls C's constructor, whose address is `number`.
fn construct(object: NonNull<u8>, number: usize) {
    // SAFETY: `by_cache_init` made the number of such a function, which may be called for an
    // object.
    unsafe {
        let constructor: unsafe extern "C" fn(*mut c_void) =
            core::mem::transmute(ptr::with_exposed_provenance::<()>(number));
        constructor(object.as_ptr().cast());
    }
}

/// Returns an object with any content, or with what the constructor made; or null. A cache without
/// BY_CACHE_INTERRUPTS requests pages as a caller that may sleep, and so may call all hooks; one
/// with it requests them as BY_ATOMIC.
#[unsafe(no_mangle)]
pub extern "C" fn by_cache_alloc(cache: &by_cache) -> *mut c_void {
    with!(cache, inner => given(inner.alloc()), ptr::null_mut())
}

/// Returns an object of zeros; or null, always so if there is a constructor.
#[unsafe(no_mangle)]
pub extern "C" fn by_cache_alloc_zeroed(cache: &by_cache) -> *mut c_void {
    with!(cache, inner => given(inner.alloc_zeroed()), ptr::null_mut())
}

fn given(object: Result<NonNull<u8>, SlabError>) -> *mut c_void {
    object.map_or(ptr::null_mut(), |object| object.as_ptr().cast())
}

/// Takes an object back. Returns 0; or BY_NOT_AN_OBJECT, BY_DOUBLE_FREE, BY_DAMAGED, BY_TASK_ONLY,
/// or BY_INVALID without a cache, and then nothing has changed. Without checks not every bad free
/// is noticed.
///
/// # Safety
/// `object` came from this cache, and nobody uses it any more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn by_cache_free(cache: &by_cache, object: *mut c_void) -> isize {
    let Some(object) = NonNull::new(object.cast()) else {
        return BY_NOT_AN_OBJECT;
    };
    // SAFETY: the caller's promise.
    let freed = with!(cache, inner => unsafe { inner.free(object) }, return BY_INVALID);
    freed.map_or_else(error::of_fault, |()| 0)
}

/// Gives back all pages of which no object is in use, as far as CPUs can be reached. For callers
/// that may sleep: an interrupt reaches no other CPU. Returns 0, or BY_INVALID without a cache.
#[unsafe(no_mangle)]
pub extern "C" fn by_cache_shrink(cache: &by_cache) -> isize {
    with!(cache, inner => inner.shrink(), return BY_INVALID);
    0
}

/// Ends a cache. Returns 0; BY_BUSY if objects are in use, or lie in the queues of CPUs that cannot
/// be reached (see by_slabs_drain), or if by_slabs_trim, by_slabs_drain or by_write_slabinfo is
/// just at this cache, and then the cache stays; or BY_INVALID if there is none.
///
/// # Safety
/// No other CPU uses the cache.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn by_cache_destroy(cache: &mut by_cache) -> isize {
    // SAFETY: as in `by_cache::inner`, and no other CPU uses it.
    let place = unsafe { &mut *ptr::from_mut(cache).cast::<CacheHandle>() };
    let (left, code) = match core::mem::replace(place, CacheHandle::None) {
        CacheHandle::Tasks(inner) => match inner.destroy() {
            Ok(()) => (CacheHandle::None, 0),
            Err((inner, _)) => (CacheHandle::Tasks(inner), BY_BUSY),
        },
        CacheHandle::Everywhere(inner) => match inner.destroy() {
            Ok(()) => (CacheHandle::None, 0),
            Err((inner, _)) => (CacheHandle::Everywhere(inner), BY_BUSY),
        },
        CacheHandle::None => (CacheHandle::None, BY_INVALID),
    };
    *place = left;
    code
}

// ---- all caches ----

/// Gives back some of what has lain unused on this CPU since the last call. To be called on every
/// CPU every few seconds.
#[unsafe(no_mangle)]
pub extern "C" fn by_slabs_trim(slabs: &by_slabs) {
    slabs.system.trim();
}

/// Gives back all that lies in this CPU's queues, and in those that CPUs share.
#[unsafe(no_mangle)]
pub extern "C" fn by_slabs_drain(slabs: &by_slabs) {
    slabs.system.drain();
    slabs.system.shrink();
}

/// Writes `/proc/slabinfo` to `buffer`, as by_write_text does.
///
/// # Safety
/// What by_write_text requires.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn by_write_slabinfo(
    slabs: &by_slabs,
    buffer: *mut c_char,
    bytes: usize,
) -> isize {
    // SAFETY: the caller's promise.
    unsafe { text::write(&slabs.system.slab_info(), buffer, bytes) }
}
