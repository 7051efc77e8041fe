//! One turn of one heap: a workload, run on it in a process that does nothing else.

use core::fmt;

use anyhow::bail;

use super::heap::Heap;
use super::work::{Work, Workload};
use super::{giveback, hits, local, producers, refill, remote, socket, swap, tail};

/// Somebody's heap, as a contestant of `bench slab`.
pub trait HeapPeer: Sync {
    /// What it is called after `--config`.
    fn name(&self) -> &'static str;

    /// Sets the heap up and lets `turn` run [on](HeapTurn::on) it.
    ///
    /// # Errors
    /// Why it cannot be set up, and those of the turn.
    fn measure(&self, turn: &HeapTurn<'_>) -> anyhow::Result<HeapTaken>;
}

/// A workload that is to be run on whatever is measured.
#[derive(Debug)]
pub struct HeapTurn<'w> {
    /// What is done.
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

/// A line a value: its name and the number.
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
    /// If the process that started this one cannot be reached.
    pub fn on<H: Heap>(&self, heap: &H) -> anyhow::Result<HeapTaken> {
        let work = self.work;
        match work.workload {
            Workload::Producers => producers::run(heap, work),
            Workload::Refill => refill::run(heap, work),
            Workload::Giveback => giveback::run(heap, work),
            _ => self.on_buffers(heap),
        }
    }

    /// The same for a heap that has one object of each size, and can serve only what never holds
    /// two.
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
