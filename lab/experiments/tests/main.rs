//! The tests of the experiments and of their report, as one program: it links once.

#![allow(clippy::unwrap_used, reason = "a test fails by it")]

mod documents;
mod judge;
mod page;
mod page_browser;
mod page_sample;
mod recorded;
mod store;
