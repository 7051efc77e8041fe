//! `brickyard`: the lab of the page allocator. All the code is in the library, so that `peers/` can
//! run it with more allocators to compare.

#![forbid(unsafe_code)]

use std::process::ExitCode;

fn main() -> ExitCode {
    brickyard_cli::main(&[])
}
