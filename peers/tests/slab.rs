//! Every heap under every workload: it is measured in processes of its own and in the table.

#![allow(clippy::unwrap_used, reason = "a test fails by it")]

use std::process::Command;

const HEAPS: &[&str] = &[
    #[cfg(feature = "mimalloc")]
    "mimalloc",
    #[cfg(feature = "snmalloc")]
    "snmalloc",
    #[cfg(feature = "jemalloc")]
    "jemalloc",
    #[cfg(feature = "rpmalloc")]
    "rpmalloc",
];

/// A process must not end while its threads are ending: rpmalloc, where it is linked in, cleans up
/// at the end whichever heap was measured, and one run in twenty then ended with a segmentation
/// fault.
#[test]
fn giveback_ends_after_its_threads() {
    for _ in 0..30 {
        let out = Command::new(env!("CARGO_BIN_EXE_heaps"))
            .args(["slab", "--samples", "1", "--workload", "giveback"])
            .args(["--live", "1M", "--rest", "0", "--config", "system"])
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&out.stderr);
        assert_eq!(out.status.code(), Some(0), "{said}");
    }
}

#[test]
fn every_heap_has_every_row() {
    if HEAPS.is_empty() {
        println!("skipped: built without any of the heaps");
        return;
    }
    let out = Command::new(env!("CARGO_BIN_EXE_heaps"))
        .args(["slab", "--format", "csv", "--samples", "1"])
        .args([
            "--sample-us",
            "500",
            "--max-batch",
            "16",
            "--threads",
            "1,2",
        ])
        .args(["--live", "8M", "--rest", "0", "--config", &HEAPS.join(",")])
        .args([
            "--workload",
            "socket,local,remote,swap,producers,refill,giveback,tail",
        ])
        .output()
        .unwrap();
    let [csv, said] = [out.stdout, out.stderr].map(|bytes| String::from_utf8(bytes).unwrap());
    assert_eq!(out.status.code(), Some(0), "{said}");
    for heap in HEAPS {
        for row in [
            "socket threads-1,pair,ns,lower,1,",
            "socket threads-2,rest,ns,lower,1,",
            "local batch-16 size-64,pair,ns,lower,1,",
            "producers live-8M,peak,MiB,lower,1,",
            "refill live-8M,refilled,MiB,lower,1,",
            "giveback live-8M,at-rest,%,higher,1,",
        ] {
            let row = format!("{heap},{row}");
            assert!(csv.contains(&row), "no {row} in:\n{csv}");
        }
        // The names of these rows also say how far apart the threads were, which varies.
        for row in [",object,ns,lower,1,", ",swap,ns,lower,1,"] {
            let mut lines = csv.lines().filter(|line| line.starts_with(heap));
            assert!(lines.any(|line| line.contains(row)), "no {row} in:\n{csv}");
        }
    }
}

#[test]
fn the_error_of_an_unknown_name_lists_the_known_ones() {
    let out = Command::new(env!("CARGO_BIN_EXE_heaps"))
        .args(["slab", "--config", "nonesuch"])
        .output()
        .unwrap();
    assert_eq!(out.status.code(), Some(2));
    let said = String::from_utf8(out.stderr).unwrap();
    for known in HEAPS.iter().chain(&["system", "floor", "jemalloc.so"]) {
        assert!(said.contains(known), "{said}");
    }
}
