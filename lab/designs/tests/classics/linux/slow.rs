//! The slow path: what is called in which order, and when it ends.

use super::*;

use core::cell::{Cell, RefCell};

use brickyard::node::SlowPath;

/// What a hook was called for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Call {
    Wake(u8),
    Reclaim(usize),
    /// Once for each compaction, not for each page.
    Compact,
}

use Call::{Compact, Reclaim as Reclaimed, Wake};

/// Notes each call, and reports or does something at some.
pub(super) struct Hooks<'z> {
    zone: &'z Zone,
    calls: RefCell<Vec<Call>>,
    /// Reports so many freed frames.
    reports: usize,
    /// Frees the frame at this number, once.
    frees: Cell<Option<usize>>,
    /// At so many calls of reclaim.
    at: usize,
}

impl<'z> Hooks<'z> {
    pub(super) fn reporting(zone: &'z Zone, reports: usize) -> Self {
        Self {
            zone,
            calls: RefCell::default(),
            reports,
            frees: Cell::new(None),
            at: 1,
        }
    }

    fn count(&self, call: impl Fn(&Call) -> bool) -> usize {
        self.calls
            .borrow()
            .iter()
            .filter(|&seen| call(seen))
            .count()
    }

    fn reclaims(&self) -> usize {
        self.count(|call| matches!(call, Reclaimed(_)))
    }
}

impl Reclaim for Hooks<'_> {
    fn reclaim(&self, need: &Need) -> usize {
        self.calls.borrow_mut().push(Reclaimed(need.frames));
        if self.reclaims() == self.at
            && let Some(at) = self.frees.take()
        {
            release(self.zone, at, 0);
        }
        self.reports
    }

    fn wake(&self, need: &Need) {
        self.calls.borrow_mut().push(Wake(need.order.get()));
    }
}

impl Migrate for Hooks<'_> {
    fn migrate(&self, _: Frame, _: Order, _: Frame) -> Migration {
        let mut calls = self.calls.borrow_mut();
        if calls.last() != Some(&Compact) {
            calls.push(Compact);
        }
        Migration::Later
    }
}

/// Makes a request of a full zone of 16 page blocks; returns the calls of hooks that report so many
/// frames.
fn calls(order: u8, mobility: Mobility, reports: usize, flags: GfpFlags) -> Vec<Call> {
    let zones = [full_zone(16)];
    let hooks = Hooks::reporting(&zones[0], reports);
    let node = [Node::new(0, &zones)];
    let nodes = Nodes::with_hooks(&node, &hooks, SlowPath::MODERN);
    let wanted = request(order, mobility);
    assert!(Zone::alloc_from(&nodes, 0, &wanted, flags).is_err());
    hooks.calls.take()
}

pub(super) const USUAL: GfpFlags = GfpFlags {
    high: false,
    wakes: true,
    reclaims: true,
    retry: Retry::Usual,
};

pub(super) const ONCE: GfpFlags = GfpFlags {
    retry: Retry::Never,
    ..USUAL
};

pub(super) const MAY_FAIL: GfpFlags = GfpFlags {
    retry: Retry::UntilUseless,
    ..USUAL
};

#[test]
fn background_reclaim_is_woken_before_each_round() {
    let calls = calls(0, Mobility::Movable, 0, ONCE);
    assert_eq!(calls, [Wake(0), Wake(0), Reclaimed(32)]);
}

#[test]
fn a_request_that_does_not_wake_does_not() {
    let quiet = GfpFlags {
        wakes: false,
        ..ONCE
    };
    assert_eq!(calls(0, Mobility::Movable, 0, quiet), [Reclaimed(32)]);
}

#[test]
fn a_request_that_cannot_reclaim_only_wakes() {
    let waits_not = GfpFlags {
        reclaims: false,
        ..USUAL
    };
    for order in [0, 3, 9] {
        let calls = calls(order, Mobility::Unmovable, 1, waits_not);
        assert_eq!(calls, [Wake(order), Wake(order)]);
    }
}

#[test]
fn without_progress_reclaim_is_called_again_as_long_as_it_frees_something() {
    assert_eq!(reclaims_of(0, 0, USUAL), 1);
    assert_eq!(reclaims_of(0, 0, MAY_FAIL), 1);
}

/// Returns how often reclaim was called.
fn reclaims_of(order: u8, reports: usize, flags: GfpFlags) -> usize {
    let calls = calls(order, Mobility::Movable, reports, flags);
    let reclaims = calls.iter().filter(|call| matches!(call, Reclaimed(_)));
    reclaims.count()
}

#[test]
fn a_request_that_does_not_retry_reclaims_once() {
    for order in [0, 1, 2, 3] {
        assert_eq!(reclaims_of(order, 1, ONCE), 1, "{order}");
    }
}

#[test]
fn a_costly_order_is_tried_once_unless_it_asks_for_more() {
    assert_eq!(reclaims_of(4, 1, USUAL), 1);
    // Progress does not count for it: 16 rounds and one.
    assert_eq!(reclaims_of(4, 1, MAY_FAIL), 17);
}

#[test]
fn with_progress_a_small_order_is_tried_to_the_bound() {
    assert_eq!(reclaims_of(3, 1, USUAL), 128);
    assert_eq!(reclaims_of(0, 1, USUAL), 128);
}

/// Returns the calls of a request of a zone whose every second frame is free.
fn calls_in_pieces(order: u8, mobility: Mobility, flags: GfpFlags) -> Vec<Call> {
    let zones = [full_zone(16)];
    for at in (0..16 * BLOCK).step_by(2) {
        release(&zones[0], at, 0);
    }
    // Asynchronous compaction looks only at page blocks of the request's type.
    for block in 0..8 {
        zones[0].dedicate(frame(block * BLOCK), mobility);
    }
    let hooks = Hooks::reporting(&zones[0], 0);
    let node = [Node::new(0, &zones)];
    let nodes = Nodes::with_hooks(&node, &hooks, SlowPath::MODERN);
    assert!(Zone::alloc_from(&nodes, 0, &request(order, mobility), flags).is_err());
    hooks.calls.take()
}

#[test]
fn costly_and_kernel_requests_compact_before_they_reclaim() {
    let first = |order, mobility| {
        let calls = calls_in_pieces(order, mobility, ONCE);
        calls.into_iter().find(|call| !matches!(call, Wake(_)))
    };
    assert_eq!(first(2, Mobility::Unmovable), Some(Compact));
    assert_eq!(first(4, Mobility::Movable), Some(Compact));
    assert_eq!(first(2, Mobility::Movable), Some(Reclaimed(32)));
}

#[test]
fn a_costly_request_that_does_not_retry_fails_if_compaction_was_skipped() {
    // Nothing is free, so nothing can be compacted.
    let costly = calls(4, Mobility::Movable, 1, ONCE);
    assert_eq!(costly, [Wake(4)], "a full zone is not compacted");
    let others = calls(4, Mobility::Movable, 1, USUAL);
    assert!(others.contains(&Reclaimed(32)));
}

#[test]
fn what_reclaim_has_freed_is_taken_at_once() {
    let zones = [full_zone(16)];
    let hooks = Hooks {
        frees: Cell::new(Some(77)),
        at: 3,
        ..Hooks::reporting(&zones[0], 1)
    };
    let node = [Node::new(0, &zones)];
    let nodes = Nodes::with_hooks(&node, &hooks, SlowPath::MODERN);
    let taken = Zone::alloc_from(&nodes, 0, &MOVABLE, USUAL);
    assert_eq!(taken, Ok(frame(77)));
    let calls = hooks.calls.take();
    let round = [Wake(0), Reclaimed(32)];
    assert_eq!(calls, [&[Wake(0)][..], &round, &round, &round].concat());
}

#[test]
fn progress_without_a_block_empties_the_page_sets() {
    let cpus = Cpus::new();
    let zone: Zone = free_zone_of(&plan(16), cpus);
    fill(&zone, Mobility::Movable);
    cpus.switch_to(1);
    give(&zone, 5, 0);
    cpus.switch_to(0);
    let zones = [zone];
    let hooks = Hooks::reporting(&zones[0], 1);
    let node = [Node::new(0, &zones)];
    let nodes = Nodes::with_hooks(&node, &hooks, SlowPath::MODERN);
    let taken = Zone::alloc_from(&nodes, 0, &MOVABLE, USUAL);
    assert_eq!((taken, hooks.reclaims()), (Ok(frame(5)), 1));
}

#[test]
fn a_request_that_cannot_wait_leaves_other_page_sets_alone() {
    let cpus = Cpus::new();
    let zone: Zone = free_zone_of(&plan(16), cpus);
    fill(&zone, Mobility::Movable);
    cpus.switch_to(1);
    give(&zone, 5, 0);
    cpus.switch_to(0);
    let zones = [zone];
    assert_eq!(alloc(&zones, &MOVABLE.atomic()), None);
    assert_eq!(cpus.interruptions(), 0);
}

#[test]
fn an_order_that_no_zone_holds_is_refused_at_once() {
    assert_eq!(calls(11, Mobility::Movable, 1, USUAL), []);
    let zones = [full_zone(16)];
    let node = [Node::new(0, &zones)];
    let nodes = Nodes::new(&node);
    let wanted = request(11, Mobility::Movable);
    let taken = Zone::alloc_from(&nodes, 0, &wanted, USUAL);
    assert!(matches!(taken, Err(AllocError::OrderTooLarge { .. })));
}
