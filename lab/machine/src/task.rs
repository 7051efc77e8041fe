//! Tasks, and what a CPU knows of those that it runs.

use std::collections::VecDeque;

use crate::fiber::Exit;

/// A task's number, in the order in which tasks came.
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

/// What a CPU did, in cycles; together they make the length of the run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CpuTimes {
    /// Tasks computed.
    pub user: u64,
    /// Tasks in the kernel, and switches between them.
    pub system: u64,
    /// Ticks and interrupts.
    pub interrupts: u64,
    /// Nothing to do.
    pub idle: u64,
}

/// What a task has done, or the interrupts of a CPU: whatever others did meanwhile, and however
/// long that took.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Steps {
    /// Shared accesses.
    pub accesses: u64,
    /// Times that it said that it waits for another CPU.
    pub waits: u64,
}

impl Steps {
    /// Both together.
    #[must_use]
    pub const fn all(self) -> u64 {
        self.accesses + self.waits
    }

    /// What was done since `before`.
    #[must_use]
    pub const fn since(self, before: Self) -> Self {
        Self {
            accesses: self.accesses - before.accesses,
            waits: self.waits - before.waits,
        }
    }
}

/// Steps, and how many there may be in all.
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

/// Where a task is in its life.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stage {
    /// On a CPU, or in a CPU's queue.
    Ready,
    /// Asleep until somebody or a timer wakes it.
    Waiting,
    /// Over.
    Done,
}

#[derive(Debug)]
pub(crate) struct Task {
    pub(crate) affinity: Affinity,
    pub(crate) stage: Stage,
    /// How it leaves its stack; known once it has begun.
    pub(crate) exit: Option<Exit>,
    pub(crate) last_cpu: usize,
    /// Woken since it got on a wait queue.
    pub(crate) woken: bool,
    pub(crate) begun: bool,
    /// It may neither sleep nor wait for an errand.
    pub(crate) atomic: bool,
    /// It is an errand of another CPU, which later ones do not send to the end of the queue.
    pub(crate) errand: bool,
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
            errand: false,
            count: Count::default(),
            times: TaskTimes {
                name,
                ..TaskTimes::default()
            },
        }
    }
}

/// What a CPU's time goes to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Spent {
    User,
    System,
    Interrupt,
}

/// A CPU.
#[derive(Debug, Default)]
pub(crate) struct Cpu {
    /// Its own time: what it does next happens then.
    pub(crate) clock: u64,
    pub(crate) current: Option<TaskId>,
    /// Who runs next, and then.
    pub(crate) queue: VecDeque<TaskId>,
    /// The head of the queue does not wait for the end of a slice.
    pub(crate) urgent: bool,
    pub(crate) pins: u32,
    pub(crate) masked: bool,
    /// How many interrupts deep it is.
    pub(crate) interrupts: u32,
    /// What its interrupts have done.
    pub(crate) count: Count,
    /// It stands still until then.
    pub(crate) stopped_until: u64,
    pub(crate) slice_end: u64,
    pub(crate) next_tick: u64,
    pub(crate) next_interrupt: u64,
    /// It computes since then, and `clock` is when it will be done: it can be called away in
    /// between.
    pub(crate) computes_since: Option<u64>,
    /// It waits since then for a write to this line, and `clock` is when it looks again anyway.
    pub(crate) parked: Option<(u32, u64)>,
    pub(crate) watched: Watched,
    /// Spins since it last did anything else.
    pub(crate) spins: u64,
    /// By how much it is slowed down, where time is random.
    pub(crate) slowness: u64,
    pub(crate) times: CpuTimes,
}

/// What a CPU has touched since it last said that it waits.
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
    /// May its task be taken from it?
    pub(crate) const fn is_preemptible(&self) -> bool {
        self.pins == 0 && !self.masked && self.interrupts == 0
    }
}
