//! Real threads on every configuration, each frame claimed by a compare-and-swap: nothing is handed
//! out twice, nothing is lost.
//!
//! `BRICKYARD_OPERATIONS` sets how many operations a thread runs in each test, `BRICKYARD_CONFIG`
//! names the only configuration to run; `docs/book/proof.md` records runs of 100 million per
//! configuration, and of a billion allocations of the default.

use core::slice;
use core::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use brickyard::node::{Node, Nodes};
use brickyard::{FrameRange, Mobility, Order, Request};
use brickyard_designs::classics::LabZone;
use brickyard_designs::classics::{Configuration, Experiment};
use brickyard_measure::threads::Threads;
use brickyard_oracle::ownership::{Outcome, Plan, run};
use brickyard_oracle::{Case, Slots};

const THREADS: u32 = 4;

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

struct Oracle {
    plan: Plan,
}

impl Experiment<Threads> for Oracle {
    type Output = Outcome;

    fn run<Z: LabZone<Platform = Threads>>(self, node: &Node<'_, Z>) -> Outcome {
        run(node, &self.plan)
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
            let frames = case.machine.whole.span.len();
            let max_order = case.machine.whole.max_order;
            let plan = Plan {
                threads: THREADS,
                operations: operations() / 2,
                max_order,
                // Including blocks handed over, never more than five eighths of the memory.
                held_frames: frames / (2 * THREADS as usize),
                seed: 1,
            };
            let outcome = case.run(Threads, Oracle { plan });
            println!("{configuration} {slots:?} up to order {max_order}: {outcome:?}");
            assert!(
                outcome.served > plan.operations / 4,
                "{configuration}: {outcome:?}"
            );
            assert!(outcome.freed_elsewhere > 0, "{configuration}: {outcome:?}");
            // If every cache can be reached, a request for a single frame never fails. (Unmovable
            // requests can fill the smaller of two zones.)
            let reached = slots == Slots::Shared || configuration == Configuration::Magazine2013;
            if reached && !configuration.has_movable_zone() {
                assert_eq!(outcome.singles_refused, 0, "{configuration}: {outcome:?}");
            }
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
        let share = (all - 1) / THREADS as usize;
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
