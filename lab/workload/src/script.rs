//! A trace prepared for many replays: 24 bytes per step, with no look-ups left.
//!
//! All work that does not depend on the design is done here, once: frames become small numbers,
//! flags become requests, page states become roles.

use std::collections::HashMap;

use brickyard::{MigrateType, Mobility, Order, Request};
use brickyard_trace::{Event, NameId, PageUse, StateRun, Step as HostStep, Trace, What};

use crate::hidden::{self, Hidden};
use crate::pages::{PageId, Role};
use crate::roles::{self, Reader};
use crate::start::{self, Idle, Known, Limit};

/// A step: an event that matters to a replay.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Step {
    /// Nanoseconds since the trace began.
    pub time: u64,
    /// The first page.
    pub page: PageId,
    /// The task's name.
    pub name: NameId,
    /// The CPU.
    pub cpu: u16,
    request: u16,
    /// The order.
    pub order: Order,
    /// The page's role.
    pub role: Role,
    /// The page's initial marks.
    pub marks: u8,
    overlaps_used: bool,
}

impl Step {
    /// Makes a step that is no request for a page, just before `next`.
    const fn not_of_a_page(request: u16, time: u64, next: &Event) -> Self {
        Self {
            time,
            page: PageId::NONE,
            name: next.name,
            cpu: next.cpu,
            request,
            order: Order::ZERO,
            role: Role::None,
            marks: 0,
            overlaps_used: false,
        }
    }

    /// Returns true if it takes pages of which one is in use according to the trace: the event of a
    /// free was lost then.
    #[must_use]
    #[inline]
    pub const fn overlaps_used(&self) -> bool {
        self.overlaps_used
    }
}

/// The request numbers of steps that are no requests: a free, and background reclaim that begins or
/// ends.
const FREE: u16 = u16::MAX;
const WAKE: u16 = u16::MAX - 1;
const SLEEP: u16 = u16::MAX - 2;

/// More different requests than a trace may have.
const REQUESTS_MOST: u16 = SLEEP;

/// The action of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// Takes a block.
    Take(Request),
    /// Takes a block and gives it back: the request failed on the host.
    Try(Request),
    /// Gives back a block, a part of one, or several.
    Give,
    /// The host's background reclaim begins (true) or ends.
    Reclaim(bool),
}

/// A block in use before the first step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InitialBlock {
    /// Its first page.
    pub page: PageId,
    /// Its order.
    pub order: Order,
    /// Its role.
    pub role: Role,
    /// Its marks.
    pub marks: u8,
}

/// Why a trace cannot be replayed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ScriptError {
    /// It has no allocations.
    #[error(
        "the trace has no allocation: record a command that uses memory, `brickyard record -o FILE -- COMMAND`"
    )]
    Empty,
    /// Its frames are too far apart.
    #[error(
        "the trace spans {0} frames, and a replay supports at most {MOST_PAGES}: the trace is damaged or not of one host"
    )]
    TooWide(u64),
    /// It has too many different requests.
    #[error(
        "the trace has more than {REQUESTS_MOST} different requests, and a kernel makes some hundred: the trace is damaged"
    )]
    TooVaried,
}

/// The widest span of frames: 8 TiB with 4 KiB frames.
const MOST_PAGES: u64 = 1 << 31;

/// A trace prepared for replays.
#[derive(Debug)]
pub struct Script {
    first: u64,
    pages: usize,
    steps: Vec<Step>,
    requests: Vec<Request>,
    initial_blocks: Vec<InitialBlock>,
    from_caches: u64,
    // The steps that no event shows, by their numbers, in rising order.
    hidden: Vec<u32>,
    idle: Vec<Idle>,
    types: Vec<(usize, MigrateType)>,
    limits: Vec<Limit>,
    first_ticks: Vec<u64>,
    reports_free: bool,
    known: Known,
    block_order: u8,
    names: Vec<String>,
    duration: u64,
    compared_at: u64,
    shows_reclaim: bool,
    host_fallbacks: u64,
    host_failures: u64,
}

impl Script {
    /// Prepares `trace`. O(events and pages).
    ///
    /// # Errors
    /// [`ScriptError`] if it cannot be replayed.
    pub fn new(trace: &Trace) -> Result<Self, ScriptError> {
        Self::drawn(trace, 0, &HashMap::new())
    }

    /// As [`Script::new`], with only what the events show: for a machine other than the recorded
    /// one, which compacts by itself and has other memory at the start.
    ///
    /// # Errors
    /// [`ScriptError`] if it cannot be replayed.
    pub fn of_events(trace: &Trace) -> Result<Self, ScriptError> {
        Self::build(trace, start::Inference::default(), |_| Vec::new())
    }

    /// As [`Script::new`], with what is unknown of the start drawn by this seed: see [`start`].
    /// `excluded` has the types that page blocks, counted from frame 0, certainly do not have, a bit
    /// for each.
    ///
    /// # Errors
    /// [`ScriptError`] if it cannot be replayed.
    pub fn drawn(
        trace: &Trace,
        seed: u64,
        excluded: &HashMap<usize, u8>,
    ) -> Result<Self, ScriptError> {
        let (first, pages) = span(trace)?;
        let inferred = start::infer(trace, first, pages, seed, excluded);
        let slabs = roles::slabs_by(&trace.header.start.zoneinfo);
        Self::build(trace, inferred, |in_use| {
            hidden::find(trace, first, in_use, slabs)
        })
    }

    /// Prepares `trace` with this start. `hidden` returns the pages that are taken without an event,
    /// if these pages are in use at the start.
    fn build(
        trace: &Trace,
        inferred: start::Inference,
        hidden: impl FnOnce(Vec<bool>) -> Vec<Hidden>,
    ) -> Result<Self, ScriptError> {
        let (first, pages) = span(trace)?;
        let reader = Reader::new(&trace.header.flags);
        let slabs = roles::slabs_by(&trace.header.start.zoneinfo);
        let kept = roles_at_end(trace, first, pages, slabs);
        let cached = free_at_start(trace, first, pages, &inferred.idle);
        let mut requests = Requests::default();
        let (mut host_fallbacks, mut host_failures) = (0, 0);
        let (initial_blocks, from_caches) = initial_blocks(trace, first, slabs, &cached);
        let mut in_use = InUse::of(&initial_blocks, pages);
        let hidden = hidden(in_use.0.clone());
        let mut next_hidden = hidden.iter().peekable();
        let mut steps = Vec::with_capacity(trace.events.len() + hidden.len());
        let mut unshown = Vec::with_capacity(hidden.len());
        let mut ends = reclaim_ends(trace).into_iter().peekable();
        for (place, event) in trace.events.iter().enumerate() {
            while let Some(time) = ends.next_if(|&time| time <= event.time) {
                steps.push(Step::not_of_a_page(SLEEP, time, event));
            }
            let is_due = |hidden: &&Hidden| hidden.before as usize <= place;
            while let Some(hidden) = next_hidden.next_if(is_due) {
                let step = hidden_step(hidden, event, &mut requests)?;
                in_use.set(step.page, step.order, true);
                unshown.push(steps.len() as u32);
                steps.push(step);
            }
            let page = PageId(event.frame.saturating_sub(first) as u32);
            let step = |request, role, marks| Step {
                time: event.time,
                page,
                name: event.name,
                cpu: event.cpu,
                request,
                order: event.order,
                role,
                marks,
                overlaps_used: false,
            };
            match event.what {
                What::Alloc { mobility, flags } => {
                    let request = requests.place(reader.request(event.order, mobility, flags))?;
                    let (role, marks) = reader.role(event.order, mobility, flags);
                    let role = corrected(role, mobility, kept.get(&(place as u32)));
                    steps.push(Step {
                        overlaps_used: in_use.set(page, event.order, true),
                        ..step(request, role, marks)
                    });
                }
                What::Failure { mobility, flags } => {
                    let request = requests.place(reader.request(event.order, mobility, flags))?;
                    host_failures += 1;
                    let page = PageId::NONE;
                    steps.push(Step {
                        page,
                        ..step(request, Role::None, 0)
                    });
                }
                What::Free => {
                    in_use.set(page, event.order, false);
                    steps.push(step(FREE, Role::None, 0));
                }
                What::Fallback { .. } => host_fallbacks += 1,
                What::Step {
                    step: HostStep::KswapdWakes,
                    ..
                } => steps.push(Step::not_of_a_page(WAKE, event.time, event)),
                What::Taken { .. } | What::Drained { .. } | What::Batched | What::Step { .. } => {}
            }
        }
        if let Some(last) = trace.events.last() {
            for hidden in next_hidden {
                unshown.push(steps.len() as u32);
                steps.push(hidden_step(hidden, last, &mut requests)?);
            }
        }
        let is_request =
            |event: &Event| matches!(event.what, What::Alloc { .. } | What::Failure { .. });
        if !trace.events.iter().any(is_request) {
            return Err(ScriptError::Empty);
        }
        Ok(Self {
            first,
            pages,
            initial_blocks,
            from_caches,
            hidden: unshown,
            idle: inferred.idle,
            types: inferred.types,
            limits: inferred.limits,
            first_ticks: inferred.first_ticks,
            reports_free: false,
            known: inferred.known,
            block_order: trace.header.page_block_order,
            steps,
            requests: requests.all,
            names: trace.names.clone(),
            duration: trace
                .header
                .duration
                .max(trace.events.last().map_or(0, |event| event.time)),
            shows_reclaim: trace
                .header
                .formats
                .iter()
                .any(|(name, _)| name == "mm_vmscan_kswapd_sleep"),
            compared_at: match trace.header.end.time {
                0 => u64::MAX,
                time => time,
            },
            host_fallbacks,
            host_failures,
        })
    }

    /// The host's frame of page 0, a multiple of the largest block.
    #[must_use]
    pub const fn first(&self) -> u64 {
        self.first
    }

    /// The number of pages: page numbers are below this.
    #[must_use]
    pub const fn pages(&self) -> usize {
        self.pages
    }

    /// The steps, in order of time.
    #[must_use]
    pub fn steps(&self) -> &[Step] {
        &self.steps
    }

    /// The blocks in use before the first step.
    #[must_use]
    pub fn initial_blocks(&self) -> &[InitialBlock] {
        &self.initial_blocks
    }

    /// The number of pages of unknown use at the start that must have been in a CPU's cache: they
    /// are allocated before they are freed.
    #[must_use]
    pub const fn from_caches(&self) -> u64 {
        self.from_caches
    }

    /// The number of blocks that were taken without an event: steps that no event shows.
    #[must_use]
    pub const fn hidden(&self) -> u64 {
        self.hidden.len() as u64
    }

    /// The numbers of these steps, in rising order.
    pub(crate) fn hidden_steps(&self) -> &[u32] {
        &self.hidden
    }

    /// The free blocks in lists of CPUs before the first step, in the order in which they are put
    /// there.
    #[must_use]
    pub fn idle(&self) -> &[Idle] {
        &self.idle
    }

    /// The page blocks that are not movable before the first step: the first page of each, and its
    /// type.
    pub fn types(&self) -> impl Iterator<Item = (PageId, MigrateType)> + '_ {
        let first = |block: usize| PageId((block << self.block_order) as u32);
        self.types
            .iter()
            .map(move |&(block, kind)| (first(block), kind))
    }

    /// How many frames the lists of CPUs may hold before the first step.
    #[must_use]
    pub fn limits(&self) -> &[Limit] {
        &self.limits
    }

    /// When the page sets of each of the recorded host's CPUs first shrink with time, in nanoseconds;
    /// they do every second. Where no event shows it, it is drawn.
    pub(crate) fn first_ticks(&self) -> &[u64] {
        &self.first_ticks
    }

    /// Says whether the recorded host reports its free page blocks to a host of its own, which
    /// makes them movable. At first it does not.
    #[must_use]
    pub fn with_reports(self, reports_free: bool) -> Self {
        Self {
            reports_free,
            ..self
        }
    }

    /// Whether the recorded host reports its free page blocks.
    #[must_use]
    pub const fn reports_free(&self) -> bool {
        self.reports_free
    }

    /// How much of the start is known.
    #[must_use]
    pub const fn known(&self) -> Known {
        self.known
    }

    /// Whether the trace shows when background reclaim works.
    #[must_use]
    pub const fn shows_reclaim(&self) -> bool {
        self.shows_reclaim
    }

    /// The duration of the trace, in nanoseconds.
    #[must_use]
    pub const fn duration(&self) -> u64 {
        self.duration
    }

    /// The time at which the host's texts at the end were read, in nanoseconds; `u64::MAX` where
    /// unknown.
    #[must_use]
    pub const fn compared_at(&self) -> u64 {
        self.compared_at
    }

    /// The number of fallbacks to another type's memory on the host.
    #[must_use]
    pub const fn host_fallbacks(&self) -> u64 {
        self.host_fallbacks
    }

    /// The number of requests that failed on the host.
    #[must_use]
    pub const fn host_failures(&self) -> u64 {
        self.host_failures
    }

    /// Returns the name of a task; `?` for an unknown one.
    #[must_use]
    pub fn name(&self, id: NameId) -> &str {
        self.names.get(id.0 as usize).map_or("?", String::as_str)
    }

    /// Returns the action of a step.
    #[must_use]
    #[inline]
    pub fn action(&self, step: &Step) -> Action {
        match self.requests.get(usize::from(step.request)) {
            Some(&request) if step.page == PageId::NONE => Action::Try(request),
            Some(&request) => Action::Take(request),
            None if step.request == FREE => Action::Give,
            None => Action::Reclaim(step.request == WAKE),
        }
    }
}

/// Returns when background reclaim has ended, as far as the trace shows. kswapd naps before it goes
/// to sleep, and only then says so.
fn reclaim_ends(trace: &Trace) -> Vec<u64> {
    const NAP: u64 = 100_000_000;
    let mut woken = None;
    let mut ends = Vec::new();
    for event in &trace.events {
        match event.what {
            What::Step {
                step: HostStep::KswapdWakes,
                ..
            } => woken = Some(event.time),
            What::Step {
                step: HostStep::KswapdSleeps,
                ..
            } => ends.push(event.time.saturating_sub(NAP).max(woken.unwrap_or(0))),
            _ => {}
        }
    }
    ends.sort_unstable();
    ends
}

/// Returns the step that takes a page which was taken without an event, on the CPU of the event
/// after it.
fn hidden_step(
    hidden: &Hidden,
    next: &Event,
    requests: &mut Requests,
) -> Result<Step, ScriptError> {
    let request = Request::new(hidden.order, hidden.role.mobility());
    Ok(Step {
        time: next.time,
        page: hidden.page,
        name: next.name,
        cpu: next.cpu,
        request: requests.place(request)?,
        order: hidden.order,
        role: hidden.role,
        marks: 0,
        overlaps_used: false,
    })
}

/// Returns the span of frames of all events and states: the first frame, aligned to the largest
/// block, and the number of frames.
fn span(trace: &Trace) -> Result<(u64, usize), ScriptError> {
    let of_event = |event: &Event| match event.what.has_frames() {
        false => None,
        true => Some((
            event.frame,
            event.frame.saturating_add(event.order.frames() as u64),
        )),
    };
    let of_run = |run: &StateRun| match run.state.usage {
        PageUse::Hole => None,
        _ => Some((run.frame, run.frame.saturating_add(run.frames))),
    };
    let events = trace.events.iter().filter_map(of_event);
    let runs = trace.start.iter().filter_map(of_run);
    let (low, high) = events
        .chain(runs)
        .reduce(|(low, high), (first, end)| (low.min(first), high.max(end)))
        .ok_or(ScriptError::Empty)?;
    let low = low - low % Order::MAX.frames() as u64;
    let pages = high - low;
    if pages > MOST_PAGES {
        return Err(ScriptError::TooWide(pages));
    }
    Ok((low, pages as usize))
}

/// Returns the roles of blocks still in use at the end, by the index of the event that took them.
fn roles_at_end(trace: &Trace, first: u64, pages: usize, slabs: Role) -> HashMap<u32, Role> {
    let mut kept = HashMap::new();
    if trace.end.is_empty() {
        return kept;
    }
    // By page, one more than the index of the last event that took it.
    let mut taken = vec![0_u32; pages];
    for (place, event) in trace.events.iter().enumerate() {
        let page = (event.frame.saturating_sub(first)) as usize;
        let Some(slot) = taken.get_mut(page) else {
            continue;
        };
        match event.what {
            What::Alloc { .. } => *slot = place as u32 + 1,
            What::Free => *slot = 0,
            _ => {}
        }
    }
    for run in &trace.end {
        let role = roles::of_usage(run.state.usage, slabs);
        if matches!(role, Role::None | Role::Pinned) {
            continue;
        }
        let from = run.frame.saturating_sub(first).min(pages as u64) as usize;
        let to = (run.frame.saturating_add(run.frames))
            .saturating_sub(first)
            .min(pages as u64) as usize;
        for &place in &taken[from..to.max(from)] {
            if place > 0 {
                kept.insert(place - 1, role);
            }
        }
    }
    kept
}

/// Returns the role from the flags, or the more specific one seen at the end, if that does not
/// contradict the request's migrate type.
fn corrected(role: Role, kind: MigrateType, seen: Option<&Role>) -> Role {
    let Some(&seen) = seen else {
        return role;
    };
    let same = match kind {
        MigrateType::Movable => seen.mobility() == Mobility::Movable,
        MigrateType::Reclaimable => false,
        _ => matches!(seen, Role::PageTable | Role::Slab),
    };
    if same { seen } else { role }
}

/// Returns for each page whether it was free when the trace began, although its state then was
/// unknown (see [`PageUse::Untold`]): it is allocated before it is freed, or is known to lie in a
/// CPU's cache.
fn free_at_start(trace: &Trace, first: u64, pages: usize, idle: &[Idle]) -> Vec<bool> {
    let mut seen = vec![false; pages];
    let mut free = vec![false; pages];
    for block in idle {
        let from = block.page.0 as usize;
        free[from..(from + block.order.frames()).min(pages)].fill(true);
    }
    for event in &trace.events {
        let is_free = match event.what {
            What::Alloc { .. } => true,
            What::Free => false,
            _ => continue,
        };
        let from = event.frame.saturating_sub(first) as usize;
        for page in from..(from + event.order.frames()).min(pages) {
            free[page] |= is_free && !seen[page];
            seen[page] = true;
        }
    }
    free
}

/// Returns the blocks in use before the first step, and the number of pages that were in a CPU's
/// cache though their recorded use is unknown.
fn initial_blocks(
    trace: &Trace,
    first: u64,
    slabs: Role,
    cached: &[bool],
) -> (Vec<InitialBlock>, u64) {
    use crate::pages::mark;
    let mut blocks = Vec::new();
    let mut from_caches = 0;
    let unmanaged = start::unmanaged(trace);
    for (place, run) in trace.start.iter().enumerate() {
        let role = roles::of_usage(run.state.usage, slabs);
        if role == Role::None || run.frame < first || unmanaged.contains(&place) {
            continue;
        }
        let state = run.state;
        let mut marks = 0;
        for (is, bit) in [
            (state.active, mark::ACTIVE),
            (state.dirty, mark::DIRTY),
            (state.unevictable, mark::LOCKED),
        ] {
            marks |= if is { bit } else { 0 };
        }
        let mut page = run.frame - first;
        let end = (page + run.frames).min(cached.len() as u64);
        while page < end {
            let is_cached = |page: u64| role == Role::Pinned && cached[page as usize];
            if is_cached(page) {
                from_caches += 1;
                page += 1;
                continue;
            }
            // Pages that never move are combined into the largest aligned blocks.
            let most = if role == Role::Pinned {
                let rest = (page..end).take_while(|&page| !is_cached(page)).take(1024);
                let rest = rest.count() as u64;
                (page.trailing_zeros() as u8).min(rest.ilog2() as u8)
            } else {
                run.order
            };
            let order = Order::try_new(most).filter(|order| {
                let frames = order.frames() as u64;
                page.is_multiple_of(frames) && frames <= end - page
            });
            let order = order.unwrap_or_default();
            blocks.push(InitialBlock {
                page: PageId(page as u32),
                order,
                role,
                marks,
            });
            page += order.frames() as u64;
        }
    }
    (blocks, from_caches)
}

/// For each page whether it is in use, according to the trace.
struct InUse(Vec<bool>);

impl InUse {
    fn of(blocks: &[InitialBlock], pages: usize) -> Self {
        let mut in_use = Self(vec![false; pages]);
        for block in blocks {
            in_use.set(block.page, block.order, true);
        }
        in_use
    }

    /// Marks the block's pages as in use or not. Returns true if one of them was in use before.
    fn set(&mut self, page: PageId, order: Order, is: bool) -> bool {
        let from = (page.0 as usize).min(self.0.len());
        let to = (from + order.frames()).min(self.0.len());
        let block = &mut self.0[from..to];
        let any = block.contains(&true);
        block.fill(is);
        any
    }
}

/// The different requests of a trace.
#[derive(Debug, Default)]
struct Requests {
    all: Vec<Request>,
    places: HashMap<Request, u16>,
}

impl Requests {
    fn place(&mut self, request: Request) -> Result<u16, ScriptError> {
        if let Some(&place) = self.places.get(&request) {
            return Ok(place);
        }
        let place = self.all.len() as u16;
        if self.all.len() >= usize::from(REQUESTS_MOST) {
            return Err(ScriptError::TooVaried);
        }
        self.all.push(request);
        self.places.insert(request, place);
        Ok(place)
    }
}
