//! The tests of traces, as one program: it links once.

mod common;
mod file;
mod import;
mod record;
mod summary;
