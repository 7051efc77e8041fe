//! The machine that a configuration is built on, and the options that choose it.

use core::mem::MaybeUninit;

use anyhow::Context;
use brickyard::FrameRange;
use brickyard::sync::{
    Exclusive, OwnLine, RawLock, Shared, SlotAccess, TestAndSetLock, TicketLock,
};
use brickyard_arena::Threads;
use brickyard_classics::bulk::BulkPolicy;
use brickyard_classics::{Configuration, Experiment, MachinePlan};
use brickyard_report::bytes_text;

use crate::choice::choices;

/// The bytes of a frame.
pub const FRAME_BYTES: usize = 4096;

choices! {
    /// How a CPU reaches its slot.
    pub enum Slots {
        /// No other CPU can.
        Exclusive = "exclusive",
        /// By a lock that others may try.
        Shared = "shared",
    }

    /// The lock of zones and magazines.
    pub enum Lock {
        /// First come, first served.
        Ticket = "ticket",
        /// Whoever is quickest.
        TestAndSet = "test-and-set",
        /// A ticket lock in its own cache line.
        TicketOwnLine = "ticket-own-line",
        /// A test-and-set lock in its own cache line.
        TestAndSetOwnLine = "test-and-set-own-line",
    }

    /// How long the zone lock is held in a bulk operation.
    pub enum Bulk {
        /// For the whole batch.
        Hold = "hold",
        /// Page by page.
        Release = "release",
        /// Until somebody waits.
        Yield = "yield",
    }

    /// At what level requests enter.
    pub enum Level {
        /// Through the node, as a kernel with several zones asks.
        Node = "node",
        /// Straight at the zone that serves the mobility first, as an embedder with one zone asks.
        Zone = "zone",
    }
}

impl Bulk {
    const fn policy(self) -> BulkPolicy {
        match self {
            Self::Hold => BulkPolicy::Hold,
            Self::Release => BulkPolicy::ReleaseEachPage,
            Self::Yield => BulkPolicy::YieldWhenContended,
        }
    }
}

/// How a machine is built.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Build {
    /// Its memory, in frames.
    pub(crate) frames: usize,
    /// How many threads use it at once, besides the one that builds it.
    pub(crate) threads: usize,
    pub(crate) slots: Slots,
    pub(crate) lock: Lock,
    pub(crate) bulk: Bulk,
}

impl Build {
    /// One thread, and the defaults.
    pub(crate) const fn plain(frames: usize) -> Self {
        Self {
            frames,
            threads: 0,
            slots: Slots::Exclusive,
            lock: Lock::Ticket,
            bulk: Bulk::Hold,
        }
    }

    /// Builds it as `config` and runs `experiment` there, with any slots and lock.
    pub(crate) fn run<E: Experiment<Threads>>(
        &self,
        config: Configuration,
        experiment: E,
    ) -> anyhow::Result<E::Output> {
        match self.slots {
            Slots::Exclusive => self.run_on::<Exclusive, E>(config, experiment),
            Slots::Shared => self.run_on::<Shared, E>(config, experiment),
        }
    }

    fn run_on<A: SlotAccess, E: Experiment<Threads>>(
        &self,
        config: Configuration,
        experiment: E,
    ) -> anyhow::Result<E::Output> {
        type Ticket = OwnLine<TicketLock>;
        type TestAndSet = OwnLine<TestAndSetLock>;
        match self.lock {
            Lock::Ticket => self.run_with::<A, TicketLock, E>(config, experiment),
            Lock::TestAndSet => self.run_with::<A, TestAndSetLock, E>(config, experiment),
            Lock::TicketOwnLine => self.run_with::<A, Ticket, E>(config, experiment),
            Lock::TestAndSetOwnLine => self.run_with::<A, TestAndSet, E>(config, experiment),
        }
    }

    /// The same with any slots and a ticket lock: each lock more is compiled for every design, so
    /// only what is asked for most has them all.
    pub(crate) fn run_with_ticket<E: Experiment<Threads>>(
        &self,
        config: Configuration,
        experiment: E,
    ) -> anyhow::Result<E::Output> {
        match self.slots {
            Slots::Exclusive => self.run_with::<Exclusive, TicketLock, E>(config, experiment),
            Slots::Shared => self.run_with::<Shared, TicketLock, E>(config, experiment),
        }
    }

    /// The same for slots and a lock that are known when this is compiled.
    pub(crate) fn run_with<A: SlotAccess, L: RawLock, E: Experiment<Threads>>(
        &self,
        config: Configuration,
        experiment: E,
    ) -> anyhow::Result<E::Output> {
        // This thread has a number too, and threads of the sample before may not have given theirs
        // back yet.
        let cpus = 2 * self.threads + 1;
        let mut plan = MachinePlan::new(FrameRange::new(0, self.frames), cpus);
        plan.whole.tuning.bulk = self.bulk.policy();
        let bytes = config.checked_bytes::<A, L, Threads>(&plan);
        let mut memory = metadata(bytes.context(CANNOT_BUILD)?)?;
        config
            .run::<A, L, _, _>(&plan, Threads, &mut memory, experiment)
            .context(CANNOT_BUILD)
    }
}

/// What an error of the allocator's own is told with.
pub(crate) const CANNOT_BUILD: &str = "cannot build the configuration";

/// Room for an allocator's metadata, untouched.
///
/// # Errors
/// Where this host cannot give as much.
pub(crate) fn metadata(bytes: usize) -> anyhow::Result<Vec<MaybeUninit<u8>>> {
    let mut memory = Vec::new();
    memory.try_reserve_exact(bytes).map_err(|_| {
        let text = bytes_text(bytes);
        anyhow::anyhow!("this host cannot give {text} bytes for metadata; give less --memory")
    })?;
    memory.resize(bytes, MaybeUninit::uninit());
    Ok(memory)
}
