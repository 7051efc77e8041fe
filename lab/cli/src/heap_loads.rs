//! `brickyard-heap-loads`: the small program that `bench programs` and `bench latency` start.

#![forbid(unsafe_code)]

use std::process::ExitCode;

fn main() -> ExitCode {
    brickyard_heap_loads::main()
}
