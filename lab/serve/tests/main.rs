//! The tests of the service.

#![allow(clippy::unwrap_used, reason = "a test fails by it")]

mod browser;
mod fleet;
mod history;
mod hosts;
mod service;
#[path = "../../host/tests/synthetic/mod.rs"]
mod synthetic;
