//! Frees that are refused, and change nothing.

use super::*;

/// What is in use of a [`Mixed`] and has not been freed in part.
const WHOLE: [(usize, u8); 6] = [
    (600, 0),
    (601, 0),
    (640, 4),
    (768, 8),
    (1024, 9),
    (3072, 10),
];

/// A zone that has something of everything. It begins in the middle of a block.
struct Mixed {
    zone: Plain,
}

impl Mixed {
    /// Records for 100..5200, memory at 200..5000, a hole at 300..320, reserved frames at 400..410.
    /// In use: two single frames at 600 and 601, a block of order 4 at 640, one of order 8 at 768,
    /// a huge one at 1024, a group of order 10 at 2048 of which frames 2200 and 2600..2608 have
    /// been freed, and one at 3072.
    fn new() -> Self {
        let zone: Plain = empty(&linux_at(100, 5200), Cpus::new());
        assert_eq!(zone.add(range(200, 5000)), Ok(4800));
        assert_eq!(zone.remove(range(300, 320)), Ok(20));
        assert_eq!(zone.reserve(range(400, 410)), Ok(10));
        for (at, order) in WHOLE.into_iter().chain([(2048, 10)]) {
            let taken = zone.alloc_at(frame(at), &request(order, Mobility::Movable));
            assert_eq!(taken, Ok(()));
        }
        free(&zone, frame(2200), 0);
        free(&zone, frame(2600), 3);
        Self { zone }
    }

    /// Refused for this reason, and everything is as before.
    fn refuses(&self, bad: &[(usize, u8)], why: FreeError) {
        for &(at, order) in bad {
            let before: Seen = seen(&self.zone);
            let answer = self.zone.free(frame(at), Order::new(order));
            assert_eq!(answer, Err(why), "{at}, order {order}");
            assert_eq!(seen(&self.zone), before, "{at}, order {order}");
        }
    }

    fn refuses_order(&self, allocated: u8, bad: &[(usize, u8)]) {
        let allocated = Order::new(allocated);
        self.refuses(bad, FreeError::WrongOrder { allocated });
    }
}

#[test]
fn a_free_of_what_is_not_its_own_is_refused() {
    let mixed = Mixed::new();
    let outside = [0, 99, 5200, 5631, 1 << 40, usize::MAX];
    let inside = [100, 199, 5000, 5199, 300, 310, 319, 400, 405, 409];
    for at in outside.into_iter().chain(inside) {
        mixed.refuses(&[(at, 0)], FreeError::NotOwned);
    }
    mixed.refuses(
        &[(304, 3), (400, 3), (128, 3), (1 << 20, 9)],
        FreeError::NotOwned,
    );
}

#[test]
fn a_free_of_what_is_free_is_refused() {
    let mixed = Mixed::new();
    let twice = [
        (200, 0),
        (602, 0),
        (1600, 5),
        (1536, 9),
        (4096, 9),
        (2200, 0),
        (2600, 3),
        (2607, 0),
    ];
    mixed.refuses(&twice, FreeError::DoubleFree);
    for (at, order) in [(600, 0), (640, 4), (768, 8), (1024, 9), (3072, 10)] {
        free(&mixed.zone, frame(at), order);
        let again = [(at, order), (at, 0), (at + (1 << order) - 1, 0)];
        mixed.refuses(&again, FreeError::DoubleFree);
    }
}

#[test]
fn a_free_of_more_than_was_taken_is_refused_and_the_right_order_named() {
    let mixed = Mixed::new();
    mixed.refuses_order(0, &[(600, 1), (600, 3), (601, 1), (600, 9), (601, 10)]);
    mixed.refuses_order(4, &[(640, 5), (640, 6), (640, 9)]);
    mixed.refuses_order(8, &[(768, 9), (768, 10), (1000, 9)]);
    mixed.refuses_order(9, &[(1024, 10), (1024, 18), (1535, 10)]);
    mixed.refuses_order(10, &[(3072, 11), (3584, 18)]);
    // What is left of the torn group: 2048..2176 is of order 7, 2201 single; 2608..2624 of order 4.
    mixed.refuses_order(7, &[(2048, 10), (2048, 9), (2048, 8)]);
    mixed.refuses_order(0, &[(2201, 1), (2201, 9)]);
    mixed.refuses_order(4, &[(2608, 5)]);
    mixed.refuses_order(8, &[(2816, 9), (2816, 10)]);
}

#[test]
fn a_free_of_a_misaligned_part_is_refused() {
    let mixed = Mixed::new();
    mixed.refuses_order(4, &[(641, 1), (644, 3), (655, 2), (648, 4)]);
    mixed.refuses_order(8, &[(769, 1), (768 + 64, 7), (768 + 128, 8)]);
    mixed.refuses_order(9, &[(1025, 1), (1024 + 64, 7), (1024 + 256, 9), (1535, 5)]);
    mixed.refuses_order(
        10,
        &[(3073, 1), (3072 + 256, 9), (3072 + 512, 10), (4095, 8)],
    );
}

#[test]
fn after_every_refusal_the_right_frees_go_through() {
    let mixed = Mixed::new();
    for (at, order) in WHOLE {
        free(&mixed.zone, frame(at), order);
    }
    let rest = [range(2048, 2200), range(2201, 2600), range(2608, 3072)];
    for part in rest {
        assert_eq!(mixed.zone.free_range(part), Ok(()));
    }
    let census = sound(&mixed.zone);
    assert_eq!((census.free, census.allocated), (4800 - 30, 0));
}

#[test]
fn a_list_of_frames_is_freed_up_to_the_first_bad_one() {
    for through in [1, 100, 600] {
        for (bad, error) in [
            (310, FreeError::NotOwned),
            (405, FreeError::NotOwned),
            (1 << 30, FreeError::NotOwned),
            (4500, FreeError::DoubleFree),
        ] {
            let mixed = Mixed::new();
            let zone = &mixed.zone;
            // Order 0, from three blocks: not 4500, which stays free.
            let mut list: Vec<Frame> = range(1536, 2048).frames().collect();
            list.extend(range(4096, 4400).frames());
            for &at in &list {
                assert_eq!(zone.alloc_at(at, &MOVABLE), Ok(()));
            }
            let free_before = zone.free_frames();
            list.insert(through, frame(bad));
            let freed = through;
            assert_eq!(zone.free_bulk(&list), Err(BulkFreeError { freed, error }));
            assert_eq!(sound(zone).free, free_before + freed);
            assert_eq!(zone.free_bulk(&list[freed + 1..]), Ok(()));
            // Each twice.
            let (freed, error) = (0, FreeError::DoubleFree);
            let again = zone.free_bulk(&list[..1]);
            assert_eq!(again, Err(BulkFreeError { freed, error }));
            sound(zone);
        }
    }
}

#[test]
fn a_frame_that_is_in_a_list_twice_is_freed_once() {
    let zone = blocks(2);
    let mut list = take(&zone, 700, Mobility::Movable);
    list.push(list[3]);
    list.push(list[4]);
    let error = FreeError::DoubleFree;
    let refused = BulkFreeError { freed: 700, error };
    assert_eq!(zone.free_bulk(&list), Err(refused));
    assert_eq!(sound(&zone).free, 1024);
}

#[test]
fn a_list_among_blocks_of_several_frames_is_freed_as_one_by_one() {
    // Single frames around a block of order 3 and one of order 1, a hole, and free frames.
    let around = || {
        let zone = empty(&linux(2 * BLOCK), Cpus::new());
        assert_eq!(zone.add(range(0, 2 * BLOCK)), Ok(2 * BLOCK));
        assert_eq!(zone.remove(range(448, 450)), Ok(2));
        for (at, order) in [(72, 3), (126, 1)] {
            let taken = zone.alloc_at(frame(at), &request(order, Mobility::Movable));
            assert_eq!(taken, Ok(()));
        }
        for part in [
            range(0, 72),
            range(80, 126),
            range(128, 400),
            range(450, 900),
        ] {
            for at in part.frames() {
                assert_eq!(zone.alloc_at(at, &MOVABLE), Ok(()));
            }
        }
        zone
    };
    let singles: Vec<Frame> = [range(0, 72), range(80, 126), range(128, 400)]
        .into_iter()
        .flat_map(FrameRange::frames)
        .collect();
    // Between which of them: nothing, parts of blocks, what is free, in the hole, or listed
    // already.
    let odd = [72, 75, 79, 126, 127, 410, 448, 3].map(Some);
    for odd in odd.into_iter().chain([None]) {
        for place in [0, 1, 64, 100, singles.len()] {
            let mut list = singles.clone();
            if let Some(odd) = odd {
                list.insert(place, frame(odd));
            }
            let (bulk, single) = (around(), around());
            let refused = list.iter().enumerate().find_map(|(freed, &at)| {
                match single.free(at, Order::ZERO) {
                    Ok(()) => None,
                    Err(error) => Some(BulkFreeError { freed, error }),
                }
            });
            let answer = bulk.free_bulk(&list);
            assert_eq!(answer.err(), refused, "{odd:?} at {place}");
            assert_eq!(seen(&bulk), seen(&single), "{odd:?} at {place}");
            assert_eq!(sound(&bulk), sound(&single));
            let bad = odd.is_some_and(|odd| [410, 448, 3].contains(&odd));
            assert_eq!(refused.is_some(), bad, "{odd:?} at {place}");
        }
    }
}
