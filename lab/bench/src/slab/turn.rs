//! One turn of one heap: a workload, run on it in a process of its own.

use core::fmt;

use anyhow::bail;

use super::heap::Heap;
use super::work::{Work, Workload};
use super::{giveback, hits, local, producers, refill, remote, socket, swap, tail};

/// A heap, as a contestant of `bench slab`.
pub trait HeapPeer: Sync {
    /// Returns its name for `--config`.
    fn name(&self) -> &'static str;

    /// Sets the heap up and runs `turn` [on](HeapTurn::on) it.
    ///
    /// # Errors
    /// It cannot be set up, and the errors of the turn.
    fn measure(&self, turn: &HeapTurn<'_>) -> anyhow::Result<HeapTaken>;
}

/// A workload to run on a heap.
#[derive(Debug)]
pub struct HeapTurn<'w> {
    /// The work to do.
    pub work: &'w Work,
}

/// What was measured in a turn, by name.
#[derive(Debug, Clone, Default)]
pub struct HeapTaken(Vec<(&'static str, f64)>);

impl HeapTaken {
    pub(crate) fn push(&mut self, name: &'static str, value: f64) {
        self.0.push((name, value));
    }
}

/// Writes a line per value: its name and the number.
impl fmt::Display for HeapTaken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut values = self.0.iter();
        values.try_for_each(|(name, value)| writeln!(f, "{name} {value}"))
    }
}

impl HeapTurn<'_> {
    /// Runs the workload on a heap.
    ///
    /// # Errors
    /// The parent process cannot be reached.
    pub fn on<H: Heap>(&self, heap: &H) -> anyhow::Result<HeapTaken> {
        let work = self.work;
        match work.workload {
            Workload::Producers => producers::run(heap, work),
            Workload::Refill => refill::run(heap, work),
            Workload::Giveback => giveback::run(heap, work),
            _ => self.on_buffers(heap),
        }
    }

    /// Does the same on a heap that may have a single object of each size, which cannot serve the
    /// memory workloads.
    pub(crate) fn on_buffers<H: Heap>(&self, heap: &H) -> anyhow::Result<HeapTaken> {
        let work = self.work;
        Ok(match work.workload {
            Workload::Socket => socket::run(heap, work),
            Workload::Local => local::run(heap, work),
            Workload::Remote => remote::run(heap, work),
            Workload::Swap => swap::run(heap, work),
            Workload::Tail => tail::run(heap, work),
            Workload::Hits => hits::run(heap, work),
            Workload::Producers | Workload::Refill | Workload::Giveback => {
                bail!("fixed buffers cannot serve {work}")
            }
        })
    }
}
