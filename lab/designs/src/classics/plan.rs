//! Building a zone of an older design in one piece of memory, and how much of it the metadata
//! takes.
//!
//! | part | bytes |
//! |---|---|
//! | each frame of the span, holes included | 12 |
//! | each page block, with grouping by page blocks | 4 |
//! | each CPU, with per-CPU lists | 128 |
//! | each magazine | 128 |
//! | each 32 page blocks, with Linux of today | 4 |
//!
//! Apart from the CPUs, that is 0.3 % of memory in frames of 4 KiB.

use core::mem::{MaybeUninit, align_of, size_of};
use core::ops::{Deref, DerefMut};

use brickyard::sync::{Slot, SlotAccess, place};
use brickyard::{FrameRange, PlanError, Platform, ZoneKind, ZonePlan};

use crate::classics::bulk::Tuning;
use crate::classics::front::{
    CpuLists, Direct, Front, ListSizes, Magazine, MagazineSizes, Magazines, PerCpuLists,
};
use crate::classics::lab_zone::LabZone;
use crate::classics::linux;
use crate::classics::lock::LabLock;
use crate::classics::store::buddy::Buddy;
use crate::classics::store::frames::{FrameRecord, FrameTable};
use crate::classics::store::grouping::{
    BlockRecord, Grouping, HighAtomic, NoGrouping, PageBlocks, TwoKinds,
};
use crate::classics::zone::Zone;

/// A part of the embedder's memory.
type Memory = [MaybeUninit<u8>];

/// The values that a zone of any configuration is built with: those of the default, and those that
/// only the older designs have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LabPlan {
    /// The values of every zone.
    pub zone: ZonePlan,
    /// Number of magazines.
    pub magazines: usize,
    /// How the lock is used.
    pub tuning: Tuning,
    /// The sizes of a CPU's lists.
    pub lists: ListSizes,
    /// The sizes of a magazine.
    pub magazine: MagazineSizes,
    /// How blocks for atomic requests are provided.
    pub high_atomic: HighAtomic,
    /// What only Linux 6.12 and 6.18 have.
    pub linux: linux::Settings,
}

impl LabPlan {
    /// Returns a plan with Linux's values: orders up to 10, page blocks of order 9, the lists and
    /// the two magazines of 2013.
    #[must_use]
    pub const fn new(kind: ZoneKind, span: FrameRange, cpus: usize) -> Self {
        Self::of(ZonePlan::new(kind, span, cpus))
    }

    /// Returns Linux's values with these for the zone.
    #[must_use]
    pub const fn of(zone: ZonePlan) -> Self {
        Self {
            zone,
            magazines: 2,
            tuning: Tuning::LINUX,
            lists: ListSizes::LINUX_2013,
            magazine: MagazineSizes::POSTED_2013,
            high_atomic: HighAtomic::OwnType,
            linux: linux::Settings::DEFAULT,
        }
    }
}

impl Deref for LabPlan {
    type Target = ZonePlan;

    fn deref(&self) -> &ZonePlan {
        &self.zone
    }
}

impl DerefMut for LabPlan {
    fn deref_mut(&mut self) -> &mut ZonePlan {
        &mut self.zone
    }
}

/// A zone that can be built from a plan, with its metadata in memory that lives for `'m`.
pub trait Planned<'m>: LabZone + Sized {
    /// Returns the bytes of metadata that a zone by `plan` needs.
    ///
    /// # Errors
    /// [`PlanError`], if the plan exceeds a limit of a zone.
    fn checked_bytes_for(plan: &LabPlan) -> Result<usize, PlanError>;

    /// Builds a zone by `plan`. It has no memory to hand out yet.
    ///
    /// # Errors
    /// The errors of [`Planned::checked_bytes_for`]; [`PlanError::TooLittleMemory`] if `memory` is
    /// shorter than that; another [`PlanError`] if no zone can have these values.
    fn by(
        plan: &LabPlan,
        platform: Self::Platform,
        memory: &'m mut Memory,
    ) -> Result<Self, PlanError>;
}

/// A part of a zone that can be built from a plan, over units of it in the embedder's memory.
pub trait Placed<'m>: Sized {
    /// The unit placed in memory.
    type Unit: 'm;

    /// Checks that the part can be built by this plan.
    ///
    /// # Errors
    /// [`PlanError::CacheSizes`], if it could hold no frame.
    fn checked(_plan: &LabPlan) -> Result<(), PlanError> {
        Ok(())
    }

    /// Returns how many units it needs.
    fn units(_plan: &LabPlan) -> usize {
        0
    }

    /// Makes a new unit.
    fn unit() -> Self::Unit;

    /// Builds the part over these units.
    fn over(plan: &LabPlan, units: &'m [Self::Unit]) -> Self;

    /// Builds the part at the start of `memory`, and returns the rest of it too; `None` if it does
    /// not fit.
    fn place(plan: &LabPlan, memory: &'m mut Memory) -> Option<(Self, &'m mut Memory)> {
        let (units, rest) = place(memory, Self::units(plan), Self::unit)?;
        Some((Self::over(plan, units), rest))
    }
}

/// Parts that need no memory.
macro_rules! without_units {
    ($($part:ty),*) => {$(
        impl Placed<'_> for $part {
            type Unit = ();

            fn unit() {}

            fn over(_: &LabPlan, _: &[()]) -> Self {
                Self
            }
        }
    )*};
}

without_units!(NoGrouping, TwoKinds, Direct);

impl<'m> Placed<'m> for PageBlocks<'m> {
    type Unit = BlockRecord;

    fn units(plan: &LabPlan) -> usize {
        Self::blocks_in(plan.zone.span, plan.zone.page_block_order)
    }

    fn unit() -> BlockRecord {
        BlockRecord::new()
    }

    fn over(plan: &LabPlan, records: &'m [BlockRecord]) -> Self {
        let ZonePlan {
            span,
            page_block_order,
            ..
        } = plan.zone;
        Self::new(span, page_block_order, records, plan.high_atomic)
    }
}

impl<'m, A: SlotAccess> Placed<'m> for PerCpuLists<'m, A> {
    type Unit = Slot<A, CpuLists>;

    fn checked(plan: &LabPlan) -> Result<(), PlanError> {
        match plan.lists.batch > 0 && plan.lists.high >= plan.lists.batch {
            true => Ok(()),
            false => Err(PlanError::CacheSizes(
                "per-CPU lists need a batch of 1 or more, and a high mark of a batch or more",
            )),
        }
    }

    fn units(plan: &LabPlan) -> usize {
        plan.zone.cpus
    }

    fn unit() -> Self::Unit {
        Slot::new(CpuLists::default())
    }

    fn over(plan: &LabPlan, slots: &'m [Self::Unit]) -> Self {
        Self::new(slots, plan.lists)
    }
}

impl<'m, L: LabLock> Placed<'m> for Magazines<'m, L> {
    type Unit = Magazine<L>;

    fn checked(plan: &LabPlan) -> Result<(), PlanError> {
        let sizes = &plan.magazine;
        match plan.magazines > 0 && sizes.refill.most > 0 && sizes.drain.most > 0 {
            true => Ok(()),
            false => Err(PlanError::CacheSizes(
                "there must be 1 magazine or more, with batches of 1 or more",
            )),
        }
    }

    fn units(plan: &LabPlan) -> usize {
        plan.magazines
    }

    fn unit() -> Magazine<L> {
        Magazine::new()
    }

    fn over(plan: &LabPlan, magazines: &'m [Magazine<L>]) -> Self {
        Self::new(magazines, plan.magazine)
    }
}

impl<'m, P: Platform, A: SlotAccess> Planned<'m> for brickyard::Zone<'m, P, A> {
    fn checked_bytes_for(plan: &LabPlan) -> Result<usize, PlanError> {
        Self::checked_bytes(&plan.zone)
    }

    fn by(plan: &LabPlan, platform: P, memory: &'m mut Memory) -> Result<Self, PlanError> {
        Self::new(&plan.zone, platform, memory)
    }
}

impl<'m, G, F, L, P> Planned<'m> for Zone<'m, G, F, L, P>
where
    G: Grouping + Placed<'m>,
    F: Front<G, L, P> + Placed<'m>,
    L: LabLock,
    P: Platform,
{
    fn checked_bytes_for(plan: &LabPlan) -> Result<usize, PlanError> {
        FrameTable::checked(plan.zone.span)?;
        let parts = [
            bytes_of::<FrameRecord>(plan.zone.span.len()),
            bytes_of::<G::Unit>(G::units(plan)),
            bytes_of::<F::Unit>(F::units(plan)),
        ];
        let sum = parts
            .into_iter()
            .try_fold(0_usize, |sum, part| sum.checked_add(part?));
        sum.ok_or(PlanError::TooManyBytes)
    }

    fn by(plan: &LabPlan, platform: P, memory: &'m mut Memory) -> Result<Self, PlanError> {
        let too_little = PlanError::TooLittleMemory {
            supplied: memory.len(),
            needed: Self::checked_bytes_for(plan)?,
        };
        F::checked(plan)?;
        let (front, rest) = F::place(plan, memory).ok_or(too_little)?;
        let (records, rest) =
            place(rest, plan.zone.span.len(), FrameRecord::default).ok_or(too_little)?;
        let (grouping, _) = G::place(plan, rest).ok_or(too_little)?;
        let max_order = plan.zone.max_order;
        if let Some(page_block_order) = grouping.page_block_order()
            && page_block_order > max_order
        {
            return Err(PlanError::PageBlockTooLarge {
                page_block_order,
                max_order,
            });
        }
        let store = Buddy::new(
            FrameTable::new(plan.zone.span, records),
            max_order,
            grouping,
        );
        Ok(Self::of(
            plan.zone.kind,
            platform,
            store,
            front,
            plan.tuning,
        ))
    }
}

/// Returns the bytes of `count` units, with the most that alignment may skip before the first;
/// `None` on overflow.
pub(crate) const fn bytes_of<T>(count: usize) -> Option<usize> {
    match count.checked_mul(size_of::<T>()) {
        Some(bytes) => bytes.checked_add(align_of::<T>() - 1),
        None => None,
    }
}

// 2^30 frames have 12 GiB of records: an overflow that must be found.
#[cfg(target_pointer_width = "32")]
const _: () = assert!(bytes_of::<FrameRecord>(1 << 30).is_none());
