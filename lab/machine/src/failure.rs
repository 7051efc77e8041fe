//! The ways a run can fail.

/// When something happened, on which CPU, and in which task.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("at {cycles} cycles, CPU {cpu}, {task}")]
#[non_exhaustive]
pub struct Moment {
    /// The CPU's clock.
    pub cycles: u64,
    /// The CPU.
    pub cpu: usize,
    /// The task's name.
    pub task: String,
}

/// Why a run did not complete.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Failure {
    /// A task panicked.
    #[error("{at} panicked: {message}")]
    Panicked {
        /// When, on which CPU, in which task.
        at: Moment,
        /// The panic's message.
        message: String,
    },
    /// Two CPUs accessed a guarded word, and nothing ordered one access before the other.
    #[error("{at}: {what}")]
    Race {
        /// When, on which CPU, in which task.
        at: Moment,
        /// The word and the two CPUs.
        what: String,
    },
    /// Deadlock: every task that has not ended sleeps, and no timer is set.
    #[error("deadlock, no task can run: {0}")]
    Deadlock(String),
    /// The run made more accesses than [its limit](crate::Setup::accesses_most): as a rule a
    /// livelock.
    #[error("the run has not ended after {accesses} accesses: {what}")]
    NoEnd {
        /// Accesses made.
        accesses: u64,
        /// What each CPU runs, and which tasks sleep.
        what: String,
    },
    /// A task took more steps than [it may](crate::current::within).
    #[error("{at} has taken more steps than it may, {most} since it began: {what}")]
    TooLong {
        /// When, on which CPU, in which task.
        at: Moment,
        /// The limit on the steps that the task has taken since it began.
        most: u64,
        /// What each CPU runs, and which tasks sleep.
        what: String,
    },
    /// A task [reported a failure](crate::current::fail).
    #[error("{at}: {message}")]
    Reported {
        /// When, on which CPU, in which task.
        at: Moment,
        /// The task's message.
        message: String,
    },
    /// A task left its CPU (slept, ended) pinned or with interrupts masked.
    #[error("{at} {did} with {pins} pins and interrupts {masked}")]
    Unbalanced {
        /// When, on which CPU, in which task.
        at: Moment,
        /// How it left the CPU.
        did: &'static str,
        /// Pins that were not undone.
        pins: u32,
        /// "masked" or "enabled".
        masked: &'static str,
    },
}
