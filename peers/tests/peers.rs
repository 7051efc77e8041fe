//! Every peer under every workload: it is built, measured and in the table.

#![allow(clippy::unwrap_used, reason = "a test fails by it")]

use std::process::Command;

const PEERS: [&str; 4] = [
    "buddy_system_allocator",
    "frame-alloc",
    "bitmap-allocator",
    "talc",
];

/// Returns the CSV of a quick run of all peers, and its standard error.
fn quick(more: &[&str]) -> (String, String) {
    let config = ["fetch-add", &PEERS.join(",")].join(",");
    let out = Command::new(env!("CARGO_BIN_EXE_brickyard-peers"))
        .args(["bench", "pagealloc", "--format", "csv", "--samples", "1"])
        .args(["--sample-us", "20", "--memory", "64M", "--max-batch", "4"])
        .args(["--config", &config])
        .args(more)
        .output()
        .unwrap();
    let [csv, said] = [out.stdout, out.stderr].map(|bytes| String::from_utf8(bytes).unwrap());
    assert_eq!(out.status.code(), Some(0), "{said}");
    (csv, said)
}

#[test]
fn every_peer_has_every_row() {
    let (csv, said) = quick(&[
        "--orders",
        "0,3,9",
        "--threads",
        "1,2",
        "--free",
        "same,random,remote",
    ]);
    assert!(!said.contains("too few free blocks"), "{said}");
    for peer in PEERS {
        for workload in [
            "order-0 batch-1",
            "order-3 batch-4 random-free",
            "order-9 batch-2 threads-2",
            "order-0 batch-4 threads-2 remote-free",
        ] {
            let row = format!("{peer},{workload},total,ns/page,lower,1,");
            assert!(csv.contains(&row), "no {row} in:\n{csv}");
        }
    }
}

#[test]
fn every_peer_can_be_filled() {
    let (csv, said) = quick(&["--orders", "0", "--fill", "50,99", "--api", "single,bulk"]);
    assert!(!said.contains("too few free blocks"), "{said}");
    for peer in PEERS {
        for workload in [
            "order-0 batch-4 fill-50",
            "order-0 batch-4 api-bulk fill-99",
        ] {
            assert!(csv.contains(&format!("{peer},{workload},total,")), "{csv}");
        }
    }
}

#[test]
fn the_error_of_an_unknown_name_lists_the_known_ones() {
    let out = Command::new(env!("CARGO_BIN_EXE_brickyard-peers"))
        .args(["bench", "pagealloc", "--config", "nonesuch"])
        .output()
        .unwrap();
    assert_eq!(out.status.code(), Some(2));
    let said = String::from_utf8(out.stderr).unwrap();
    for known in PEERS.iter().chain(&["list-2007", "array-stack"]) {
        assert!(said.contains(known), "{said}");
    }
}

#[test]
fn each_row_names_its_best_peer() {
    let out = Command::new(env!("CARGO_BIN_EXE_brickyard-peers"))
        .args(["bench", "pagealloc", "--peers", "--samples", "1"])
        .args(["--sample-us", "20", "--memory", "64M", "--max-batch", "2"])
        .args(["--orders", "0,9", "--threads", "1"])
        .output()
        .unwrap();
    let said = String::from_utf8(out.stderr).unwrap();
    assert_eq!(out.status.code(), Some(0), "{said}");
    let text = String::from_utf8(out.stdout).unwrap();
    let (table, best) = text
        .split_once("\nThe best peer of each row, and its time divided by that of brickyard:\n")
        .unwrap_or_else(|| panic!("{text}"));
    for peer in PEERS {
        assert!(table.contains(peer), "{table}");
    }
    let rows: Vec<&str> = best.lines().collect();
    assert_eq!(rows.len(), 12 + 1, "{best}");
    for row in &rows[..12] {
        assert!(PEERS.iter().any(|peer| row.contains(peer)), "{row}");
    }
    assert!(
        rows[12].contains("of 12 rows; the least ratio is"),
        "{best}"
    );
}
