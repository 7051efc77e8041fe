//! `brickyard-heap-loads`: the small program that `programs` and `latency` start. It is compiled
//! from the loads alone: the heap, which the library of this package is linked with, would run code
//! at the start of what is measured under other libraries.

#![deny(unsafe_code)]
#![allow(
    dead_code,
    unreachable_pub,
    unused_imports,
    reason = "the library of this package uses the rest"
)]

use std::process::ExitCode;

#[path = "mod.rs"]
mod loads;

fn main() -> ExitCode {
    loads::main()
}
