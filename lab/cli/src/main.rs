//! `brickyard`: the lab of the page allocator. All of it is in the library, so that `peers/` can
//! run it with more to compare.

#![forbid(unsafe_code)]

use std::process::ExitCode;

fn main() -> ExitCode {
    brickyard_cli::main(&[], &[])
}
