//! What `bench locks` runs its load on: the zone of Linux 2.6, a buddy store behind per-CPU lists, with its lock and how long that is held.

use core::mem::MaybeUninit;

use anyhow::Context;
use brickyard::bulk::{BulkPolicy, MeterReading, Timing, Tuning};
use brickyard::design::Vanilla;
use brickyard::front::ListSizes;
use brickyard::sync::{Exclusive, OwnLine, RawLock, TestAndSetLock, TicketLock};
use brickyard::zone::ZonePlan;
use brickyard::{FrameRange, ZoneKind};
use brickyard_arena::Threads;
use clap::ValueEnum;

use super::bursts::{self, Got, Load};
use super::machine::{FRAME_BYTES, named};

/// A lock and how long it is held.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Column {
    /// A test-and-set lock, for the whole bulk: Linux up to 2.6.24.
    Hold,
    /// The same, released after each page: the patch of 2007.
    Release,
    /// A ticket lock, for the whole bulk.
    Ticket,
    /// A ticket lock, given up after a page if somebody waits: the patch of 2008.
    #[value(name = "ticket+yield")]
    TicketYield,
    /// The same in its own cache line.
    #[value(name = "ticket+yield+own-line")]
    TicketYieldOwnLine,
}

impl Column {
    /// All five, in the order of the table.
    pub(crate) const ALL: [Self; 5] = [
        Self::Hold,
        Self::Release,
        Self::Ticket,
        Self::TicketYield,
        Self::TicketYieldOwnLine,
    ];

    /// Its name.
    pub(crate) fn name(self) -> String {
        named(self)
    }

    const fn policy(self) -> BulkPolicy {
        match self {
            Self::Hold | Self::Ticket => BulkPolicy::Hold,
            Self::Release => BulkPolicy::ReleaseEachPage,
            Self::TicketYield | Self::TicketYieldOwnLine => BulkPolicy::YieldWhenContended,
        }
    }
}

/// The zone of Linux 2.6 that columns are run on: each run has a new one.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Zone2007 {
    /// Its memory, in frames; the metadata only is real.
    pub(crate) frames: usize,
    /// What a CPU's lists keep.
    pub(crate) lists: ListSizes,
}

impl Zone2007 {
    /// Pages that a list of the paper's machine fetches and gives back at once.
    pub(crate) const BATCH: usize = 7;

    /// The highest zone of the paper's machine: 128 MiB.
    pub(crate) const fn usual() -> Self {
        Self {
            frames: (128 << 20) / FRAME_BYTES,
            lists: ListSizes {
                batch: Self::BATCH,
                high: 6 * Self::BATCH,
            },
        }
    }

    /// One run. What is waited and held is in the reading where `timing` says so, which makes each hold longer.
    ///
    /// # Errors
    /// Where the zone has too few pages for the load.
    pub(crate) fn run(
        &self,
        column: Column,
        load: &Load,
        timing: Timing,
    ) -> anyhow::Result<(Got, MeterReading)> {
        // The calling thread has a number too, and threads of the run before may not have given theirs back yet.
        let cpus = 2 * load.threads + 1;
        let span = FrameRange::new(0, self.frames);
        let plan = ZonePlan {
            tuning: Tuning {
                bulk: column.policy(),
                timing,
            },
            lists: self.lists,
            ..ZonePlan::new(ZoneKind::Normal, span, cpus)
        };
        match column {
            Column::Hold | Column::Release => run_on::<TestAndSetLock>(&plan, load),
            Column::Ticket | Column::TicketYield => run_on::<TicketLock>(&plan, load),
            Column::TicketYieldOwnLine => run_on::<OwnLine<TicketLock>>(&plan, load),
        }
    }
}

fn run_on<L: RawLock>(plan: &ZonePlan, load: &Load) -> anyhow::Result<(Got, MeterReading)> {
    type Linux<'m, L> = Vanilla<'m, Threads, Exclusive, L>;
    let mut memory = vec![MaybeUninit::uninit(); Linux::<L>::bytes(plan)];
    let zone = Linux::<L>::zone(plan, Threads, &mut memory).context("cannot build the zone")?;
    zone.add(plan.span).context("cannot fill the zone")?;
    let got = bursts::run(&zone, load).context(
        "the zone has too few free pages for these bursts; give more --memory, or a smaller --burst",
    )?;
    Ok((got, zone.meter()))
}
