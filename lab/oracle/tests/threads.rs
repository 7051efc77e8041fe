//! Real threads on every configuration, each frame claimed by a compare-and-swap: nothing is handed
//! out twice, nothing is lost.
//!
//! `BRICKYARD_OPERATIONS` sets how many operations a thread runs in each test, `BRICKYARD_CONFIG`
//! names the only configuration to run; `docs/book/proof.md` records runs of 100 million per
//! configuration, and of a billion allocations of the default.

use core::mem::MaybeUninit;
use core::slice;
use core::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use brickyard::node::{Node, Nodes};
use brickyard::{Frame, FrameRange, Mobility, Order, Request};
use brickyard_boot_test::{Figures, Oracle, TaskPlan, Test, Untouched, Worker};
use brickyard_designs::classics::LabZone;
use brickyard_designs::classics::{Configuration, Experiment};
use brickyard_measure::threads::Threads;
use brickyard_oracle::{Case, Slots};

const THREADS: usize = 4;

fn operations() -> u64 {
    let operations = std::env::var("BRICKYARD_OPERATIONS").ok();
    operations
        .and_then(|operations| operations.parse().ok())
        .unwrap_or(40_000)
}

/// Returns all configurations, or the one that `BRICKYARD_CONFIG` names.
fn configurations() -> Vec<Configuration> {
    match std::env::var("BRICKYARD_CONFIG") {
        Ok(name) => vec![name.parse().unwrap()],
        Err(_) => Configuration::ALL.to_vec(),
    }
}

/// Threads that allocate, free, hand blocks over and drain, each frame claimed in an oracle.
struct Claims {
    steps: u64,
}

impl Experiment<Threads> for Claims {
    type Output = Figures;

    fn run<Z: LabZone<Platform = Threads>>(self, node: &Node<'_, Z>) -> Figures {
        let mut figures = Figures::default();
        for zone in node.zones() {
            let frames = zone.managed_frames();
            let mut memory = vec![MaybeUninit::uninit(); Oracle::bytes(zone.span())];
            let test = Test {
                zone,
                oracle: &Oracle::new(zone.span(), &mut memory).unwrap(),
                contents: Untouched,
            };
            let work = |task| {
                let plan = TaskPlan {
                    max_order: zone.max_order(),
                    most_held: frames / (2 * THREADS),
                    steps_per_flood: 0,
                    ..TaskPlan::new(1).task(task)
                };
                let mut worker = Worker::new(test, plan);
                let mut bulk = [Frame::new(0); 32];
                for _ in 0..self.steps {
                    worker.step(&mut bulk).unwrap();
                }
                let done = worker.finish().unwrap();
                // So that frames in exclusive slots are back for the final comparison.
                zone.drain();
                done
            };
            thread::scope(|scope| {
                let threads = (0..THREADS as u16).map(|task| scope.spawn(move || work(task)));
                let threads: Vec<_> = threads.collect();
                for thread in threads {
                    figures += thread.join().unwrap();
                }
            });
            figures += test.conclude(frames).unwrap();
        }
        figures
    }
}

/// Runs all configurations with these slots, on machines with enough CPUs for the threads of every
/// test in this process.
fn every_configuration(slots: Slots) {
    for configuration in configurations() {
        for mut case in [
            Case::small(configuration, slots),
            Case::of_linux(configuration, slots),
        ] {
            case.machine.whole.cpus = 64;
            let steps = operations() / 2;
            let figures = case.run(Threads, Claims { steps });
            println!("{configuration} {slots:?}: {figures}");
            assert!(figures.takes > steps / 4, "{configuration}: {figures}");
            assert!(figures.handed_over > 0, "{configuration}: {figures}");
        }
    }
}

#[test]
fn exclusive_slots_hand_out_nothing_twice() {
    every_configuration(Slots::Exclusive);
}

#[test]
fn shared_slots_hand_out_nothing_twice() {
    every_configuration(Slots::Shared);
}

/// Threads that together never hold all frames.
struct NeverAll;

impl Experiment<Threads> for NeverAll {
    type Output = ();

    fn run<Z: LabZone<Platform = Threads>>(self, node: &Node<'_, Z>) {
        let nodes = Nodes::new(slice::from_ref(node));
        let all: usize = node.zones().iter().map(|zone| zone.managed_frames()).sum();
        let share = (all - 1) / THREADS;
        let refused = AtomicUsize::new(0);
        thread::scope(|scope| {
            for _ in 0..THREADS {
                scope.spawn(|| {
                    let request = Request::page(Mobility::Movable);
                    let mut held = Vec::with_capacity(share);
                    for round in 0..operations() / share as u64 / 4 {
                        while held.len() < share {
                            match nodes.alloc(0, &request) {
                                Ok(frame) => held.push(frame),
                                // Relaxed: read after the threads were joined.
                                Err(_) => {
                                    refused.fetch_add(1, Ordering::Relaxed);
                                    break;
                                }
                            }
                        }
                        for frame in held.drain(..held.len() / (1 + round as usize % 3)) {
                            assert_eq!(nodes.free(frame, Order::ZERO), Ok(()));
                        }
                    }
                    for frame in held {
                        assert_eq!(nodes.free(frame, Order::ZERO), Ok(()));
                    }
                });
            }
        });
        // Relaxed: the threads were joined.
        assert_eq!(
            refused.load(Ordering::Relaxed),
            0,
            "refused while a frame was free"
        );
        assert_eq!(nodes.check().err(), None);
    }
}

/// Order 0 succeeds while one frame is free anywhere: in a store, a magazine, another CPU's list,
/// or in transit between them.
#[test]
fn order_0_succeeds_while_one_frame_is_free() {
    for configuration in configurations() {
        let mut case = Case::small(configuration, Slots::Shared);
        case.machine.whole.cpus = 64;
        case.machine.whole.span = FrameRange::new(3, 3 + 150);
        case.run(Threads, NeverAll);
    }
}
