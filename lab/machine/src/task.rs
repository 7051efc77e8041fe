//! Tasks, and the state of a CPU.

use std::collections::VecDeque;

use crate::fiber::Exit;

/// A task's number, in the order in which tasks were added.
pub(crate) type TaskId = usize;

/// Which CPUs may run a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Affinity {
    /// Every CPU.
    Any,
    /// Only this one.
    Cpu(usize),
}

/// When a task ran, in cycles.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct TaskTimes {
    /// Its name.
    pub name: String,
    /// When it first ran.
    pub began: u64,
    /// When it ended.
    pub ended: u64,
    /// Computing.
    pub user: u64,
    /// In the kernel: the allocator, system calls, waiting for locks.
    pub system: u64,
}

/// What a CPU did, in cycles; the four add up to the length of the run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct CpuTimes {
    /// Computing.
    pub user: u64,
    /// Tasks in the kernel, and switches between them.
    pub system: u64,
    /// Ticks and interrupts.
    pub interrupts: u64,
    /// Idle.
    pub idle: u64,
}

/// The steps that a task, or the interrupts of a CPU, have taken. They do not depend on how long
/// the steps took.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Steps {
    /// Shared accesses.
    pub accesses: u64,
    /// Pauses while it waited for another CPU, see [`seam::spin`](crate::seam::spin).
    pub waits: u64,
}

impl Steps {
    /// Both together.
    #[must_use]
    pub const fn all(self) -> u64 {
        self.accesses + self.waits
    }

    /// Returns the steps since `before`.
    #[must_use]
    pub const fn since(self, before: Self) -> Self {
        Self {
            accesses: self.accesses - before.accesses,
            waits: self.waits - before.waits,
        }
    }
}

/// Steps, and their limit.
#[derive(Debug)]
pub(crate) struct Count {
    pub(crate) steps: Steps,
    pub(crate) most: u64,
}

impl Default for Count {
    fn default() -> Self {
        Self {
            steps: Steps::default(),
            most: u64::MAX,
        }
    }
}

/// The state of a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stage {
    /// On a CPU, or in a CPU's queue.
    Ready,
    /// Asleep until another task, an interrupt or a timer wakes it.
    Waiting,
    /// Ended.
    Done,
}

#[derive(Debug)]
pub(crate) struct Task {
    pub(crate) affinity: Affinity,
    pub(crate) stage: Stage,
    /// Its handle to suspend itself; present once it has begun.
    pub(crate) exit: Option<Exit>,
    pub(crate) last_cpu: usize,
    /// Woken since it joined a wait queue.
    pub(crate) woken: bool,
    pub(crate) begun: bool,
    /// It may neither sleep nor wait for a remote call.
    pub(crate) atomic: bool,
    /// It is a remote call by another CPU, which later ones do not interrupt.
    pub(crate) remote_call: bool,
    pub(crate) count: Count,
    pub(crate) times: TaskTimes,
}

impl Task {
    pub(crate) fn new(name: String, affinity: Affinity) -> Self {
        Self {
            affinity,
            stage: Stage::Ready,
            exit: None,
            last_cpu: match affinity {
                Affinity::Any => 0,
                Affinity::Cpu(cpu) => cpu,
            },
            woken: false,
            begun: false,
            atomic: false,
            remote_call: false,
            count: Count::default(),
            times: TaskTimes {
                name,
                ..TaskTimes::default()
            },
        }
    }
}

/// The account that cycles are charged to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Spent {
    User,
    System,
    Interrupt,
}

/// A CPU.
#[derive(Debug, Default)]
pub(crate) struct Cpu {
    /// Its own time: what it does next happens at this time.
    pub(crate) clock: u64,
    pub(crate) current: Option<TaskId>,
    /// The run queue, the next task first.
    pub(crate) queue: VecDeque<TaskId>,
    /// The head of the queue is a remote call, which does not wait for the end of a slice.
    pub(crate) urgent: bool,
    pub(crate) pins: u32,
    pub(crate) masked: bool,
    /// Nesting depth of interrupts.
    pub(crate) interrupts: u32,
    /// The steps of its interrupts.
    pub(crate) count: Count,
    /// It is stopped until this time.
    pub(crate) stopped_until: u64,
    /// The part of a cycle that its accesses have not been charged yet.
    pub(crate) parts: u64,
    pub(crate) slice_end: u64,
    pub(crate) next_tick: u64,
    pub(crate) next_interrupt: u64,
    /// Since when it computes. `clock` is then when it will be done, unless it is interrupted
    /// before.
    pub(crate) computes_since: Option<u64>,
    /// The line that it waits for a write to, and since when. `clock` is then when it polls again
    /// in any case.
    pub(crate) parked: Option<(u32, u64)>,
    pub(crate) watched: Watched,
    /// Spins since it last made progress.
    pub(crate) spins: u64,
    /// The factor by which it is slowed down, where time is random.
    pub(crate) slowness: u64,
    pub(crate) times: CpuTimes,
}

/// The lines that a CPU has accessed since its last spin: what it polls.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Watched {
    /// Nothing.
    #[default]
    Nothing,
    /// One line.
    Line(u32),
    /// Several.
    Many,
}

impl Watched {
    #[inline]
    pub(crate) fn touch(&mut self, line: u32) {
        *self = match *self {
            Self::Nothing => Self::Line(line),
            Self::Line(before) if before == line => return,
            Self::Line(_) | Self::Many => Self::Many,
        };
    }
}

impl Cpu {
    /// Whether its task may be preempted.
    pub(crate) const fn is_preemptible(&self) -> bool {
        self.pins == 0 && !self.masked && self.interrupts == 0
    }
}
