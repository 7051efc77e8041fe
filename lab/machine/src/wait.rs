//! Wait queues: tasks sleep until another task or an interrupt makes a condition true.
//!
//! A kernel's order: join the queue, then check the condition, then sleep. A task that checks
//! before it joins the queue can miss its wakeup.

use core::cell::RefCell;

use crate::state::{catch_up, suspend, with};
use crate::task::{Stage, TaskId};

/// Tasks that wait for the same condition. Used by one host thread; outside a machine no call
/// waits.
#[derive(Debug, Default)]
pub struct WaitQueue {
    waiters: RefCell<Vec<TaskId>>,
}

impl WaitQueue {
    /// An empty queue.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            waiters: RefCell::new(Vec::new()),
        }
    }

    /// Joins the queue. From now on a [`wake_all`](Self::wake_all) ends the next
    /// [`sleep`](Self::sleep), even one that has not begun.
    pub fn prepare(&self) {
        catch_up();
        with(|state| {
            let id = state.running_id();
            state.tasks[id].woken = false;
            let mut waiters = self.waiters.borrow_mut();
            if !waiters.contains(&id) {
                waiters.push(id);
            }
        });
    }

    /// Sleeps until woken, unless that has happened since [`prepare`](Self::prepare).
    pub fn sleep(&self) {
        catch_up();
        let asleep = with(|state| {
            let id = state.running_id();
            if core::mem::take(&mut state.tasks[id].woken) {
                return false;
            }
            state.block();
            true
        });
        if asleep == Some(true) {
            suspend();
        }
    }

    /// Leaves the queue.
    pub fn finish(&self) {
        catch_up();
        with(|state| {
            let id = state.running_id();
            self.waiters.borrow_mut().retain(|&waiter| waiter != id);
        });
    }

    /// Wakes all tasks on the queue. Never sleeps, so interrupts can call it too.
    pub fn wake_all(&self) {
        catch_up();
        with(|state| {
            let now = state.now();
            for id in self.waiters.borrow_mut().drain(..) {
                if state.tasks[id].stage == Stage::Waiting {
                    state.ready(id, now);
                } else {
                    state.tasks[id].woken = true;
                    let (waker, woken) = (state.running, state.tasks[id].last_cpu);
                    if let Some(order) = &mut state.order {
                        order.handover(waker, woken);
                    }
                }
            }
        });
    }

    /// Sleeps until `condition` returns true. It is checked first, and after each wakeup.
    pub fn wait_until(&self, mut condition: impl FnMut() -> bool) {
        loop {
            self.prepare();
            if condition() {
                break;
            }
            self.sleep();
            if std::thread::panicking() {
                break;
            }
        }
        self.finish();
    }
}
