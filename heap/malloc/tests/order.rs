//! What requests run lies before what seldom runs, as `order.ld` tells the linker.
//!
//! The places are told by `nm`; where there is none, the test says so and is skipped.

#![cfg(brickyard_ordered)]
#![allow(clippy::unwrap_used, reason = "a test fails by it")]

#[allow(dead_code, reason = "nothing is compiled here")]
mod support;

use std::process::Command;

use support::library;

/// Parts of mangled names: of the C library's function, of the heap's slow path, of slabs, of
/// pages, of system calls, of the start.
const FIRST: [&str; 6] = [
    " malloc",
    "14brickyard_heap9slow_path",
    "14brickyard_slab5sheaf",
    "9brickyard6bitmap",
    "15brickyard_arena6region",
    "14brickyard_heap5build",
];

/// Parts of mangled names of what a start and the first requests run.
const START: [&str; 11] = [
    "14brickyard_heap5build10first_heap",
    "7make_as",
    "14brickyard_slab7general20General$LT$D$C$C$GT$3new",
    "9brickyard6bitmap6totals5Total5count",
    "9brickyard6bitmap9frames_in",
    "14brickyard_heap4huge9choice_in",
    "15alloc_by_handle",
    "11make_memory",
    "15map_small_pages",
    "14brickyard_slab5sizes",
    "brickyard_slab..sheaf..purpose",
];

/// Parts of mangled names of what large blocks and the background thread run.
const LATER: [&str; 2] = [
    "14brickyard_heap5large",
    "14brickyard_heap11maintenance4look",
];

/// Of a pattern that no longer matches all of a module, some may lie behind.
const LAST: [&str; 3] = [
    "17brickyard_sampled7guarded",
    "14brickyard_heap6report",
    "5gimli",
];

#[test]
fn code_of_requests_lies_together() {
    let done = Command::new("nm").arg(library()).output();
    let Ok(done) = done else {
        println!("skipped: no nm, which binutils has");
        return;
    };
    assert!(done.status.success(), "{done:?}");
    let lines = String::from_utf8(done.stdout).unwrap();
    let places = |part: &str| -> Vec<u64> {
        let code = lines.lines().filter(|line| {
            let kind = line.split_whitespace().nth(1);
            matches!(kind, Some("t" | "T")) && line.contains(part)
        });
        let places = code.map(|line| u64::from_str_radix(&line[..16], 16).unwrap());
        places.collect()
    };
    if places("").is_empty() {
        println!("skipped: the library was built without symbols");
        return;
    }
    let last = LAST.iter().flat_map(|part| places(part)).min().unwrap();
    for part in FIRST {
        let first = places(part).into_iter().min();
        assert!(first.is_some_and(|first| first < last), "{part}");
    }
    for part in LAST {
        assert!(!places(part).is_empty(), "{part}");
    }
    // The start comes first, and within two pieces of code.
    let begin = places(" malloc").into_iter().min().unwrap();
    let later = LATER.iter().flat_map(|part| places(part)).min().unwrap();
    for part in START {
        let place = places(part).into_iter().max().unwrap_or(u64::MAX);
        assert!(
            place < later && place < begin + (128 << 10),
            "{part}: {place:x}"
        );
    }
    // Nothing of these is left behind.
    for part in [
        "14brickyard_heap9slow_path",
        "14brickyard_slab5sheaf",
        "15brickyard_arena",
    ] {
        let behind = places(part).into_iter().filter(|&place| place > last);
        assert_eq!(behind.count(), 0, "{part}");
    }
}
