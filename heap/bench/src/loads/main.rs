//! `brickyard-heap-loads`: the small program that `programs` and `latency` start.

#![forbid(unsafe_code)]

use std::process::ExitCode;

fn main() -> ExitCode {
    brickyard_heap_bench::loads::main()
}
