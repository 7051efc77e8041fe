//! A barrier, at which all tasks of an experiment wait for each other, so that its parts begin on
//! all CPUs at once.

use core::cell::Cell;

use brickyard_machine::WaitQueue;

/// A barrier that can be used any number of times.
#[derive(Debug)]
pub(crate) struct Barrier {
    tasks: usize,
    /// Arrivals so far, over all rounds.
    arrived: Cell<usize>,
    /// How many of these arrivals may continue.
    open: Cell<usize>,
    queue: WaitQueue,
}

impl Barrier {
    pub(crate) const fn new(tasks: usize) -> Self {
        Self {
            tasks,
            arrived: Cell::new(0),
            open: Cell::new(0),
            queue: WaitQueue::new(),
        }
    }

    /// Waits until all tasks have arrived in this round; the last one does `work` before they
    /// continue.
    pub(crate) fn wait(&self, work: impl FnOnce()) {
        let arrived = self.arrived.get() + 1;
        self.arrived.set(arrived);
        let all = arrived.next_multiple_of(self.tasks);
        if arrived == all {
            work();
            self.open.set(all);
            self.queue.wake_all();
        } else {
            self.queue.wait_until(|| self.open.get() >= all);
        }
    }
}
