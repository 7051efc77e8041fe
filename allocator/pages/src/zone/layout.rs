//! How much metadata a zone needs, and a zone built in one piece of the embedder's memory.
//!
//! ```
//! use core::mem::MaybeUninit;
//! use brickyard::{FrameRange, Mobility, OneCpu, Request, ZoneKind};
//! use brickyard::zone::{Zone, ZonePlan};
//!
//! const PLAN: ZonePlan = ZonePlan::new(ZoneKind::Normal, FrameRange::new(0, 4096), 1);
//! const BYTES: usize = Zone::<OneCpu>::bytes(&PLAN);
//! let mut memory = [MaybeUninit::uninit(); BYTES];
//! let zone = Zone::<OneCpu>::new(&PLAN, OneCpu, &mut memory)?;
//! zone.add(FrameRange::new(0, 4096))?;
//! let frame = zone.alloc(&Request::page(Mobility::Movable))?;
//! zone.free(frame, brickyard::Order::ZERO)?;
//! # Ok::<(), Box<dyn core::error::Error>>(())
//! ```
//!
//! | part | bytes |
//! |---|---|
//! | each frame of the span, holes included | 3/8 |
//! | each page block of 512 frames | 13.5 |
//! | each CPU, for its stash | 13 KiB |
//!
//! Apart from the CPUs, that is 0.0098 % of memory in frames of 4 KiB.
//!
//! # Limits
//!
//! A zone spans at most [`FRAMES_MOST`](crate::FRAMES_MOST) frames, 2^32 - 2: 16 TiB of 4 KiB
//! frames. These are counted from the start of the first page block, and there are at most
//! [`BLOCKS_MOST`](Bitmap::BLOCKS_MOST) page blocks, 2^24, which is less only where page blocks are
//! below order 8. Larger memory is several zones of one kind, see [`Node`](crate::node::Node).
//!
//! A plan that is a constant is refused by the compiler, where its `bytes` are another:
//!
//! ```compile_fail
//! use brickyard::{FrameRange, OneCpu, ZoneKind};
//! use brickyard::zone::{Zone, ZonePlan};
//!
//! const SPAN: FrameRange = FrameRange::new(0, u32::MAX as usize);
//! const PLAN: ZonePlan = ZonePlan::new(ZoneKind::Normal, SPAN, 1);
//! // error[E0080]: a zone spans at most 2^32 - 2 frames: give the rest to one more zone of the node
//! const BYTES: usize = Zone::<OneCpu>::bytes(&PLAN);
//! println!("{BYTES}");
//! ```
//!
//! With one frame less there is such a zone:
//!
//! ```
//! use brickyard::{FrameRange, OneCpu, ZoneKind};
//! use brickyard::zone::{Zone, ZonePlan};
//!
//! const SPAN: FrameRange = FrameRange::new(0, u32::MAX as usize - 1);
//! const PLAN: ZonePlan = ZonePlan::new(ZoneKind::Normal, SPAN, 1);
//! const BYTES: usize = Zone::<OneCpu>::bytes(&PLAN);
//! println!("{BYTES}");
//! ```
//!
//! One that is known at run time only is asked for its `checked_bytes`:
//!
//! ```
//! use brickyard::{FrameRange, OneCpu, PlanError, ZoneKind};
//! use brickyard::zone::{Zone, ZonePlan};
//!
//! let plan = ZonePlan::new(ZoneKind::Normal, FrameRange::new(0, usize::MAX), 1);
//! let refused = Zone::<OneCpu>::checked_bytes(&plan);
//! assert!(matches!(refused, Err(PlanError::TooManyFrames { .. })));
//! ```

use core::mem::{MaybeUninit, align_of, size_of};

use brickyard_sync::{AtomicU64, Slot, SlotAccess, place};

use super::Zone;
use crate::bitmap::Bitmap;
use crate::stash::{CpuStash, Stash, StashSizes};
use crate::{FrameRange, Order, PlanError, Platform, ZoneKind};

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
    /// How many CPUs have a stash of their own.
    pub cpus: usize,
    /// What a CPU's stash keeps.
    pub stash: StashSizes,
}

impl ZonePlan {
    /// Orders up to 10 and page blocks of order 9, as in Linux, and stashes as large as can be.
    #[must_use]
    pub const fn new(kind: ZoneKind, span: FrameRange, cpus: usize) -> Self {
        Self {
            kind,
            span,
            max_order: Order::DEFAULT_MAX,
            page_block_order: Order::HUGE,
            cpus,
            stash: StashSizes::DEFAULT,
        }
    }

    /// How many words the store needs.
    const fn words(&self) -> Result<usize, PlanError> {
        Bitmap::checked_words(self.span, self.max_order, self.page_block_order)
    }
}

/// A cache line. The words of a page block lie in one, so the first begins at one.
const LINE: usize = 64;

impl<'m, P: Platform, A: SlotAccess> Zone<'m, P, A> {
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
    /// [`PlanError::TooManyFrames`], [`PlanError::TooManyBlocks`], and [`PlanError::TooManyBytes`]
    /// where the sum has no number.
    pub const fn checked_bytes(plan: &ZonePlan) -> Result<usize, PlanError> {
        let words = match plan.words() {
            Ok(words) => words,
            Err(why) => return Err(why),
        };
        let stash = (
            size_of::<Slot<A, CpuStash>>(),
            align_of::<Slot<A, CpuStash>>(),
        );
        let Some(words) = bytes_of(words, (size_of::<AtomicU64>(), LINE)) else {
            return Err(PlanError::TooManyBytes);
        };
        let Some(stashes) = bytes_of(plan.cpus, stash) else {
            return Err(PlanError::TooManyBytes);
        };
        match words.checked_add(stashes) {
            Some(bytes) => Ok(bytes),
            None => Err(PlanError::TooManyBytes),
        }
    }

    /// A zone by `plan` with its metadata in `memory`. It has no memory to hand out yet.
    ///
    /// # Errors
    /// What [`checked_bytes`](Self::checked_bytes) is refused with; [`PlanError::TooLittleMemory`]
    /// where `memory` is shorter.
    pub fn new(
        plan: &ZonePlan,
        platform: P,
        memory: &'m mut [MaybeUninit<u8>],
    ) -> Result<Self, PlanError> {
        let too_little = PlanError::TooLittleMemory {
            supplied: memory.len(),
            needed: Self::checked_bytes(plan)?,
        };
        let slot = || Slot::new(CpuStash::new());
        let (slots, rest) = place(memory, plan.cpus, slot).ok_or(too_little)?;
        let skip = rest.as_ptr().align_offset(LINE);
        let rest = rest.get_mut(skip..).ok_or(too_little)?;
        let zero = || AtomicU64::new(0);
        let (words, _) = place(rest, plan.words()?, zero).ok_or(too_little)?;
        let store = Bitmap::new(plan.span, plan.max_order, plan.page_block_order, words);
        Ok(Self::of(
            plan.kind,
            platform,
            store,
            Stash::new(slots, plan.stash),
        ))
    }
}

/// The bytes of so many values of a size and alignment, and what may have to be skipped before the
/// first. `None` where that is no number.
const fn bytes_of(count: usize, (size, align): (usize, usize)) -> Option<usize> {
    match count.checked_mul(size) {
        Some(bytes) => bytes.checked_add(align - 1),
        None => None,
    }
}
