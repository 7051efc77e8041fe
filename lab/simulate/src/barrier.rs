//! A place where all tasks of an experiment wait for each other, so that its parts begin on all
//! CPUs at once.

use core::cell::Cell;

use brickyard_machine::WaitQueue;

/// A barrier, to be used as often as one likes.
#[derive(Debug)]
pub(crate) struct Barrier {
    tasks: usize,
    /// How often any task has come.
    come: Cell<usize>,
    /// How often any may have gone on.
    open: Cell<usize>,
    queue: WaitQueue,
}

impl Barrier {
    pub(crate) const fn new(tasks: usize) -> Self {
        Self {
            tasks,
            come: Cell::new(0),
            open: Cell::new(0),
            queue: WaitQueue::new(),
        }
    }

    /// Waits until all have come this often; the last one does `work` before they go on.
    pub(crate) fn wait(&self, work: impl FnOnce()) {
        let come = self.come.get() + 1;
        self.come.set(come);
        let all = come.next_multiple_of(self.tasks);
        if come == all {
            work();
            self.open.set(all);
            self.queue.wake_all();
        } else {
            self.queue.wait_until(|| self.open.get() >= all);
        }
    }
}
