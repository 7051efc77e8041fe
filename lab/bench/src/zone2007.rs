//! The zone that `locks` runs its load on on this host: that of Linux 2.6, a buddy store behind per-CPU
//! lists, with its lock and the policy of holding it.

use anyhow::Context;
use brickyard::sync::{Exclusive, TestAndSetLock, TicketLock};
use brickyard::{AnyZone, FrameRange, ZoneKind};
use brickyard_designs::classics::bulk::{BulkPolicy, MeterReading, Timing, Tuning};
use brickyard_designs::classics::front::ListSizes;
use brickyard_designs::classics::{LabLock, LabPlan, LabZone, OwnLine, Planned, Vanilla};
use brickyard_measure::threads::Threads;
use brickyard_simulate::locks::Column;

use super::bursts::{self, Got, Load};
use super::machine::{FRAME_BYTES, metadata};

/// The parameters of that zone; each run builds a new one.
#[derive(Debug, Clone, Copy)]
pub struct Zone2007 {
    /// Its memory, in frames; only the metadata is real.
    pub frames: usize,
    /// The sizes of a CPU's lists.
    pub lists: ListSizes,
}

impl Zone2007 {
    /// The pages that a list of the paper's machine takes from or returns to the zone at once.
    pub const BATCH: usize = 7;

    /// Returns the highest zone of the paper's machine: 128 MiB.
    pub const fn usual() -> Self {
        Self {
            frames: (128 << 20) / FRAME_BYTES,
            lists: ListSizes {
                batch: Self::BATCH,
                high: 6 * Self::BATCH,
            },
        }
    }

    /// Does one run. With `timing` on, the reading has the times of waiting and holding, which
    /// makes each hold longer.
    ///
    /// # Errors
    /// The zone has too few pages for the load.
    pub fn run(
        &self,
        column: Column,
        load: &Load,
        timing: Timing,
    ) -> anyhow::Result<(Got, MeterReading)> {
        // The calling thread has a number too, and threads of the run before may not have returned
        // theirs yet.
        let cpus = 2 * load.threads + 1;
        let span = FrameRange::new(0, self.frames);
        let plan = LabPlan {
            tuning: Tuning {
                bulk: policy(column),
                timing,
            },
            lists: self.lists,
            ..LabPlan::new(ZoneKind::Normal, span, cpus)
        };
        match column {
            Column::Hold | Column::Release => run_on::<TestAndSetLock>(&plan, load),
            Column::Ticket | Column::TicketYield => run_on::<TicketLock>(&plan, load),
            Column::TicketYieldOwnLine => run_on::<OwnLine<TicketLock>>(&plan, load),
        }
    }
}

/// Returns [`Column::policy`] as the type of this host's allocator; the simulator has another.
const fn policy(column: Column) -> BulkPolicy {
    match column {
        Column::Hold | Column::Ticket => BulkPolicy::Hold,
        Column::Release => BulkPolicy::ReleaseEachPage,
        Column::TicketYield | Column::TicketYieldOwnLine => BulkPolicy::YieldWhenContended,
    }
}

fn run_on<L: LabLock>(plan: &LabPlan, load: &Load) -> anyhow::Result<(Got, MeterReading)> {
    type Linux<'m, L> = Vanilla<'m, Threads, Exclusive, L>;
    let bytes = Linux::<L>::checked_bytes_for(plan).context("cannot build the zone")?;
    let mut memory = metadata(bytes)?;
    let zone = Linux::<L>::by(plan, Threads, &mut memory).context("cannot build the zone")?;
    zone.add(plan.span).context("cannot fill the zone")?;
    let got = bursts::run(&zone, load).context(
        "the zone has too few free pages for these bursts; give more --memory, or a smaller --burst",
    )?;
    Ok((got, zone.meter()))
}
