//! `brickyard-heap-loads`: the small program that `brickyard bench programs` starts for each run.

#![forbid(unsafe_code)]

use std::process::ExitCode;

fn main() -> ExitCode {
    brickyard_heap_loads::main()
}
