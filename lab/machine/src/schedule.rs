//! The scheduler: a run queue per CPU, idle CPUs that steal from the longest one, time slices.
//!
//! By the rules of the papers' kernels, a task that wakes goes to the CPU it ran on, if that is
//! idle, else to an idle one, else into the shortest queue. A task in the kernel is not preempted;
//! one that computes is, when its slice ends, or at once for a remote call by another CPU. Where
//! time is random, a task may also be preempted at any access unless it is pinned or has interrupts
//! masked, and may move to any CPU.

use core::cmp::Reverse;

use crate::failure::Failure;
use crate::state::State;
use crate::task::{Affinity, Spent, Stage, TaskId};

impl State {
    /// Makes a task runnable from `time` on.
    pub(crate) fn ready(&mut self, id: TaskId, time: u64) {
        self.tasks[id].stage = Stage::Ready;
        let cpu = self.choose_cpu(id);
        // The woken task has seen what its waker has done.
        if let Some(order) = &mut self.order {
            order.handover(self.running, cpu);
        }
        if self.cpus[cpu].current.is_none() {
            self.start(cpu, id, time);
        } else {
            self.cpus[cpu].queue.push_back(id);
        }
    }

    fn choose_cpu(&mut self, id: TaskId) -> usize {
        let task = &self.tasks[id];
        if let Affinity::Cpu(cpu) = task.affinity {
            return cpu;
        }
        if !task.begun {
            return id % self.cpus.len();
        }
        if self.is_random() {
            return self.dice.below(self.cpus.len() as u64) as usize;
        }
        let last = task.last_cpu;
        let is_idle = |&cpu: &usize| self.cpus[cpu].current.is_none();
        if is_idle(&last) {
            return last;
        }
        let all = 0..self.cpus.len();
        let idle = all.clone().find(is_idle);
        let shortest = || all.min_by_key(|&cpu| self.cpus[cpu].queue.len());
        idle.or_else(shortest).unwrap_or(last)
    }

    /// Starts a task on an idle CPU, at `time` at the earliest.
    fn start(&mut self, cpu: usize, id: TaskId, time: u64) {
        let (from, switch) = (self.tasks[id].last_cpu, self.setup.profile.switch_cycles);
        let idle = time.saturating_sub(self.cpus[cpu].clock);
        self.cpus[cpu].clock += idle;
        self.cpus[cpu].times.idle += idle;
        self.cpus[cpu].current = Some(id);
        self.spend_on(cpu, switch, Spent::System);
        let slice = self.setup.profile.cycles(self.setup.profile.slice_ns);
        let tick = self.setup.profile.cycles(self.setup.profile.tick_ns).max(1);
        let state = &mut self.cpus[cpu];
        let now = state.clock;
        state.slice_end = now + slice;
        if state.next_tick <= now {
            state.next_tick += (now - state.next_tick + 1).next_multiple_of(tick);
        }
        if !self.tasks[id].begun {
            self.tasks[id].begun = true;
            self.tasks[id].times.began = now;
        }
        if let Some(order) = &mut self.order {
            order.handover(from, cpu);
        }
        self.tasks[id].last_cpu = cpu;
        self.comes_at(now, cpu);
    }

    /// Switches the running CPU to its next task, or to idle. The caller has already recorded the
    /// new state of the task that ran until now.
    fn next_task(&mut self) {
        let cpu = self.running;
        self.cpus[cpu].current = None;
        let now = self.cpus[cpu].clock;
        let next = self.cpus[cpu].queue.pop_front();
        self.cpus[cpu].urgent = false;
        if let Some(id) = next.or_else(|| self.steal()) {
            self.start(cpu, id, now);
        }
    }

    /// Takes a task that any CPU may run, from the queue with the most of them.
    fn steal(&mut self) -> Option<TaskId> {
        let movable = |&id: &TaskId| self.tasks[id].affinity == Affinity::Any;
        let waiting = |cpu: usize| self.cpus[cpu].queue.iter().filter(|id| movable(id)).count();
        let longest = (0..self.cpus.len()).max_by_key(|&cpu| (waiting(cpu), Reverse(cpu)))?;
        let at = self.cpus[longest].queue.iter().position(movable)?;
        self.cpus[longest].queue.remove(at)
    }

    /// Puts the running task to sleep until it is made ready. Its CPU takes another one.
    pub(crate) fn block(&mut self) {
        self.check_leave("slept");
        self.running_task().stage = Stage::Waiting;
        self.next_task();
    }

    /// Puts the running task to sleep for `cycles`.
    pub(crate) fn sleep(&mut self, cycles: u64) {
        self.timers_set += 1;
        let (at, id) = (self.now() + cycles, self.running_id());
        self.timers.push(Reverse((at, self.timers_set, id)));
        self.block();
        self.comes_at(at, 0);
    }

    /// Moves the running task to the end of the queue, or where time is random to any CPU.
    pub(crate) fn requeue(&mut self) {
        self.check_leave("was preempted");
        let id = self.running_id();
        if self.is_random() && self.tasks[id].affinity == Affinity::Any {
            let now = self.now();
            self.next_task();
            self.ready(id, now);
            return;
        }
        self.cpu().queue.push_back(id);
        self.next_task();
    }

    /// Ends the running task.
    pub(crate) fn finish(&mut self) {
        self.check_leave("ended");
        let now = self.now();
        let task = self.running_task();
        task.stage = Stage::Done;
        task.times.ended = now;
        self.next_task();
    }

    /// Fails the run where the running task must not leave its CPU this way.
    fn check_leave(&mut self, did: &'static str) {
        if self.running_task().atomic && did == "slept" {
            self.fail(Failure::Reported {
                at: self.moment(),
                message: "sleeps, but may not wait".to_owned(),
            });
        }
        let (pins, masked) = (self.cpu().pins, self.cpu().masked);
        if pins > 0 || masked {
            self.fail(Failure::Unbalanced {
                at: self.moment(),
                did,
                pins,
                masked: if masked { "masked" } else { "enabled" },
            });
        }
    }

    /// Fires the first timer: its task becomes runnable.
    pub(crate) fn fire(&mut self) {
        if let Some(Reverse((time, _, id))) = self.timers.pop() {
            self.ready(id, time);
        }
    }

    /// Puts a task first in the queue of `cpu`, and interrupts what that CPU computes.
    pub(crate) fn push_urgent(&mut self, cpu: usize, id: TaskId, time: u64) {
        // The interrupted CPU has seen what the caller has done.
        if let Some(order) = &mut self.order {
            order.handover(self.running, cpu);
        }
        if self.cpus[cpu].current.is_none() {
            self.start(cpu, id, time);
            return;
        }
        let target = &mut self.cpus[cpu];
        target.queue.push_front(id);
        target.urgent = true;
        if let Some(since) = target.computes_since {
            let at = time.max(since).min(target.clock);
            // It has computed up to `at` only; its task accounts for that when it resumes.
            target.clock = at;
            self.comes_at(at, cpu);
        }
    }
}
