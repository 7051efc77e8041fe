//! Other people's allocators, as the caller of the lab adds them.

use super::rounds::{Rounds, Taken};

/// The machine whose memory a peer manages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Machine {
    /// Its memory, in frames of 4 KiB.
    pub frames: usize,
    /// The most threads that use it in parallel.
    pub threads: usize,
}

/// Another project's allocator, behind the lock that its users would need.
pub trait Peer: Sync {
    /// Returns its name for `--config`.
    fn name(&self) -> &'static str;

    /// Builds it for `machine`, with all of the memory free, and runs `rounds` [on](Rounds::on) it.
    ///
    /// # Errors
    /// It cannot be built for this machine.
    fn measure(&self, machine: &Machine, rounds: &Rounds<'_>) -> anyhow::Result<Taken>;
}
