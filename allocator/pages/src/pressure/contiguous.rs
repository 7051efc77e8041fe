//! Contiguous ranges of any size: taken where all is free; else isolate, drain, migrate, take; on
//! failure, undo.
//!
//! While a range is isolated, nothing is handed out from it, and what is freed there stays there.
//! So once its movable pages have been moved away and the caches drained, all of it is free and can
//! be taken. The same method takes memory offline.

use super::compact::settle;
use super::hooks::{Migrate, Migration};
use crate::block::Use;
use crate::patience::Patience;
use crate::watermark::Mark;
use crate::zones::{AnyZone, take_range_at};
use crate::{
    Frame, FrameRange, MigrateType, Mobility, Order, Platform, RangeError, Request, ZoneKind,
};

/// The most passes over one candidate before it is given up (Linux: 5).
const PASSES: usize = 5;

/// A request for adjacent frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ContiguousRequest {
    /// The number of frames; need not be a power of two.
    pub frames: usize,
    /// The first frame's number is a multiple of this power of two.
    pub align: usize,
    /// No multiple of this power of two lies inside the range; 0 means no boundary.
    pub boundary: usize,
    /// All frames lie within this range.
    pub within: FrameRange,
    /// What may be done with the frames while they are in use.
    pub mobility: Mobility,
    /// The highest kind of zone that they may come from. `None`: as a [`Request`] of this mobility;
    /// to [`alloc_contiguous`], that of the zone.
    pub highest: Option<ZoneKind>,
}

impl ContiguousRequest {
    /// Returns a request for `frames` adjacent frames anywhere in `within`.
    #[must_use]
    pub const fn new(frames: usize, within: FrameRange) -> Self {
        Self {
            frames,
            align: 1,
            boundary: 0,
            within,
            mobility: Mobility::Unmovable,
            highest: None,
        }
    }

    /// Requires the start to be a multiple of `align`.
    #[must_use]
    pub const fn aligned(mut self, align: usize) -> Self {
        self.align = align;
        self
    }

    /// Forbids a multiple of `boundary` inside the range.
    #[must_use]
    pub const fn not_across(mut self, boundary: usize) -> Self {
        self.boundary = boundary;
        self
    }

    fn is_well_formed(&self) -> bool {
        let boundary_holds =
            self.boundary == 0 || (self.boundary.is_power_of_two() && self.boundary >= self.frames);
        self.frames > 0 && self.align.is_power_of_two() && boundary_holds
    }

    /// Returns the first place at or after `from` that has the right alignment and crosses no
    /// boundary.
    fn place_from(&self, from: Frame) -> Option<FrameRange> {
        let mut start = from.number().checked_next_multiple_of(self.align)?;
        if self.boundary != 0 {
            let crossing = start.checked_next_multiple_of(self.boundary)?;
            if start % self.boundary != 0 && start.checked_add(self.frames)? > crossing {
                start = crossing.checked_next_multiple_of(self.align)?;
            }
        }
        let end = start.checked_add(self.frames)?;
        Some(FrameRange::new(start, end))
    }

    /// Returns that place, if all of it lies in `within`.
    fn place_in(&self, within: FrameRange, from: Frame) -> Option<FrameRange> {
        self.place_from(from).filter(|&place| within.covers(place))
    }
}

/// What may lie in a place that is tried.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Tolerates {
    /// Only free frames.
    Free,
    /// Free frames, and blocks that can be moved away.
    Movable,
}

/// Takes adjacent frames from `zone`. Takes the first fit from the low end, first among the places
/// that are already free, then among those that can be cleared by moving. Free them by
/// [`AnyZone::free_range`], whole or in parts.
///
/// The zone stays above its min watermark, as after any request that may sleep: for the range, and
/// for each place that a page is moved to.
///
/// Costs one look at each block of the candidates. A candidate without an obstacle also costs as
/// many calls of `hooks` as it has movable blocks, at most five times. No page that stays is in two
/// candidates for which `hooks` are called. Only a candidate that is to be cleared is isolated. All
/// of it waits for other CPUs no longer than one request does
/// ([`WAITS_MOST`](crate::patience::WAITS_MOST)), apart from one wait after each pass, and from the
/// lock of changes of ranges, which isolation takes for each page block: a CPU that stands still in
/// such a step, with its interrupts masked, is waited for.
///
/// # Errors
/// [`RangeError::Malformed`] for a request that cannot be met anywhere; [`RangeError::OutsideSpan`]
/// if the zone has no such place; [`RangeError::TooLittleFree`] if it would fall below its mark;
/// [`RangeError::TooManyIsolated`] if something is to be moved, and four other CPUs are at that:
/// another try is worthwhile. Otherwise what was in the way at the first place that was tried.
/// Pages that were moved stay moved.
pub fn alloc_contiguous<Z: AnyZone>(
    zone: &Z,
    request: &ContiguousRequest,
    hooks: &impl Migrate,
) -> Result<FrameRange, RangeError> {
    if !request.is_well_formed() {
        return Err(RangeError::Malformed);
    }
    let within = request.within.intersection(zone.span());
    if request.place_in(within, within.start).is_none() {
        return Err(RangeError::OutsideSpan { span: zone.span() });
    }
    let patience = &Patience::new();
    zone.drain_with(patience);
    let highest = request.highest.unwrap_or(zone.kind());
    stays_above_min(zone, request.frames, request.mobility, highest)?;
    let free = first_fit(zone, request, Tolerates::Free, hooks, patience);
    match free {
        Err(_) if hooks.moves() => first_fit(zone, request, Tolerates::Movable, hooks, patience),
        _ => free,
    }
}

/// Checks that the zone stays above its min watermark without so many frames, as for a request from
/// zones up to `highest`.
fn stays_above_min<Z: AnyZone>(
    zone: &Z,
    frames: usize,
    mobility: Mobility,
    highest: ZoneKind,
) -> Result<(), RangeError> {
    let page = Request::page(mobility).from_zones_up_to(highest);
    let floor = zone.watermarks().floor(&page, Mark::Min);
    let free = || zone.free_frames_for(&page);
    match floor == 0 || free() >= floor.saturating_add(frames) {
        true => Ok(()),
        false => Err(RangeError::TooLittleFree { free: free() }),
    }
}

fn first_fit<Z: AnyZone>(
    zone: &Z,
    request: &ContiguousRequest,
    tolerates: Tolerates,
    hooks: &impl Migrate,
    patience: &Patience,
) -> Result<FrameRange, RangeError> {
    let within = request.within.intersection(zone.span());
    let mut first_error = None;
    let mut from = within.start;
    while let Some(place) = request.place_in(within, from) {
        let outcome = match last_obstacle(zone, place, tolerates) {
            Some(stayed) => Err(stayed),
            None if tolerates == Tolerates::Free => {
                let page = Request::page(request.mobility);
                take_range_at(zone, place, &page).map_err(|why| Stayed::of(place, why))
            }
            None => clear_and_take(zone, place, request.mobility, hooks, patience),
        };
        match outcome {
            Ok(()) => return Ok(place),
            // No other place can be isolated either.
            Err(Stayed { why, .. }) if why == RangeError::TooManyIsolated => return Err(why),
            Err(Stayed { why, behind }) => {
                first_error.get_or_insert(why);
                from = behind;
            }
        }
    }
    Err(first_error.unwrap_or(RangeError::OutsideSpan { span: zone.span() }))
}

/// Takes `range` out of `zone` for good, moving movable pages out of it. Returns the number of
/// frames it had. The range may have holes.
///
/// # Errors
/// [`RangeError::Busy`] with the first frame that could not be freed, also where the zone would
/// fall below its min watermark by the place that it is moved to; [`RangeError::Isolated`] if
/// another CPU is clearing a part of it; [`RangeError::TooManyIsolated`]. The memory then stays in
/// the zone, and pages that were moved stay moved.
pub fn offline<Z: AnyZone>(
    zone: &Z,
    range: FrameRange,
    hooks: &impl Migrate,
) -> Result<usize, RangeError> {
    let _isolated = Isolated::new(zone, range)?;
    clear(zone, range, hooks, &Patience::new()).map_err(|stayed| stayed.why)?;
    zone.remove(range)
}

/// Why a range could not be taken.
#[derive(Debug, Clone, Copy)]
struct Stayed {
    /// The reason, with the first frame that is in the way if it is known.
    why: RangeError,
    /// No range can be taken that begins before this frame and is as long.
    behind: Frame,
}

impl Stayed {
    /// Reports a block in the way that ends before `behind`.
    const fn at(frame: Frame, behind: Frame) -> Self {
        let why = RangeError::Busy { frame };
        Self { why, behind }
    }

    /// Reports why `place` could not be taken.
    fn of(place: FrameRange, why: RangeError) -> Self {
        let behind = match why {
            RangeError::Busy { frame } if place.contains(frame) => frame.plus(1),
            _ => place.end,
        };
        Self { why, behind }
    }
}

/// Keeps a range isolated as long as this value lives. So the isolation also ends if a hook panics.
struct Isolated<'z, Z: AnyZone> {
    zone: &'z Z,
    range: FrameRange,
}

impl<'z, Z: AnyZone> Isolated<'z, Z> {
    fn new(zone: &'z Z, range: FrameRange) -> Result<Self, RangeError> {
        zone.isolate(range)?;
        Ok(Self { zone, range })
    }
}

impl<Z: AnyZone> Drop for Isolated<'_, Z> {
    fn drop(&mut self) {
        self.zone.unisolate(self.range);
    }
}

/// Returns the last frame of the last thing in `place` that is not tolerated there. No place can
/// begin at or before that frame.
fn last_obstacle<Z: AnyZone>(zone: &Z, place: FrameRange, tolerates: Tolerates) -> Option<Stayed> {
    let last_of_place = Frame::new(place.end.number() - 1);
    let mut at = place.start;
    let mut obstacle = None;
    while at < place.end {
        let Some((first, state)) = zone.block_of(at) else {
            obstacle = Some(Stayed::at(at, at.plus(1)));
            at = at.plus(1);
            continue;
        };
        let end = state.behind(first, at);
        let isolated = state.usage == Use::Free && state.kind == MigrateType::Isolate;
        let stays = match state.usage {
            Use::Free => isolated,
            Use::Cached => tolerates == Tolerates::Free,
            Use::Allocated => tolerates == Tolerates::Free || state.kind != MigrateType::Movable,
            Use::Reserved | Use::Inner => true,
        };
        if stays {
            let last = last_of_place.min(Frame::new(end.number() - 1));
            let stayed = Stayed::at(last, last.plus(1));
            obstacle = Some(match isolated {
                true => Stayed {
                    why: RangeError::Isolated,
                    ..stayed
                },
                false => stayed,
            });
        }
        at = end;
    }
    obstacle
}

fn clear_and_take<Z: AnyZone>(
    zone: &Z,
    place: FrameRange,
    mobility: Mobility,
    hooks: &impl Migrate,
    patience: &Patience,
) -> Result<(), Stayed> {
    let stayed = |why| Stayed::of(place, why);
    let _isolated = Isolated::new(zone, place).map_err(stayed)?;
    clear(zone, place, hooks, patience)?;
    zone.take_isolated(place, mobility).map_err(stayed)
}

/// Moves everything out of an isolated range.
fn clear<Z: AnyZone>(
    zone: &Z,
    range: FrameRange,
    hooks: &impl Migrate,
    patience: &Patience,
) -> Result<(), Stayed> {
    let mut outcome = Ok(());
    for _ in 0..PASSES {
        zone.drain_with(patience);
        match clear_once(zone, range, hooks) {
            Cleared::All => return Ok(()),
            Cleared::Never(stayed) => return Err(stayed),
            Cleared::NotYet(stayed) => outcome = Err(stayed),
        }
        zone.platform().relax();
    }
    outcome
}

/// The result of one pass.
enum Cleared {
    All,
    /// Some blocks stay for now: the first of them, and the end of the last.
    NotYet(Stayed),
    /// One block stays for good, as far as is known. The end is that block's; the frame is the
    /// first that stays at all.
    Never(Stayed),
}

impl Cleared {
    /// Returns the first frame that stays.
    const fn first(&self) -> Option<Frame> {
        match self {
            Self::NotYet(Stayed {
                why: RangeError::Busy { frame },
                ..
            }) => Some(*frame),
            _ => None,
        }
    }
}

/// Makes one pass and moves each movable block away. It continues past a block that stays, unless
/// that block can never be moved.
fn clear_once<Z: AnyZone>(zone: &Z, range: FrameRange, hooks: &impl Migrate) -> Cleared {
    let mut outcome = Cleared::All;
    let mut at = range.start;
    while at < range.end {
        let Some((first, state)) = zone.block_of(at) else {
            at = at.plus(1);
            continue;
        };
        let end = state.behind(first, at);
        let moved = match state.usage {
            Use::Allocated if state.kind == MigrateType::Movable => {
                move_away(zone, first, state.order, hooks)
            }
            Use::Allocated => Some(Migration::Never),
            Use::Cached => Some(Migration::Later),
            Use::Free | Use::Reserved | Use::Inner => Some(Migration::Moved),
        };
        match moved {
            Some(Migration::Moved | Migration::NotNeeded) => {}
            Some(Migration::Later | Migration::Unknown) => {
                outcome = Cleared::NotYet(Stayed::at(outcome.first().unwrap_or(at), end));
            }
            // There is no place to move to, or the block can never be moved.
            Some(Migration::Never) | None => {
                return Cleared::Never(Stayed::at(outcome.first().unwrap_or(at), end));
            }
        }
        at = end;
    }
    outcome
}

/// Moves one block to a place outside the isolated ranges. Returns `None` if there is no such
/// place, or the zone would fall below its min watermark by it.
fn move_away<Z: AnyZone>(
    zone: &Z,
    from: Frame,
    order: Order,
    hooks: &impl Migrate,
) -> Option<Migration> {
    stays_above_min(zone, order.frames(), Mobility::Movable, zone.kind()).ok()?;
    let to = zone.alloc_uncached(&Request::new(order, Mobility::Movable))?;
    let answer = hooks.migrate(from, order, to);
    settle(zone, answer, from, order, to);
    Some(answer)
}
