//! The tests of what a Linux host tells of its memory, as one program: it links once.

#![allow(clippy::unwrap_used, reason = "a test fails by it")]

mod blocks;
mod compaction;
mod forecast;
mod page_states;
mod pinned;
mod synthetic;
mod texts;
