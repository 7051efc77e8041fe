//! Objects out of a zone of static memory, by both slab designs: typed, by size, zeroed, reserved.
//! At the end nothing may be left in use.

use core::alloc::Layout;
use core::cell::UnsafeCell;
use core::mem::MaybeUninit;
use core::ptr::NonNull;

use brickyard::{Frame, FrameRange, Order, Platform, Zone, ZoneKind, ZonePlan};
use brickyard_designs::slqb::Slqb2008;
use brickyard_slab::{
    CacheSpec, DirectMap, DirectMapped, Everywhere, Pinned, Sheafed, SlabDesign, SlabPlan, Slabs,
    TaskOnly, ZonePages,
};

const PAGES: usize = 256;

/// Memory of one MiB, aligned to its own size.
#[repr(align(1048576))]
struct Memory(UnsafeCell<MaybeUninit<[u8; PAGES << 12]>>);

// SAFETY: the zone hands out its bytes, each to one user.
unsafe impl Sync for Memory {}

static MEMORY: Memory = Memory(UnsafeCell::new(MaybeUninit::uninit()));

/// One CPU, whose frames are that memory.
#[derive(Clone, Copy)]
struct Machine;

impl Platform for Machine {
    fn cpu(&self) -> usize {
        0
    }

    fn address(&self, frame: Frame) -> Option<NonNull<u8>> {
        let start = NonNull::new(MEMORY.0.get())?.cast::<u8>();
        // SAFETY: a frame of the zone is a page of the memory.
        (frame.number() < PAGES).then(|| unsafe { start.add(frame.number() << 12) })
    }
}

/// A zone whose largest block has the alignment of its memory.
const PLAN: ZonePlan = ZonePlan {
    max_order: Order::new(8),
    page_block_order: Order::new(8),
    ..ZonePlan::new(ZoneKind::Normal, FrameRange::new(0, PAGES), 1)
};

/// The zone that owns that memory, and what it is for slabs.
type Mapped<'z> = DirectMapped<'z, Machine>;
type Pages<'z> = Zone<'z, DirectMap<Machine>>;

/// Builds slabs of a design over the zone, and uses them.
macro_rules! on {
    ($design:ident, $zone:expr) => {{
        const SLABS: SlabPlan = SlabPlan::new(48, 1).pages(PAGES);
        type System<'m, 'z> = Slabs<'m, $design<'m, ZonePages<'m, Pages<'z>>, Pinned<Machine>>>;
        let mut memory = [MaybeUninit::uninit(); System::bytes(&SLABS)];
        // SAFETY: there is one CPU, and its interrupts do not come here.
        let machine = unsafe { Pinned::new(Machine) };
        System::over_zone(SLABS, $zone, machine, &mut memory)
            .is_ok_and(|slabs| use_slabs(&slabs).is_some())
    }};
}

/// Returns true if everything went as it should, on both designs.
pub(crate) fn run() -> bool {
    let mut metadata = [MaybeUninit::uninit(); Mapped::bytes(&PLAN)];
    // SAFETY: frame `i` is page `i` of the memory, which only this map uses. There is one CPU, and
    // its interrupts do not come here.
    let map = unsafe { DirectMap::new(Machine, 12) };
    let Ok(mut zone) = Mapped::new(&PLAN, map, &mut metadata) else {
        return false;
    };
    let fine = zone.add(FrameRange::new(0, PAGES)) == Ok(PAGES)
        && on!(Sheafed, &mut zone)
        && on!(Slqb2008, &mut zone);
    zone.drain();
    fine && zone.check().is_ok()
}

/// Returns `Some` if everything went as it should.
fn use_slabs<'m, D: SlabDesign<'m>>(slabs: &Slabs<'m, D>) -> Option<()> {
    let points = slabs.typed::<[u64; 3], TaskOnly>("point").ok()?;
    let mut point = points.alloc([1, 2, 3]).ok()?;
    point[0] = 7;
    let other = points.alloc([0; 3]).ok()?;
    if point[..] != [7, 2, 3] || other[..] != [0; 3] {
        return None;
    }
    drop((point, other));
    points.destroy().ok()?;

    let spec = CacheSpec::new("buffer", 600).align(64).reclaimable();
    let buffers = slabs.cache::<Everywhere>(spec).ok()?;
    let mut reserve = buffers.reserve::<4>().ok()?;
    let buffer = reserve.alloc()?;
    // SAFETY: the objects came from these caches, and are not used after they are freed.
    unsafe {
        buffer.write_bytes(1, 600);
        buffers.free(buffer).ok()?;
        drop(reserve);
        buffers.destroy().ok()?;

        let general = slabs.general::<Everywhere>().ok()?;
        for bytes in [1, 60, 1216, 9000] {
            let layout = Layout::from_size_align(bytes, 8).ok()?;
            let memory = general.alloc(layout).ok()?;
            memory.write_bytes(2, bytes);
            general.free(memory, layout).ok()?;
        }
    }
    slabs.drain();
    slabs.shrink();
    slabs
        .numbers()
        .all(|numbers| numbers.out == 0)
        .then_some(())
}
