//! How a run ends badly.

/// When something happened, where, and who was at work.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("at {cycles} cycles, CPU {cpu}, {task}")]
pub struct Moment {
    /// When.
    pub cycles: u64,
    /// Where.
    pub cpu: usize,
    /// Who.
    pub task: String,
}

/// Why a run did not come to its end.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Failure {
    /// A task panicked.
    #[error("{at} panicked: {message}")]
    Panicked {
        /// When, where and who.
        at: Moment,
        /// What it said.
        message: String,
    },
    /// A guarded word was touched by two CPUs, and nothing ordered one before the other.
    #[error("{at}: {what}")]
    Race {
        /// When, where and who.
        at: Moment,
        /// Which word, after whom.
        what: String,
    },
    /// Everybody waits.
    #[error("nobody can go on: {0}")]
    Stuck(String),
    /// It takes too long: somebody spins for ever, as a rule.
    #[error("no end after {accesses} accesses: {what}")]
    NoEnd {
        /// Accesses made.
        accesses: u64,
        /// Who does what.
        what: String,
    },
    /// Somebody takes more steps than what it does [may take](crate::here::within).
    #[error("{at} has taken more steps than it may, {most} since it began: {what}")]
    TooLong {
        /// When, where and who.
        at: Moment,
        /// Steps of its whole life that it may have taken by the end of this.
        most: u64,
        /// Who does what.
        what: String,
    },
    /// A task said so.
    #[error("{at}: {message}")]
    Told {
        /// When, where and who.
        at: Moment,
        /// What it said.
        message: String,
    },
    /// A task left its CPU (slept, ended) pinned or with interrupts masked.
    #[error("{at} {did} with {pins} pins and interrupts {masked}")]
    Unbalanced {
        /// When, where and who.
        at: Moment,
        /// What it did.
        did: &'static str,
        /// Pins that were not undone.
        pins: u32,
        /// "masked" or "let in".
        masked: &'static str,
    },
}
