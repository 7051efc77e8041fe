//! The progress of a measurement, reported to its caller.

use core::fmt;

/// Receives progress, from any thread.
pub trait Progress: fmt::Debug + Sync {
    /// Work of so many units begins.
    fn begin(&self, units: u64);

    /// There are so many units more than was said.
    fn more(&self, _units: u64) {}

    /// The turn of the contestant with this name begins.
    fn at(&self, name: &str);

    /// So many more units are done.
    fn advance(&self, units: u64);

    /// One of several pieces of work is complete.
    fn done(&self) {}

    /// The work has ended.
    fn end(&self);

    /// Prints a line on the state of the work.
    fn say(&self, line: &str);

    /// Prints a warning; the work continues.
    fn warn(&self, what: &str);
}

/// Ignores all progress.
#[derive(Debug, Clone, Copy)]
pub struct Silent;

impl Progress for Silent {
    fn begin(&self, _: u64) {}
    fn at(&self, _: &str) {}
    fn advance(&self, _: u64) {}
    fn end(&self) {}
    fn say(&self, _: &str) {}
    fn warn(&self, _: &str) {}
}
