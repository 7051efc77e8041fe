//! The machine that a configuration is built on, and the options that choose it.

use core::mem::MaybeUninit;
use std::sync::{Mutex, PoisonError};
use std::thread;

use anyhow::{Context, ensure};
use brickyard::sync::{Exclusive, Shared, SlotAccess, TestAndSetLock, TicketLock};
use brickyard::{FrameRange, Platform};
use brickyard_designs::classics::bulk::BulkPolicy;
use brickyard_designs::classics::{Configuration, Experiment, LabLock, MachinePlan, OwnLine};
use brickyard_measure::threads::Threads;
use brickyard_results::bytes_text;

use crate::masking::{Masking, MaskingPlatform};
use brickyard_run::named;

pub use brickyard_measure::memory::FRAME_BYTES;

named! {
    /// How a CPU accesses its slot.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum Slots {
        /// No other CPU can access it.
        Exclusive => "exclusive",
        /// Through a lock that other CPUs may try.
        Shared => "shared",
    }
}

named! {
    /// The lock of zones and magazines.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum Lock {
        /// First come, first served.
        Ticket => "ticket",
        /// The fastest CPU first.
        TestAndSet => "test-and-set",
        /// A ticket lock in its own cache line.
        TicketOwnLine => "ticket-own-line",
        /// A test-and-set lock in its own cache line.
        TestAndSetOwnLine => "test-and-set-own-line",
    }
}

named! {
    /// How long the zone lock is held in a bulk operation.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum Bulk {
        /// For the whole batch.
        Hold => "hold",
        /// For one page.
        Release => "release",
        /// Until another CPU waits.
        Yield => "yield",
    }
}

named! {
    /// The level that requests enter at.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum Level {
        /// Through the node, as in a kernel with several zones.
        Node => "node",
        /// Directly at the zone that serves the mobility first, as in a system with one zone.
        Zone => "zone",
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
    /// How many threads use it in parallel, besides the one that builds it.
    pub(crate) threads: usize,
    pub(crate) slots: Slots,
    pub(crate) lock: Lock,
    pub(crate) bulk: Bulk,
    pub(crate) masking: Masking,
}

/// The platform of these machines.
pub(crate) type HostPlatform = MaskingPlatform<Threads>;

impl Build {
    /// One thread, and the defaults.
    pub(crate) const fn plain(frames: usize) -> Self {
        Self {
            frames,
            threads: 0,
            slots: Slots::Exclusive,
            lock: Lock::Ticket,
            bulk: Bulk::Hold,
            masking: Masking::Nothing,
        }
    }

    /// Builds it as `config` and runs `experiment` on it, with any slots and lock.
    pub(crate) fn run<E: Experiment<HostPlatform>>(
        &self,
        config: Configuration,
        experiment: E,
    ) -> anyhow::Result<E::Output> {
        match self.slots {
            Slots::Exclusive => self.run_on::<Exclusive, E>(config, experiment),
            Slots::Shared => self.run_on::<Shared, E>(config, experiment),
        }
    }

    fn run_on<A: SlotAccess, E: Experiment<HostPlatform>>(
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

    /// Does the same with any slots and a ticket lock. Each further lock is compiled for every
    /// design, so only the most used function has all of them.
    pub(crate) fn run_with_ticket<E: Experiment<HostPlatform>>(
        &self,
        config: Configuration,
        experiment: E,
    ) -> anyhow::Result<E::Output> {
        match self.slots {
            Slots::Exclusive => self.run_with::<Exclusive, TicketLock, E>(config, experiment),
            Slots::Shared => self.run_with::<Shared, TicketLock, E>(config, experiment),
        }
    }

    /// Does the same with exclusive slots, in a thread of its own that is CPU 0, while no other
    /// thread does the same: what counts and does not time must not depend on what else runs.
    pub(crate) fn run_alone<E: Experiment<HostPlatform, Output: Send> + Send>(
        &self,
        config: Configuration,
        experiment: E,
    ) -> anyhow::Result<E::Output> {
        static ALONE: Mutex<()> = Mutex::new(());
        let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
        thread::scope(|scope| {
            let run = || {
                let cpu = Threads.cpu();
                ensure!(cpu == 0, "another thread of this process is CPU 0");
                self.run_with::<Exclusive, TicketLock, E>(config, experiment)
            };
            // Joined, so that its number is free again.
            let done = scope.spawn(run).join();
            done.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })
    }

    /// Does the same with slots and a lock that are known at compile time.
    pub(crate) fn run_with<A: SlotAccess, L: LabLock, E: Experiment<HostPlatform>>(
        &self,
        config: Configuration,
        experiment: E,
    ) -> anyhow::Result<E::Output> {
        // This thread has a number too, and threads of the sample before may not have returned
        // theirs yet.
        let cpus = 2 * self.threads + 1;
        let mut plan = MachinePlan::new(FrameRange::new(0, self.frames), cpus);
        plan.whole.tuning.bulk = self.bulk.policy();
        let platform = MaskingPlatform::new(Threads, self.masking);
        let bytes = config.checked_bytes::<A, L, HostPlatform>(&plan);
        let mut memory = metadata(bytes.context(CANNOT_BUILD)?)?;
        config
            .run::<A, L, _, _>(&plan, platform, &mut memory, experiment)
            .context(CANNOT_BUILD)
    }
}

/// The context of an allocator's own errors.
pub(crate) const CANNOT_BUILD: &str = "cannot build the configuration";

/// Allocates memory for an allocator's metadata, untouched.
///
/// # Errors
/// This host does not have so much memory.
pub(crate) fn metadata(bytes: usize) -> anyhow::Result<Vec<MaybeUninit<u8>>> {
    let mut memory = Vec::new();
    memory.try_reserve_exact(bytes).map_err(|_| {
        let text = bytes_text(bytes);
        anyhow::anyhow!("this host does not have {text} bytes for metadata; give less memory")
    })?;
    memory.resize(bytes, MaybeUninit::uninit());
    Ok(memory)
}
