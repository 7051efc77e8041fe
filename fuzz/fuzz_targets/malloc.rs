//! Any bytes as calls of the malloc family on the process's heap, compared with a model: sizes,
//! alignments, repeated resizing, zeroed and large blocks, requests that cannot be served.

#![no_main]

use brickyard_heap_bench::model::{ProcessHeap, drive};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let _driven = drive(&ProcessHeap, bytes, 1);
});
