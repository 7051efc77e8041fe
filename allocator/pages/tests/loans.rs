//! Page blocks on loan: a CPU's stash fetches from blocks that are in no set meanwhile, and nobody
//! is the poorer for it.

#![cfg(not(loom))]
#![allow(dead_code, reason = "the support files serve other tests too")]

use crate::support;

use std::collections::BTreeSet;

use brickyard::sync::Exclusive;
use brickyard::{AnyZone, Frame, Mobility, Order, ZonePlan};

use support::{Bricks, Cpus, full, give, linux, request, sound, take};

type Stashed = Bricks<Exclusive>;

/// Frames in a page block of the plan `linux`.
const BLOCK: usize = 512;

/// So many page blocks, all free, for this many CPUs.
fn zone(blocks: usize, cpus: usize) -> (Stashed, &'static Cpus) {
    let platform = Cpus::new();
    let plan = linux(blocks * BLOCK);
    (full(&ZonePlan { cpus, ..plan }, platform), platform)
}

fn blocks_of(frames: &[Frame]) -> BTreeSet<usize> {
    frames.iter().map(|frame| frame.number() / BLOCK).collect()
}

#[test]
fn cpus_fetch_from_blocks_whose_states_share_no_line() {
    let (zone, cpus) = zone(64, 4);
    let mut lines: Vec<BTreeSet<usize>> = Vec::new();
    for cpu in 0..4 {
        cpus.switch_to(cpu);
        let taken = take(&zone, 3 * BLOCK, Mobility::Movable);
        lines.push(blocks_of(&taken).iter().map(|block| block / 8).collect());
    }
    for (cpu, own) in lines.iter().enumerate() {
        assert_eq!(own.len(), 1, "CPU {cpu}: {own:?}");
        let apart = lines[..cpu].iter().all(|other| other.is_disjoint(own));
        assert!(apart, "{lines:?}");
    }
    sound(&zone);
}

#[test]
fn what_cannot_be_moved_stays_at_the_low_end() {
    let (zone, cpus) = zone(64, 4);
    let mut taken = Vec::new();
    for cpu in 0..4 {
        cpus.switch_to(cpu);
        taken.extend(take(&zone, 8, Mobility::Unmovable));
    }
    let low = blocks_of(&taken).iter().all(|&block| block < 4);
    assert!(low, "{taken:?}");
}

#[test]
fn a_larger_request_calls_loans_in() {
    for order in [3, 8] {
        let (zone, cpus) = zone(4, 2);
        take(&zone, 1, Mobility::Movable);
        cpus.switch_to(1);
        // The other three blocks go whole, so that only the rest of the lent one is left.
        for _ in 0..3 {
            zone.alloc(&request(9, Mobility::Movable)).unwrap();
        }
        let at = zone.alloc(&request(order, Mobility::Movable)).unwrap();
        assert!(zone.free_counts().by_order.iter().any(|&blocks| blocks > 0));
        sound(&zone);
        assert_eq!(zone.free(at, Order::new(order)), Ok(()));
    }
}

#[test]
fn a_lent_block_that_is_free_as_a_whole_serves_a_huge_request() {
    for order in [9, 10] {
        let (zone, cpus) = zone(2, 2);
        let pages = take(&zone, 2 * BLOCK, Mobility::Movable);
        give(&zone, &pages);
        // What lies in the stash keeps its blocks in use; the rest is on loan.
        zone.drain();
        let again = take(&zone, 1, Mobility::Movable);
        give(&zone, &again);
        zone.drain();
        cpus.switch_to(1);
        let at = zone.alloc(&request(order, Mobility::Movable));
        assert!(at.is_ok(), "order {order}: {at:?}");
        sound(&zone);
    }
}

#[test]
fn another_cpu_gets_the_last_frame_of_a_lent_block() {
    let (zone, cpus) = zone(3, 2);
    take(&zone, 1, Mobility::Movable);
    cpus.switch_to(1);
    let mut taken = 0;
    while zone.alloc(&request(0, Mobility::Movable)).is_ok() {
        taken += 1;
    }
    // All but the one, and what lies in the stash of CPU 0, which drains itself.
    assert_eq!(taken, 3 * BLOCK - 1);
    sound(&zone);
}

#[test]
fn requests_of_another_mobility_call_loans_in_before_they_mix_blocks() {
    let (zone, cpus) = zone(3, 2);
    // A reclaimable block with much free in it, on loan.
    let slabs = take(&zone, 1, Mobility::Reclaimable);
    cpus.switch_to(1);
    for _ in 0..2 {
        zone.alloc(&request(9, Mobility::Movable)).unwrap();
    }
    // Nothing is free as a whole. Reclaimable requests of this CPU stay in the reclaimable block.
    let more = take(&zone, 40, Mobility::Reclaimable);
    assert_eq!(blocks_of(&more), blocks_of(&slabs));
    assert_eq!(zone.fallbacks(), (0, 0));
    sound(&zone);
}

#[test]
fn frames_freed_at_random_come_back_whole() {
    let (zone, cpus) = zone(40, 4);
    let mut dice = support::Dice::new(5);
    for _ in 0..3 {
        let mut held = Vec::new();
        for cpu in 0..4 {
            cpus.switch_to(cpu);
            held.extend(take(&zone, 6 * BLOCK, Mobility::Movable));
        }
        for place in dice.shuffled(held.len()) {
            cpus.switch_to(dice.below(4));
            give(&zone, &held[place..=place]);
        }
        sound(&zone);
    }
    zone.drain();
    assert_eq!(zone.free_counts().suitable(Order::HUGE), 40);
    sound(&zone);
}
