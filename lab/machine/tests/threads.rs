//! Two threads of one core: they share its caches, and each is slower while the other runs.

use core::cell::Cell;

use brickyard_machine::{AccessKind, Affinity, Ended, Machine, Profile, Setup, current, seam};

/// The CPUs of the machine: four cores, so CPU 0 and CPU 4 are threads of one.
const CPUS: usize = 8;

fn machine<'a>() -> Machine<'a> {
    machine_with(10_000)
}

fn machine_with<'a>(instructions_per_thousand: u64) -> Machine<'a> {
    Machine::new(Setup {
        instructions_per_thousand,
        ..Setup::new(Profile::by_name("i7-2013").unwrap(), CPUS, 1)
    })
}

/// Runs the same work on these CPUs at once.
fn on(cpus: &[usize], work: fn()) -> Ended {
    let mut machine = machine();
    for &cpu in cpus {
        machine.task(format!("on {cpu}"), Affinity::Cpu(cpu), work);
    }
    machine.run().unwrap()
}

#[test]
fn no_part_of_an_instruction_is_lost() {
    const ACCESSES: u64 = 100_000;
    let system = |cpus: &[usize]| {
        let mut machine = machine_with(7_613);
        for &cpu in cpus {
            machine.task(format!("on {cpu}"), Affinity::Cpu(cpu), || {
                // Memory that is not mapped costs its instructions alone.
                (0..ACCESSES).for_each(|_| seam::begin(0, AccessKind::Load));
            });
        }
        machine.run().unwrap().cpus[0].system
    };
    // A switch to the task comes first.
    let switch = Profile::I7_2013.switch_cycles;
    assert_eq!(system(&[0]) - switch, 761_300);
    // The other thread of the core runs too, but for the end of the slower one.
    let shared = system(&[0, 4]) - switch;
    assert!((1_218_000..=1_218_080).contains(&shared), "{shared}");
}

#[test]
fn a_line_of_one_thread_is_a_hit_of_the_other() {
    for (other, hits, bounced) in [(4, 1, 0), (1, 0, 1)] {
        let mut machine = machine();
        let memory = machine.reserve(4096);
        machine.task("writes", Affinity::Cpu(0), || {
            current::access(memory, 0, AccessKind::Store);
        });
        machine.task("writes later", Affinity::Cpu(other), || {
            current::sleep(1_000_000);
            current::access(memory, 8, AccessKind::Store);
        });
        let ended = machine.run().unwrap();
        assert_eq!(ended.traffic.len(), 4);
        let all = ended.all_traffic();
        assert_eq!((all.l1_hits, all.bounced), (hits, bounced), "CPU {other}");
        assert_eq!(all.accesses, 2);
    }
}

#[test]
fn computing_and_working_take_longer_while_the_other_thread_runs() {
    let user = |cpus: &[usize]| on(cpus, || current::compute(1_000_000)).cpus[0].user;
    assert_eq!(user(&[0]), 1_000_000);
    assert_eq!(user(&[0, 1, 2, 3]), 1_000_000);
    let shared = user(&[0, 4]);
    assert!((1_590_000..=1_600_000).contains(&shared), "{shared}");

    let system = |cpus: &[usize]| {
        let work = || {
            (0..1000).for_each(|_| {
                current::work(1_000);
                // Only between accesses does another CPU get its turn.
                current::sleep(0);
            })
        };
        on(cpus, work).cpus[0].system
    };
    let (alone, apart, shared) = (system(&[0]), system(&[0, 1]), system(&[0, 4]));
    assert_eq!(apart, alone);
    assert!(shared > alone + 500_000, "{alone} {shared}");
}

#[test]
fn a_thread_that_waits_for_a_write_leaves_the_core_to_the_other() {
    // CPU 4 polls one line until CPU 0 has computed; then CPU 0 was not slowed down.
    let mut machine = machine();
    let memory = machine.reserve(4096);
    let done = Cell::new(false);
    let took = Cell::new(0);
    machine.task("waits", Affinity::Cpu(4), || {
        while !done.get() {
            current::access(memory, 0, AccessKind::Load);
            seam::spin();
        }
    });
    machine.task("computes", Affinity::Cpu(0), || {
        current::sleep(10_000);
        let began = current::now();
        current::work(40_000);
        took.set(current::now() - began);
        done.set(true);
        current::access(memory, 0, AccessKind::Store);
    });
    machine.run().unwrap();
    assert_eq!(took.get(), 40_000);
}

#[test]
fn both_threads_clear_through_the_same_fill_buffers() {
    let cleared = |cpus: &'static [usize]| {
        let mut machine = machine();
        let memory = machine.reserve(CPUS * 4096);
        for &cpu in cpus {
            machine.task(format!("on {cpu}"), Affinity::Cpu(cpu), move || {
                current::clear(memory, cpu * 4096, 4096);
                current::sleep(1);
            });
        }
        machine.run().unwrap().cpus[0].system
    };
    let (alone, apart, shared) = (cleared(&[0]), cleared(&[0, 1]), cleared(&[0, 4]));
    assert!(apart < alone + alone / 10, "{alone} {apart}");
    assert!(shared > alone + 1000, "{alone} {shared}");
}
