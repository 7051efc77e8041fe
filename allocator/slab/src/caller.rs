//! Who uses a cache, and how such a caller is kept on its CPU.

use brickyard::{InterruptState, Platform};

/// Who uses a cache, as a type: a cache used by tasks only is another type than one that interrupts
/// use too. There are these two.
pub trait Caller: sealed::Sealed + Send + Sync + 'static {
    /// Are interrupts masked around a CPU's own words?
    const MASKS: bool;
}

mod sealed {
    pub trait Sealed {}
    impl Sealed for super::TaskOnly {}
    impl Sealed for super::Everywhere {}
}

/// Tasks only. Nothing is masked; an interrupt that comes here is refused. Most caches (Dumazet
/// 2008).
#[derive(Debug, Clone, Copy)]
pub enum TaskOnly {}

impl Caller for TaskOnly {
    const MASKS: bool = false;
}

/// Tasks and interrupts. Interrupts are masked wherever a CPU's own words or a lock are touched.
#[derive(Debug, Clone, Copy)]
pub enum Everywhere {}

impl Caller for Everywhere {
    const MASKS: bool = true;
}

/// The caller stays on its CPU, and interrupts stay away where they use the cache, as long as this
/// lives: what is this CPU's own is the caller's, and a lock that it holds is not waited for by
/// whoever preempted it.
#[derive(Debug)]
pub struct Inside<'p, P: Platform> {
    platform: &'p P,
    /// Where the caller is.
    pub cpu: usize,
    /// What masking found, where the caller's kind masks.
    found: Option<InterruptState>,
}

impl<'p, P: Platform> Inside<'p, P> {
    /// The caller, of kind `C`, from now on.
    #[inline(always)]
    pub fn new<C: Caller>(platform: &'p P) -> Self {
        // Unpinned again should masking panic.
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

/// Who uses a cache, as a value: what [`Caller`] says as a type.
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
