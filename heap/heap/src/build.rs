//! The heap is built at its first use: by the thread that comes first, at any moment of a program's
//! life, before `main` and inside the loader too.
//!
//! Nothing here allocates. The environment is read once, but not in a setuid program:
//!
//! | variable | what it does |
//! |---|---|
//! | `BRICKYARD_SPAN` | the addresses reserved, in GiB; by default four times the machine's memory, at least 64, at most 256 |
//! | `BRICKYARD_ROWS=thread` | a row per thread even where there are restartable sequences |
//! | `BRICKYARD_DEBUG=FZPU` | what is checked, in all sizes or by name (`FZ,general-64;U,general-1*`): see `RuleText` of the library's `slab::debug`. Objects are tracked by thread and time. The caller recorded for them is always the heap itself, which does not know who called |
//! | `BRICKYARD_HARDEN=1` | the hardened heap (`hardened/`); `BRICKYARD_DEBUG` is not read then |
//! | `BRICKYARD_PROFILE=FILE`, `BRICKYARD_SAMPLE=N` | what is sampled (`heap/sampled`) |
//! | `BRICKYARD_BACKGROUND=0` | no background thread: idle memory goes back only as others free |
//! | `BRICKYARD_HUGE=1`, `0` | huge pages are asked for; or there are to be none (`huge.rs`) |
//! | `BRICKYARD_VISIT=1` | the background thread visits other CPUs although calls are filtered: in a container whose filter allows `sched_setaffinity` |
//!
//! The addresses are an upper limit. Slabs (objects of up to 128 KiB) and runs cannot have more
//! than the span. When it is used up, requests of up to 32 KiB fail, and larger ones get mappings
//! of their own. Under `ulimit -v` the span is halved until the system grants it, so it takes half
//! or more of what the limit leaves.
//!
//! The span's pages become usable in steps, as they are needed, and so do its tables (72 bytes per
//! page of 4 KiB: a sixtieth). The rest counts as addresses only: not towards `RLIMIT_DATA`, and
//! not where memory is counted strictly (`2` in `/proc/sys/vm/overcommit_memory`).

use core::mem::MaybeUninit;
use core::slice;
use core::sync::atomic::{AtomicUsize, Ordering};

use brickyard::Platform;
use brickyard_arena::environment::{number, on_or_off, switch, variable};
use brickyard_arena::messages::say;
use brickyard_arena::rows::{Cpus, ROW_SHIFT, alone, keeping_errno};
use brickyard_arena::{Region, Threads, page_bytes};
use brickyard_slab::debug::RuleText;
use brickyard_slab::sizes::process::{MAX_GENERAL, SIZES};
use brickyard_slab::{Homes, Parts, Rows, SlabPlan, Tables, TaskOnly};

use crate::fast_path::{AWAY, FAST, FIRST_GENERAL, GRANULE_SHIFT, PAGE_SHIFT};
use crate::gate::Thread;
use crate::hardened::Hardened;
use crate::instance::{
    BUILT, BUSY_SHIFT, Background, FAILED, Heap, HeapError, HeapSlabs, INSTANCE, built, for_ever,
};
use crate::plain::Plain;
use crate::span::{Guard, Layout, Reserved, SPAN_BYTES, Span};
use crate::vfork::limit_pages;
use crate::{complaints, huge, maintenance, sampling, seccomp};

/// Returns the heap, and builds it first if needed.
///
/// # Errors
/// [`HeapError`]. The next call tries again.
#[inline]
pub(super) fn heap() -> Result<&'static Heap, HeapError> {
    built().map_or_else(first_heap, Ok)
}

/// Builds the heap, or waits until another thread has. It takes more stack than a miss, about 3
/// KiB: what is large is built where it stays.
#[cold]
#[inline(never)]
fn first_heap() -> Result<&'static Heap, HeapError> {
    loop {
        if let Some(heap) = built() {
            return Ok(heap);
        }
        // SAFETY: a plain call.
        let busy = (unsafe { libc::getpid() } as u32) << BUSY_SHIFT;
        // Relaxed: a guess, verified below.
        let state = INSTANCE.state.load(Ordering::Relaxed);
        if state == busy {
            if Thread::this().inside.get() > 0 {
                // Something that building calls needs memory itself: it has to do without.
                return Err(HeapError::NoAddresses);
            }
            Threads.relax();
            continue;
        }
        if state == BUILT {
            continue;
        }
        // Acquire: pairs with the release of a thread that failed before.
        let begun =
            INSTANCE
                .state
                .compare_exchange(state, busy, Ordering::Acquire, Ordering::Relaxed);
        if begun.is_err() {
            continue;
        }
        let mut attempt = Attempt::new();
        keeping_errno(build)?;
        maintenance::register();
        attempt.outcome = BUILT;
    }
}

/// Marks that the calling thread builds the heap, as long as this lives. However the attempt ends,
/// the drop publishes its outcome.
struct Attempt {
    outcome: u32,
}

impl Attempt {
    fn new() -> Self {
        let inside = Thread::this().inside;
        inside.set(inside.get() + 1);
        Self { outcome: FAILED }
    }
}

impl Drop for Attempt {
    fn drop(&mut self) {
        let inside = Thread::this().inside;
        inside.set(inside.get() - 1);
        // Release: pairs with the acquire in `built`, or with that of the thread that tries next.
        INSTANCE.state.store(self.outcome, Ordering::Release);
    }
}

fn build() -> Result<(), HeapError> {
    seccomp::note();
    let bytes = wanted_span().map_or_else(usual_span, |gib| gib.saturating_mul(1 << 30));
    let is_hardened = wants_hardening();
    let _ = switch(c"BRICKYARD_HARDEN");
    huge::find(switch(c"BRICKYARD_HUGE"), is_hardened);
    if is_hardening_asked_for() && !is_hardened {
        say(format_args!(
            "BRICKYARD_HARDEN: not with pages of this size"
        ));
    }
    let cpus = match variable(c"BRICKYARD_ROWS") {
        Some(b"thread") => Cpus::threads(),
        None | Some(b"cpu" | b"") => Cpus::registered(),
        Some(_) => {
            say(format_args!("BRICKYARD_ROWS is cpu or thread; cpu is used"));
            Cpus::registered()
        }
    };
    let plan = plan(cpus, is_hardened)?;
    // What the slabs have beside the span comes first: its size is fixed, and the span takes as
    // much of the rest as it can get. If one of the three fails, the others are unmapped again.
    let map = |bytes| Region::map_sparse(bytes, 1).map_err(|_| HeapError::NoAddresses);
    let rows = map(cpus.rows() << ROW_SHIFT)?;
    let memory = map(HeapSlabs::bytes_beside_rows(&plan))?;
    let (reserved, slab_tables) = reserve(bytes, is_hardened)?;
    let (tables, homes) = all_of(&slab_tables, &reserved.layout);
    let homes = has_homes(is_hardened).then_some(homes);
    let hardened = match is_hardened {
        true => Some(harden(&reserved, cpus.rows())?),
        false => None,
    };
    // SAFETY: `built-once`: this thread has turned the state to busy.
    let place = unsafe { &mut *INSTANCE.span.get() };
    let guard = hardened.map(|hardened| hardened as &dyn Guard);
    let span: &'static Span = Span::build_in(
        place,
        reserved,
        Some(slab_tables),
        Some(cpus),
        guard,
        Some(limit_pages),
    );
    // SAFETY: new mappings, both, which can be read and written, and which nobody else knows of.
    let beside = unsafe { (rows.for_ever(), memory.for_ever()) };
    let slabs = build_slabs(span, (cpus, plan), (tables, homes), beside);
    // SAFETY: `built-once`.
    let slabs: &'static HeapSlabs = unsafe { (*INSTANCE.slabs.get()).write(slabs) };
    let general = slabs.general::<TaskOnly>();
    let general = general.expect("as many caches are planned as there are sizes");
    assert_eq!(general.first(), FIRST_GENERAL, "they are the first caches");
    let background = match switch(c"BRICKYARD_BACKGROUND") {
        Some(false) => Background::Off,
        _ => Background::Wanted,
    };
    let rows = slabs.queues().rows().start();
    assert_eq!(slabs.queues().away(0), AWAY, "as fast paths have it");
    let (ids, start) = (slabs.pages().ids(), slabs.pages().start());
    let pages = slabs.pages().count();
    let heap = Heap {
        span,
        slabs,
        general,
        cpus,
        background,
        visits: switch(c"BRICKYARD_VISIT") == Some(true),
        ways: match hardened {
            Some(hardened) => hardened,
            None => &Plain,
        },
        is_hardened,
    };
    // SAFETY: `built-once`.
    unsafe { (*INSTANCE.heap.get()).write(heap) };
    // Relaxed: published by the two stores at the end (`built-before-seen`).
    FAST.area.store(cpus.area(), Ordering::Relaxed);
    FAST.rows.store(rows.cast_mut(), Ordering::Relaxed);
    let alone = core::ptr::from_ref(alone()).cast_mut();
    FAST.alone.store(alone, Ordering::Relaxed);
    FAST.start.store(start, Ordering::Relaxed);
    FAST.ids.store(ids.cast_mut(), Ordering::Relaxed);
    if let Some(homes) = homes {
        let homes = homes.start().cast_mut();
        FAST.homes.store(homes, Ordering::Relaxed);
    }
    let is_sampled = sampling::begins(cpus, is_hardened);
    // Release: pairs with the acquiring loads of the fast paths.
    if let Some(hardened) = hardened {
        // The fast paths stay closed: each request goes by ways that check it.
        hardened.open();
        return Ok(());
    }
    if !is_sampled {
        FAST.limit.store(MAX_GENERAL + 1, Ordering::Release);
    }
    if page_bytes() == 1 << PAGE_SHIFT {
        let granules = pages << (PAGE_SHIFT - GRANULE_SHIFT);
        FAST.granules.store(granules, Ordering::Release);
    }
    Ok(())
}

/// Makes what the hardened heap has beside the span that these addresses will be, for ever.
fn harden(span: &Reserved, rows: usize) -> Result<&'static Hardened, HeapError> {
    let hardened = Hardened::new(span.start().addr().get(), span.bytes(), rows)?;
    let place = for_ever(size_of::<Hardened>())?;
    let place = place.as_mut_ptr().cast::<MaybeUninit<Hardened>>();
    // SAFETY: the mapping has room for it, begins with a page, and is this thread's.
    let hardened: &'static Hardened = unsafe { (*place).write(hardened) };
    hardened.publish();
    Ok(hardened)
}

/// Returns how many GiB the environment wants the span to have, if it tells.
fn wanted_span() -> Option<usize> {
    let text = variable(c"BRICKYARD_SPAN").filter(|text| !text.is_empty())?;
    let gib = number(text).filter(|&gib| gib > 0);
    if gib.is_none() {
        say(format_args!(
            "BRICKYARD_SPAN is a number of GiB above 0; the usual one is used"
        ));
    }
    gib
}

/// Returns four times the memory of the machine, within limits. That is room for scattered memory,
/// with tables that stay small beside it.
fn usual_span() -> usize {
    let (_, most) = SPAN_BYTES;
    let mut system = MaybeUninit::<libc::sysinfo>::zeroed();
    // SAFETY: the system writes such a value, if anything; zeros are one.
    let system = unsafe {
        let _ = libc::sysinfo(system.as_mut_ptr());
        system.assume_init()
    };
    let memory = (system.totalram as usize).saturating_mul(system.mem_unit as usize);
    memory.saturating_mul(4).clamp(64 << 30, most)
}

/// The memory of slabs' tables, all of it zero.
type TableBytes = &'static mut [MaybeUninit<u8>];

/// Reserves a span of at most `bytes` bytes for which there is room, and its slabs' tables.
fn reserve(mut bytes: usize, is_hardened: bool) -> Result<(Reserved, Region), HeapError> {
    let (least, _) = SPAN_BYTES;
    loop {
        let span = Reserved::new(bytes).map_err(|_| HeapError::NoAddresses)?;
        if is_hardened && span.bytes() > least {
            // Whether what the hardened heap has beside that will have room too.
            let all = span.layout.slab_table_bytes() + Hardened::table_bytes(span.bytes());
            if Region::map_sparse(all, 1).is_err() {
                bytes = span.bytes() / 2;
                continue;
            }
        }
        match Region::map_zeros(span.layout.slab_table_bytes(), 1) {
            Ok(tables) => return Ok((span, tables.not_in_dumps())),
            Err(_) if span.bytes() > least => bytes = span.bytes() / 2,
            Err(_) => return Err(HeapError::NoAddresses),
        }
    }
}

/// Returns the slabs' tables, and the homes of pages, in a mapping that will be the span's.
fn all_of(tables: &Region, layout: &Layout) -> (TableBytes, Homes<'static>) {
    let start = tables.start().as_ptr().cast();
    // SAFETY: so many bytes are there as long as the span, which is for ever, and nobody else
    // refers to them.
    let slice = unsafe { slice::from_raw_parts_mut(start, layout.slab_table_bytes()) };
    let (rest, homes) = slice.split_at_mut(layout.homes_at());
    // SAFETY: a new mapping, and the span makes parts of it writable as it grows.
    (rest, unsafe { Homes::zeroed(homes) })
}

/// Says what the slabs shall be.
fn plan(cpus: Cpus, is_hardened: bool) -> Result<SlabPlan, HeapError> {
    let plan = SlabPlan::new(SIZES.len(), cpus.rows());
    let plan = match has_homes(is_hardened) {
        true => plan.with_homes(),
        false => plan,
    };
    let rules = if is_hardened { None } else { rules()? };
    Ok(match rules {
        Some(rules) => plan.debug_text(rules, complaints::report),
        None => plan.debug(&[], complaints::end_if_late),
    })
}

/// Returns true if pages have homes: where they are as long as fast paths expect. The hardened heap
/// has none: what is freed there waits at random places, and is seldom used next anyway.
fn has_homes(is_hardened: bool) -> bool {
    page_bytes() == 1 << PAGE_SHIFT && !is_hardened
}

/// Builds the slabs in these tables, rows, and other memory, all of them zero.
fn build_slabs(
    span: &'static Span,
    (cpus, plan): (Cpus, SlabPlan),
    (tables, homes): (TableBytes, Option<Homes<'static>>),
    (rows, memory): (
        &'static mut [MaybeUninit<u8>],
        &'static mut [MaybeUninit<u8>],
    ),
) -> HeapSlabs {
    let words = rows.len() / size_of::<AtomicUsize>();
    // SAFETY: the mapping is zero.
    let (rows, _) = unsafe { brickyard::sync::place_zeroed(rows, words) }
        .expect("a mapping begins with a page, and has room for its own words");
    // The fast paths beside the slabs reach them by their address, and keep to `one-store`.
    let rows = Rows::new(rows, ROW_SHIFT).expect("the shift is a page's at least");
    // SAFETY: the mapping is zero, and the span makes parts of it writable as it grows.
    let tables = unsafe { Tables::zeroed(tables) };
    let parts = Parts {
        memory,
        rows: Some(rows),
        tables: Some(tables),
        homes,
    };
    HeapSlabs::in_parts(plan, span, cpus, parts)
        .expect("the plan was asked for the bytes, and slabs can number a span's pages")
}

/// Returns true if the heap is to be the hardened one: by the environment, or else by that of the
/// build. (No feature of the crate: whoever turns all features on does not mean this.)
#[must_use]
pub fn wants_hardening() -> bool {
    is_hardening_asked_for() && page_bytes() == 1 << PAGE_SHIFT
}

fn is_hardening_asked_for() -> bool {
    match variable(c"BRICKYARD_HARDEN") {
        // Who writes what cannot be read wants it, if anything.
        Some(text) if !text.is_empty() => on_or_off(text) != Some(false),
        _ => option_env!("BRICKYARD_HARDENED").is_some(),
    }
}

/// Reads what is to be checked. A text that makes no sense is reported, and nothing is checked.
fn rules() -> Result<Option<RuleText>, HeapError> {
    let Some(text) = variable(c"BRICKYARD_DEBUG").filter(|text| !text.is_empty()) else {
        return Ok(None);
    };
    // The environment may change, but the rules' names must stay.
    let kept = for_ever(text.len())?;
    for (place, &byte) in kept.iter_mut().zip(text) {
        place.write(byte);
    }
    let kept: &'static [MaybeUninit<u8>] = kept;
    // SAFETY: a mapping is zero where it was not written.
    let kept = unsafe { slice::from_raw_parts(kept.as_ptr().cast::<u8>(), kept.len()) };
    let rules = str::from_utf8(kept).map(RuleText::parse);
    match rules {
        Ok(Ok(rules)) => return Ok(Some(rules)),
        Ok(Err(error)) => say(format_args!("BRICKYARD_DEBUG: {error}")),
        Err(error) => say(format_args!("BRICKYARD_DEBUG: {error}")),
    }
    Ok(None)
}
