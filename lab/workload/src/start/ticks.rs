//! When in a second the page sets of each CPU shrink: at the time of a drain by a worker of the
//! kernel that has not just freed something itself.

use brickyard_trace::{Event, What, name_in};

/// The names of the kernel's workers begin so.
pub(crate) const WORKER: &str = "kworker";

/// Nanoseconds between two times at which the page sets of a CPU shrink.
pub(crate) const TICK: u64 = 1_000_000_000;

/// After so many in a row without anything else, they do not change any more.
pub(crate) const TICKS_MOST: u64 = 100;

/// What the events so far show of it.
pub(super) struct Ticks {
    // By CPU: when in a second.
    shown: Vec<Option<u64>>,
    // By CPU: the task that freed something in the last event.
    freed: Vec<Option<i32>>,
}

impl Ticks {
    pub(super) fn new(cpus: usize) -> Self {
        Self {
            shown: vec![None; cpus],
            freed: vec![None; cpus],
        }
    }

    /// Takes the next event.
    pub(super) fn event(&mut self, event: &Event, names: &[String]) {
        let cpu = usize::from(event.cpu);
        if cpu >= self.shown.len() {
            return;
        }
        match event.what {
            What::Drained { .. } => {
                let by_worker = name_in(names, event.name).starts_with(WORKER);
                if by_worker && self.freed[cpu] != Some(event.pid) {
                    self.shown[cpu].get_or_insert(event.time % TICK);
                }
            }
            What::Free => self.freed[cpu] = Some(event.pid),
            _ => self.freed[cpu] = None,
        }
    }

    /// Returns when the page sets of each CPU first shrink. All CPUs do at about the same time of a
    /// second, so one whose time no event shows takes that of another; `drawn` if there is none.
    pub(super) fn first(&self, drawn: u64) -> Vec<u64> {
        let other = self.shown.iter().flatten().next().copied().unwrap_or(drawn);
        let shown = self.shown.iter();
        shown.map(|own| own.unwrap_or(other)).collect()
    }
}
