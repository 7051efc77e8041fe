//! The three policies of a bulk operation (Porter 2007): the same result, the number of holds of
//! the zone lock that each promises, and the measurements at the lock.

use crate::classics::support;

use brickyard::sync::Exclusive;
use brickyard::{AnyZone, Frame, FreeError, Mobility, Order};
use brickyard_designs::classics::bulk::{BulkPolicy, MeterReading, Timing, Tuning};
use brickyard_designs::classics::front::Direct;
use brickyard_designs::classics::store::grouping::NoGrouping;
use brickyard_designs::classics::{LabPlan, LabZone};

use support::{
    Blocks, Cpus, Lists, MOVABLE, Mags, Parts, Seen, UNMOVABLE, ZoneLock, free, full, give,
    request, seen, small, sound, take,
};

use BulkPolicy::{Hold, ReleaseEachPage, YieldWhenContended};

const POLICIES: [BulkPolicy; 3] = [Hold, ReleaseEachPage, YieldWhenContended];

/// One kind of frame, per-CPU lists: batch 31.
type Listed = Parts<NoGrouping, Lists<Exclusive>>;
/// One kind of frame, magazines: refill 384, drain 64.
type Magazined = Parts<NoGrouping, Mags>;

const fn plan(frames: usize, bulk: BulkPolicy, timing: Timing) -> LabPlan {
    LabPlan {
        tuning: Tuning { bulk, timing },
        ..small(frames)
    }
}

fn listed(frames: usize, bulk: BulkPolicy) -> Listed {
    full(&plan(frames, bulk, Timing::Off), Cpus::new())
}

fn magazined(frames: usize, bulk: BulkPolicy) -> Magazined {
    full(&plan(frames, bulk, Timing::Off), Cpus::new())
}

fn holds<R>(work: impl FnOnce() -> R) -> usize {
    ZoneLock::holds_during(work).0
}

// ---- the same result ----

/// Returns a generator of pseudo-random numbers, the same in each run.
fn dice() -> impl FnMut(usize) -> usize {
    let mut seed = 7_u64;
    move |sides| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (seed >> 33) as usize % sides
    }
}

/// Returns the frames handed out, and the final state, of many requests and frees on three kinds of
/// lists.
fn outcome(bulk: BulkPolicy) -> (Vec<Frame>, Seen, MeterReading) {
    let zone: Parts<Blocks, Lists<Exclusive>> = full(&plan(2048, bulk, Timing::Off), Cpus::new());
    let mut dice = dice();
    let mut given = Vec::new();
    let mut held = Vec::new();
    for _ in 0..4000 {
        if dice(5) < 3 || held.is_empty() {
            let order = [0, 0, 0, 1, 3][dice(5)];
            let request = request(order, Mobility::ALL[dice(3)]);
            if let Ok(block) = zone.alloc(&request) {
                given.push(block);
                held.push((block, order));
            }
        } else {
            let (block, order) = held.swap_remove(dice(held.len()));
            free(&zone, block, order);
        }
    }
    let state = seen(&zone);
    (given, state, zone.meter())
}

#[test]
fn each_policy_hands_out_the_same_frames() {
    let (frames, state, meter) = outcome(Hold);
    assert!(frames.len() > 1000);
    // Batches went both ways.
    assert!(meter.taken.count.max == 31 && meter.given.count.max >= 31);
    for bulk in [ReleaseEachPage, YieldWhenContended] {
        let other = outcome(bulk);
        assert_eq!(other.0, frames, "{bulk:?}");
        assert_eq!(other.1, state, "{bulk:?}");
        assert_eq!(other.2, meter, "{bulk:?}");
    }
}

#[test]
fn contention_does_not_change_what_per_cpu_lists_hand_out() {
    let quiet = outcome(YieldWhenContended);
    let contended = ZoneLock::while_contended(|| outcome(YieldWhenContended));
    assert_eq!(quiet, contended);
}

// ---- holds of the zone lock ----

#[test]
fn hold_takes_the_lock_once_for_a_batch() {
    let zone = listed(1024, Hold);
    assert_eq!(holds(|| take(&zone, 1, Mobility::Movable)), 1);
    assert_eq!(zone.cached_frames(), 30);
    // Also with contention.
    let zone = listed(1024, Hold);
    let contended = || ZoneLock::while_contended(|| take(&zone, 1, Mobility::Movable));
    assert_eq!(holds(contended), 1);
}

#[test]
fn release_each_page_takes_the_lock_once_for_each_page() {
    let zone = listed(1024, ReleaseEachPage);
    assert_eq!(holds(|| take(&zone, 1, Mobility::Movable)), 31);
    assert_eq!(zone.cached_frames(), 30);
    let zone = magazined(1024, ReleaseEachPage);
    assert_eq!(holds(|| take(&zone, 1, Mobility::Movable)), 384);
}

#[test]
fn release_each_page_takes_it_once_more_to_find_the_store_empty() {
    let zone = listed(10, ReleaseEachPage);
    assert_eq!(holds(|| take(&zone, 1, Mobility::Movable)), 11);
    assert_eq!(zone.cached_frames(), 9);
    sound(&zone);
}

#[test]
fn yield_takes_the_lock_once_without_contention() {
    let zone = listed(1024, YieldWhenContended);
    assert_eq!(holds(|| take(&zone, 1, Mobility::Movable)), 1);
}

#[test]
fn yield_takes_the_lock_once_for_each_page_with_contention() {
    let zone = listed(1024, YieldWhenContended);
    let contended = || ZoneLock::while_contended(|| take(&zone, 1, Mobility::Movable));
    assert_eq!(holds(contended), 31);
    assert_eq!(zone.cached_frames(), 30);
}

/// Returns the number of holds for the batch of 31 that goes back at the 186th frame.
fn holds_to_give_a_batch(bulk: BulkPolicy) -> usize {
    let zone = listed(1024, bulk);
    let held = take(&zone, 186, Mobility::Movable);
    give(&zone, &held[..185]);
    let holds = holds(|| free(&zone, held[185], 0));
    assert_eq!(zone.cached_frames(), 155);
    sound(&zone);
    holds
}

#[test]
fn a_batch_goes_back_by_the_same_policies() {
    assert_eq!(holds_to_give_a_batch(Hold), 1);
    assert_eq!(holds_to_give_a_batch(ReleaseEachPage), 31);
    assert_eq!(holds_to_give_a_batch(YieldWhenContended), 1);
    let contended = || holds_to_give_a_batch(YieldWhenContended);
    assert_eq!(ZoneLock::while_contended(contended), 31);
}

#[test]
fn a_full_drain_goes_by_the_same_policies() {
    for (bulk, expected) in [(Hold, 1), (ReleaseEachPage, 383), (YieldWhenContended, 1)] {
        let zone = magazined(1024, bulk);
        take(&zone, 1, Mobility::Movable);
        assert_eq!(holds(|| zone.drain()), expected, "{bulk:?}");
        assert_eq!(zone.free_frames(), 1023);
    }
}

/// Returns the number of holds to take ten frames at once straight from the store, and to free
/// them.
fn holds_without_a_front(bulk: BulkPolicy) -> (usize, usize) {
    let zone: Parts<NoGrouping, Direct> = full(&plan(64, bulk, Timing::Off), Cpus::new());
    let mut frames = [Frame::new(0); 10];
    let (taken, answer) = ZoneLock::holds_during(|| zone.alloc_bulk(&MOVABLE, &mut frames));
    assert_eq!(answer, Ok(10));
    let (given, answer) = ZoneLock::holds_during(|| zone.free_bulk(&frames));
    assert_eq!(answer, Ok(()));
    sound(&zone);
    (taken, given)
}

#[test]
fn many_frames_straight_from_the_store_go_by_the_same_policies() {
    assert_eq!(holds_without_a_front(Hold), (1, 1));
    assert_eq!(holds_without_a_front(ReleaseEachPage), (10, 10));
    assert_eq!(holds_without_a_front(YieldWhenContended), (1, 1));
    let contended = || holds_without_a_front(YieldWhenContended);
    assert_eq!(ZoneLock::while_contended(contended), (10, 10));
}

#[test]
fn the_contention_watch_ends_a_refill_under_every_policy() {
    for bulk in POLICIES {
        let zone = magazined(1024, bulk);
        ZoneLock::while_contended(|| take(&zone, 1, Mobility::Movable));
        assert_eq!(zone.cached_frames(), 16, "{bulk:?}");
    }
}

// ---- counters ----

/// Asserts that two numbers are equal but for rounding.
fn assert_near(actual: f64, expected: f64) {
    assert!((actual - expected).abs() < 1e-9, "{actual}, not {expected}");
}

#[test]
fn the_meter_counts_each_bulk_and_its_order() {
    for bulk in POLICIES {
        let zone = listed(1024, bulk);
        // Taken, in pages: a batch of 31 of order 0, then 8 of order 3, then 32 of order 5.
        let page = take(&zone, 1, Mobility::Movable)[0];
        let small = zone.alloc(&request(3, Mobility::Movable)).unwrap();
        let large = zone.alloc(&request(5, Mobility::Movable)).unwrap();
        let taken = zone.meter().taken;
        assert_eq!(
            (taken.count.n, taken.count.sum, taken.count.max),
            (3, 71, 32)
        );
        assert_eq!(taken.count.squares, 31 * 31 + 8 * 8 + 32 * 32);
        // (31 + 8 + 32) / 3 = 71/3; (22^2 + 47^2 + 25^2) / 9 / 2 = 553/3.
        assert_near(taken.count.mean(), 71.0 / 3.0);
        assert_near(taken.count.deviation(), (553_f64 / 3.0).sqrt());
        assert_eq!((taken.order.n, taken.order.sum, taken.order.max), (3, 8, 5));
        // 8 / 3; (64/9 + 1/9 + 49/9) / 2 = 19/3.
        assert_near(taken.order.mean(), 8.0 / 3.0);
        assert_near(taken.order.deviation(), (19_f64 / 3.0).sqrt());
        // Given, in blocks: nothing yet; then two of one, and the whole list by a drain.
        assert_eq!(zone.meter().given.count.n, 0);
        free(&zone, large, 5);
        free(&zone, small, 3);
        free(&zone, page, 0);
        zone.drain();
        let given = zone.meter().given;
        assert_eq!(
            (given.count.n, given.count.sum, given.count.max),
            (3, 33, 31)
        );
        assert_eq!((given.order.n, given.order.sum, given.order.max), (3, 8, 5));
        assert_eq!(zone.meter().taken, taken);
    }
}

#[test]
fn many_frames_at_once_straight_from_the_store_are_one_bulk_operation() {
    for bulk in POLICIES {
        let zone: Parts<NoGrouping, Direct> = full(&plan(64, bulk, Timing::Off), Cpus::new());
        let mut frames = [Frame::new(0); 10];
        assert_eq!(zone.alloc_bulk(&MOVABLE, &mut frames), Ok(10));
        let taken = zone.meter().taken.count;
        assert_eq!((taken.n, taken.sum), (1, 10), "{bulk:?}");
        assert_eq!(zone.free_bulk(&frames), Ok(()));
        let given = zone.meter().given.count;
        assert_eq!((given.n, given.sum), (1, 10), "{bulk:?}");
    }
}

#[test]
fn a_hit_of_the_front_is_no_bulk_operation() {
    let zone = listed(1024, Hold);
    take(&zone, 1, Mobility::Movable);
    let before = zone.meter();
    let held = take(&zone, 30, Mobility::Movable);
    give(&zone, &held);
    assert_eq!(zone.meter(), before);
}

#[test]
fn a_refused_request_is_no_bulk_operation() {
    let zone: Parts<NoGrouping, Direct> = full(&plan(64, Hold, Timing::Off), Cpus::new());
    let block = zone.alloc(&request(6, Mobility::Movable)).unwrap();
    let before = zone.meter();
    assert!(zone.alloc(&MOVABLE).is_err());
    assert!(zone.alloc(&request(3, Mobility::Movable)).is_err());
    let twice = zone.free(block, Order::new(7));
    assert!(matches!(twice, Err(FreeError::WrongOrder { .. })));
    assert_eq!(zone.meter(), before);
}

#[test]
fn one_value_has_no_deviation_and_none_has_no_mean() {
    let zone = listed(1024, Hold);
    let none = zone.meter().taken.count;
    assert_near(none.mean(), 0.0);
    assert_near(none.deviation(), 0.0);
    take(&zone, 1, Mobility::Movable);
    let one = zone.meter().taken.count;
    assert_near(one.mean(), 31.0);
    assert_near(one.deviation(), 0.0);
}

#[test]
fn fallbacks_in_a_refill_are_counted_one_by_one() {
    for bulk in POLICIES {
        let zone: Parts<Blocks, Lists<Exclusive>> =
            full(&plan(512, bulk, Timing::Off), Cpus::new());
        // The first page claims two whole blocks; the other 30 come from its own list.
        zone.alloc(&UNMOVABLE).unwrap();
        let meter = zone.meter();
        assert_eq!((meter.fallbacks, meter.claims, meter.mixing), (1, 1, 0));
    }
}

// ---- times ----

#[test]
fn no_clock_is_read_with_timing_off() {
    for bulk in POLICIES {
        let zone = listed(1024, bulk);
        let held = take(&zone, 400, Mobility::Movable);
        give(&zone, &held);
        let meter = zone.meter();
        assert_eq!(zone.platform().clock_readings(), 0);
        assert_eq!((meter.wait.moments.n, meter.hold.moments.n), (0, 0));
        assert_eq!(meter.wait, MeterReading::default().wait);
        assert_eq!(meter.hold, MeterReading::default().hold);
    }
}

#[test]
fn each_hold_is_timed_with_timing_on() {
    // The clock advances by one at each reading, and is read when the lock is requested, acquired,
    // and released.
    for (bulk, expected) in [(Hold, 1), (ReleaseEachPage, 31), (YieldWhenContended, 1)] {
        let zone: Listed = full(&plan(1024, bulk, Timing::On), Cpus::new());
        let before = zone.meter();
        let holds = holds(|| take(&zone, 1, Mobility::Movable));
        assert_eq!(holds, expected);
        let after = zone.meter();
        // Reading the meter takes the lock, too: its wait is in its own result, its hold in the
        // next one's.
        let waits = after.wait.moments.n - before.wait.moments.n;
        assert_eq!(waits, expected as u64 + 1, "{bulk:?}");
        let held = after.hold.moments.n - before.hold.moments.n;
        assert_eq!(held, expected as u64 + 1, "{bulk:?}");
        for times in [after.wait, after.hold] {
            assert_eq!(times.moments.sum, times.moments.n);
            assert_eq!(times.moments.max, 1);
            assert_near(times.moments.mean(), 1.0);
            assert_near(times.moments.deviation(), 0.0);
            // All of them in the bucket of 1.
            assert_eq!(times.histogram.0[1], times.moments.n);
            assert_eq!(times.histogram.0.iter().sum::<u64>(), times.moments.n);
            assert_eq!(times.histogram.percentile(99.0), 1);
        }
        let readings = zone.platform().clock_readings();
        assert_eq!(readings, 3 * after.wait.moments.n);
    }
}

#[test]
fn a_long_hold_is_one_hold() {
    // The clock is not read during a batch, so a whole batch is one hold of one tick, however many
    // pages move.
    let zone: Magazined = full(&plan(1024, Hold, Timing::On), Cpus::new());
    take(&zone, 1, Mobility::Movable);
    let meter = zone.meter();
    assert_eq!(meter.taken.count.max, 384);
    // One to add the memory, one for the refill.
    assert_eq!((meter.hold.moments.n, meter.hold.moments.sum), (2, 2));
}
