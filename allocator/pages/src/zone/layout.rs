//! The amount of metadata a zone needs, and how to build a zone in one piece of memory.
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
//! | each page block of 512 frames | 14.5 |
//! | each CPU, for its stash | 15 KiB |
//!
//! Apart from the CPUs' part, that is 0.0098 % of memory in frames of 4 KiB.
//!
//! # Limits
//!
//! A zone spans at most [`FRAMES_MOST`](crate::FRAMES_MOST) frames, 2^32 - 2: 16 TiB of 4 KiB
//! frames. They are counted from the start of the first page block. There are at most
//! [`BLOCKS_MOST`](Bitmap::BLOCKS_MOST) page blocks, 2^24; this is the smaller limit only where
//! page blocks are below order 8. Larger memory needs several zones of one kind, see
//! [`Node`](crate::node::Node).
//!
//! If a plan and its `bytes` are constants, the compiler refuses a plan that is too large:
//!
//! ```compile_fail
//! use brickyard::{FrameRange, OneCpu, ZoneKind};
//! use brickyard::zone::{Zone, ZonePlan};
//!
//! const SPAN: FrameRange = FrameRange::new(0, u32::MAX as usize);
//! const PLAN: ZonePlan = ZonePlan::new(ZoneKind::Normal, SPAN, 1);
//! // error[E0080]: a zone spans at most 2^32 - 2 frames: give the rest to one more zone of the
//! node const BYTES: usize = Zone::<OneCpu>::bytes(&PLAN);
//! println!("{BYTES}");
//! ```
//!
//! With one frame less, the plan is accepted:
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
//! For a plan that is known only at run time, call `checked_bytes`:
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

use brickyard_sync::{AtomicU8, AtomicU64, Slot, SlotAccess, Zeros, place};

use super::Zone;
use crate::bitmap::{Bitmap, SetAside};
use crate::stash::{CpuStash, Stash, StashSizes};
use crate::{FrameRange, Order, PlanError, Platform, ZoneKind};

/// The values that a zone is built with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ZonePlan {
    /// The zone's kind.
    pub kind: ZoneKind,
    /// The frames that the zone can ever hold.
    pub span: FrameRange,
    /// The highest order that the zone hands out.
    pub max_order: Order,
    /// The order of a page block.
    pub page_block_order: Order,
    /// The number of CPUs that have a stash of their own.
    pub cpus: usize,
    /// The sizes of a CPU's stash.
    pub stash: StashSizes,
    /// How much is set aside at most for atomic requests above order 0.
    pub set_aside: SetAside,
}

impl ZonePlan {
    /// Returns a plan with orders up to 10 and page blocks of order 9, as in Linux, and stashes of
    /// the largest size.
    #[must_use]
    pub const fn new(kind: ZoneKind, span: FrameRange, cpus: usize) -> Self {
        Self {
            kind,
            span,
            max_order: Order::DEFAULT_MAX,
            page_block_order: Order::HUGE,
            cpus,
            stash: StashSizes::DEFAULT,
            set_aside: SetAside::DEFAULT,
        }
    }

    /// Returns the number of words that the store needs.
    const fn words(&self) -> Result<usize, PlanError> {
        Bitmap::checked_words(self.span, self.max_order, self.page_block_order)
    }

    /// Returns the number of classes that the store needs.
    const fn classes(&self) -> usize {
        Bitmap::classes(self.span, self.page_block_order)
    }
}

/// The CPUs' slots; the store's words and classes.
type Metadata<'m, A> = (&'m [Slot<A, CpuStash>], &'m [AtomicU64], &'m [AtomicU8]);

/// A cache line. The words of a page block share one, so the first word begins at a line's start.
const LINE: usize = 64;

impl<'m, P: Platform, A: SlotAccess> Zone<'m, P, A> {
    /// Returns the bytes of metadata that a zone built from `plan` needs, at any address.
    ///
    /// For constants. For a plan that is known only at run time, use
    /// [`checked_bytes`](Self::checked_bytes).
    ///
    /// # Panics
    /// Panics if no zone can be that large. In a constant, that is a compile error.
    #[must_use]
    pub const fn bytes(plan: &ZonePlan) -> usize {
        match Self::checked_bytes(plan) {
            Ok(bytes) => bytes,
            Err(why) => why.refuse(),
        }
    }

    /// Returns the number of bytes of metadata for a plan that is known only at run time.
    ///
    /// # Errors
    /// [`PlanError::TooManyFrames`], [`PlanError::TooManyBlocks`], and [`PlanError::TooManyBytes`]
    /// if the sum overflows.
    pub const fn checked_bytes(plan: &ZonePlan) -> Result<usize, PlanError> {
        let words = match plan.words() {
            Ok(words) => words,
            Err(why) => return Err(why),
        };
        let Some(words) = bytes_of(words, (size_of::<AtomicU64>(), LINE)) else {
            return Err(PlanError::TooManyBytes);
        };
        let Some(stashes) = Self::stash_bytes(plan) else {
            return Err(PlanError::TooManyBytes);
        };
        let Some(store) = words.checked_add(plan.classes() * size_of::<AtomicU8>()) else {
            return Err(PlanError::TooManyBytes);
        };
        match store.checked_add(stashes) {
            Some(bytes) => Ok(bytes),
            None => Err(PlanError::TooManyBytes),
        }
    }

    /// Returns the bytes of the stashes, if that is not too large a number.
    const fn stash_bytes(plan: &ZonePlan) -> Option<usize> {
        let of_one = size_of::<Slot<A, CpuStash>>();
        bytes_of(plan.cpus, (of_one, align_of::<Slot<A, CpuStash>>()))
    }

    /// Builds a zone from `plan` with its metadata in `memory`. The zone has no memory to hand out
    /// yet.
    ///
    /// # Errors
    /// The errors of [`checked_bytes`](Self::checked_bytes); [`PlanError::TooLittleMemory`] if
    /// `memory` is too short.
    pub fn new(
        plan: &ZonePlan,
        platform: P,
        memory: &'m mut [MaybeUninit<u8>],
    ) -> Result<Self, PlanError> {
        let made = Self::metadata(plan, memory)?;
        Ok(Self::of_parts(plan, platform, made))
    }

    /// Builds a zone in `place`, so that its 5 KiB never lie on the stack. All else is as in
    /// [`new`](Self::new).
    ///
    /// # Errors
    /// The errors of [`new`](Self::new).
    #[inline(never)]
    pub fn new_in<'z>(
        place: &'z mut MaybeUninit<Self>,
        plan: &ZonePlan,
        platform: P,
        memory: &'m mut [MaybeUninit<u8>],
    ) -> Result<&'z mut Self, PlanError> {
        let made = Self::metadata(plan, memory)?;
        Ok(place.write(Self::of_parts(plan, platform, made)))
    }

    /// Makes the metadata of a zone in `memory`.
    #[inline(never)]
    fn metadata(
        plan: &ZonePlan,
        memory: &'m mut [MaybeUninit<u8>],
    ) -> Result<Metadata<'m, A>, PlanError> {
        let too_little = Self::too_little(plan, memory.len())?;
        let (slots, rest) = Slot::place(memory, plan.cpus).ok_or(too_little)?;
        let skip = rest.as_ptr().align_offset(LINE);
        let rest = rest.get_mut(skip..).ok_or(too_little)?;
        let zero = || AtomicU64::new(0);
        let (words, rest) = place(rest, plan.words()?, zero).ok_or(too_little)?;
        let zero = || AtomicU8::new(0);
        let (classes, _) = place(rest, plan.classes(), zero).ok_or(too_little)?;
        Ok((slots, words, classes))
    }

    /// Returns a zone by a plan, with no memory yet, whose metadata lies in memory that is zero.
    /// What describes frames stays untouched until the zone gets those frames, so it needs no
    /// memory before where untouched pages have none.
    ///
    /// # Errors
    /// The errors of [`new`](Self::new).
    pub fn on_zeros(plan: &ZonePlan, platform: P, memory: Zeros<'m>) -> Result<Self, PlanError> {
        let too_little = Self::too_little(plan, memory.bytes())?;
        let stashes = Self::stash_bytes(plan).ok_or(PlanError::TooManyBytes)?;
        let (stashes, rest) = memory.split(stashes).ok_or(too_little)?;
        let (slots, _) = Slot::place(stashes.into_memory(), plan.cpus).ok_or(too_little)?;
        let skip = rest.bytes_to(LINE);
        let (_, rest) = rest.split(skip).ok_or(too_little)?;
        let (words, rest) = rest.place(plan.words()?).ok_or(too_little)?;
        let (classes, _) = rest.place(plan.classes()).ok_or(too_little)?;
        Ok(Self::of_parts(plan, platform, (slots, words, classes)))
    }

    fn too_little(plan: &ZonePlan, supplied: usize) -> Result<PlanError, PlanError> {
        let needed = Self::checked_bytes(plan)?;
        Ok(PlanError::TooLittleMemory { supplied, needed })
    }

    // Inlined, so that the zone is made where it stays, and not copied from the stack.
    #[inline(always)]
    fn of_parts(plan: &ZonePlan, platform: P, (slots, words, classes): Metadata<'m, A>) -> Self {
        let (max_order, block_order) = (plan.max_order, plan.page_block_order);
        let store = Bitmap::new(plan.span, max_order, block_order, words, classes)
            .with_set_aside(plan.set_aside);
        let stash = Stash::new(slots, plan.stash);
        Self::of(plan.kind, platform, store, stash)
    }
}

/// Returns the bytes of `count` values of a size and alignment, including what may have to be
/// skipped before the first. Returns `None` on overflow.
const fn bytes_of(count: usize, (size, align): (usize, usize)) -> Option<usize> {
    match count.checked_mul(size) {
        Some(bytes) => bytes.checked_add(align - 1),
        None => None,
    }
}
