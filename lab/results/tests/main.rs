//! The tests of tables and statistics, as one program: it links once.

#![allow(clippy::unwrap_used, reason = "a test fails by it")]

mod around;
mod golden;
mod properties;
mod scipy;
