//! Pages on their way from each CPU to the next, in a ring. It costs the machine nothing: a program
//! hands over a pointer.

use core::cell::RefCell;

use brickyard::Frame;
use brickyard_machine::WaitQueue;

/// Bursts that may lie with the CPU that gives them back. Whoever would send another waits.
pub(crate) const BURSTS_SENT_MOST: usize = 2;

/// A stop for each CPU.
pub(crate) struct Ring(Vec<Stop>);

#[derive(Default)]
struct Stop {
    state: RefCell<Mail>,
    queue: WaitQueue,
}

#[derive(Default)]
struct Mail {
    bursts: Vec<Vec<Frame>>,
    /// How often the CPU before has said that it sends no more for now.
    ends: usize,
}

impl Ring {
    pub(crate) fn new(cpus: usize) -> Self {
        Self((0..cpus).map(|_| Stop::default()).collect())
    }

    pub(crate) fn after(&self, cpu: usize) -> usize {
        (cpu + 1) % self.0.len()
    }

    fn before(&self, cpu: usize) -> usize {
        (cpu + self.0.len() - 1) % self.0.len()
    }

    pub(crate) fn is_full(&self, cpu: usize) -> bool {
        self.0[cpu].state.borrow().bursts.len() >= BURSTS_SENT_MOST
    }

    pub(crate) fn has_mail(&self, cpu: usize) -> bool {
        !self.0[cpu].state.borrow().bursts.is_empty()
    }

    pub(crate) fn send(&self, cpu: usize, burst: Vec<Frame>) {
        self.0[cpu].state.borrow_mut().bursts.push(burst);
        self.0[cpu].queue.wake_all();
    }

    /// The newest burst; who waits for room is told.
    pub(crate) fn receive(&self, cpu: usize) -> Option<Vec<Frame>> {
        let burst = self.0[cpu].state.borrow_mut().bursts.pop()?;
        self.0[self.before(cpu)].queue.wake_all();
        Some(burst)
    }

    /// This CPU sends no more, until the next round.
    pub(crate) fn finish(&self, cpu: usize) {
        let next = self.after(cpu);
        self.0[next].state.borrow_mut().ends += 1;
        self.0[next].queue.wake_all();
    }

    /// Has the CPU before sent all of this many rounds, and is all of it received?
    pub(crate) fn is_over(&self, cpu: usize, rounds: usize) -> bool {
        let mail = self.0[cpu].state.borrow();
        mail.bursts.is_empty() && mail.ends >= rounds
    }

    /// Sleeps until one of the neighbours has done something that makes this true.
    pub(crate) fn wait(&self, cpu: usize, come: impl FnMut() -> bool) {
        self.0[cpu].queue.wait_until(come);
    }
}
