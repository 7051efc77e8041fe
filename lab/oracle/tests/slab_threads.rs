//! Real threads on every design of slabs, over pages of a zone in real memory: no object has two
//! owners, nothing is lost.
//!
//! `BRICKYARD_OPERATIONS` sets how many operations a thread runs in each test.

use core::mem::MaybeUninit;

use brickyard::zone::ZonePlan;
use brickyard::{Zone, ZoneKind};
use brickyard_designs::slab_slub::{Slab2008, Slub2008};
use brickyard_designs::slqb::Slqb2008;
use brickyard_measure::memory::FrameMemory;
use brickyard_measure::threads::Threads;
use brickyard_oracle::slab::ownership::{Outcome, Plan, run};
use brickyard_slab::{
    DirectMap, DirectMapped, Pinned, Sheafed, SlabDesign, SlabPlan, Slabs, ZonePages,
};

/// Number of CPUs of a run: enough for the threads of every test in this process.
const CPUS: usize = 64;

type Source<'z, 'a> = ZonePages<'z, Zone<'a, DirectMap<&'a FrameMemory>>>;

fn operations() -> u64 {
    let operations = std::env::var("BRICKYARD_OPERATIONS").ok();
    operations
        .and_then(|operations| operations.parse().ok())
        .unwrap_or(40_000)
}

fn plan(threads: usize) -> Plan {
    Plan {
        threads,
        operations: operations(),
        held: 300,
        largest: 16 << 10,
        cpus: CPUS,
        seed: 1,
    }
}

/// Runs `work` over a zone of `bytes` bytes; all of them have to be free again at the end.
fn over_a_zone<R>(bytes: usize, work: impl FnOnce(Source<'_, '_>) -> R) -> R {
    let pages = FrameMemory::new(bytes).unwrap();
    let plan = ZonePlan::new(ZoneKind::Normal, pages.frames(), CPUS);
    let mut metadata = vec![MaybeUninit::uninit(); DirectMapped::<&FrameMemory>::bytes(&plan)];
    // SAFETY: all of the memory can be written, and nothing else uses it.
    // Each thread has a number of its own, and no interrupts.
    let map = unsafe { DirectMap::new(&pages, 12) };
    let mut zone = DirectMapped::<&FrameMemory>::new(&plan, map, &mut metadata).unwrap();
    let frames = zone.add(pages.frames()).unwrap();
    let done = work(ZonePages::new(&mut zone).unwrap());
    assert_eq!(
        zone.free_frames() + zone.cached_frames(),
        frames,
        "frames are left"
    );
    done
}

fn threads<'m, D>(source: D::Source, memory: &'m mut Vec<MaybeUninit<u8>>, plan: &Plan) -> Outcome
where
    D: SlabDesign<'m, Local = Pinned<Threads>>,
    Slabs<'m, D>: Sync,
{
    let slabs = SlabPlan::new(60, CPUS);
    memory.resize(
        Slabs::<D>::bytes(&slabs.over(&source)),
        MaybeUninit::uninit(),
    );
    // SAFETY: each thread has a number of its own, and no interrupts.
    let threads = unsafe { Pinned::new(Threads) };
    let slabs = Slabs::<D>::new(slabs, source, threads, memory);
    let outcome = run(&slabs.unwrap(), plan);
    println!("{} threads: {outcome:?}", plan.threads);
    assert!(outcome.served > plan.operations / 4, "{outcome:?}");
    assert!(outcome.given_back > 0, "{outcome:?}");
    assert!(
        plan.threads == 1 || outcome.freed_elsewhere > 0,
        "{outcome:?}"
    );
    outcome
}

const PLENTY: usize = 64 << 20;
/// Less than the threads request in all.
const SCARCE: usize = 4 << 20;

macro_rules! design {
    ($name:ident: $design:ident, $test:ident) => {
        fn $name(bytes: usize, plan: &Plan) -> Outcome {
            let mut memory = Vec::new();
            over_a_zone(bytes, |source| {
                threads::<$design<'_, Source<'_, '_>, Pinned<Threads>>>(source, &mut memory, plan)
            })
        }

        #[test]
        fn $test() {
            assert_eq!($name(PLENTY, &plan(4)).refused, 0);
        }
    };
}

design!(sheaves: Sheafed, sheaves_give_nothing_to_two);
design!(slqb: Slqb2008, slqb_2008_gives_nothing_to_two);
design!(slab: Slab2008, slab_2008_gives_nothing_to_two);
design!(slub: Slub2008, slub_2008_gives_nothing_to_two);

#[test]
fn many_threads_with_little_memory_are_refused_and_lose_nothing() {
    let plan = Plan {
        // With fewer, the threads may never hold more than there is.
        operations: (operations() / 8).max(3000),
        held: 1000,
        largest: 32 << 10,
        ..plan(8)
    };
    assert!(sheaves(SCARCE, &plan).refused > 0);
    assert!(slqb(SCARCE, &plan).refused > 0);
    assert!(slab(SCARCE, &plan).refused > 0);
    assert!(slub(SCARCE, &plan).refused > 0);
}
