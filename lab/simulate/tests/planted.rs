//! Planted bugs, each found within a stated number of seeds; and the same systems without the bug,
//! which survive as many.

use core::mem;

use brickyard::sync::{
    AtomicU32, GuardedU32, Locked, Ordering, RawLock, TestAndSetLock, TicketLock, spin_hint,
};
use brickyard_designs::classics::Contended;
use brickyard_machine::{Affinity, Failure, Machine, WaitQueue, current};
use brickyard_simulate::OwnPages;
use brickyard_simulate::explore::{
    Case, Configuration, Covered, Explored, Fault, FreeMemory, Library, Log, Mode, SeedPlan,
    System, WithLock, explore,
};
use brickyard_simulate::lock::{LockKind, LockOfWords};

/// Explores on two threads, with cases of up to eight CPUs.
fn explored(system: &impl System, seeds: u64, case: &(dyn Fn(u64) -> Case + Sync)) -> Explored {
    let case = |seed| {
        let case = case(seed);
        Case {
            cpus: case.cpus.min(8),
            tasks: case.tasks.min(8),
            ..case
        }
    };
    explore(
        system,
        &SeedPlan {
            threads: 2,
            case: &case,
            ..SeedPlan::new(0..seeds)
        },
    )
}

/// Asserts that the bug is found, and that the printed command replays it.
fn is_found(name: &str, explored: Explored, is_it: impl Fn(&Fault) -> bool) {
    let failed = explored.failed.unwrap();
    println!(
        "{name}: seed {} after {} runs: {}\n  {}\n  {}",
        failed.case.seed, explored.runs, failed.fault, failed.shrunk.case, failed.shrunk.fault
    );
    assert!(is_it(&failed.fault), "{}", failed.fault);
    assert!(failed.shrunk.case.tasks <= failed.case.tasks);
    let command = failed.shrunk.case.to_string();
    assert!(
        command.starts_with("brickyard explore --replay "),
        "{command}"
    );
}

fn survives(explored: Explored, seeds: u64) {
    if let Some(failed) = explored.failed {
        let log = failed.shrunk.log.join("\n");
        panic!(
            "{}: {}\n{}: {}\n{log}",
            failed.case, failed.fault, failed.shrunk.case, failed.shrunk.fault
        );
    }
    assert_eq!(explored.runs, seeds);
}

/// Returns the case of a seed, with a configuration whose zones have a lock.
fn with_locks(seed: u64) -> Case {
    let locked = &Configuration::ALL[..6];
    Case {
        configuration: locked[seed as usize % locked.len()],
        // Only the machine can end a wait for a broken lock, so none is taken before the machine
        // runs.
        mode: Mode::Mixed,
        memory: FreeMemory::Plenty,
        ..Case::of(seed)
    }
}

fn any_failure(fault: &Fault) -> bool {
    matches!(fault, Fault::Run(_))
}

// ---- locks that do not keep their contract, under the real allocator ----

/// A lock that publishes nothing when it is released.
#[derive(Debug)]
struct WithoutRelease(AtomicU32);

// SAFETY: one word, from zero.
unsafe impl LockOfWords for WithoutRelease {}

// SAFETY: the contract is violated, and that is the bug: the next holder need not see what was
// written under the lock. Words of the simulated machine are atomic ones of the host, so the
// program has no undefined behaviour.
unsafe impl RawLock for WithoutRelease {
    const UNLOCKED: Self = Self(AtomicU32::new(0));

    fn lock(&self, mut relax: impl FnMut()) {
        while !self.try_lock() {
            relax();
        }
    }

    fn try_lock(&self) -> bool {
        self.0
            .compare_exchange(0, 1, Ordering::Acquire, Ordering::Relaxed)
            .is_ok()
    }

    unsafe fn unlock(&self) {
        self.0.store(0, Ordering::Relaxed);
    }

    fn is_locked(&self) -> bool {
        self.0.load(Ordering::Relaxed) != 0
    }
}

impl Contended for WithoutRelease {
    fn is_contended(&self) -> bool {
        false
    }
}

/// A lock that is released twice, as those of the magazines were in the patches of 2013.
#[derive(Debug)]
#[repr(transparent)]
struct UnlockedTwice<L>(L);

// SAFETY: it is `L`.
unsafe impl<L: LockOfWords> LockOfWords for UnlockedTwice<L> {}

// SAFETY: the contract is violated, and that is the bug: the second unlock can release another
// caller's lock. As above, the program has no undefined behaviour.
unsafe impl<L: RawLock> RawLock for UnlockedTwice<L> {
    const UNLOCKED: Self = Self(L::UNLOCKED);

    fn lock(&self, relax: impl FnMut()) {
        self.0.lock(relax);
    }

    fn try_lock(&self) -> bool {
        self.0.try_lock()
    }

    unsafe fn unlock(&self) {
        // SAFETY: the caller holds the lock.
        unsafe { self.0.unlock() };
        // SAFETY: the caller no longer holds the lock: the bug.
        unsafe { self.0.unlock() };
    }

    fn is_locked(&self) -> bool {
        self.0.is_locked()
    }
}

impl<L: Contended> Contended for UnlockedTwice<L> {
    fn is_contended(&self) -> bool {
        self.0.is_contended()
    }
}

#[test]
fn a_missing_release_is_found_within_10_seeds() {
    let system = WithLock(LockKind::of::<WithoutRelease>());
    is_found(
        "missing release",
        explored(&system, 10, &with_locks),
        |fault| matches!(fault, Fault::Run(Failure::Race { .. })),
    );
}

#[test]
fn a_double_unlock_is_found_within_20_seeds() {
    let system = WithLock(LockKind::of::<UnlockedTwice<TestAndSetLock>>());
    let found = explored(&system, 20, &with_locks);
    is_found("double unlock, test-and-set", found, any_failure);
    let system = WithLock(LockKind::of::<UnlockedTwice<TicketLock>>());
    let found = explored(&system, 20, &with_locks);
    is_found("double unlock, ticket", found, any_failure);
}

#[test]
#[ignore = "slow: .ci/jobs/slow runs it"]
fn the_allocator_survives_200_seeds() {
    survives(explored(&Library, 200, &Case::of), 200);
    survives(explored(&Library, 60, &with_locks), 60);
}

// ---- small systems besides the allocator ----

/// Runs tasks that each call `turn` on `shared`, which is mapped, `case.operations` times.
fn run_tasks<T>(
    case: &Case,
    log: &Log,
    shared: &OwnPages<T>,
    turn: impl Fn(&T, usize, usize),
) -> Result<Covered, Fault> {
    let _ = log;
    let mut machine = Machine::new(case.setup());
    shared.shared_pages().map(&mut machine);
    let turn = &turn;
    for number in 0..case.tasks.max(2) {
        machine.task(format!("task {number}"), Affinity::Any, move || {
            for operation in 0..case.operations {
                turn(shared, number, operation);
            }
        });
    }
    machine.run()?;
    Ok(Covered::default())
}

/// A page allocator of a few lines: the numbers of the free pages, under a lock.
struct Pool {
    len: GuardedU32,
    pages: [GuardedU32; 16],
}

/// Allocates pages in bulk, and releases the lock after each, as the posted diff of 2007 did.
struct Bulk {
    /// Whether the loop ends with the lock held where no page is free.
    leaks: bool,
}

impl Bulk {
    fn take(&self, pool: &Locked<TicketLock, Pool>, wanted: usize) -> Vec<u32> {
        let mut taken = Vec::new();
        for _ in 0..wanted {
            let held = pool.lock(spin_hint);
            let Some(len) = held.len.get().checked_sub(1) else {
                if self.leaks {
                    mem::forget(held);
                }
                break;
            };
            taken.push(held.pages[len as usize].get());
            held.len.set(len);
        }
        taken
    }

    fn give(pool: &Locked<TicketLock, Pool>, page: u32) {
        let held = pool.lock(spin_hint);
        let len = held.len.get();
        held.pages[len as usize].set(page);
        held.len.set(len + 1);
    }
}

impl System for Bulk {
    fn run(&self, case: &Case, log: &Log) -> Result<Covered, Fault> {
        let pool = OwnPages::new(Locked::new(Pool {
            len: GuardedU32::new(16),
            pages: core::array::from_fn(|page| GuardedU32::new(page as u32)),
        }));
        run_tasks(case, log, &pool, |pool, number, operation| {
            let taken = self.take(pool, 1 + (number + operation) % 7);
            current::compute(100);
            for page in taken {
                Self::give(pool, page);
            }
        })
    }
}

#[test]
#[ignore = "slow: .ci/jobs/slow runs it"]
fn the_lock_leak_of_2007_is_found_within_20_seeds() {
    let spins = |fault: &Fault| {
        matches!(
            fault,
            Fault::Run(Failure::NoEnd { .. } | Failure::Deadlock(_))
        )
    };
    let found = explored(&Bulk { leaks: true }, 20, &small);
    is_found("lock leak", found, spins);
    survives(explored(&Bulk { leaks: false }, 20, &small), 20);
}

/// Two tasks that wait for each other in turns.
struct Waiting {
    /// Whether a task checks the condition before it joins the queue, which is the bug.
    late: bool,
}

impl System for Waiting {
    fn run(&self, case: &Case, log: &Log) -> Result<Covered, Fault> {
        let turn = OwnPages::new(AtomicU32::new(0));
        let queue = WaitQueue::new();
        // Even turns are the first task's, odd ones the second's.
        let case = Case { tasks: 2, ..*case };
        run_tasks(&case, log, &turn, |turn, number, operation| {
            let due = (2 * operation + number) as u32;
            let is_due = || turn.load(Ordering::Acquire) == due;
            if self.late {
                while !is_due() {
                    queue.prepare();
                    queue.sleep();
                }
            } else {
                queue.wait_until(is_due);
            }
            turn.store(due + 1, Ordering::Release);
            queue.wake_all();
        })
    }
}

#[test]
fn a_lost_wakeup_is_found_within_20_seeds() {
    let found = explored(&Waiting { late: true }, 20, &small);
    is_found("lost wakeup", found, |fault| {
        matches!(fault, Fault::Run(Failure::Deadlock(_)))
    });
    survives(explored(&Waiting { late: false }, 20, &small), 20);
}

/// Returns a case for systems of a few lines.
fn small(seed: u64) -> Case {
    let case = Case::of(seed);
    Case {
        operations: case.operations.min(40),
        ..case
    }
}

#[test]
fn a_case_always_runs_the_same_way_and_prints_what_differs_from_its_seed() {
    let case = Case {
        cpus: 3,
        tasks: 4,
        operations: 20,
        ..Case::of(7)
    };
    let (first, second) = (Log::new(), Log::new());
    let outcome = Library.run(&case, &first).unwrap();
    assert_eq!(Library.run(&case, &second).unwrap(), outcome);
    assert_eq!(first.lines(), second.lines());
    assert_eq!(Case::of(7).to_string(), "brickyard explore --replay 7");
    assert!(case.to_string().ends_with(" --operations 20"), "{case}");
}
