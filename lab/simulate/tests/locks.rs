//! The experiment of 2007: measuring a lock changes nothing, a run is the same each time, and each
//! column does what its name says.

use core::mem::MaybeUninit;

use brickyard::node::Node;
use brickyard::sync::{Exclusive, Locked, TicketLock};
use brickyard::{AnyZone, FrameRange};
use brickyard_designs::classics::LabLock;
use brickyard_designs::classics::{LabZone, MachinePlan, Planned, Vanilla};
use brickyard_machine::{Affinity, Ended, Machine, Profile, Setup, current};
use brickyard_simulate::locks::{
    Column, Computing, Load, LocksCase, LocksPlan, LocksRun, Part, lists_of,
};
use brickyard_simulate::tasks::Runner;
use brickyard_simulate::timed::{Found, Timed, timed};
use brickyard_simulate::{Configuration, Job, OwnPages, SharedPages, Simulated};
use brickyard_workload::jobs::{self, Cut, Instances, JobStep, Urgency, Waits, Workload};

const PAGE: usize = 4096;

fn profile() -> &'static Profile {
    Profile::by_name("metatm-2007").unwrap()
}

fn plan() -> LocksPlan {
    let profile = profile();
    LocksPlan {
        profile,
        configuration: Configuration::Vanilla,
        lists: lists_of(profile),
        memory_bytes: 64 << 20,
        computing: Computing::EvictsLines,
    }
}

fn storm(column: Column, cpus: usize, seed: u64) -> LocksRun {
    let load = Load::storm(Part::Events(1024));
    let cell = LocksCase {
        load: &load,
        cpus,
        column,
        seed,
    };
    plan().run(&cell).unwrap()
}

/// Two tasks on two CPUs; the lock is outside the machine's memory, so that each access takes one
/// cycle.
#[test]
fn waits_and_holds_are_exact() {
    let lock = Locked::<Timed<TicketLock>, _>::new(());
    let hold = |starts_at: u64, cycles: u64| {
        current::work(starts_at);
        let held = lock.lock(brickyard::sync::spin_hint);
        current::work(cycles);
        drop(held);
    };
    let mut machine = Machine::new(Setup::new(profile(), 2, 1));
    machine.task("first", Affinity::Cpu(0), || hold(0, 1000));
    machine.task("second", Affinity::Cpu(1), || hold(100, 30));
    let (ended, log) = timed(|| machine.run());
    ended.unwrap();
    assert_eq!(log.holds, [1000, 30]);
    let [(at_once, free), (waited, taken)] = log.waits[..] else {
        panic!("two acquisitions, not {:?}", log.waits)
    };
    assert_eq!((free, taken), (Found::Free, Found::Taken));
    assert_eq!(at_once, 2, "two words are accessed");
    // It came 100 cycles later and waited for the end of the 1000, give or take a pause of the
    // loop.
    assert!((890..=930).contains(&waited), "{waited}");
}

/// A few hundred pages on four CPUs.
struct Few;

impl Job for Few {
    type Output = Ended;

    fn run<Z: LabZone<Platform = Simulated>>(
        self,
        node: &Node<'_, Z>,
        shared: &[SharedPages],
    ) -> Ended {
        let runner = Runner::new(core::slice::from_ref(node));
        let tasks = Load::storm(Part::Events(512)).tasks(4, 3);
        let mut machine = Machine::new(Setup::new(profile(), 4, 3));
        for pages in shared {
            pages.map(&mut machine);
        }
        for (cpu, task) in tasks.plans.iter().enumerate() {
            let runner = &runner;
            machine.task("few", Affinity::Cpu(cpu), move || {
                task.jobs.iter().for_each(|job| runner.run(job));
            });
        }
        machine.run().unwrap()
    }
}

#[test]
fn measuring_a_lock_changes_nothing() {
    // Built here rather than by `Blueprint`, which would compile the work for every design.
    fn of<L: LabLock>() -> Ended {
        let (plan, _) =
            MachinePlan::new(FrameRange::new(0, 16384), 4).zones(Configuration::Vanilla);
        let bytes = Vanilla::<Simulated, Exclusive, L>::checked_bytes_for(&plan).unwrap();
        let bytes = bytes.next_multiple_of(PAGE);
        let memory = vec![MaybeUninit::uninit(); bytes + PAGE].leak();
        let skip = memory.as_ptr().align_offset(PAGE);
        let memory = &mut memory[skip..][..bytes];
        let metadata = SharedPages::of(memory);
        let zone = Vanilla::<Simulated, Exclusive, L>::by(&plan, Simulated, memory).unwrap();
        zone.add(plan.span).unwrap();
        let zones = OwnPages::new([zone]);
        let node = Node::new(0, core::slice::from_ref(&zones[0]));
        Few.run(&node, &[metadata, zones.shared_pages()])
    }
    let plain = of::<TicketLock>();
    assert!(plain.accesses > 10_000);
    let (measured, log) = timed(of::<Timed<TicketLock>>);
    assert_eq!(plain, measured);
    assert!(log.waits.len() > 20);
    // Nor does it without a log.
    assert_eq!(plain, of::<Timed<TicketLock>>());
}

#[test]
fn a_run_is_the_same_each_time_and_differs_with_the_seed() {
    for column in Column::ALL {
        let first = storm(column, 4, 7);
        assert_eq!(first, storm(column, 4, 7), "{}", column.name());
        assert_ne!(first.seconds, storm(column, 4, 8).seconds);
    }
}

#[test]
fn alone_only_release_differs() {
    let of = |column| storm(column, 1, 1);
    let hold = of(Column::Hold);
    // 1024 events of single pages, in bulk operations of seven; there is no other CPU to wait for.
    assert_eq!(hold.counts.pages, 512);
    assert_eq!((hold.counts.failed, hold.contended), (0, 0));
    assert_eq!((hold.taken.count, hold.taken.order), (7.0, 0.0));
    assert_eq!(hold.given.count, 7.0);
    assert_eq!(hold.fairness, 1.0);
    for column in [
        Column::Ticket,
        Column::TicketYield,
        Column::TicketYieldOwnLine,
    ] {
        assert_eq!(of(column).holds.count(), hold.holds.count());
    }
    // Where one hold moved seven pages, each of the seven now has its own hold.
    let release = of(Column::Release);
    assert_eq!(release.holds.count(), 7 * hold.holds.count());
    assert!(release.holds.percentile(50.0) < hold.holds.percentile(50.0) / 3);
    assert!(release.seconds > hold.seconds);
}

#[test]
fn in_a_storm_each_policy_does_what_it_is_for() {
    let of = |column| storm(column, 8, 1);
    let [hold, release, ticket, yields, own_line] = Column::ALL.map(of);
    for one in [&hold, &release, &ticket, &yields, &own_line] {
        assert_eq!(one.counts.pages, 8 * 512);
        assert_eq!(one.counts.refused, 0);
        assert_eq!(one.waits.count(), one.holds.count());
        assert!(one.contended * 10 > one.waits.count());
        assert!(one.waiting_share > 0.5 && one.held_share <= 1.0);
    }
    // In a queue no CPU waits by chance for much longer than others.
    assert!(ticket.fairness > hold.fairness + 0.1);
    assert!(ticket.waits.percentile(99.9) < hold.waits.percentile(99.9));
    // Releasing the lock in between makes each hold, and so each wait in the queue, shorter.
    assert!(yields.holds.percentile(50.0) < ticket.holds.percentile(50.0));
    assert!(yields.waits.percentile(50.0) < ticket.waits.percentile(50.0));
    assert!(yields.holds.count() > 3 * ticket.holds.count());
}

fn job(name: &str, pages: u32) -> jobs::Job {
    let take = |page| JobStep::Take {
        page,
        order: 0,
        mobility: Default::default(),
        urgent: Urgency::MaySleep,
    };
    let mut steps = Vec::new();
    for page in 0..pages {
        steps.push(JobStep::Compute { ns: 1000 });
        steps.push(take(page));
    }
    steps.extend((0..pages).map(|page| JobStep::Give { page, order: 0 }));
    jobs::Job {
        name: name.to_owned(),
        steps,
        pages,
    }
}

const fn workload(instances: Instances) -> Workload {
    Workload {
        name: "made",
        about: "made for this test",
        trace: "",
        cut: Cut::Whole,
        waits: Waits::Never,
        instances,
    }
}

#[test]
fn a_workload_has_as_many_tasks_as_its_instances() {
    let jobs = [job("a", 3), job("b", 5)];
    let of = |instances| Load::of(&workload(instances), &jobs, Part::Whole).tasks(4, 1);
    let each = of(Instances::PerCpu(2));
    assert_eq!((each.plans.len(), each.pool.len()), (8, 0));
    assert!(each.plans.iter().all(|task| task.jobs.len() == 2));
    // No two run in lockstep, and all begin at different times.
    assert_ne!(each.plans[0].jobs, each.plans[1].jobs);
    assert!(each.plans.is_sorted_by(|a, b| a.begins_ns < b.begins_ns));
    assert_eq!(of(Instances::Fixed(3)).plans.len(), 3);
    let pool = of(Instances::PoolPerCpu(2));
    assert_eq!(pool.plans.len(), 8);
    assert!(pool.plans.iter().all(|task| task.jobs.is_empty()));
    let names: Vec<&str> = pool.pool.iter().map(|job| job.name.as_str()).collect();
    assert_eq!(names[..2], ["a", "b"]);
}

#[test]
fn a_part_of_a_job_is_its_beginning() {
    let jobs = [job("a", 10)];
    let load = Load::of(&workload(Instances::PerCpu(1)), &jobs, Part::Events(4));
    let tasks = load.tasks(1, 1);
    let totals = tasks.plans[0].jobs[0].totals();
    assert_eq!((totals.takes, totals.gives), (4, 0));
    assert_eq!(load.pages_most(3), 12);
}

/// 40 pages, each after 20 ms of computing, in which a compiler touches more lines than any cache
/// has.
fn with_long_computing(column: Column, computing: Computing) -> LocksRun {
    let mut slow = job("slow", 40);
    for step in &mut slow.steps {
        if let JobStep::Compute { ns } = step {
            *ns = 20_000_000;
        }
    }
    let load = Load::of(&workload(Instances::Fixed(1)), &[slow], Part::Whole);
    let cell = LocksCase {
        load: &load,
        cpus: 1,
        column,
        seed: 1,
    };
    let plan = LocksPlan {
        computing,
        ..plan()
    };
    plan.run(&cell).unwrap()
}

#[test]
fn computing_evicts_the_allocators_lines() {
    let [evicts, keeps] = [Computing::EvictsLines, Computing::KeepsLines]
        .map(|computing| with_long_computing(Column::Hold, computing));
    assert_eq!(evicts.counts, keeps.counts);
    assert_eq!(evicts.accesses, keeps.accesses);
    // Each page is allocated with cold caches: at least its list and the zone's own words.
    assert!(evicts.traffic.memory > keeps.traffic.memory + 40);
    assert!(evicts.seconds > keeps.seconds);
}

/// The lists begin in the lock's line: alone in its line, the lock costs one fetch more each time.
#[test]
fn a_line_of_its_own_costs_a_fetch() {
    let of = |column| with_long_computing(column, Computing::EvictsLines);
    let (shared, own) = (of(Column::TicketYield), of(Column::TicketYieldOwnLine));
    assert_eq!(shared.holds.count(), own.holds.count());
    assert!(shared.holds.count() >= 5);
    let more = own.traffic.memory - shared.traffic.memory;
    assert!(more > 0 && more <= own.holds.count() as u64, "{more}");
}

#[test]
fn every_configuration_runs() {
    let jobs = [job("a", 40)];
    let load = Load::of(&workload(Instances::PerCpu(2)), &jobs, Part::Whole);
    for configuration in Configuration::ALL {
        let plan = LocksPlan {
            configuration,
            ..plan()
        };
        let cell = LocksCase {
            load: &load,
            cpus: 3,
            column: Column::TicketYield,
            seed: 1,
        };
        let measured = plan.run(&cell).unwrap();
        assert_eq!(measured.counts.pages, 6 * 40, "{configuration}");
        assert_eq!(measured.counts.given, 6 * 40);
        assert_eq!(measured.counts.failed + measured.counts.refused, 0);
    }
}
