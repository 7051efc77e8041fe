//! `brickyard-heap`: the heap beside other malloc libraries. All the code is in the library, so that
//! `peers/` can run it with more heaps to compare.

#![forbid(unsafe_code)]

use std::process::ExitCode;

fn main() -> ExitCode {
    brickyard_heap_bench::main(&[])
}
