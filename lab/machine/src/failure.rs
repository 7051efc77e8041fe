//! How a run ends badly.

/// Why a run did not come to its end.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Failure {
    /// A task panicked.
    #[error("at {cycles} cycles, CPU {cpu}, {task} panicked: {message}")]
    Panicked {
        /// When.
        cycles: u64,
        /// Where.
        cpu: usize,
        /// Who.
        task: String,
        /// What it said.
        message: String,
    },
    /// A guarded word was touched by two CPUs, and nothing ordered one before the other.
    #[error("at {cycles} cycles, CPU {cpu}, {task}: {what}")]
    Race {
        /// When.
        cycles: u64,
        /// Where.
        cpu: usize,
        /// Who.
        task: String,
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
    #[error(
        "at {cycles} cycles, CPU {cpu}, {task} has taken more steps than it may, {most} since it began: {what}"
    )]
    TooLong {
        /// When.
        cycles: u64,
        /// Where.
        cpu: usize,
        /// Who.
        task: String,
        /// Steps of its whole life that it may have taken by the end of this.
        most: u64,
        /// Who does what.
        what: String,
    },
    /// A task said so.
    #[error("at {cycles} cycles, CPU {cpu}, {task}: {message}")]
    Told {
        /// When.
        cycles: u64,
        /// Where.
        cpu: usize,
        /// Who.
        task: String,
        /// What it said.
        message: String,
    },
    /// A task left its CPU (slept, ended) pinned or with interrupts masked.
    #[error("at {cycles} cycles, CPU {cpu}, {task} {did} with {pins} pins and interrupts {masked}")]
    Unbalanced {
        /// When.
        cycles: u64,
        /// Where.
        cpu: usize,
        /// Who.
        task: String,
        /// What it did.
        did: &'static str,
        /// Pins that were not undone.
        pins: u32,
        /// "masked" or "let in".
        masked: &'static str,
    },
}
