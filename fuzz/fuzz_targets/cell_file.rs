//! Any bytes as a cell's file: refused, or rows with finite numbers. Start it with a real file in the corpus, since random bytes do not get past the first check.
//!
//! The Parquet crate panics on some damaged files; the reader contains that, so here only a panic that escapes counts.

#![no_main]

use brickyard_reproduce::store::read_cell_bytes;
use libfuzzer_sys::fuzz_target;

fuzz_target!(
    init: {
        // The hook of libfuzzer ends the process at any panic, contained or not.
        std::panic::set_hook(Box::new(|_| {}));
    },
    |bytes: &[u8]| {
        if let Ok(cell) = read_cell_bytes(bytes) {
            assert!(!cell.rows.is_empty());
            assert!(cell.rows.iter().all(|raw| raw.value.is_finite()));
            assert!(cell.rows.iter().all(|raw| raw.at.is_none_or(f64::is_finite)));
        }
    }
);
