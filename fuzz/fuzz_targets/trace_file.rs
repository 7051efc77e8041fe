//! Any bytes as a trace file: either they are refused, or the trace can be summarized. The corpus
//! should contain a real trace, since random bytes do not pass the first check.
//!
//! The Parquet crate panics on some damaged files; the reader contains that, so only a panic that
//! escapes the reader is a finding.

#![no_main]

use brickyard_trace::file::read_bytes;
use brickyard_trace::summary::{Options, Summary};
use libfuzzer_sys::fuzz_target;

fuzz_target!(
    init: {
        // libfuzzer's own hook ends the process at any panic, contained or not.
        std::panic::set_hook(Box::new(|_| {}));
    },
    |bytes: &[u8]| {
        if let Ok(trace) = read_bytes(bytes) {
            let summary = Summary::of(&trace, &Options::default());
            assert_eq!(summary.kinds.all(), trace.events.len() as u64);
            assert!(trace.events.is_sorted_by_key(|event| event.time));
        }
    }
);
