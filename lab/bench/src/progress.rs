//! How far a measurement is: told to whoever has asked for it.

use core::fmt;

/// Who is told, by any thread.
pub trait Progress: fmt::Debug + Sync {
    /// So many units are to come.
    fn begin(&self, units: u64);

    /// It is this one's turn.
    fn at(&self, name: &str);

    /// So many more units are done.
    fn advance(&self, units: u64);

    /// One of several pieces of work is done as a whole.
    fn done(&self) {}

    /// No more units will come.
    fn end(&self);

    /// A line on how it goes.
    fn say(&self, line: &str);

    /// What went wrong, though the rest goes on.
    fn warn(&self, what: &str);
}

/// Nobody.
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
