//! The tests of the simulated multiprocessor, as one program: it links once.

#![allow(clippy::unwrap_used, reason = "a test fails by it")]

mod memory;
mod order;
mod real_lines;
mod threads;
mod unbacked;
