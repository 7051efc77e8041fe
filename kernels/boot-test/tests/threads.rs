//! Threads as CPUs, each with interrupts in the middle of its operations, while ranges of memory
//! come and go: an honest platform passes, with both kinds of slots.

use std::thread;

use brickyard::sync::{Exclusive, Shared, SlotAccess};
use brickyard::{AnyZone, Frame, FrameRange, Order};
use brickyard_boot_test::{Dice, Figures, RangeChange, TaskPlan, Totals, Worker};

use crate::machine::{self, CPU, Machine, ThreadTest, Truth};

const CPUS: usize = 4;
const STEPS: u64 = 6000;

fn worker<A: SlotAccess>(test: ThreadTest<A>, cpu: usize, seed: u64) -> Figures {
    CPU.set(cpu);
    let mut interrupts = 0;
    let totals: &Totals = Box::leak(Box::default());
    machine::set_hook(Some(Box::new(move || {
        interrupts += 1;
        let done = test.interrupt(seed ^ interrupts << 20 ^ (cpu as u64) << 50);
        totals.add(&done.unwrap());
    })));
    let mut worker = Worker::new(test, TaskPlan::new(seed).task(cpu as u16));
    let mut bulk = [Frame::new(0); 320];
    for _ in 0..STEPS {
        assert!(worker.step(&mut bulk).unwrap());
    }
    machine::set_hook(None);
    let mut figures = worker.finish().unwrap();
    // Nobody else reaches an exclusive slot here.
    test.zone.drain();
    figures += totals.get();
    figures
}

fn ranges<A: SlotAccess>(test: ThreadTest<A>, seed: u64) -> Figures {
    CPU.set(CPUS);
    let mut dice = Dice::new(seed);
    let mut figures = Figures::default();
    for round in 0..120 {
        figures += test.refuse_range(Order::new(5), 100).unwrap();
        let start = machine::SPAN.start.plus(dice.below(8192) as usize);
        let range = FrameRange::at(start, 1 + dice.below(40) as usize);
        let mut tries = 30;
        let again = || {
            thread::yield_now();
            tries -= 1;
            tries > 0
        };
        let change = RangeChange::ALL[round % 3];
        figures += test.change_range(change, range, 100, again).unwrap();
    }
    figures
}

fn all_cpus_at_once<A: SlotAccess + Sync + 'static>(seed: u64) {
    let (test, frames) = machine::test::<A>(Machine(Truth::Interrupt), CPUS);
    let mut figures = Figures::default();
    thread::scope(|scope| {
        let workers = (0..CPUS).map(|cpu| scope.spawn(move || worker(test, cpu, seed)));
        let mut threads: Vec<_> = workers.collect();
        threads.push(scope.spawn(move || ranges(test, seed)));
        for thread in threads {
            figures += thread.join().unwrap();
        }
    });
    figures += test.conclude(frames).unwrap();
    println!("{figures}");
    assert_eq!(test.zone.managed_frames(), frames);
    assert_eq!(test.zone.refused_late(), 0);
    assert!(figures.takes > 40_000, "{figures}");
    assert!(figures.in_interrupts > 500, "{figures}");
    assert!(
        figures.handed_over > 1000 && figures.parts > 100,
        "{figures}"
    );
    assert!(figures.taken_at > 50, "{figures}");
    assert!(figures.refused > 0 && figures.busy > 0, "{figures}");
    let changed = figures.removed + figures.reserved + figures.contiguous;
    assert!(changed > 0, "{figures}");
}

#[test]
fn all_cpus_at_once_with_exclusive_slots() {
    all_cpus_at_once::<Exclusive>(1);
}

#[test]
fn all_cpus_at_once_with_shared_slots() {
    all_cpus_at_once::<Shared>(2);
}

#[test]
fn the_same_seed_gives_the_same_figures() {
    let run = |seed| {
        let (test, frames) = machine::test::<Exclusive>(Machine(Truth::Interrupt), 1);
        let mut figures = worker(test, 0, seed);
        figures += test.conclude(frames).unwrap();
        figures
    };
    assert_eq!(run(5), run(5));
    assert_ne!(run(5), run(6));
}
