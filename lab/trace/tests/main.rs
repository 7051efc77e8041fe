//! The tests of traces, as one program: it links once.

#![allow(clippy::unwrap_used, reason = "a test fails by it")]

mod common;
mod file;
mod import;
mod record;
mod summary;
