//! The tests of the command, as one program: it links once.

#![allow(clippy::unwrap_used, reason = "a test fails by it")]

mod cli;
mod command;
mod compare;
mod compare_kinds;
mod documents;
mod experiments;
mod fidelity;
mod history;
mod host;
mod live;
mod locks;
mod options;
mod record;
mod reference;
mod replay;
mod reproduce;
mod reproduce_cells;
mod serve;
#[path = "../../host/tests/synthetic/mod.rs"]
mod synthetic;
mod trace;
