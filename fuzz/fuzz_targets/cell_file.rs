//! Any bytes as a cell's file, and as the file of all rows: either they are refused, or the rows
//! have finite numbers, and `Data::new` refuses them or keeps every one. The corpus should contain
//! a real file of each kind, since random bytes do not pass the first check.
//!
//! The Parquet crate panics on some damaged files; the reader contains that, so only a panic that
//! escapes the reader is a finding.

#![no_main]

use brickyard_experiments::data::Data;
use brickyard_experiments::raw::CellRows;
use brickyard_experiments::store::{read_cell_bytes, read_rows_bytes};
use libfuzzer_sys::fuzz_target;

fn check(cells: Vec<CellRows>) {
    let rows = || cells.iter().flat_map(|cell| &cell.rows);
    assert!(
        cells.iter().all(|cell| !cell.rows.is_empty()),
        "a cell without rows"
    );
    assert!(
        rows().all(|raw| raw.value.is_finite()),
        "a value that is not finite"
    );
    assert!(
        rows().all(|raw| raw.at.is_none_or(f64::is_finite)),
        "a point on the axis that is not finite"
    );
    let count = rows().count();
    if let Ok(data) = Data::new(cells) {
        assert_eq!(data.len(), count, "rows are lost");
    }
}

fuzz_target!(
    init: {
        // libfuzzer's own hook ends the process at any panic, contained or not.
        std::panic::set_hook(Box::new(|_| {}));
    },
    |bytes: &[u8]| {
        if let Ok(cell) = read_cell_bytes(bytes) {
            check(vec![cell]);
        }
        if let Ok(cells) = read_rows_bytes(bytes) {
            check(cells);
        }
    }
);
