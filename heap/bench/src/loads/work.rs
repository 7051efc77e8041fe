//! The input of a load, which is threads and a scale, and its result.

/// How much a load does.
#[derive(Debug, Clone, Copy)]
pub struct LoadTask {
    /// How many threads a load of several threads has.
    pub threads: usize,
    /// The part of the whole load that is done: 1 takes about a second.
    pub scale: f64,
}

impl LoadTask {
    /// Returns the part of `whole` that is done, at least 1.
    pub(crate) fn part(&self, whole: u64) -> u64 {
        ((whole as f64 * self.scale) as u64).max(1)
    }

    /// Returns what each thread does of `whole`, at least 1.
    pub(crate) fn share(&self, whole: u64) -> u64 {
        (self.part(whole) / self.threads as u64).max(1)
    }
}

/// What a load has done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LoadResult {
    /// How many blocks were allocated; each was freed too.
    pub operations: u64,
    /// The most bytes that were live at once, where that is what the load is about.
    pub live: Option<u64>,
}

impl LoadResult {
    pub(crate) const fn of(operations: u64) -> Self {
        Self {
            operations,
            live: None,
        }
    }
}
