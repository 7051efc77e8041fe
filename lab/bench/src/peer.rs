//! Other people's allocators: who brings them, and what they are told.

use super::rounds::{Rounds, Taken};

/// The machine that a peer is to manage.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Machine {
    /// Its memory, in frames of 4 KiB.
    pub frames: usize,
    /// How many threads use it at once, at most.
    pub threads: usize,
}

/// Somebody else's allocator, behind the lock that its users would need.
pub trait Peer: Sync {
    /// What it is called after `--config`.
    fn name(&self) -> &'static str;

    /// Builds it for `machine`, with all of the memory free, and lets `rounds` run [on](Rounds::on)
    /// it.
    ///
    /// # Errors
    /// Why it cannot be built for this machine.
    fn measure(&self, machine: &Machine, rounds: &Rounds<'_>) -> anyhow::Result<Taken>;
}
