//! How much a page set holds, fetches and gives back: the numbers, and the same of a zone at work.

use super::*;

/// Makes the page set of a CPU that has just started.
fn course() -> Course {
    Course::new(Burst::AfterABatch)
}

/// Takes single frames until so many refills have happened; returns their sizes, and the limit
/// after each.
fn refills(course: &Course, below_high: bool, count: usize) -> (Vec<usize>, Vec<usize>) {
    let refill = |_| {
        course.request();
        (
            course.refill(Order::ZERO, &SIZES, below_high),
            course.high(),
        )
    };
    (0..count).map(refill).unzip()
}

/// Test 7.
#[test]
fn a_refill_doubles_with_each_miss_in_a_row() {
    let (sizes, highs) = refills(&course(), false, 9);
    assert_eq!(sizes, [63, 126, 252, 504, 1008, 2016, 2016, 2016, 2016]);
    assert_eq!(highs, [384, 510, 762, 1266, 2274, 4290, 6306, 8192, 8192]);
}

/// Test 8.
#[test]
fn a_refill_below_the_high_mark_does_not_raise_the_limit() {
    let (sizes, highs) = refills(&course(), true, 5);
    assert_eq!(sizes, [63, 126, 252, 258, 258]);
    assert_eq!(highs, [321; 5]);
    // It is still doubled three times only: above the mark that gives 504, in what room there is.
    assert_eq!(refills(&course_after_misses(true), false, 1).0, [504]);
}

fn course_after_misses(below_high: bool) -> Course {
    let course = course();
    refills(&course, below_high, 5);
    course
}

#[test]
fn a_refill_leaves_a_batch_of_room() {
    let course = course();
    course.set_high(400);
    course.set_count(200);
    refills(&course, true, 3);
    // 400 - 200 - 63 = 137.
    assert_eq!(refills(&course, true, 1), (vec![137], vec![400]));
    course.set_count(390);
    assert_eq!(refills(&course, true, 1).0, [63]);
}

/// For a lab that sees that a page set was full, and not how much it held.
#[test]
fn what_would_leave_if_it_were_full() {
    let course = course();
    course.set_high(400);
    let leaving = || course.leaving_if_full(&SIZES, false, false);
    assert_eq!(leaving(), 63);
    for _ in 0..100 {
        assert_eq!(course.free(Order::ZERO, &SIZES, false, false), 0);
    }
    assert_eq!((leaving(), course.high(), course.count()), (100, 400, 100));
    // While background reclaim works, four batches are enough, and a batch stays.
    for _ in 0..100 {
        course.free(Order::ZERO, &SIZES, false, false);
    }
    assert_eq!(leaving(), 200);
    assert_eq!(course.leaving_if_full(&SIZES, false, true), 189);
    // Below the high mark, the least size counts.
    assert_eq!(course.leaving_if_full(&SIZES, true, false), 200);
    // A burst has its own rule: here it begins with a batch, at the second free of that kind.
    let two = Order::new(1);
    assert!(!course.is_in_burst(two, &SIZES));
    course.free(two, &SIZES, false, false);
    assert!(course.is_in_burst(two, &SIZES));
    assert!(!course.is_in_burst(Order::ZERO, &SIZES));
}

#[test]
fn a_free_halves_the_next_refill() {
    let course = course();
    refills(&course, false, 5);
    // Five doublings, halved twice: one.
    for _ in 0..2 {
        assert_eq!(course.free(Order::ZERO, &SIZES, false, false), 0);
    }
    course.set_count(0);
    assert_eq!(refills(&course, false, 1).0, [126]);
}

#[test]
fn fixed_limits_are_kept() {
    let fixed = Sizes {
        high_most: SIZES.high_least,
        ..SIZES
    };
    let course = course();
    assert_eq!(course.refill(Order::ZERO, &fixed, false), 63);
    assert_eq!(course.high(), 321);
    assert_eq!(
        drains(&course, Order::ZERO, &fixed, [false; 2], 2),
        [(321, 258); 2]
    );
    assert_eq!(course.high(), 321);
}

/// Frees blocks until so many drains have happened; returns the number of frames held before each,
/// and how many left.
fn drains(
    course: &Course,
    order: Order,
    sizes: &Sizes,
    [below_high, reclaiming]: [bool; 2],
    count: usize,
) -> Vec<(usize, usize)> {
    let free = || {
        let leaving = course.free(order, sizes, below_high, reclaiming);
        let held = course.count();
        course.set_count(held - leaving);
        (held, leaving)
    };
    let frees = core::iter::repeat_with(free).take(100_000);
    frees
        .filter(|&(_, leaving)| leaving > 0)
        .take(count)
        .collect()
}

/// Test 9.
#[test]
fn a_drain_takes_as_much_as_was_freed_and_leaves_a_batch() {
    let drains = drains(&course(), Order::ZERO, &SIZES, [false; 2], 6);
    let (held, left): (Vec<_>, Vec<_>) = drains.into_iter().unzip();
    assert_eq!(held, [321, 384, 705, 1347, 2079, 2079]);
    assert_eq!(left, [258, 321, 642, 1284, 2016, 2016]);
}

/// Test 10.
#[test]
fn background_reclaim_keeps_page_sets_at_four_batches() {
    let drains = drains(&course(), Order::ZERO, &SIZES, [false, true], 4);
    assert_eq!(drains, [(252, 189); 4]);
}

#[test]
fn background_reclaim_lowers_the_limit_by_what_was_freed() {
    let course = course();
    course.set_high(1000);
    course.free(Order::ZERO, &SIZES, false, true);
    // A batch at least.
    assert_eq!(course.high(), 937);
    for _ in 0..99 {
        course.free(Order::ZERO, &SIZES, false, true);
    }
    // 62 more of a batch each, then 64, 65 and so on; never below the least.
    assert_eq!(course.high(), 321);
}

/// Test 11.
#[test]
fn below_the_high_mark_a_page_set_holds_no_more_than_the_least() {
    let drains = drains(&course(), Order::ZERO, &SIZES, [true, false], 4);
    assert_eq!(drains, [(321, 258); 4]);
}

#[test]
fn below_the_high_mark_what_is_above_the_least_leaves_at_the_next_free() {
    let course = course();
    course.set_high(2000);
    course.set_count(1500);
    // A batch of frees in a row would leave; all but a batch may.
    assert_eq!(course.free(Order::ZERO, &SIZES, true, false), 63);
    assert_eq!(course.high(), 1937);
}

/// Test 12.
#[test]
fn a_burst_of_small_blocks_empties_the_page_set() {
    for (burst, first, rest) in [
        (Burst::AfterABatch, 72, 8),
        (Burst::AfterHalfTheLeast, 232, 8),
    ] {
        let course = Course::new(burst);
        let drains = drains(&course, Order::new(3), &SIZES, [false; 2], 4);
        let expected = [first, rest, rest, rest].map(|frames| (frames, frames));
        assert_eq!(drains, expected);
    }
}

#[test]
fn a_free_of_another_order_ends_a_burst() {
    for order in [0, 9] {
        let course = course();
        for _ in 0..8 {
            assert_eq!(course.free(Order::new(3), &SIZES, false, false), 0);
        }
        course.set_high(8192);
        assert_eq!(course.free(Order::new(order), &SIZES, false, false), 0);
        // The next is again the first of several.
        assert_eq!(course.free(Order::new(3), &SIZES, false, false), 0);
        assert!(course.free(Order::new(3), &SIZES, false, false) > 0);
    }
}

#[test]
fn requests_end_a_burst() {
    let course = course();
    for _ in 0..8 {
        course.free(Order::new(3), &SIZES, false, false);
    }
    // 64 frames freed, halved.
    course.request();
    assert_eq!(course.free(Order::new(3), &SIZES, false, false), 0);
}

#[test]
fn a_burst_lowers_the_limit_by_the_most() {
    let course = course();
    course.set_high(8000);
    drains(&course, Order::new(3), &SIZES, [false; 2], 1);
    assert_eq!(course.high(), 5984);
    drains(&course, Order::new(3), &SIZES, [false; 2], 3);
    assert_eq!(course.high(), 321);
}

#[test]
fn a_burst_drains_so_much_at_most() {
    let course = course();
    course.set_high(8192);
    course.set_count(4000);
    let drains = drains(&course, Order::new(3), &SIZES, [false; 2], 1);
    assert_eq!(drains, [(4072, 2016)]);
}

/// Test 13.
#[test]
fn a_refill_of_blocks_fetches_a_batch_and_two_at_least() {
    let refills = [1, 2, 3, 9].map(|order| {
        let course = course();
        course.refill(Order::new(order), &SIZES, false)
    });
    assert_eq!(refills, [31, 15, 7, 2]);
}

#[test]
fn a_refill_of_blocks_neither_doubles_nor_looks_for_room() {
    let course = course();
    course.set_count(8000);
    let refills = [(); 3].map(|()| course.refill(Order::new(1), &SIZES, false));
    assert_eq!(refills, [31; 3]);
    course.set_count(0);
    assert_eq!(course.refill(Order::ZERO, &SIZES, false), 63);
}

#[test]
fn with_a_batch_of_one_a_refill_of_blocks_fetches_one() {
    let sizes = Sizes::of(3840, 60, 2);
    let refills = [0, 3, 9].map(|order| course().refill(Order::new(order), &sizes, false));
    assert_eq!(refills, [1, 1, 1]);
}

/// Test 14.
#[test]
fn an_idle_page_set_shrinks_by_an_eighth_a_second() {
    let course = course();
    course.set_high(8192);
    course.set_count(8000);
    let held = [(); 4].map(|()| {
        course.set_count(course.count() - course.tick(&SIZES));
        (course.high(), course.count())
    });
    assert_eq!(
        held,
        [7168, 6272, 5488, 4802].map(|frames| (frames, frames))
    );
}

#[test]
fn an_idle_page_set_loses_so_much_at_most_in_a_second() {
    let course = course();
    course.set_high(1000);
    course.set_count(8000);
    assert_eq!(course.tick(&SIZES), 2016);
    assert_eq!(course.high(), 5984);
}

#[test]
fn an_idle_page_set_keeps_the_least() {
    let course = course();
    course.set_high(330);
    course.set_count(321);
    assert_eq!((course.tick(&SIZES), course.high()), (0, 321));
    assert_eq!((course.tick(&SIZES), course.high()), (0, 321));
    // What a refill of large blocks brought above its limit leaves too.
    course.set_count(512);
    assert_eq!((course.tick(&SIZES), course.high()), (191, 321));
}
