//! The kinds of callers of a cache, and how a caller is kept on its CPU.

use brickyard::{InterruptState, Platform};

/// The kind of callers of a cache, as a type. A task-only cache has another type than one that
/// interrupts use too. There are these two kinds.
pub trait Caller: sealed::Sealed + Send + Sync + 'static {
    /// True if interrupts are masked around accesses to a CPU's own words.
    const MASKS: bool;
}

mod sealed {
    pub trait Sealed {}
    impl Sealed for super::TaskOnly {}
    impl Sealed for super::Everywhere {}
}

/// Tasks only. Nothing is masked; a call from an interrupt is refused, from a non-maskable one too.
/// Most caches are of this kind (Dumazet 2008).
#[derive(Debug, Clone, Copy)]
pub enum TaskOnly {}

impl Caller for TaskOnly {
    const MASKS: bool = false;
}

/// Tasks and interrupts. Interrupts are masked wherever a CPU's own words or a lock are touched. So
/// an interrupt that cannot be masked must not use such a cache: it would wait for a lock that its
/// own CPU holds, or take an object that a task is just taking.
#[derive(Debug, Clone, Copy)]
pub enum Everywhere {}

impl Caller for Everywhere {
    const MASKS: bool = true;
}

/// Keeps the caller on its CPU while this lives, and masks interrupts where they use the cache. So
/// this CPU's own words belong to the caller. And no task that preempts the caller waits for a lock
/// that it holds.
#[derive(Debug)]
pub struct Inside<'p, P: Platform> {
    platform: &'p P,
    /// The CPU that the caller is on.
    pub cpu: usize,
    /// The interrupt state before masking, if the caller's kind masks.
    found: Option<InterruptState>,
}

impl<'p, P: Platform> Inside<'p, P> {
    /// Pins the caller, of kind `C`, and masks if that kind does.
    #[inline(always)]
    pub fn new<C: Caller>(platform: &'p P) -> Self {
        // So the caller is unpinned again if masking panics.
        let mut inside = Self {
            platform,
            cpu: platform.pin(),
            found: None,
        };
        inside.found = C::MASKS.then(|| platform.mask_interrupts());
        inside
    }
}

impl<P: Platform> Drop for Inside<'_, P> {
    #[inline(always)]
    fn drop(&mut self) {
        if let Some(found) = self.found {
            self.platform.restore_interrupts(found);
        }
        self.platform.unpin();
    }
}

/// The kind of callers of a cache, as a value: what [`Caller`] says as a type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Callers {
    Tasks,
    All,
}

impl Callers {
    pub(crate) const fn of<C: Caller>() -> Self {
        if C::MASKS { Self::All } else { Self::Tasks }
    }
}
