//! The tests of the adapters, as one program.

#![cfg(not(loom))]
#![allow(clippy::unwrap_used, reason = "a test fails by it")]

#[cfg(feature = "arceos")]
mod arceos;
#[cfg(feature = "heap")]
mod heap;
#[cfg(feature = "heap")]
mod heap_over;
#[cfg(feature = "x86_64")]
mod mapper;
mod support;
