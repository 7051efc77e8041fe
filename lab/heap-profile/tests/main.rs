//! The tests of the crate, as one program: it links once.

#![allow(clippy::unwrap_used, reason = "a test fails by it")]

mod pages;
mod peers;
mod program;
mod symbols;
mod text;
mod views;
