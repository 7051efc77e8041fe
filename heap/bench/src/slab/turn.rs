//! One turn of one heap: a workload, run on it in a process of its own.

use anyhow::bail;
use brickyard_measure::objects::taken::Taken;
use brickyard_measure::objects::{socket, tail};

use super::work::{SlabWork, Workload};
use super::{giveback, hits, local, producers, refill, remote, swap};
use brickyard_measure::objects::heap::Heap;

/// A heap, as a contestant of `slab`.
pub trait HeapPeer: Sync {
    /// Returns its name for `--config`.
    fn name(&self) -> &'static str;

    /// Sets the heap up and runs `turn` [on](HeapTurn::on) it.
    ///
    /// # Errors
    /// It cannot be set up, and the errors of the turn.
    fn measure(&self, turn: &HeapTurn<'_>) -> anyhow::Result<Taken>;
}

/// A workload to run on a heap.
#[derive(Debug)]
pub struct HeapTurn<'w> {
    /// The work to do.
    pub work: &'w SlabWork,
}

impl HeapTurn<'_> {
    /// Runs the workload on a heap.
    ///
    /// # Errors
    /// The parent process cannot be reached.
    pub fn on<H: Heap>(&self, heap: &H) -> anyhow::Result<Taken> {
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
    pub(crate) fn on_buffers<H: Heap>(&self, heap: &H) -> anyhow::Result<Taken> {
        let work = self.work;
        Ok(match work.workload {
            Workload::Socket => socket::run(heap, work.threads, work.sample()),
            Workload::Local => local::run(heap, work),
            Workload::Remote => remote::run(heap, work),
            Workload::Swap => swap::run(heap, work),
            Workload::Tail => tail::run(heap, work.shape(), work.sample_us),
            Workload::Hits => hits::run(heap, work),
            Workload::Producers | Workload::Refill | Workload::Giveback => {
                bail!("fixed buffers cannot serve {work}")
            }
        })
    }
}
