//! How much metadata a zone needs, and a zone built in one piece of the embedder's memory.
//!
//! ```
//! use core::mem::MaybeUninit;
//! use brickyard::{FrameRange, Mobility, OneCpu, Request, ZoneKind};
//! use brickyard::design::Brickyard;
//! use brickyard::zone::ZonePlan;
//!
//! const PLAN: ZonePlan = ZonePlan::new(ZoneKind::Normal, FrameRange::new(0, 4096), 1);
//! const BYTES: usize = Brickyard::<OneCpu>::bytes(&PLAN);
//! let mut memory = [MaybeUninit::uninit(); BYTES];
//! let zone = Brickyard::<OneCpu>::zone(&PLAN, OneCpu, &mut memory)?;
//! zone.add(FrameRange::new(0, 4096))?;
//! let frame = zone.alloc(&Request::page(Mobility::Movable))?;
//! zone.free(frame, brickyard::Order::ZERO)?;
//! # Ok::<(), Box<dyn core::error::Error>>(())
//! ```
//!
//! | part | bytes, with the bitmap store | with a buddy store |
//! |---|---|---|
//! | each frame of the span, holes included | 3/8 | 12 |
//! | each page block of 512 frames | 13.5 | 4 with grouping by page blocks |
//! | each CPU | 13 KiB with a stash | 128 with per-CPU lists |
//! | each magazine | | 128 |
//!
//! Apart from the CPUs, that is 0.0098 % of memory in frames of 4 KiB with the one, 0.3 % with the other.
//!
//! # Limits
//!
//! A zone spans at most [`FRAMES_MOST`](crate::store::FRAMES_MOST) frames, 2^32 - 2: 16 TiB of 4 KiB
//! frames. With the bitmap store these are counted from the start of the first page block, and there are
//! at most [`BLOCKS_MOST`](Bitmap::BLOCKS_MOST) page blocks, 2^24, which is less only where page blocks
//! are below order 8. Larger memory is several zones of one kind, see [`Node`](crate::node::Node).
//!
//! A plan that is a constant is refused by the compiler, where its `bytes` are another:
//!
//! ```compile_fail
//! use brickyard::{FrameRange, OneCpu, ZoneKind};
//! use brickyard::design::Brickyard;
//! use brickyard::zone::ZonePlan;
//!
//! const SPAN: FrameRange = FrameRange::new(0, u32::MAX as usize);
//! const PLAN: ZonePlan = ZonePlan::new(ZoneKind::Normal, SPAN, 1);
//! // error[E0080]: a zone spans at most 2^32 - 2 frames: give the rest to one more zone of the node
//! const BYTES: usize = Brickyard::<OneCpu>::bytes(&PLAN);
//! println!("{BYTES}");
//! ```
//!
//! With one frame less there is such a zone:
//!
//! ```
//! use brickyard::{FrameRange, OneCpu, ZoneKind};
//! use brickyard::design::Brickyard;
//! use brickyard::zone::ZonePlan;
//!
//! const SPAN: FrameRange = FrameRange::new(0, u32::MAX as usize - 1);
//! const PLAN: ZonePlan = ZonePlan::new(ZoneKind::Normal, SPAN, 1);
//! const BYTES: usize = Brickyard::<OneCpu>::bytes(&PLAN);
//! println!("{BYTES}");
//! ```
//!
//! One that is known at run time only is asked for its `checked_bytes`:
//!
//! ```
//! use brickyard::{FrameRange, OneCpu, PlanError, ZoneKind};
//! use brickyard::design::Brickyard;
//! use brickyard::zone::ZonePlan;
//!
//! let plan = ZonePlan::new(ZoneKind::Normal, FrameRange::new(0, usize::MAX), 1);
//! let refused = Brickyard::<OneCpu>::checked_bytes(&plan);
//! assert!(matches!(refused, Err(PlanError::TooManyFrames { .. })));
//! ```

use core::mem::{MaybeUninit, align_of, size_of};

use brickyard_sync::{AtomicU64, RawLock, Slot, SlotAccess, place};

use super::Zone;
use crate::bulk::Tuning;
use crate::design::{Classic, LockFree};
use crate::front::{
    CpuLists, CpuStash, Direct, Front, ListSizes, Magazine, MagazineSizes, Magazines, PerCpuLists,
    Stash, StashSizes,
};
use crate::store::bitmap::Bitmap;
use crate::store::buddy::Buddy;
use crate::store::frames::{FrameRecord, FrameTable};
use crate::store::grouping::{BlockRecord, Grouping, HighAtomic, NoGrouping, PageBlocks, TwoKinds};
use crate::{FrameRange, Order, PlanError, Platform, ZoneKind};

/// A piece of the embedder's memory.
type Memory = [MaybeUninit<u8>];

/// The values that a zone is built with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ZonePlan {
    /// Its kind.
    pub kind: ZoneKind,
    /// The frames that it can ever hold.
    pub span: FrameRange,
    /// The highest order it hands out.
    pub max_order: Order,
    /// The order of a page block.
    pub page_block_order: Order,
    /// How many CPUs have a stash or lists of their own.
    pub cpus: usize,
    /// How many magazines there are.
    pub magazines: usize,
    /// How the lock is used.
    pub tuning: Tuning,
    /// What a CPU's stash keeps.
    pub stash: StashSizes,
    /// What a CPU's lists keep.
    pub lists: ListSizes,
    /// What a magazine keeps.
    pub magazine: MagazineSizes,
    /// Where blocks for atomic requests come from.
    pub high_atomic: HighAtomic,
}

impl ZonePlan {
    /// The values of Linux: orders up to 10, page blocks of order 9, the lists and the two magazines of 2013.
    #[must_use]
    pub const fn new(kind: ZoneKind, span: FrameRange, cpus: usize) -> Self {
        Self {
            kind,
            span,
            max_order: Order::DEFAULT_MAX,
            page_block_order: Order::HUGE,
            cpus,
            magazines: 2,
            tuning: Tuning::LINUX,
            stash: StashSizes::DEFAULT,
            lists: ListSizes::LINUX_2013,
            magazine: MagazineSizes::POSTED_2013,
            high_atomic: HighAtomic::OwnType,
        }
    }

    const fn page_blocks(&self) -> usize {
        PageBlocks::blocks_in(self.span, self.page_block_order)
    }
}

/// Places `count` values and gives out shared references to them.
fn placed<T>(
    memory: &mut Memory,
    count: usize,
    make: impl FnMut() -> T,
) -> Option<(&[T], &mut Memory)> {
    place(memory, count, make).map(|(values, rest)| (&*values, rest))
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
    fn checked(_plan: &ZonePlan) -> Result<(), PlanError> {
        Ok(())
    }

    /// Builds it at the start of `memory`; the rest comes back. `None` where it does not fit.
    fn place(plan: &ZonePlan, memory: &'m mut Memory) -> Option<(Self, &'m mut Memory)>;
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
    const fn of(self, plan: &ZonePlan) -> usize {
        match self {
            Self::Nothing => 0,
            Self::PageBlocks => plan.page_blocks(),
            Self::Cpus => plan.cpus,
            Self::Magazines => plan.magazines,
        }
    }
}

impl<'m> Placed<'m> for NoGrouping {
    const UNIT_BYTES: usize = 0;
    const UNIT_ALIGN: usize = 1;
    const UNITS: Units = Units::Nothing;

    fn place(_: &ZonePlan, memory: &'m mut Memory) -> Option<(Self, &'m mut Memory)> {
        Some((Self, memory))
    }
}

impl<'m> Placed<'m> for TwoKinds {
    const UNIT_BYTES: usize = 0;
    const UNIT_ALIGN: usize = 1;
    const UNITS: Units = Units::Nothing;

    fn place(_: &ZonePlan, memory: &'m mut Memory) -> Option<(Self, &'m mut Memory)> {
        Some((Self, memory))
    }
}

impl<'m> Placed<'m> for PageBlocks<'m> {
    const UNIT_BYTES: usize = size_of::<BlockRecord>();
    const UNIT_ALIGN: usize = align_of::<BlockRecord>();
    const UNITS: Units = Units::PageBlocks;

    fn place(plan: &ZonePlan, memory: &'m mut Memory) -> Option<(Self, &'m mut Memory)> {
        let (records, rest) = placed(memory, plan.page_blocks(), BlockRecord::new)?;
        let blocks = Self::new(plan.span, plan.page_block_order, records);
        Some((blocks.with_high_atomic(plan.high_atomic), rest))
    }
}

impl<'m> Placed<'m> for Direct {
    const UNIT_BYTES: usize = 0;
    const UNIT_ALIGN: usize = 1;
    const UNITS: Units = Units::Nothing;

    fn place(_: &ZonePlan, memory: &'m mut Memory) -> Option<(Self, &'m mut Memory)> {
        Some((Self, memory))
    }
}

impl<'m, A: SlotAccess> Placed<'m> for PerCpuLists<'m, A> {
    const UNIT_BYTES: usize = size_of::<Slot<A, CpuLists>>();
    const UNIT_ALIGN: usize = align_of::<Slot<A, CpuLists>>();
    const UNITS: Units = Units::Cpus;

    fn checked(plan: &ZonePlan) -> Result<(), PlanError> {
        match plan.lists.batch > 0 && plan.lists.high >= plan.lists.batch {
            true => Ok(()),
            false => Err(PlanError::CacheSizes(
                "per-CPU lists take a batch of 1 or more, and a high mark of a batch or more",
            )),
        }
    }

    fn place(plan: &ZonePlan, memory: &'m mut Memory) -> Option<(Self, &'m mut Memory)> {
        let (slots, rest) = placed(memory, plan.cpus, || Slot::new(CpuLists::new()))?;
        Some((Self::new(slots, plan.lists), rest))
    }
}

impl<'m, A: SlotAccess> Placed<'m> for Stash<'m, A> {
    const UNIT_BYTES: usize = size_of::<Slot<A, CpuStash>>();
    const UNIT_ALIGN: usize = align_of::<Slot<A, CpuStash>>();
    const UNITS: Units = Units::Cpus;

    fn place(plan: &ZonePlan, memory: &'m mut Memory) -> Option<(Self, &'m mut Memory)> {
        let (slots, rest) = placed(memory, plan.cpus, || Slot::new(CpuStash::new()))?;
        Some((Self::new(slots, plan.stash), rest))
    }
}

impl<'m, L: RawLock> Placed<'m> for Magazines<'m, L> {
    const UNIT_BYTES: usize = size_of::<Magazine<L>>();
    const UNIT_ALIGN: usize = align_of::<Magazine<L>>();
    const UNITS: Units = Units::Magazines;

    fn checked(plan: &ZonePlan) -> Result<(), PlanError> {
        let sizes = &plan.magazine;
        match plan.magazines > 0 && sizes.refill.most > 0 && sizes.drain.most > 0 {
            true => Ok(()),
            false => Err(PlanError::CacheSizes(
                "magazines are 1 or more, with batches of 1 or more",
            )),
        }
    }

    fn place(plan: &ZonePlan, memory: &'m mut Memory) -> Option<(Self, &'m mut Memory)> {
        let (magazines, rest) = placed(memory, plan.magazines, Magazine::new)?;
        Some((Self::new(magazines, plan.magazine), rest))
    }
}

impl<'m, G, F, L, P> Classic<'m, G, F, L, P>
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
    pub const fn bytes(plan: &ZonePlan) -> usize {
        match Self::checked_bytes(plan) {
            Ok(bytes) => bytes,
            Err(why) => why.refuse(),
        }
    }

    /// The same, for a plan that is known at run time only.
    ///
    /// # Errors
    /// [`PlanError::TooManyFrames`], and [`PlanError::TooManyBytes`] where the sum has no number.
    pub const fn checked_bytes(plan: &ZonePlan) -> Result<usize, PlanError> {
        if let Err(why) = FrameTable::checked(plan.span) {
            return Err(why);
        }
        let records = units(
            plan.span.len(),
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
    pub fn zone(
        plan: &ZonePlan,
        platform: P,
        memory: &'m mut Memory,
    ) -> Result<Zone<Self>, PlanError> {
        let too_little = PlanError::TooLittleMemory {
            supplied: memory.len(),
            needed: Self::checked_bytes(plan)?,
        };
        F::checked(plan)?;
        let (front, rest) = F::place(plan, memory).ok_or(too_little)?;
        let (records, rest) = placed(rest, plan.span.len(), FrameRecord::new).ok_or(too_little)?;
        let (grouping, _) = G::place(plan, rest).ok_or(too_little)?;
        if let Some(page_block_order) = grouping.page_block_order()
            && page_block_order > plan.max_order
        {
            return Err(PlanError::PageBlockTooLarge {
                page_block_order,
                max_order: plan.max_order,
            });
        }
        let table = FrameTable::new(plan.span, records);
        let store = Buddy::new(table, plan.max_order, grouping);
        Ok(Zone::new(plan.kind, platform, store, front, plan.tuning))
    }
}

impl<'m, F, L, P> LockFree<'m, F, L, P>
where
    F: Front<Bitmap<'m>, L, P> + Placed<'m>,
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
    pub const fn bytes(plan: &ZonePlan) -> usize {
        match Self::checked_bytes(plan) {
            Ok(bytes) => bytes,
            Err(why) => why.refuse(),
        }
    }

    /// The same, for a plan that is known at run time only.
    ///
    /// # Errors
    /// [`PlanError::TooManyFrames`], [`PlanError::TooManyBlocks`], and [`PlanError::TooManyBytes`] where
    /// the sum has no number.
    pub const fn checked_bytes(plan: &ZonePlan) -> Result<usize, PlanError> {
        let words = match Self::words(plan) {
            Ok(words) => words,
            Err(why) => return Err(why),
        };
        // The words of a block lie in one cache line, so they begin at one.
        let words = units(words, size_of::<AtomicU64>(), LINE);
        let front = units(F::UNITS.of(plan), F::UNIT_BYTES, F::UNIT_ALIGN);
        sum([words, front, Some(0)])
    }

    /// A zone by `plan` with its metadata in `memory`. It has no memory to hand out yet.
    ///
    /// # Errors
    /// What [`checked_bytes`](Self::checked_bytes) is refused with; [`PlanError::TooLittleMemory`] where
    /// `memory` is shorter; [`PlanError::CacheSizes`] where the caches could hold nothing.
    pub fn zone(
        plan: &ZonePlan,
        platform: P,
        memory: &'m mut Memory,
    ) -> Result<Zone<Self>, PlanError> {
        let too_little = PlanError::TooLittleMemory {
            supplied: memory.len(),
            needed: Self::checked_bytes(plan)?,
        };
        F::checked(plan)?;
        let (front, rest) = F::place(plan, memory).ok_or(too_little)?;
        let skip = rest.as_ptr().align_offset(LINE);
        let rest = rest.get_mut(skip..).ok_or(too_little)?;
        let zero = || AtomicU64::new(0);
        let (words, _) = placed(rest, Self::words(plan)?, zero).ok_or(too_little)?;
        let store = Bitmap::new(plan.span, plan.max_order, plan.page_block_order, words);
        Ok(Zone::new(plan.kind, platform, store, front, plan.tuning))
    }

    /// How many words the store of a zone by `plan` needs.
    const fn words(plan: &ZonePlan) -> Result<usize, PlanError> {
        Bitmap::checked_words(plan.span, plan.max_order, plan.page_block_order)
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

/// A cache line.
const LINE: usize = 64;
