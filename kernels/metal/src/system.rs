//! What a round runs on: a zone of all free memory, an oracle and slabs over it, made in the room
//! for metadata.

use core::sync::atomic::{AtomicPtr, Ordering};

use brickyard::stash::StashSizes;
use brickyard::sync::{Exclusive, Shared, SlotAccess};
use brickyard::{Frame, FrameRange, Zone, ZoneKind, ZonePlan};
use brickyard_boot_test::{Contents, Oracle, Test};
use brickyard_slab::Pinned;

use crate::memory_map::{MemoryMap, PAGE};
use crate::metadata::MetadataRoom;
use crate::objects::{self, Caches};
use crate::platform::Machine;
use crate::report::RoundFigures;
use crate::slab_pages::OwnedPages;
use crate::{Boot, arch, fail};

/// A kind of slots, and the round that runs with it.
pub trait Slots: SlotAccess + Sync + 'static {
    /// The name.
    const NAME: &'static str;

    /// Where the round's system is.
    fn place() -> &'static AtomicPtr<()>;

    /// Returns the round's system.
    fn system() -> &'static System<Self>
    where
        Self: Sized,
    {
        // Acquire: pairs with `publish`.
        let system = Self::place().load(Ordering::Acquire).cast::<System<Self>>();
        // SAFETY: `publish` has stored a system of this type, before any task of the round began.
        unsafe { &*system }
    }
}

impl Slots for Exclusive {
    const NAME: &'static str = "exclusive";

    fn place() -> &'static AtomicPtr<()> {
        static PLACE: AtomicPtr<()> = AtomicPtr::new(core::ptr::null_mut());
        &PLACE
    }
}

impl Slots for Shared {
    const NAME: &'static str = "shared";

    fn place() -> &'static AtomicPtr<()> {
        static PLACE: AtomicPtr<()> = AtomicPtr::new(core::ptr::null_mut());
        &PLACE
    }
}

/// The frames of this machine, in its direct map.
#[derive(Debug, Clone, Copy)]
pub struct DirectMap;

impl DirectMap {
    fn word(frame: Frame, word: usize) -> *mut u64 {
        arch::direct_map(frame.number() * PAGE + word * size_of::<u64>()).cast()
    }
}

impl Contents for DirectMap {
    const WORDS: usize = PAGE / size_of::<u64>();

    fn write(&self, frame: Frame, word: usize, value: u64) {
        // Invariant `frames-are-memory`: the test asks for frames of the zone that it owns,
        // and the zone has nothing but memory of the map that nobody else uses.
        // SAFETY: by `frames-are-memory`.
        unsafe { Self::word(frame, word).write_volatile(value) }
    }

    fn read(&self, frame: Frame, word: usize) -> u64 {
        // SAFETY: `frames-are-memory`.
        unsafe { Self::word(frame, word).read_volatile() }
    }
}

/// A test of this machine's zone.
pub type MetalTest<A> = Test<'static, Zone<'static, Machine, A>, DirectMap>;

/// All of a round.
pub struct System<A: Slots> {
    /// The test of the zone.
    pub test: MetalTest<A>,
    /// The caches over the zone.
    pub caches: &'static Caches<A>,
    /// The slabs of those caches.
    pub slabs: &'static objects::System<A>,
    /// What was done.
    pub done: &'static RoundFigures,
    /// The CPUs.
    pub cpus: usize,
    /// The seed of the round.
    pub seed: u64,
    /// The steps of each task.
    pub steps: u64,
}

/// The sizes of stashes: every other seed has the largest, which may hold all there is, and page
/// blocks however small the memory is.
pub fn sizes(seed: u64) -> StashSizes {
    match seed % 2 {
        0 => StashSizes::LARGEST,
        _ => StashSizes::DEFAULT,
    }
}

/// Returns the plan of the zone: all memory there is, from the start of a block of the highest
/// order.
fn plan(map: &MemoryMap, cpus: usize, stash: StashSizes) -> ZonePlan {
    let Some((first, last)) = map.pages() else {
        fail(format_args!("the firmware tells of no memory"));
    };
    let whole = ZonePlan::new(ZoneKind::Normal, FrameRange::new(first, last), cpus);
    let start = Frame::new(first).align_down(whole.max_order);
    ZonePlan {
        span: FrameRange {
            start,
            ..whole.span
        },
        stash,
        ..whole
    }
}

/// Returns the bytes of metadata that a round needs.
pub fn bytes<A: Slots>(boot: &Boot) -> usize {
    let plan = plan(&boot.map, boot.cpus, StashSizes::LARGEST);
    let zone = match Zone::<Machine, A>::checked_bytes(&plan) {
        Ok(bytes) => bytes,
        Err(why) => fail(format_args!("{why}")),
    };
    let pages = plan.span.len();
    zone.saturating_add(Oracle::bytes(plan.span))
        .saturating_add(objects::System::<A>::bytes(&objects::plan(
            boot.cpus, pages,
        )))
        // The zone itself, the oracle itself, the slabs, the caches, the system, and alignment.
        .saturating_add(4 * PAGE)
}

/// Builds the zone, the oracle and the slabs. Returns the system, and the frames that were added.
pub fn build<A: Slots>(
    boot: &Boot,
    room: &mut MetadataRoom,
    seed: u64,
) -> (&'static System<A>, usize) {
    let plan = plan(&boot.map, boot.cpus, sizes(seed));
    let memory = room.bytes(Zone::<Machine, A>::bytes(&plan));
    let zone = match Zone::<Machine, A>::new(&plan, Machine, memory) {
        Ok(zone) => room.keep(zone),
        Err(why) => fail(format_args!("{why}")),
    };
    let mut frames = 0;
    boot.map
        .free(|from, to| match zone.add(FrameRange::new(from, to)) {
            Ok(added) => frames += added,
            Err(why) => fail(format_args!("pages {from:#x} to {to:#x}: {why}")),
        });
    let oracle = match Oracle::new(plan.span, room.bytes(Oracle::bytes(plan.span))) {
        Ok(oracle) => room.keep(oracle),
        Err(why) => fail(format_args!("{why}")),
    };
    let slab_plan = objects::plan(boot.cpus, plan.span.len());
    let memory = room.bytes(objects::System::<A>::bytes(&slab_plan));
    // SAFETY: the span begins at a multiple of the largest block, and is mapped as one piece. All
    // users of the zone free only what they own, by the oracle, which fails if they do not.
    let Some(pages) = (unsafe { OwnedPages::new(zone, oracle) }) else {
        fail(format_args!("the first frame has no address"));
    };
    // SAFETY: pins and masks hold on this machine, and its methods use no slabs. (Not with the
    // features that lie; there the kernel is to fail.)
    let local = unsafe { Pinned::new(Machine) };
    let slabs = match objects::System::<A>::new(slab_plan, pages, local, memory) {
        Ok(slabs) => room.keep(slabs),
        Err(why) => fail(format_args!("slabs: {why}")),
    };
    let caches = room.keep(Caches::new(slabs));
    let done = room.keep(RoundFigures::new());
    let system = room.keep(System {
        test: Test {
            zone,
            oracle,
            contents: DirectMap,
        },
        caches,
        slabs,
        done,
        cpus: boot.cpus,
        seed,
        steps: boot.settings.steps,
    });
    (system, frames)
}
