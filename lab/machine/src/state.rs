//! The state of a machine: clocks, CPUs, tasks, memory; and how a task reaches it.
//!
//! One host thread runs a machine. Its tasks reach the state through a thread-local pointer, since
//! the allocator's words have no reference to a machine.
//!
//! Invariant `short-borrow`: the state is borrowed inside [`with`] only. While it is borrowed, no
//! code of a task runs and no task is suspended. So there is never a second borrow.

use core::cell::Cell;
use core::cmp::Reverse;
use core::fmt::Write as _;
use core::ptr;
use std::collections::BinaryHeap;

use crate::engine::{Setup, Timing};
use crate::failure::{Failure, Moment};
use crate::fiber::Fiber;
use crate::order::HappensBefore;
use crate::region::Regions;
use crate::task::{Count, Cpu, Spent, Stage, Task, TaskId};
use brickyard_run::Dice;

use crate::CacheSystem;

thread_local! {
    static CURRENT: Cell<*mut State> = const { Cell::new(ptr::null_mut()) };
}

/// Calls `f` with the state of this host thread's machine; returns `None` if no machine runs.
#[inline]
pub(crate) fn with<R>(f: impl FnOnce(&mut State) -> R) -> Option<R> {
    let state = CURRENT.get();
    if state.is_null() {
        return None;
    }
    // SAFETY: `short-borrow`; the pointer is to a state that lives until `Running` is dropped,
    // which clears it first.
    Some(f(unsafe { &mut *state }))
}

/// Makes a state reachable to the tasks of this host thread, until it is dropped.
#[derive(Debug)]
pub(crate) struct Running {
    state: *mut State,
}

impl Running {
    /// Makes `state` the machine of this host thread.
    ///
    /// # Panics
    /// If a machine runs on this host thread already.
    pub(crate) fn begin(state: Box<State>) -> Self {
        assert!(
            CURRENT.get().is_null(),
            "a machine runs on this thread already; run one at a time per thread"
        );
        let state = Box::into_raw(state);
        CURRENT.set(state);
        Self { state }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        CURRENT.set(ptr::null_mut());
        // SAFETY: it came from a box in `begin`, and nothing else refers to it any more.
        drop(unsafe { Box::from_raw(self.state) });
    }
}

/// Suspends the running task until its CPU is the earliest again. Does nothing while the host's
/// thread panics, since the task's stack is then being unwound.
pub(crate) fn suspend() {
    if std::thread::panicking() {
        return;
    }
    let exit = with(|state| {
        state.switches += 1;
        state.tasks[state.on_host].exit
    });
    if let Some(Some(exit)) = exit {
        // SAFETY: the running task's own code runs here, on its fiber.
        unsafe { exit.suspend() }
    }
}

/// Lets all CPUs run first whose clocks are earlier. What the caller does next then happens in the
/// order of simulated time.
#[inline]
pub(crate) fn catch_up() {
    if with(|state| !state.is_earliest()) == Some(true) {
        suspend();
    }
}

/// A task that sleeps until some time; ordered by that time, then by when the timer was set.
pub(crate) type Timer = Reverse<(u64, u64, TaskId)>;

/// The machine.
pub(crate) struct State {
    pub(crate) setup: Setup,
    pub(crate) cpus: Vec<Cpu>,
    /// The cores, each of one or two CPUs. Caches belong to cores.
    pub(crate) cores: usize,
    /// The CPU whose task runs on the host at this moment.
    pub(crate) running: usize,
    /// The task whose code runs on the host. It may have just left its CPU.
    pub(crate) on_host: TaskId,
    /// The next event after the running CPU: the time and number of a CPU, or the time of a timer.
    pub(crate) horizon: (u64, usize),
    pub(crate) tasks: Vec<Task>,
    pub(crate) timers: BinaryHeap<Timer>,
    pub(crate) timers_set: u64,
    /// Fibers of tasks that were added while the machine ran, with their numbers.
    pub(crate) new_fibers: Vec<(TaskId, Fiber)>,
    pub(crate) memory: Option<CacheSystem>,
    pub(crate) order: Option<HappensBefore>,
    pub(crate) regions: Regions,
    pub(crate) dice: Dice,
    /// How many CPUs wait for a write to a line.
    pub(crate) parked: usize,
    pub(crate) handler: Option<Handler>,
    /// Interrupts or preemption may come between any two accesses.
    pub(crate) disturbed: bool,
    /// The fewest cycles after which an access of one CPU can affect another.
    pub(crate) reach: u64,
    pub(crate) failure: Option<Failure>,
    pub(crate) accesses: u64,
    pub(crate) unmapped: u64,
    pub(crate) switches: u64,
    pub(crate) stops: u64,
}

/// What an interrupt runs.
#[derive(Clone, Copy)]
pub(crate) struct Handler {
    /// Owned by the machine, which outlives the run.
    pub(crate) run: *const (dyn Fn() + 'static),
    /// Mean cycles between two interrupts of a CPU.
    pub(crate) mean: u64,
}

/// Later than every event.
pub(crate) const NEVER: (u64, usize) = (u64::MAX, usize::MAX);

impl State {
    #[inline]
    pub(crate) fn cpu(&mut self) -> &mut Cpu {
        &mut self.cpus[self.running]
    }

    pub(crate) fn running_id(&self) -> TaskId {
        self.cpus[self.running]
            .current
            .expect("the running CPU has a task")
    }

    pub(crate) fn running_task(&mut self) -> &mut Task {
        let id = self.running_id();
        &mut self.tasks[id]
    }

    /// Returns the step count of the caller: the running task's, or that of its CPU's interrupts.
    #[inline]
    pub(crate) fn count(&mut self) -> &mut Count {
        let cpu = &mut self.cpus[self.running];
        match cpu.current {
            Some(id) if cpu.interrupts == 0 => &mut self.tasks[id].count,
            _ => &mut cpu.count,
        }
    }

    /// Returns the core of the running CPU.
    #[inline]
    pub(crate) fn core(&self) -> usize {
        if self.running < self.cores {
            self.running
        } else {
            self.running - self.cores
        }
    }

    /// Whether the other thread of the running CPU's core runs too. One that waits for a write to
    /// a line leaves the core to this one.
    #[inline]
    pub(crate) fn is_core_shared(&self) -> bool {
        if self.cores == self.cpus.len() {
            return false;
        }
        let core = self.core();
        let other = if self.running == core {
            core + self.cores
        } else {
            core
        };
        let other = self.cpus.get(other);
        other.is_some_and(|cpu| cpu.current.is_some() && cpu.parked.is_none())
    }

    /// Returns how long an instruction of the running CPU takes, in percent of a cycle.
    #[inline]
    pub(crate) fn percent(&self) -> u64 {
        if self.is_core_shared() {
            self.setup.profile.shared_core_percent.max(100)
        } else {
            100
        }
    }

    /// Returns the cycles that so many instructions of the running CPU take.
    #[inline]
    pub(crate) fn instructions(&self, instructions: u64) -> u64 {
        match self.percent() {
            100 => instructions,
            percent => instructions.saturating_mul(percent) / 100,
        }
    }

    /// Whether the running task may continue before any other CPU does anything.
    #[inline]
    pub(crate) fn is_earliest(&self) -> bool {
        (self.cpus[self.running].clock, self.running) < self.horizon
    }

    #[inline]
    pub(crate) fn now(&self) -> u64 {
        self.cpus[self.running].clock
    }

    /// Advances the clock of the running CPU and accounts the cycles.
    #[inline]
    pub(crate) fn spend(&mut self, cycles: u64, spent: Spent) {
        self.spend_on(self.running, cycles, spent);
    }

    #[inline]
    pub(crate) fn spend_on(&mut self, cpu: usize, cycles: u64, spent: Spent) {
        self.cpus[cpu].clock += cycles;
        self.account(cpu, cycles, spent);
    }

    /// Accounts cycles by which the clock of `cpu` has already advanced.
    #[inline]
    pub(crate) fn account(&mut self, cpu: usize, cycles: u64, spent: Spent) {
        let cpu = &mut self.cpus[cpu];
        let task = cpu.current.map(|id| &mut self.tasks[id].times);
        match spent {
            Spent::User => {
                cpu.times.user += cycles;
                if let Some(task) = task {
                    task.user += cycles;
                }
            }
            Spent::System if cpu.interrupts == 0 => {
                cpu.times.system += cycles;
                if let Some(task) = task {
                    task.system += cycles;
                }
            }
            Spent::System | Spent::Interrupt => cpu.times.interrupts += cycles,
        }
    }

    /// Returns the CPU to run next and the event after it; `None` where all are idle.
    pub(crate) fn earliest(&self) -> Option<(usize, (u64, usize))> {
        let (mut first, mut second) = (NEVER, NEVER);
        for (number, cpu) in self.cpus.iter().enumerate() {
            if cpu.current.is_none() {
                continue;
            }
            let at = (cpu.clock, number);
            if at < first {
                second = first;
                first = at;
            } else if at < second {
                second = at;
            }
        }
        (first != NEVER).then_some((first.1, second))
    }

    /// Records that something may happen on `cpu` at `time`, which bounds the running CPU's turn.
    pub(crate) fn comes_at(&mut self, time: u64, cpu: usize) {
        self.horizon = self.horizon.min((time, cpu));
    }

    /// Ends the run with this failure, unless it has failed already.
    pub(crate) fn fail(&mut self, failure: Failure) {
        self.failure.get_or_insert(failure);
    }

    /// Returns the present time, CPU and task, for a failure.
    pub(crate) fn moment(&self) -> Moment {
        let cpu = &self.cpus[self.running];
        let name = match cpu.current {
            Some(id) => self.tasks[id].times.name.clone(),
            None => "no task".to_owned(),
        };
        let name = match cpu.interrupts {
            0 => name,
            _ => format!("an interrupt of {name}"),
        };
        Moment {
            cycles: cpu.clock,
            cpu: self.running,
            task: name,
        }
    }

    /// Describes what each CPU runs and which tasks sleep, for a run that does not end.
    pub(crate) fn describe(&self) -> String {
        let mut text = String::new();
        for (number, cpu) in self.cpus.iter().enumerate() {
            let Some(id) = cpu.current else { continue };
            let name = &self.tasks[id].times.name;
            let does = match cpu.spins {
                0 => "runs".to_owned(),
                spins => format!("spins ({spins} times so far)"),
            };
            // Writing to a string cannot fail.
            let _ = write!(text, "CPU {number}: {name} {does}; ");
        }
        let waiting = self
            .tasks
            .iter()
            .filter(|task| task.stage == Stage::Waiting);
        let names: Vec<&str> = waiting.map(|task| task.times.name.as_str()).collect();
        if names.is_empty() {
            text.push_str("no task sleeps");
        } else {
            text.push_str("asleep: ");
            text.push_str(&names.join(", "));
        }
        text
    }

    pub(crate) fn is_random(&self) -> bool {
        self.setup.timing == Timing::Random
    }
}

impl core::fmt::Debug for State {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("State")
            .field("running", &self.running)
            .field("accesses", &self.accesses)
            .finish_non_exhaustive()
    }
}
