//! The tests of replay, as one program: what they instantiate is compiled once.

#![allow(clippy::unwrap_used, reason = "a test fails by it")]

mod antifrag;
mod jobs;
mod kernel;
mod of_2007;
mod replay;
mod round_trip;
mod script;
mod start;
mod support;
mod writes;
