//! Pages or objects passed from each CPU to the next, in a ring, in bursts. Passing them takes no
//! simulated time: a program hands over a pointer.

use core::cell::RefCell;

use brickyard_machine::WaitQueue;

/// The most bursts that may wait for the CPU that frees them. A sender waits for room.
pub(crate) const BURSTS_SENT_MOST: usize = 2;

/// An inbox for each CPU.
pub(crate) struct Ring<T>(Vec<Inbox<T>>);

struct Inbox<T> {
    state: RefCell<Received<T>>,
    queue: WaitQueue,
}

struct Received<T> {
    bursts: Vec<Vec<T>>,
    /// How many rounds the previous CPU has finished sending.
    ends: usize,
}

impl<T> Inbox<T> {
    const fn new() -> Self {
        Self {
            state: RefCell::new(Received {
                bursts: Vec::new(),
                ends: 0,
            }),
            queue: WaitQueue::new(),
        }
    }
}

impl<T> Ring<T> {
    pub(crate) fn new(cpus: usize) -> Self {
        Self((0..cpus).map(|_| Inbox::new()).collect())
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

    pub(crate) fn send(&self, cpu: usize, burst: Vec<T>) {
        self.0[cpu].state.borrow_mut().bursts.push(burst);
        self.0[cpu].queue.wake_all();
    }

    /// Takes the newest burst, and wakes a sender that waits for room.
    pub(crate) fn receive(&self, cpu: usize) -> Option<Vec<T>> {
        let burst = self.0[cpu].state.borrow_mut().bursts.pop()?;
        self.0[self.before(cpu)].queue.wake_all();
        Some(burst)
    }

    /// Marks the end of this CPU's sending in this round.
    pub(crate) fn finish(&self, cpu: usize) {
        let next = self.after(cpu);
        self.0[next].state.borrow_mut().ends += 1;
        self.0[next].queue.wake_all();
    }

    /// Whether the previous CPU has finished sending this many rounds, and all of it is received.
    pub(crate) fn is_over(&self, cpu: usize, rounds: usize) -> bool {
        let received = self.0[cpu].state.borrow();
        received.bursts.is_empty() && received.ends >= rounds
    }

    /// Sleeps until one of the neighbours makes this condition true.
    pub(crate) fn wait(&self, cpu: usize, condition: impl FnMut() -> bool) {
        self.0[cpu].queue.wait_until(condition);
    }
}
