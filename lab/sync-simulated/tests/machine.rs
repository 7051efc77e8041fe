//! Tasks and words on a simulated machine: locks exclude, time is accounted, no wakeup is lost, and
//! every run of a seed is the same.

#![allow(clippy::unwrap_used, reason = "a test fails by it")]

use core::cell::{Cell, RefCell};

use brickyard_machine::{
    Affinity, Ended, Failure, Machine, Profile, Setup, Stops, Timing, WaitQueue, Watch, current,
    seam,
};
use brickyard_sync_simulated::{
    AtomicU32, AtomicU64, GuardedU64, Locked, Ordering, RawLock, TestAndSetLock, TicketLock,
    spin_hint,
};

#[repr(align(4096))]
struct Page<T>(T);

impl<T> Page<T> {
    fn map(&self, machine: &mut Machine<'_>) {
        machine.map(core::ptr::from_ref(self).cast(), size_of::<Self>());
    }
}

fn metatm() -> &'static Profile {
    Profile::by_name("metatm-2007").unwrap()
}

fn random(cpus: usize, seed: u64) -> Setup {
    Setup {
        timing: Timing::Random,
        watch: Watch::Races,
        accesses_most: 1_000_000,
        ..Setup::new(metatm(), cpus, seed)
    }
}

/// `cpus` tasks that each add 100 to a guarded word under a lock.
fn count<L: RawLock>(setup: Setup) -> (Result<Ended, Failure>, u64) {
    let counter = Page(Locked::<L, GuardedU64>::new(GuardedU64::new(0)));
    let mut machine = Machine::new(setup);
    counter.map(&mut machine);
    for cpu in 0..setup.cpus {
        let counter = &counter.0;
        machine.task(format!("adds {cpu}"), Affinity::Any, move || {
            for _ in 0..100 {
                current::pin();
                counter.lock(spin_hint).add(1);
                current::unpin();
            }
        });
    }
    let ended = machine.run();
    (ended, counter.0.unlocked().get())
}

#[test]
fn locks_exclude_on_any_number_of_cpus() {
    for cpus in [1, 2, 8, 32, 200] {
        let (ended, sum) = count::<TicketLock>(Setup::new(metatm(), cpus, 1));
        assert_eq!(sum, 100 * cpus as u64);
        let ended = ended.unwrap();
        assert_eq!(ended.unmapped, 0);
        assert!(ended.accesses >= 600 * cpus as u64);
        let (_, sum) = count::<TestAndSetLock>(Setup::new(metatm(), cpus, 1));
        assert_eq!(sum, 100 * cpus as u64);
    }
    for seed in 0..20 {
        let (ended, sum) = count::<TicketLock>(random(7, seed));
        assert_eq!((ended.map(|_| ()), sum), (Ok(()), 700));
    }
}

#[test]
fn a_seed_gives_the_same_run() {
    for setup in [Setup::new(metatm(), 8, 5), random(8, 5)] {
        let first = count::<TicketLock>(setup);
        // Moves later allocations to other host addresses.
        let elsewhere = vec![0_u8; 1 << 20];
        assert_eq!(count::<TicketLock>(setup), first);
        assert_eq!(elsewhere.len(), 1 << 20);
        let other = count::<TicketLock>(Setup { seed: 6, ..setup });
        assert_ne!(other.0, first.0);
    }
}

#[test]
fn the_times_of_a_cpu_add_up_to_the_length_of_the_run() {
    let (ended, _) = count::<TicketLock>(Setup::new(metatm(), 5, 1));
    let ended = ended.unwrap();
    for cpu in &ended.cpus {
        assert_eq!(
            cpu.user + cpu.system + cpu.interrupts + cpu.idle,
            ended.cycles
        );
    }
}

/// A lock whose unlock publishes nothing.
struct Relaxed(AtomicU32);

// SAFETY: it excludes; that its unlock publishes nothing is what the test is to find.
unsafe impl RawLock for Relaxed {
    const UNLOCKED: Self = Self(AtomicU32::new(0));

    fn lock(&self, mut relax: impl FnMut()) {
        while !self.try_lock() {
            relax();
        }
    }

    fn try_lock(&self) -> bool {
        self.0.swap(1, Ordering::Acquire) == 0
    }

    unsafe fn unlock(&self) {
        self.0.store(0, Ordering::Relaxed);
    }

    fn is_locked(&self) -> bool {
        self.0.load(Ordering::Relaxed) != 0
    }
}

#[test]
fn an_unlock_that_publishes_nothing_is_a_race() {
    let (ended, _) = count::<Relaxed>(random(2, 1));
    assert!(matches!(ended, Err(Failure::Race { .. })), "{ended:?}");
}

#[test]
fn sleepers_wake_in_time_and_the_disk_is_fixed() {
    let woke = RefCell::new(Vec::new());
    let mut machine = Machine::new(Setup::new(metatm(), 2, 1));
    for (name, cycles) in [("late", 9000), ("early", 3000)] {
        let woke = &woke;
        machine.task(name, Affinity::Any, move || {
            current::sleep(cycles);
            woke.borrow_mut().push((name, current::now() >= cycles));
        });
    }
    let woke_up = &woke;
    machine.task("reads", Affinity::Any, move || {
        let before = current::now();
        current::disk();
        assert!(current::now() - before >= 5_500_000);
        woke_up.borrow_mut().push(("reads", true));
    });
    machine.run().unwrap();
    assert_eq!(
        *woke.borrow(),
        [("early", true), ("late", true), ("reads", true)]
    );
}

#[test]
fn tasks_share_a_cpu_by_slices_and_idle_cpus_steal() {
    let run = |cpus, tasks| {
        let mut machine = Machine::new(Setup::new(metatm(), cpus, 1));
        for task in 0..tasks {
            machine.task(format!("computes {task}"), Affinity::Any, || {
                current::compute(1_000_000_000)
            });
        }
        machine.run().unwrap()
    };
    let (one, two) = (run(1, 4), run(2, 4));
    assert!(
        one.cycles > 4_000_000_000 && one.cycles < 4_200_000_000,
        "{}",
        one.cycles
    );
    assert!(
        two.cycles > 2_000_000_000 && two.cycles < 2_200_000_000,
        "{}",
        two.cycles
    );
    assert!(one.tasks.iter().all(|task| task.user == 1_000_000_000));
    // They take turns: all end near the end.
    assert!(one.tasks.iter().all(|task| task.ended > 3_500_000_000));
}

#[test]
fn a_remote_call_interrupts_what_a_cpu_computes() {
    let (ran_on, returned) = (Cell::new(9), Cell::new(0));
    let mut machine = Machine::new(Setup::new(metatm(), 3, 1));
    machine.task("computes", Affinity::Cpu(2), || {
        current::compute(50_000_000)
    });
    let (ran, when) = (&ran_on, &returned);
    machine.task("calls", Affinity::Cpu(0), move || {
        current::compute(1000);
        let here_before = current::cpu();
        assert!(current::run_on(2, &mut || ran.set(current::cpu())));
        assert_eq!(current::cpu(), here_before);
        assert!(!current::run_on(3, &mut || ()));
        when.set(current::now());
    });
    let ended = machine.run().unwrap();
    assert_eq!(ran_on.get(), 2);
    assert!(returned.get() < 1_000_000, "{}", returned.get());
    assert_eq!(ended.tasks[0].user, 50_000_000);
}

#[test]
fn two_cpus_can_call_each_other_at_once() {
    for setup in [Setup::new(metatm(), 2, 3), random(2, 3)] {
        let runs = Cell::new(0);
        let mut machine = Machine::new(setup);
        for cpu in 0..2 {
            let runs = &runs;
            machine.task(format!("calls {cpu}"), Affinity::Cpu(cpu), move || {
                for _ in 0..50 {
                    assert!(current::run_on(1 - cpu, &mut || runs.set(runs.get() + 1)));
                }
            });
        }
        machine.run().unwrap();
        assert_eq!(runs.get(), 100);
    }
}

/// A remote call that comes while another runs does not send that one behind the task of the CPU,
/// which may compute for long.
#[test]
fn a_remote_call_ends_before_the_task_of_its_cpu_continues() {
    let last = Cell::new(0);
    let mut machine = Machine::new(Setup::new(metatm(), 4, 1));
    machine.task("computes", Affinity::Cpu(3), || {
        current::compute(500_000_000)
    });
    for cpu in 0..3 {
        let last = &last;
        machine.task(format!("calls {cpu}"), Affinity::Cpu(cpu), move || {
            let work = &mut || {
                for _ in 0..100 {
                    current::pin();
                    current::compute(100);
                    current::unpin();
                }
            };
            (0..20).for_each(|_| assert!(current::run_on(3, work)));
            last.set(last.get().max(current::now()));
        });
    }
    machine.run().unwrap();
    assert!(last.get() < 20_000_000, "{}", last.get());
}

#[test]
fn a_cpu_that_spins_on_a_line_is_woken_by_a_write_to_it() {
    let flag = Page(AtomicU64::new(0));
    let seen = Cell::new(0);
    let mut machine = Machine::new(Setup::new(metatm(), 2, 1));
    flag.map(&mut machine);
    let flag = &flag.0;
    let seen_by = &seen;
    machine.task("waits", Affinity::Cpu(0), move || {
        while flag.load(Ordering::Acquire) == 0 {
            spin_hint();
        }
        seen_by.set(current::now());
    });
    machine.task("writes", Affinity::Cpu(1), move || {
        current::compute(1_000_000);
        flag.store(1, Ordering::Release);
    });
    let ended = machine.run().unwrap();
    assert!(
        (1_000_000..1_010_000).contains(&seen.get()),
        "{}",
        seen.get()
    );
    assert!(ended.accesses < 100, "{}", ended.accesses);
}

#[test]
fn a_wait_queue_loses_no_wakeup_unless_the_check_comes_too_early() {
    let run = |careful: bool, seed| {
        let come = Page(AtomicU32::new(0));
        let queue = WaitQueue::new();
        let mut machine = Machine::new(random(2, seed));
        come.map(&mut machine);
        let (come, queue) = (&come.0, &queue);
        let has_come = move || come.load(Ordering::Acquire) == 1;
        machine.task("waits", Affinity::Cpu(0), move || {
            if careful {
                queue.wait_until(has_come);
            } else if !has_come() {
                queue.prepare();
                queue.sleep();
                queue.finish();
            }
        });
        machine.task("wakes", Affinity::Cpu(1), move || {
            come.store(1, Ordering::Release);
            queue.wake_all();
        });
        machine.run().map(|_| ())
    };
    assert!((0..200).all(|seed| run(true, seed) == Ok(())));
    let lost = (0..200).find_map(|seed| run(false, seed).err());
    assert!(
        matches!(&lost, Some(Failure::Deadlock(text)) if text.contains("waits")),
        "{lost:?}"
    );
}

#[test]
fn each_failure_is_reported() {
    let fails = |body: fn()| {
        let mut machine = Machine::new(random(2, 1));
        machine.task("errs", Affinity::Any, body);
        machine.task("sleeps", Affinity::Any, || current::sleep(1 << 40));
        machine.run().map(|_| ()).unwrap_err()
    };
    let panicked = fails(|| panic!("on purpose"));
    assert!(
        matches!(&panicked, Failure::Panicked { at, message } if at.task == "errs" && message == "on purpose")
    );
    let reported = fails(|| current::fail("found out"));
    assert!(
        reported.to_string().contains("errs: found out"),
        "{reported}"
    );
    let pinned = fails(|| {
        current::pin();
        current::sleep(1);
    });
    assert!(
        matches!(pinned, Failure::Unbalanced { pins: 1, .. }),
        "{pinned}"
    );
    let masked = fails(|| {
        current::mask();
    });
    assert!(
        masked
            .to_string()
            .contains("ended with 0 pins and interrupts masked"),
        "{masked}"
    );
    let endless = fails(|| {
        let word = AtomicU32::new(0);
        while word.load(Ordering::Relaxed) == 0 {
            spin_hint();
        }
    });
    assert!(endless.to_string().contains("errs spins"), "{endless}");
}

#[test]
fn interrupts_come_only_where_they_are_enabled() {
    let word = Page(AtomicU64::new(0));
    let (inside, total) = (Cell::new(false), Cell::new(0_u32));
    let mut machine = Machine::new(random(2, 9));
    word.map(&mut machine);
    machine.interrupts(50, || {
        assert!(current::in_interrupt() && !inside.get());
        total.set(total.get() + 1);
    });
    let (word, inside) = (&word.0, &inside);
    machine.task("masks", Affinity::Cpu(0), move || {
        for _ in 0..1000 {
            let found = current::mask();
            inside.set(true);
            word.fetch_add(1, Ordering::Relaxed);
            inside.set(false);
            current::restore(found);
            word.fetch_add(1, Ordering::Relaxed);
        }
    });
    machine.run().unwrap();
    assert!(total.get() > 20, "{}", total.get());
}

#[test]
fn outside_a_machine_words_are_plain_words() {
    assert!(!current::is_simulated());
    let word = AtomicU64::new(1);
    assert_eq!(word.fetch_add(2, Ordering::Relaxed), 1);
    assert_eq!(word.load(Ordering::Relaxed), 3);
    // A test may be called before each access of an atomic word, for as long as it says.
    thread_local!(static CALLS: Cell<u32> = const { Cell::new(0) });
    seam::before_each_access(
        || CALLS.set(CALLS.get() + 1),
        || {
            word.store(3, Ordering::Relaxed);
            word.compare_exchange(3, 4, Ordering::Relaxed, Ordering::Relaxed)
                .unwrap();
            GuardedU64::new(0).set(1);
        },
    );
    word.store(5, Ordering::Relaxed);
    assert_eq!(CALLS.get(), 2);
    current::compute(1 << 60);
    current::sleep(1);
    assert_eq!(
        (current::cpu(), current::now(), current::in_interrupt()),
        (0, 0, false)
    );
    let mut ran = false;
    assert!(current::run_on(7, &mut || ran = true));
    assert!(ran);
}

#[test]
fn steps_are_counted_per_task_and_can_be_bounded() {
    let flag = Page(AtomicU32::new(0));
    let mut machine = Machine::new(random(2, 3));
    flag.map(&mut machine);
    let flag = &flag.0;
    machine.interrupts(500, || {
        for _ in 0..50 {
            flag.fetch_add(0, Ordering::Relaxed);
        }
    });
    machine.task("looks", Affinity::Cpu(0), move || {
        let before = current::steps();
        current::within(110, || {
            for _ in 0..100 {
                flag.load(Ordering::Relaxed);
            }
            (0..10).for_each(|_| spin_hint());
        });
        let made = current::steps().since(before);
        assert_eq!((made.accesses, made.waits, made.all()), (100, 10, 110));
        // What a remote call does elsewhere does not count.
        current::run_on(1, &mut || {
            (0..100).for_each(|_| flag.store(1, Ordering::Relaxed));
        });
        assert_eq!(current::steps().since(before), made);
        // One step too many.
        current::within(3, || (0..4).for_each(|_| flag.store(1, Ordering::Relaxed)));
    });
    let ended = machine.run().map(|_| ());
    assert!(
        matches!(&ended, Err(Failure::TooLong { at, .. }) if at.cpu == 0),
        "{ended:?}"
    );
}

#[test]
fn a_task_that_may_not_wait_fails_if_it_does() {
    let ends = |body: fn()| {
        let mut machine = Machine::new(random(2, 1));
        machine.task("hurries", Affinity::Cpu(0), body);
        machine.run().map(|_| ())
    };
    let slept = ends(|| current::atomically(|| current::sleep(1))).unwrap_err();
    assert!(slept.to_string().contains("may not wait"), "{slept}");
    let called = ends(|| {
        current::atomically(|| current::run_on(1, &mut || {}));
    });
    let called = called.unwrap_err();
    assert!(called.to_string().contains("remote call"), "{called}");
    let fine = ends(|| {
        current::atomically(|| current::work(100));
        current::sleep(1);
        assert!(current::run_on(1, &mut || {}));
    });
    assert_eq!(fine, Ok(()));
}

#[test]
fn a_cpu_can_stop_at_any_access_while_others_run() {
    let stops = Stops {
        one_in_pinned: 50,
        one_in: 1_000_000,
        cycles_least: 1_000_000,
        cycles_most: 1_000_001,
    };
    let run = |seed| {
        let word = Page(AtomicU32::new(0));
        let (seen, alone) = (Cell::new(0), Cell::new(0));
        let mut machine = Machine::new(Setup {
            stops: Some(stops),
            ..random(2, seed)
        });
        word.map(&mut machine);
        let (word, seen_, alone_) = (&word.0, &seen, &alone);
        machine.task("stops", Affinity::Cpu(0), move || {
            current::pin();
            for _ in 0..300 {
                word.fetch_add(1, Ordering::Relaxed);
            }
            current::unpin();
        });
        machine.task("runs", Affinity::Cpu(1), move || {
            for _ in 0..2_000 {
                word.load(Ordering::Relaxed);
                let (stopped, stops) = current::stopped();
                seen_.set(stops);
                alone_.set(alone_.get() + stopped);
            }
        });
        let ended = machine.run().unwrap();
        assert!(ended.stops >= seen.get() && ended.cycles >= ended.stops * 1_000_000);
        (ended.stops, alone.get(), ended.cycles)
    };
    let (stops, steps_meanwhile, _) = run(4);
    assert!(stops > 0 && steps_meanwhile > 100);
    assert_eq!(run(4), run(4));
}
