//! How much metadata a zone of the older make needs, and one built in one piece of memory.
//!
//! | part | bytes |
//! |---|---|
//! | each frame of the span, holes included | 12 |
//! | each page block, with grouping by page blocks | 4 |
//! | each CPU, with per-CPU lists | 128 |
//! | each magazine | 128 |
//!
//! Apart from the CPUs, that is 0.3 % of memory in frames of 4 KiB.

use core::mem::{MaybeUninit, align_of, size_of};
use core::ops::{Deref, DerefMut};

use brickyard::sync::{RawLock, Slot, SlotAccess, place};
use brickyard::{FrameRange, PlanError, Platform, ZoneKind, ZonePlan};

use crate::bulk::Tuning;
use crate::front::{
    CpuLists, Direct, Front, ListSizes, Magazine, MagazineSizes, Magazines, PerCpuLists,
};
use crate::lab_zone::Planned;
use crate::store::buddy::Buddy;
use crate::store::frames::{FrameRecord, FrameTable};
use crate::store::grouping::{BlockRecord, Grouping, HighAtomic, NoGrouping, PageBlocks, TwoKinds};
use crate::zone::Zone;

/// A piece of the embedder's memory.
type Memory = [MaybeUninit<u8>];

/// The values that a zone of any configuration is built with: those of the default, and those that
/// only older makes have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LabPlan {
    /// What every zone has.
    pub zone: ZonePlan,
    /// How many magazines there are.
    pub magazines: usize,
    /// How the lock is used.
    pub tuning: Tuning,
    /// What a CPU's lists keep.
    pub lists: ListSizes,
    /// What a magazine keeps.
    pub magazine: MagazineSizes,
    /// Where blocks for atomic requests come from.
    pub high_atomic: HighAtomic,
}

impl LabPlan {
    /// The values of Linux: orders up to 10, page blocks of order 9, the lists and the two magazines of 2013.
    #[must_use]
    pub const fn new(kind: ZoneKind, span: FrameRange, cpus: usize) -> Self {
        Self::of(ZonePlan::new(kind, span, cpus))
    }

    /// The same for a zone like this one.
    #[must_use]
    pub const fn of(zone: ZonePlan) -> Self {
        Self {
            zone,
            magazines: 2,
            tuning: Tuning::LINUX,
            lists: ListSizes::LINUX_2013,
            magazine: MagazineSizes::POSTED_2013,
            high_atomic: HighAtomic::OwnType,
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

const fn page_blocks(plan: &LabPlan) -> usize {
    PageBlocks::blocks_in(plan.zone.span, plan.zone.page_block_order)
}

/// A part of a zone that can be built from a plan, in the embedder's memory.
pub trait Placed<'m>: Sized {
    /// The bytes of one unit of it.
    const UNIT_BYTES: usize;
    /// What a unit is aligned to, in bytes.
    const UNIT_ALIGN: usize;
    /// What it has one unit for each of.
    const UNITS: Units;

    /// Can it be built by this plan?
    ///
    /// # Errors
    /// [`PlanError::CacheSizes`] where it could hold nothing.
    fn checked(_plan: &LabPlan) -> Result<(), PlanError> {
        Ok(())
    }

    /// Builds it at the start of `memory`; the rest comes back. `None` where it does not fit.
    fn place(plan: &LabPlan, memory: &'m mut Memory) -> Option<(Self, &'m mut Memory)>;
}

/// What a part of a zone has one unit for each of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Units {
    /// Nothing: it needs no memory.
    Nothing,
    /// Each page block.
    PageBlocks,
    /// Each CPU.
    Cpus,
    /// Each magazine.
    Magazines,
}

impl Units {
    const fn of(self, plan: &LabPlan) -> usize {
        match self {
            Self::Nothing => 0,
            Self::PageBlocks => page_blocks(plan),
            Self::Cpus => plan.zone.cpus,
            Self::Magazines => plan.magazines,
        }
    }
}

impl<'m> Placed<'m> for NoGrouping {
    const UNIT_BYTES: usize = 0;
    const UNIT_ALIGN: usize = 1;
    const UNITS: Units = Units::Nothing;

    fn place(_: &LabPlan, memory: &'m mut Memory) -> Option<(Self, &'m mut Memory)> {
        Some((Self, memory))
    }
}

impl<'m> Placed<'m> for TwoKinds {
    const UNIT_BYTES: usize = 0;
    const UNIT_ALIGN: usize = 1;
    const UNITS: Units = Units::Nothing;

    fn place(_: &LabPlan, memory: &'m mut Memory) -> Option<(Self, &'m mut Memory)> {
        Some((Self, memory))
    }
}

impl<'m> Placed<'m> for PageBlocks<'m> {
    const UNIT_BYTES: usize = size_of::<BlockRecord>();
    const UNIT_ALIGN: usize = align_of::<BlockRecord>();
    const UNITS: Units = Units::PageBlocks;

    fn place(plan: &LabPlan, memory: &'m mut Memory) -> Option<(Self, &'m mut Memory)> {
        let (records, rest) = place(memory, page_blocks(plan), BlockRecord::new)?;
        let blocks = Self::new(plan.zone.span, plan.zone.page_block_order, &*records);
        Some((blocks.with_high_atomic(plan.high_atomic), rest))
    }
}

impl<'m> Placed<'m> for Direct {
    const UNIT_BYTES: usize = 0;
    const UNIT_ALIGN: usize = 1;
    const UNITS: Units = Units::Nothing;

    fn place(_: &LabPlan, memory: &'m mut Memory) -> Option<(Self, &'m mut Memory)> {
        Some((Self, memory))
    }
}

impl<'m, A: SlotAccess> Placed<'m> for PerCpuLists<'m, A> {
    const UNIT_BYTES: usize = size_of::<Slot<A, CpuLists>>();
    const UNIT_ALIGN: usize = align_of::<Slot<A, CpuLists>>();
    const UNITS: Units = Units::Cpus;

    fn checked(plan: &LabPlan) -> Result<(), PlanError> {
        match plan.lists.batch > 0 && plan.lists.high >= plan.lists.batch {
            true => Ok(()),
            false => Err(PlanError::CacheSizes(
                "per-CPU lists take a batch of 1 or more, and a high mark of a batch or more",
            )),
        }
    }

    fn place(plan: &LabPlan, memory: &'m mut Memory) -> Option<(Self, &'m mut Memory)> {
        let (slots, rest) = place(memory, plan.zone.cpus, || Slot::new(CpuLists::new()))?;
        Some((Self::new(&*slots, plan.lists), rest))
    }
}

impl<'m, L: RawLock> Placed<'m> for Magazines<'m, L> {
    const UNIT_BYTES: usize = size_of::<Magazine<L>>();
    const UNIT_ALIGN: usize = align_of::<Magazine<L>>();
    const UNITS: Units = Units::Magazines;

    fn checked(plan: &LabPlan) -> Result<(), PlanError> {
        let sizes = &plan.magazine;
        match plan.magazines > 0 && sizes.refill.most > 0 && sizes.drain.most > 0 {
            true => Ok(()),
            false => Err(PlanError::CacheSizes(
                "magazines are 1 or more, with batches of 1 or more",
            )),
        }
    }

    fn place(plan: &LabPlan, memory: &'m mut Memory) -> Option<(Self, &'m mut Memory)> {
        let (magazines, rest) = place(memory, plan.magazines, Magazine::new)?;
        Some((Self::new(&*magazines, plan.magazine), rest))
    }
}

impl<'m, G, F, L, P> Zone<Buddy<'m, G>, F, L, P>
where
    G: Grouping + Placed<'m>,
    F: Front<Buddy<'m, G>, L, P> + Placed<'m>,
    L: RawLock,
    P: Platform,
{
    /// The bytes of metadata that a zone by `plan` needs, wherever they lie.
    ///
    /// For constants. A plan that is known at run time only is asked for its
    /// [`checked_bytes`](Self::checked_bytes).
    ///
    /// # Panics
    /// Where no zone is that large; in a constant, that is an error of the compiler.
    #[must_use]
    pub const fn bytes(plan: &LabPlan) -> usize {
        match Self::checked_bytes(plan) {
            Ok(bytes) => bytes,
            Err(why) => why.refuse(),
        }
    }

    /// The same, for a plan that is known at run time only.
    ///
    /// # Errors
    /// [`PlanError::TooManyFrames`], and [`PlanError::TooManyBytes`] where the sum has no number.
    pub const fn checked_bytes(plan: &LabPlan) -> Result<usize, PlanError> {
        if let Err(why) = FrameTable::checked(plan.zone.span) {
            return Err(why);
        }
        let records = units(
            plan.zone.span.len(),
            size_of::<FrameRecord>(),
            align_of::<FrameRecord>(),
        );
        let grouping = units(G::UNITS.of(plan), G::UNIT_BYTES, G::UNIT_ALIGN);
        let front = units(F::UNITS.of(plan), F::UNIT_BYTES, F::UNIT_ALIGN);
        sum([records, grouping, front])
    }

    /// A zone by `plan` with its metadata in `memory`. It has no memory to hand out yet.
    ///
    /// # Errors
    /// What [`checked_bytes`](Self::checked_bytes) is refused with; [`PlanError::TooLittleMemory`] where
    /// `memory` is shorter; [`PlanError::CacheSizes`] where the caches could hold nothing;
    /// [`PlanError::PageBlockTooLarge`] where the store groups by page blocks that
    /// are larger than its largest block.
    pub fn new(plan: &LabPlan, platform: P, memory: &'m mut Memory) -> Result<Self, PlanError> {
        let too_little = PlanError::TooLittleMemory {
            supplied: memory.len(),
            needed: Self::checked_bytes(plan)?,
        };
        F::checked(plan)?;
        let (front, rest) = F::place(plan, memory).ok_or(too_little)?;
        let (records, rest) =
            place(rest, plan.zone.span.len(), FrameRecord::new).ok_or(too_little)?;
        let (grouping, _) = G::place(plan, rest).ok_or(too_little)?;
        if let Some(page_block_order) = grouping.page_block_order()
            && page_block_order > plan.zone.max_order
        {
            return Err(PlanError::PageBlockTooLarge {
                page_block_order,
                max_order: plan.zone.max_order,
            });
        }
        let table = FrameTable::new(plan.zone.span, &*records);
        let store = Buddy::new(table, plan.zone.max_order, grouping);
        Ok(Self::of(
            plan.zone.kind,
            platform,
            store,
            front,
            plan.tuning,
        ))
    }
}

impl<'m, G, F, L, P> Planned<'m> for Zone<Buddy<'m, G>, F, L, P>
where
    G: Grouping + Placed<'m>,
    F: Front<Buddy<'m, G>, L, P> + Placed<'m>,
    L: RawLock,
    P: Platform,
{
    fn checked_bytes_for(plan: &LabPlan) -> Result<usize, PlanError> {
        Self::checked_bytes(plan)
    }

    fn by(plan: &LabPlan, platform: P, memory: &'m mut Memory) -> Result<Self, PlanError> {
        Self::new(plan, platform, memory)
    }
}

/// The bytes of so many units, and what may have to be skipped before the first. `None` where that is no
/// number.
const fn units(count: usize, bytes: usize, align: usize) -> Option<usize> {
    match count.checked_mul(bytes) {
        Some(bytes) => bytes.checked_add(align - 1),
        None => None,
    }
}

/// The bytes of all parts.
const fn sum(parts: [Option<usize>; 3]) -> Result<usize, PlanError> {
    let mut sum: usize = 0;
    let mut i = 0;
    while i < parts.len() {
        let Some(bytes) = parts[i] else {
            return Err(PlanError::TooManyBytes);
        };
        let Some(more) = sum.checked_add(bytes) else {
            return Err(PlanError::TooManyBytes);
        };
        sum = more;
        i += 1;
    }
    Ok(sum)
}
