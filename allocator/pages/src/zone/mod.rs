//! A zone: the bitmap store, a stash per CPU in front of it, and watermarks.
//!
//! A zone may be used alone: an embedder with one kind of memory and no reclaim needs no more.
//! [`Nodes`](crate::node::Nodes) puts several in order. [`Zone::new`] builds one in memory found at
//! run time. Every part can also be made in a constant, so that a kernel has its zone from its
//! first instruction:
//!
//! ```
//! use brickyard::bitmap::Bitmap;
//! use brickyard::stash::{CpuStash, Stash, StashSizes};
//! use brickyard::sync::{AtomicU8, AtomicU64, Shared, Slot};
//! use brickyard::{FrameRange, Mobility, OneCpu, Order, Request, Zone, ZoneKind};
//!
//! const SPAN: FrameRange = FrameRange::new(0, 8192);
//! const MAX: Order = Order::DEFAULT_MAX;
//! const COUNT: usize = Bitmap::words(SPAN, MAX, Order::HUGE);
//! const CLASSES: usize = Bitmap::classes(SPAN, Order::HUGE);
//! static WORDS: [AtomicU64; COUNT] = [const { AtomicU64::new(0) }; COUNT];
//! static BYTES: [AtomicU8; CLASSES] = [const { AtomicU8::new(0) }; CLASSES];
//! static SLOTS: [Slot<Shared, CpuStash>; 4] = [const { Slot::new(CpuStash::new()) }; 4];
//! static ZONE: Zone<OneCpu, Shared> = Zone::of(
//!     ZoneKind::Normal,
//!     OneCpu,
//!     Bitmap::new(SPAN, MAX, Order::HUGE, &WORDS, &BYTES),
//!     Stash::new(&SLOTS, StashSizes::DEFAULT),
//! );
//!
//! ZONE.add(FrameRange::new(160, 8000))?;
//! let page = ZONE.alloc(&Request::page(Mobility::Movable))?;
//! ZONE.free(page, Order::ZERO)?;
//! # Ok::<(), Box<dyn core::error::Error>>(())
//! ```
//!
//! **How a request is served.** It pops a block from this CPU's stash. An empty stash is refilled
//! from the store, if enough stays free. If the store has nothing, every cache that can be reached
//! is drained, and the store is asked again. Last, what is set aside for atomic requests is given
//! up. Only then does [`Zone::why_not`] say why the request fails.
//!
//! An atomic request above order 0 that had to go below the low mark, or to drain caches, has the
//! page block set aside that served it (see [`SetAside`](crate::bitmap::SetAside)); the next such
//! request takes from there first.
//!
//! **How a free is served.** The block is pushed on this CPU's stash. A full stash is flushed to
//! the store. A block that no stash may hold goes to the store at once.
//!
//! Invariant `order-0-succeeds`: a request for order 0 fails only if no frame was free that it may
//! have. Frames in caches, and in transit between a stash and the store, count as free. The
//! exceptions:
//!
//! - requests in an interrupt, which wait for no other CPU, leave other CPUs' caches alone, and
//!   leave even their own CPU's stash alone;
//! - atomic requests where slots are exclusive, which may interrupt no other CPU;
//! - CPUs with exclusive slots on which the platform cannot [run](crate::Platform::run_on)
//!   anything;
//! - frames in hand of a CPU that stands still: frames in transit or promised, frames of a block
//!   that it is opening, setting aside or giving up, or frames in a shared slot that it is in;
//! - requests with a limit inside the zone, and all requests while something is isolated: they may
//!   miss frames of a larger block that is being given up or opened at that moment;
//! - a request that has looked everywhere [`LOOKS_MOST`](crate::patience::LOOKS_MOST) times, while
//!   frames came or went each time; if what is free is below a mark,
//!   [`LOOKS_BELOW_A_MARK`](crate::patience::LOOKS_BELOW_A_MARK) times;
//! - a request to [`Nodes`](crate::node::Nodes) that has tried all zones 8 times, while frames
//!   became free in some of them each time.
//!
//! **Bounds.** A request asks the stash and the store. As a last resort it looks everywhere, at
//! most [`LOOKS_MOST`](crate::patience::LOOKS_MOST) times. Each look visits every cache once and
//! searches the store once, which has its own bound, see [`bitmap`](crate::bitmap). Each look then
//! waits for frames that another CPU has in hand, and now and then reads what the store says.
//! Orders above 0 and interrupts look once. If anything was ever set aside for atomic requests, up
//! to 32 page blocks are given up after that, with a search after each, and a single frame is
//! looked for everywhere as often once more. The request is then refused or goes on to compaction
//! and reclaim. (That is done by [`Nodes`](crate::node::Nodes), which does
//! all of the above in each zone, up to 8 times for a single frame that may have gone from zone to
//! zone meanwhile, and again after each reclaim that helped.)
//!
//! A request waits for other CPUs at most [`WAITS_MOST`](crate::patience::WAITS_MOST) calls of
//! [`Platform::relax`], in all zones and looks together, and at most
//! [`PATIENCE`](brickyard_sync::PATIENCE) for any one CPU's cache. A CPU that the request has
//! waited for without success is not waited for, or asked to run anything, again. It waits only
//! while it looks everywhere: before that, it does without a cache that another CPU is in, its own
//! CPU's included. A request for several frames one by one waits as much for each.
//!
//! The one kind of loop without a constant is a change of a word that must be completed: a promise
//! that is taken back, frames that are freed. It is tried again while other CPUs change that word.
//! Each failed attempt is another CPU's success, and no CPU that stands still is waited for
//! (lock-free).

mod any_zone;
mod last_resort;
mod layout;
mod range;

pub use layout::ZonePlan;
pub(crate) use range::{block_holding, cut_to};

use core::fmt;

use brickyard_sync::{Exclusive, Held, Locked, SlotAccess, TicketLock};

use crate::bitmap::{Bitmap, Leaves, Was};
use crate::block::Census;
use crate::check::Violation;
use crate::error::BulkFreeError;
use crate::patience::{Patience, Reach};
use crate::platform::{MaskGuard, PinGuard};
use crate::pressure::CompactionState;
use crate::stash::{Backing, Returned, Stash};
use crate::transit::Moves;
use crate::watermark::{Mark, Watermarks};
use crate::zones::AnyZone;
use crate::{
    AllocError, Context, Frame, FrameRange, FreeError, Mobility, Order, Platform, RangeError,
    Request, ZoneKind,
};

/// A zone of memory on platform `P`, with stashes accessed through `A`.
pub struct Zone<'m, P, A = Exclusive> {
    kind: ZoneKind,
    stash: Stash<'m, A>,
    watermarks: Watermarks,
    compaction: CompactionState,
    backing: Backing<'m, P>,
    // Serializes operations that add, remove, reserve or isolate ranges.
    administration: Locked<TicketLock, ()>,
}

/// A step of an administrative operation.
struct AdminStep<'z, P: Platform> {
    _held: Held<'z, TicketLock, ()>,
    _masked: MaskGuard<'z, P>,
}

/// Returns true if what lies in this CPU's cache is available at this mark without another check.
#[inline(always)]
const fn is_first(mark: Mark) -> bool {
    matches!(mark, Mark::First | Mark::FirstApart)
}

impl<'m, P: Platform, A: SlotAccess> Zone<'m, P, A> {
    /// Returns a zone made of these parts, with no memory yet (see [`Zone::add`]) and no
    /// watermarks. For constants: elsewhere, [`Zone::new`] makes the parts too.
    ///
    /// The parts must be this zone's alone, and their words zero. No compiler sees to that: two
    /// zones over the same words or slots hand out and take back each other's frames.
    #[inline(always)]
    #[must_use]
    pub const fn of(kind: ZoneKind, platform: P, store: Bitmap<'m>, stash: Stash<'m, A>) -> Self {
        Self {
            kind,
            stash,
            watermarks: Watermarks::new(),
            compaction: CompactionState::new(),
            backing: Backing {
                store,
                platform,
                moves: Moves::new(),
            },
            administration: Locked::new(()),
        }
    }

    #[inline]
    const fn store(&self) -> &Bitmap<'m> {
        &self.backing.store
    }

    /// Changes the store with the caller kept on its CPU. Whoever changes the store has frames or a
    /// page block in hand meanwhile: another task of this CPU could not have them, nor wait for a
    /// task that it has preempted.
    #[inline]
    fn pinned<R>(&self, change: impl FnOnce(&Bitmap<'m>) -> R) -> R {
        let _pinned = self.pin();
        change(self.store())
    }

    #[inline]
    fn pin(&self) -> PinGuard<'_, P> {
        PinGuard::new(self.platform())
    }

    /// Returns the zone's kind.
    #[inline]
    #[must_use]
    pub const fn kind(&self) -> ZoneKind {
        self.kind
    }

    /// Returns the frames that the zone has records for. Not all of them need be memory.
    #[inline]
    #[must_use]
    pub const fn span(&self) -> FrameRange {
        self.store().span()
    }

    // ---- requests ----

    /// Takes a block for `request`. The zone's watermarks are ignored: they are for a caller that
    /// can ask several zones.
    ///
    /// Cost: a pop from this CPU's stash, if it holds something; else a few atomic instructions for
    /// up to 320 frames. If the store has nothing, every cache that can be reached is drained
    /// first.
    ///
    /// # Errors
    /// The reason why the request could not be served. No frame has changed hands then, though
    /// caches may have been drained.
    #[inline]
    pub fn alloc(&self, request: &Request) -> Result<Frame, AllocError> {
        match self.at_hand(request) {
            Some(frame) => Ok(frame),
            None => self.alloc_or_fetch(request),
        }
    }

    /// Takes a single frame that lies in this CPU's stash. All else is for the slow paths, which
    /// begin anew: so a caller that inlines this has no register to save.
    #[inline(always)]
    fn at_hand(&self, request: &Request) -> Option<Frame> {
        let single = request.order == Order::ZERO;
        if !single || request.limit.is_some() || request.context == Context::Interrupt {
            return None;
        }
        self.stash.pop(&self.backing, request.mobility)
    }

    /// Takes a block above order 0 that lies in this CPU's stash.
    #[inline(always)]
    fn block_at_hand(&self, request: &Request) -> Option<Frame> {
        if request.limit.is_some() || request.context == Context::Interrupt {
            return None;
        }
        let (order, mobility) = (request.order, request.mobility);
        self.stash.pop_block(&self.backing, order, mobility)
    }

    /// Takes a block that lies in this CPU's stash, or has some fetched.
    #[inline(never)]
    fn alloc_or_fetch(&self, request: &Request) -> Result<Frame, AllocError> {
        match self.block_at_hand(request) {
            Some(frame) => Ok(frame),
            None => self.alloc_with_fetch(request),
        }
    }

    /// Takes a block from this CPU's stash, which is refilled if it is empty, or from the store.
    #[inline(never)]
    fn alloc_with_fetch(&self, request: &Request) -> Result<Frame, AllocError> {
        match self.take(request, usize::MAX) {
            Some(frame) => Ok(frame),
            None => self.alloc_at_last(request),
        }
    }

    /// Serves a request for which neither the stash nor the store has anything at once. A function
    /// of its own, so that its frame does not lie below that of a refill.
    #[cold]
    #[inline(never)]
    fn alloc_at_last(&self, request: &Request) -> Result<Frame, AllocError> {
        let patience = &Patience::new();
        self.pinned(|store| store.take_aside(request))
            .or_else(|| self.take_drained(request, 0, patience))
            .or_else(|| self.take_given_up(request, 0, patience))
            .ok_or_else(|| self.why_not(request))
    }

    /// Does the same as `alloc_with_fetch`, while the zone stays above a mark.
    #[inline(never)]
    fn above_with_fetch(&self, request: &Request, mark: Mark) -> Option<Frame> {
        let room = self.room(request, self.watermarks.floor(request, mark), 0);
        if !is_first(mark) && room < request.order.frames() {
            return None;
        }
        if mark == Mark::Min
            && let Some(frame) = self.pinned(|store| store.take_aside(request))
        {
            return Some(frame);
        }
        if mark == Mark::Apart
            && let Some(frame) = self
                .at_hand(request)
                .or_else(|| self.block_at_hand(request))
        {
            // What lies here mixes nothing, and no loan is called in for it.
            return Some(frame);
        }
        let apart = matches!(mark, Mark::FirstApart | Mark::Apart);
        let room = match apart && !self.pinned(|store| store.has_own(request)) {
            true => 0,
            false => room,
        };
        let taken = self.take(request, room);
        if mark == Mark::Min
            && let Some(frame) = taken
        {
            self.pinned(|store| store.set_aside(frame, request));
        }
        taken
    }

    /// Takes a block from this CPU's stash, or from the store if that has `room` for it. Stashes do
    /// not know how low their blocks lie, so a limit in this zone sends a request to the store.
    fn take(&self, request: &Request, room: usize) -> Option<Frame> {
        match self.is_limited(request) {
            true => self.backing.take_within(request, room),
            false => self.stash.take(&self.backing, request, room),
        }
    }

    /// Returns true if the request's limit cuts into this zone.
    fn is_limited(&self, request: &Request) -> bool {
        let end = self.store().span().end;
        request.limit.is_some_and(|limit| limit < end)
    }

    /// Returns true if `floor` frames would stay free.
    fn admits(&self, request: &Request, floor: usize) -> bool {
        self.room(request, floor, 0) >= request.order.frames()
    }

    /// Returns how many frames may leave the store while `floor` stay free ([`Watermarks::floor`]):
    /// what is free there, less what is set aside for others and the floor. It is exact if it is
    /// less than `wanted`, or than the request may fetch.
    fn room(&self, request: &Request, floor: usize, wanted: usize) -> usize {
        if floor == 0 {
            // If nothing is held back, all that is free is available, and the store knows better
            // than any sum of its counts.
            return usize::MAX;
        }
        // The quick count is usually far above the floor: enough for the request, and for all that
        // it may fetch.
        let kept = self.store().kept_from_at_most(request);
        let above = |free: usize| free.saturating_sub(floor.saturating_add(kept));
        let quick = above(self.store().free_frames_at_least());
        let enough = self
            .stash
            .most_fetched(self.store())
            .max(request.order.frames())
            .max(wanted);
        if quick >= enough {
            return quick;
        }
        let free = self.store().free_frames();
        if kept == 0 || above(free) >= enough {
            return above(free);
        }
        let kept = self.store().kept_from(request);
        free.saturating_sub(floor.saturating_add(kept))
    }

    /// Fills `out` with as many single frames of `request`'s mobility, context and limit as are
    /// available. Returns the number of frames taken.
    ///
    /// # Errors
    /// The reason why none was available.
    pub fn alloc_bulk(&self, request: &Request, out: &mut [Frame]) -> Result<usize, AllocError> {
        let request = &request.single();
        let mut taken = self.take_many(request, out, usize::MAX);
        while let Some(slot) = out.get_mut(taken) {
            match self.alloc(request) {
                Ok(frame) => *slot = frame,
                Err(why) if taken == 0 => return Err(why),
                Err(_) => break,
            }
            taken += 1;
        }
        Ok(taken)
    }

    /// Takes as many single frames as are at hand, and as the store has `room` for.
    fn take_many(&self, request: &Request, out: &mut [Frame], room: usize) -> usize {
        if !self.is_limited(request)
            && let Some(taken) = self.stash.take_many(&self.backing, request, out, room)
        {
            return taken;
        }
        let most = out.len().min(room);
        let mut taken = 0;
        while taken < most {
            let end = most.min(taken + self.store().max_order().frames());
            // One call falls back on other mobilities only if it gets nothing else.
            let more = self.pinned(|store| store.take_frames(request, &mut out[taken..end]));
            if more == 0 {
                break;
            }
            taken += more;
        }
        taken
    }

    /// Takes exactly the block of `request`'s order that starts at `frame`. If it lies in a cache,
    /// the caches are drained as far as the request's context allows.
    ///
    /// # Errors
    /// The errors of [`AnyZone::take_at`]; also [`RangeError::Busy`] if other CPUs interfered at
    /// each try.
    pub fn alloc_at(&self, frame: Frame, request: &Request) -> Result<(), RangeError> {
        self.or_drained(request, || self.take_at(frame, request))
    }

    /// Tries once more, after a drain as far as the request's context allows, if something is in
    /// the way.
    fn or_drained(
        &self,
        request: &Request,
        take: impl Fn() -> Result<(), RangeError>,
    ) -> Result<(), RangeError> {
        match take() {
            Err(RangeError::Busy { .. }) => {
                let reach = Reach::of(request.context, self.platform());
                self.stash.drain(&self.backing, reach, &Patience::new());
                take()
            }
            other => other,
        }
    }

    // ---- frees ----

    /// Takes back the 2^order frames at `frame`: a whole block, or any aligned part of one.
    ///
    /// # Errors
    /// A free of anything else is refused and changes nothing. Errors about frames in the store are
    /// always noticed. A second free of a frame that lies in a [stash](crate::stash) may go
    /// unnoticed, unless that frame is the one freed last, its page block has not become mostly
    /// free since, nor ceased to be, and no other CPU is draining that stash.
    #[inline]
    pub fn free(&self, frame: Frame, order: Order) -> Result<(), FreeError> {
        if order == Order::ZERO && self.stash.push(&self.backing, frame) {
            return Ok(());
        }
        self.free_or_flush(frame, order)
    }

    /// Adds a block to this CPU's stash, or has that flushed.
    #[inline(never)]
    fn free_or_flush(&self, frame: Frame, order: Order) -> Result<(), FreeError> {
        match self.stash.push_block(&self.backing, frame, order) {
            true => Ok(()),
            false => self.free_with_flush(frame, order),
        }
    }

    /// Adds a block to this CPU's stash, which is flushed if it is full, or frees it to the store.
    #[inline(never)]
    fn free_with_flush(&self, frame: Frame, order: Order) -> Result<(), FreeError> {
        match self.stash.put(&self.backing, frame, order) {
            Returned::Kept => Ok(()),
            Returned::FreeAlready => Err(FreeError::DoubleFree),
            Returned::ToStore => self.pinned(|store| store.give(frame, order)),
        }
    }

    /// Takes back single frames: into the stash, or straight to the store if they are many.
    ///
    /// # Errors
    /// The position and error of the first bad frame. Those before it are freed; it and those after
    /// it are not.
    pub fn free_bulk(&self, frames: &[Frame]) -> Result<(), BulkFreeError> {
        let (kept, next) = self.stash.put_many(&self.backing, frames);
        let (given, error) = match next {
            Returned::Kept => (0, None),
            Returned::FreeAlready => (0, Some(FreeError::DoubleFree)),
            // What the stash does not keep is seldom alone: the store takes all the rest.
            Returned::ToStore => self.give_many(&frames[kept..]),
        };
        match error {
            None => Ok(()),
            Some(error) => Err(BulkFreeError {
                freed: kept + given,
                error,
            }),
        }
    }

    /// Takes back single frames, straight to the store. Returns how many before the first that is
    /// refused, and why it is.
    fn give_many(&self, frames: &[Frame]) -> (usize, Option<FreeError>) {
        let mut given = 0;
        for some in frames.chunks(self.store().max_order().frames()) {
            let (more, error) = self.pinned(|store| store.give_frames(some));
            given += more;
            if error.is_some() {
                return (given, error);
            }
        }
        (given, None)
    }

    /// Takes back a range of any size, such as one from [`Zone::alloc_range`] or
    /// [`alloc_contiguous`](crate::pressure::alloc_contiguous).
    ///
    /// # Errors
    /// The error that a free of the first frame not in use would return. Nothing has changed then.
    pub fn free_range(&self, range: FrameRange) -> Result<(), FreeError> {
        self.store().give_range(range, &|| self.pin())
    }

    // ---- administration ----

    /// Begins a step of an administrative operation, which works on one page block and ends when
    /// the result is dropped. At most one runs at a time. Interrupts are masked during a step, and
    /// not between steps.
    fn step(&self) -> AdminStep<'_, P> {
        let masked = MaskGuard::new(self.platform());
        // Dropped in this order.
        AdminStep {
            _held: self.administration.lock(|| self.platform().relax()),
            _masked: masked,
        }
    }

    /// Takes what is free in a range out of the memory of the zone, once no frame of it is in use.
    /// Frames in the way may lie in caches: drains the caches and tries once more.
    fn leave(&self, range: FrameRange, leaves: Leaves) -> Result<usize, RangeError> {
        let leave = || {
            let (pin, step) = (&|| self.pin(), &|| self.step());
            self.store().leave(range, leaves, pin, step)
        };
        match leave() {
            Err(RangeError::Busy { .. }) => {
                self.drain();
                leave()
            }
            other => other,
        }
    }

    /// Adds `range` to the memory of the zone. Memory that the zone already has stays as it is.
    /// Returns the number of new frames. O(frames); interrupts are masked for the work on one page
    /// block at a time.
    ///
    /// # Errors
    /// The errors of [`AnyZone::add`].
    pub fn add(&self, range: FrameRange) -> Result<usize, RangeError> {
        self.store()
            .make_memory(range, Was::Absent, &|| self.step())
    }

    /// Removes all of `range` from the zone; no caller may be using it. Returns the number of
    /// frames removed. O(frames); interrupts are masked for the work on one page block at a time.
    ///
    /// # Errors
    /// The errors of [`AnyZone::remove`].
    pub fn remove(&self, range: FrameRange) -> Result<usize, RangeError> {
        self.leave(range, Leaves::Absent)
    }

    /// Keeps all free frames of `range` from being handed out. Reservations may overlap. Frames
    /// that are no memory yet are not reserved: add them first. Returns the number of frames
    /// reserved. O(frames); interrupts are masked for the work on one page block at a time.
    ///
    /// # Errors
    /// The errors of [`AnyZone::reserve`].
    pub fn reserve(&self, range: FrameRange) -> Result<usize, RangeError> {
        self.leave(range, Leaves::Reserved)
    }

    /// Frees the reserved frames of `range`. Returns the number of frames freed. O(frames).
    ///
    /// # Errors
    /// The errors of [`AnyZone::add`].
    pub fn unreserve(&self, range: FrameRange) -> Result<usize, RangeError> {
        self.store()
            .make_memory(range, Was::Reserved, &|| self.step())
    }

    /// Dedicates the page block of `frame` to pages of this mobility. For an embedder that takes
    /// over memory in use, and knows what most of a block is. What is in use in the block is still
    /// taken to be movable, unless it was requested as something else; the embedder's hooks know
    /// better. Does nothing if the block is free as a whole.
    pub fn dedicate(&self, frame: Frame, mobility: Mobility) {
        let _step = self.step();
        self.store().dedicate(frame, mobility);
    }

    /// Returns the frames of every reachable cache to the store. Returns the number of frames. For
    /// callers that may sleep; in an interrupt it reaches nothing.
    pub fn drain(&self) -> usize {
        AnyZone::drain(self)
    }

    // ---- numbers ----

    /// Returns the number of frames free in the store. A hint while others use the zone.
    #[must_use]
    pub fn free_frames(&self) -> usize {
        self.store().free_frames()
    }

    /// Returns the number of frames free in stashes. A hint while others use the zone.
    #[must_use]
    pub fn cached_frames(&self) -> usize {
        self.stash.cached(self.store())
    }

    /// Returns the number of frames that came back from stashes although they were free. They are
    /// double frees that could not be noticed at once, see [`stash`](crate::stash).
    #[must_use]
    pub fn refused_late(&self) -> usize {
        self.store().refused_late()
    }

    /// Returns the number of requests that fell back on a page block of another mobility: first
    /// those that did not claim the block, then those that did.
    #[must_use]
    pub fn fallbacks(&self) -> (u64, u64) {
        self.store().fallbacks()
    }

    /// Tests every invariant of the zone. O(span). No other CPU may be using it.
    ///
    /// # Errors
    /// The first invariant that does not hold.
    pub fn check(&self) -> Result<Census, Violation> {
        let mut census = self.store().check()?;
        // To the store, cached frames are in use. The stash tests that each of them is.
        census.cached = self.stash.check(self.store())?;
        census.allocated = census.allocated.saturating_sub(census.cached);
        Ok(census)
    }
}

impl<P: Platform, A: SlotAccess> fmt::Debug for Zone<'_, P, A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Zone")
            .field("kind", &self.kind)
            .field("span", &self.store().span())
            .field("free", &self.free_frames())
            .field("cached", &self.cached_frames())
            .finish_non_exhaustive()
    }
}
