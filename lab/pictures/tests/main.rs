//! The tests of plots and pictures, as one program: it links once.

#![allow(clippy::unwrap_used, reason = "a test fails by it")]

mod pagetypes;
mod player;
mod plot;
