//! Every load runs with the C library's malloc, whose memory it finds right, and does the same each
//! time.

use brickyard_heap_bench::loads::{CATALOG, Load, LoadTask};

/// A thousandth of each load.
const TINY: f64 = 0.001;

#[test]
fn every_load_does_the_same_each_time() {
    for load in CATALOG {
        for threads in [1, 2, 3] {
            let work = LoadTask {
                threads,
                scale: TINY,
            };
            let (first, second) = (load.run(&work), load.run(&work));
            assert_eq!(first, second, "{}", load.name);
            assert!(first.operations > 0, "{}", load.name);
        }
    }
}

#[test]
fn more_work_has_more_operations() {
    for load in CATALOG {
        let operations = |scale| load.run(&LoadTask { threads: 2, scale }).operations;
        let (few, many) = (operations(TINY), operations(TINY * 5.0));
        // A few do more than a thousandth at least.
        assert!(many >= few, "{}: {few} {many}", load.name);
    }
}

#[test]
fn a_load_is_found_by_its_name() {
    for load in CATALOG {
        let found = Load::named(load.name).map(|found| found.what);
        assert_eq!(found, Some(load.what));
        assert!(!load.source.is_empty());
    }
    assert!(Load::named("nonesuch").is_none());
}

#[test]
fn refill_tells_what_is_live() {
    let refill = Load::named("refill").map(|load| {
        load.run(&LoadTask {
            threads: 1,
            scale: 0.05,
        })
    });
    let live = refill.and_then(|done| done.live);
    // A twentieth of 192 MiB, the last block and the table.
    let share = (192 << 20) / 20;
    assert!(live.is_some_and(|live| (share..share * 3 / 2).contains(&live)));
}
