//! The tests of tables, statistics, plots and pictures, as one program: it links once.

#![allow(clippy::unwrap_used, reason = "a test fails by it")]

mod around;
mod golden;
mod pagetypes;
mod player;
mod plot;
mod properties;
mod scipy;
