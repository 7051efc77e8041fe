//! Any bytes as the text of ftrace, perf or trace-cmd, plain or zstd, and as the format text of an
//! event: either they are refused, or the trace's events are in order of time.

#![no_main]

use core::ops::ControlFlow;

use brickyard_trace::Flags;
use brickyard_trace::import::{Options, import};
use brickyard_trace::summary::{self, Summary};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let text = String::from_utf8_lossy(bytes);
    let options = Options {
        kernel: text.chars().take(4).collect(),
        flags: Flags::from_format(&text),
    };
    if let Ok(imported) = import(bytes, &options, |_| ControlFlow::Continue(())) {
        assert!(imported.trace.events.is_sorted_by_key(|event| event.time));
        let summary = Summary::of(&imported.trace, &summary::Options::default());
        assert_eq!(summary.kinds.all(), imported.trace.events.len() as u64);
    }
});
