//! A trace prepared for many replays, with no look-ups left.
//!
//! All work that does not depend on the design is done here, once: frames become small numbers,
//! flags become requests, page states become roles. That takes several passes over the events,
//! since some of it depends on what comes later. Between them there are only records of each frame
//! and of what no event shows, so that memory grows with that of the host, not with the events.

use core::iter::Peekable;
use core::ops::ControlFlow;
use std::collections::HashMap;
use std::io;
use std::vec;

use brickyard::{MigrateType, Mobility, Order, Request};
use brickyard_trace::{
    Event, Events, NameId, PageUse, StateRun, Step as HostStep, Trace, What, name_in,
};

use crate::hidden::{self, Hidden};
use crate::pages::{PageId, Role};
use crate::passes::Passes;
use crate::roles::{self, Reader};
use crate::start::{self, Idle, Known, Limit};
use crate::steps::{Collecting, Rounds, Steps};

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
    pub(crate) request: u16,
    /// The order.
    pub order: Order,
    /// The page's role.
    pub role: Role,
    /// The page's initial marks.
    pub marks: u8,
    pub(crate) overlaps_used: bool,
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
    /// It has more events than their indices can number.
    #[error(
        "the trace has {0} events, and a replay supports at most 4 billion: record a shorter time"
    )]
    TooLong(u64),
    /// Its events cannot be read.
    #[error("{0}")]
    Unreadable(String),
    /// The steps cannot be stored.
    #[error(
        "the steps of the replay cannot be kept in a temporary file ({0}): free some of the disk, or name a folder on another one by TMPDIR"
    )]
    Unstored(String),
    /// The caller has ended it.
    #[error("interrupted")]
    Stopped,
}

impl From<io::Error> for ScriptError {
    fn from(error: io::Error) -> Self {
        Self::Unstored(error.to_string())
    }
}

/// The widest span of frames: 8 TiB with 4 KiB frames.
const MOST_PAGES: u64 = 1 << 31;

/// A trace prepared for replays.
#[derive(Debug)]
pub struct Script {
    first: u64,
    pages: usize,
    steps: Steps,
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
    /// Prepares `trace` for the recorded host. O(events and pages).
    ///
    /// # Errors
    /// [`ScriptError`] if it cannot be replayed.
    pub fn new(trace: &Trace) -> Result<Self, ScriptError> {
        Self::read(trace, Whose::HOST, |_| ControlFlow::Continue(()))
    }

    /// As [`Script::new`], with only what the events show: for a machine other than the recorded
    /// one, which compacts by itself and has other memory at the start. Keeps all steps in memory, 24
    /// bytes each.
    ///
    /// # Errors
    /// [`ScriptError`] if it cannot be replayed.
    pub fn of_events(trace: &Trace) -> Result<Self, ScriptError> {
        let passes = Passes::new(trace, |_| ControlFlow::Continue(()))?;
        Self::build(passes, Whose::Other, Collecting::in_memory())
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
        let excluded = Some(excluded);
        let whose = Whose::Recorded(Draw { seed, excluded });
        Self::read(trace, whose, |_| ControlFlow::Continue(()))
    }

    /// Prepares a trace that need not be in memory. More than a million steps are kept in a temporary
    /// file. So memory grows with that of the host, by about 15 bytes a frame, and not with the
    /// number of events.
    ///
    /// Takes several [`passes`]. `goes_on` is told how many events more are done, and can end it.
    ///
    /// # Errors
    /// [`ScriptError`] if it cannot be read or replayed.
    pub fn read(
        source: &impl Events,
        whose: Whose<'_>,
        goes_on: impl FnMut(u64) -> ControlFlow<()>,
    ) -> Result<Self, ScriptError> {
        let passes = Passes::new(source, goes_on)?;
        Self::build(passes, whose, Collecting::in_bounds())
    }

    fn build<S: Events, G: FnMut(u64) -> ControlFlow<()>>(
        mut passes: Passes<'_, S, G>,
        whose: Whose<'_>,
        steps: Collecting,
    ) -> Result<Self, ScriptError> {
        let trace = passes.outline();
        let extent = Extent::of(&mut passes)?;
        let (first, pages) = extent.span()?;
        let slabs = roles::slabs_by(&trace.header.start.zoneinfo);
        let mut takers = Takers::new(trace, first, pages);
        let mut mentions = Mentions::new(first, pages);
        let mut inferring = match &whose {
            Whose::Recorded(draw) => start::Inferring::new(trace, first, pages, draw),
            Whose::Other => None,
        };
        passes.each(|place, event, names| {
            takers.event(place, event);
            mentions.event(event);
            if let Some(inferring) = &mut inferring {
                inferring.event(place, event, names);
            }
            Ok(())
        })?;
        let inferred = inferring.map_or_else(start::Inference::default, start::Inferring::infer);
        let kept = takers.roles_at_end(trace, slabs);
        let cached = mentions.free_at_start(&inferred.idle);
        let (initial_blocks, from_caches) = initial_blocks(trace, first, slabs, &cached);
        drop(cached);
        let in_use = InUse::of(&initial_blocks, pages);
        let hidden = match whose {
            Whose::Recorded(_) => hidden::find(&mut passes, first, in_use.0.clone(), slabs)?,
            Whose::Other => Vec::new(),
        };
        let mut building = Building {
            first,
            reader: Reader::new(&trace.header.flags),
            requests: Requests::default(),
            in_use,
            kept: kept.into_iter().peekable(),
            hidden: hidden.into_iter().peekable(),
            ends: extent.ends.into_iter().peekable(),
            steps,
            unshown: Vec::new(),
            host_fallbacks: 0,
            host_failures: 0,
        };
        let mut names = Vec::new();
        let mut last = None;
        passes.each(|place, event, so_far| {
            let new = so_far.get(names.len()..).unwrap_or_default();
            names.extend_from_slice(new);
            last = Some(*event);
            building.event(place, event)
        })?;
        if let Some(last) = last {
            building.rest(&last)?;
        }
        if !extent.has_requests {
            return Err(ScriptError::Empty);
        }
        Ok(Self {
            first,
            pages,
            initial_blocks,
            from_caches,
            hidden: building.unshown,
            idle: inferred.idle,
            types: inferred.types,
            limits: inferred.limits,
            first_ticks: inferred.first_ticks,
            reports_free: false,
            known: inferred.known,
            block_order: trace.header.page_block_order,
            steps: building.steps.finish()?,
            requests: building.requests.all,
            names,
            duration: trace.header.duration.max(extent.last),
            shows_reclaim: trace
                .header
                .formats
                .iter()
                .any(|(name, _)| name == "mm_vmscan_kswapd_sleep"),
            compared_at: match trace.header.end.time {
                0 => u64::MAX,
                time => time,
            },
            host_fallbacks: building.host_fallbacks,
            host_failures: building.host_failures,
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

    /// The steps, in order of time. `None` if they are in a file, as those of a long
    /// trace are, unless [`Script::of_events`] has made them.
    #[must_use]
    pub fn steps(&self) -> Option<&[Step]> {
        self.steps.in_memory()
    }

    /// The number of steps.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.steps.len()
    }

    /// Returns true if there are no steps, as in no trace that can be replayed.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns a reader of all steps.
    pub(crate) fn rounds(&self) -> Rounds<'_> {
        self.steps.rounds()
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

    /// When the page sets of each of the recorded host's CPUs first shrink with time, in
    /// nanoseconds; they do every second. Where no event shows it, it is drawn.
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
        name_in(&self.names, id)
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

/// Returns how often [`Script::read`] goes through all events.
#[must_use]
pub const fn passes(whose: &Whose<'_>) -> u64 {
    match whose {
        Whose::Recorded(_) => 4,
        Whose::Other => 3,
    }
}

/// The machine that a script is for.
#[derive(Debug, Clone, Copy)]
pub enum Whose<'a> {
    /// The recorded host, in its recorded state, of which some is drawn.
    Recorded(Draw<'a>),
    /// Another one: only what the events show.
    Other,
}

impl Whose<'_> {
    /// The recorded host, by the first draw.
    pub const HOST: Self = Self::Recorded(Draw {
        seed: 0,
        excluded: None,
    });
}

/// How that is drawn which a trace does not tell of its start: see [`start`].
#[derive(Debug, Clone, Copy)]
pub struct Draw<'a> {
    /// The seed.
    pub seed: u64,
    /// The types that page blocks, counted from frame 0, certainly do not have, a bit for each.
    pub excluded: Option<&'a HashMap<usize, u8>>,
}

/// What becomes steps, and what that needs.
struct Building {
    first: u64,
    reader: Reader,
    requests: Requests,
    in_use: InUse,
    /// The roles of blocks that are in use at the end, by the events that took them.
    kept: Peekable<vec::IntoIter<(u32, Role)>>,
    hidden: Peekable<vec::IntoIter<Hidden>>,
    /// When background reclaim ends.
    ends: Peekable<vec::IntoIter<u64>>,
    steps: Collecting,
    unshown: Vec<u32>,
    host_fallbacks: u64,
    host_failures: u64,
}

impl Building {
    /// Makes the steps of an event, and of what is before it and not shown.
    fn event(&mut self, place: u32, event: &Event) -> Result<(), ScriptError> {
        while let Some(time) = self.ends.next_if(|&time| time <= event.time) {
            self.steps.push(Step::not_of_a_page(SLEEP, time, event))?;
        }
        while let Some(hidden) = self.hidden.next_if(|hidden| hidden.before <= place) {
            let step = self.unshown(&hidden, event)?;
            self.in_use.set(step.page, step.order, true);
        }
        let page = PageId(event.frame.saturating_sub(self.first) as u32);
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
        let step = match event.what {
            What::Alloc { mobility, flags } => {
                let request = self.reader.request(event.order, mobility, flags);
                let request = self.requests.place(request)?;
                let (role, marks) = self.reader.role(event.order, mobility, flags);
                let seen = self.kept.next_if(|&(taker, _)| taker == place);
                let role = corrected(role, mobility, seen.map(|(_, role)| role));
                Step {
                    overlaps_used: self.in_use.set(page, event.order, true),
                    ..step(request, role, marks)
                }
            }
            What::Failure { mobility, flags } => {
                let request = self.reader.request(event.order, mobility, flags);
                let request = self.requests.place(request)?;
                self.host_failures += 1;
                let page = PageId::NONE;
                Step {
                    page,
                    ..step(request, Role::None, 0)
                }
            }
            What::Free => {
                self.in_use.set(page, event.order, false);
                step(FREE, Role::None, 0)
            }
            What::Step {
                step: HostStep::KswapdWakes,
                ..
            } => Step::not_of_a_page(WAKE, event.time, event),
            What::Fallback { .. } => {
                self.host_fallbacks += 1;
                return Ok(());
            }
            What::Taken { .. } | What::Drained { .. } | What::Batched | What::Step { .. } => {
                return Ok(());
            }
        };
        Ok(self.steps.push(step)?)
    }

    /// Makes the steps after the last event.
    fn rest(&mut self, last: &Event) -> Result<(), ScriptError> {
        while let Some(hidden) = self.hidden.next() {
            self.unshown(&hidden, last)?;
        }
        Ok(())
    }

    /// Makes the step that takes a page which was taken without an event, on the CPU of the event
    /// after it.
    fn unshown(&mut self, hidden: &Hidden, next: &Event) -> Result<Step, ScriptError> {
        let step = hidden_step(hidden, next, &mut self.requests)?;
        self.unshown.push(self.steps.len() as u32);
        self.steps.push(step)?;
        Ok(step)
    }
}

/// What is known of all events after a first pass.
struct Extent {
    /// The first frame and the one after the last, of events and states.
    frames: Option<(u64, u64)>,
    /// When background reclaim has ended, as far as the trace shows.
    ends: Vec<u64>,
    has_requests: bool,
    /// The time of the last event.
    last: u64,
}

impl Extent {
    fn of<S: Events, G: FnMut(u64) -> ControlFlow<()>>(
        passes: &mut Passes<'_, S, G>,
    ) -> Result<Self, ScriptError> {
        // kswapd naps before it goes to sleep, and only then says so.
        const NAP: u64 = 100_000_000;
        let mut woken = None;
        let mut extent = Self {
            frames: None,
            ends: Vec::new(),
            has_requests: false,
            last: 0,
        };
        passes
            .outline()
            .start
            .iter()
            .for_each(|run| extent.run(run));
        passes.each(|_, event, _| {
            if event.what.has_frames() {
                extent.add(event.frame, event.order.frames() as u64);
            }
            extent.last = event.time;
            match event.what {
                What::Alloc { .. } | What::Failure { .. } => extent.has_requests = true,
                What::Step {
                    step: HostStep::KswapdWakes,
                    ..
                } => woken = Some(event.time),
                What::Step {
                    step: HostStep::KswapdSleeps,
                    ..
                } => {
                    let end = event.time.saturating_sub(NAP).max(woken.unwrap_or(0));
                    extent.ends.push(end);
                }
                _ => {}
            }
            Ok(())
        })?;
        extent.ends.sort_unstable();
        Ok(extent)
    }

    fn run(&mut self, run: &StateRun) {
        if run.state.usage != PageUse::Hole {
            self.add(run.frame, run.frames);
        }
    }

    fn add(&mut self, frame: u64, frames: u64) {
        let end = frame.saturating_add(frames);
        let (low, high) = self.frames.unwrap_or((frame, end));
        self.frames = Some((low.min(frame), high.max(end)));
    }

    /// Returns the first frame, aligned to the largest block, and the number of frames.
    fn span(&self) -> Result<(u64, usize), ScriptError> {
        let (low, high) = self.frames.ok_or(ScriptError::Empty)?;
        let low = low - low % Order::MAX.frames() as u64;
        let pages = high - low;
        if pages > MOST_PAGES {
            return Err(ScriptError::TooWide(pages));
        }
        Ok((low, pages as usize))
    }
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

/// Which event took each page last.
struct Takers {
    first: u64,
    /// By page, one more than the index of the last event that took it; empty where the states at
    /// the end are unknown.
    taken: Vec<u32>,
}

impl Takers {
    fn new(trace: &Trace, first: u64, pages: usize) -> Self {
        let pages = if trace.end.is_empty() { 0 } else { pages };
        Self {
            first,
            taken: vec![0; pages],
        }
    }

    fn event(&mut self, place: u32, event: &Event) {
        let page = event.frame.saturating_sub(self.first) as usize;
        let Some(slot) = self.taken.get_mut(page) else {
            return;
        };
        match event.what {
            What::Alloc { .. } => *slot = place + 1,
            What::Free => *slot = 0,
            _ => {}
        }
    }

    /// Returns the roles of blocks still in use at the end, in the order of the events that took
    /// them.
    fn roles_at_end(self, trace: &Trace, slabs: Role) -> Vec<(u32, Role)> {
        let mut kept = Vec::new();
        let pages = self.taken.len() as u64;
        for run in &trace.end {
            let role = roles::of_usage(run.state.usage, slabs);
            if matches!(role, Role::None | Role::Pinned) {
                continue;
            }
            let from = run.frame.saturating_sub(self.first).min(pages) as usize;
            let to = (run.frame.saturating_add(run.frames))
                .saturating_sub(self.first)
                .min(pages) as usize;
            let takers = self.taken[from..to.max(from)].iter();
            kept.extend(
                takers
                    .filter(|&&place| place > 0)
                    .map(|&place| (place - 1, role)),
            );
        }
        kept.sort_unstable_by_key(|&(place, _)| place);
        kept
    }
}

/// Returns the role from the flags, or the more specific one seen at the end, if that does not
/// contradict the request's migrate type.
fn corrected(role: Role, kind: MigrateType, seen: Option<Role>) -> Role {
    let Some(seen) = seen else {
        return role;
    };
    let same = match kind {
        MigrateType::Movable => seen.mobility() == Mobility::Movable,
        MigrateType::Reclaimable => false,
        _ => matches!(seen, Role::PageTable | Role::Slab),
    };
    if same { seen } else { role }
}

/// What mentions each page first.
struct Mentions {
    first: u64,
    seen: Vec<bool>,
    /// It is allocated before it is freed.
    free: Vec<bool>,
}

impl Mentions {
    fn new(first: u64, pages: usize) -> Self {
        Self {
            first,
            seen: vec![false; pages],
            free: vec![false; pages],
        }
    }

    fn event(&mut self, event: &Event) {
        let is_free = match event.what {
            What::Alloc { .. } => true,
            What::Free => false,
            _ => return,
        };
        let from = event.frame.saturating_sub(self.first) as usize;
        for page in from..(from + event.order.frames()).min(self.seen.len()) {
            self.free[page] |= is_free && !self.seen[page];
            self.seen[page] = true;
        }
    }

    /// Returns for each page whether it was free when the trace began, although its state then was
    /// unknown (see [`PageUse::Untold`]): it is allocated before it is freed, or is known to lie in a
    /// CPU's cache.
    fn free_at_start(self, idle: &[Idle]) -> Vec<bool> {
        let mut free = self.free;
        for block in idle {
            let from = block.page.0 as usize;
            let end = (from + block.order.frames()).min(free.len());
            free[from..end].fill(true);
        }
        free
    }
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

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by it")]
mod tests {
    use std::path::Path;

    use brickyard_classics::Configuration;
    use brickyard_trace::file::{self, Source};

    use super::*;
    use crate::{Machine, Options, Outcome, Rules, Start, replay};

    fn all_steps(script: &Script) -> Vec<Step> {
        let mut steps = Vec::new();
        let mut rounds = script.rounds();
        loop {
            let round = rounds.next().unwrap();
            if round.is_empty() {
                return steps;
            }
            steps.extend_from_slice(round);
        }
    }

    /// The outcome of a replay without what is timed.
    fn replayed(script: &Script) -> Outcome {
        let machine = Machine::sized(64 << 20, 2, 4096).unwrap();
        let options = Options {
            start: Start::Empty,
            rules: Rules::default(),
            sample_every: 100_000_000,
        };
        let outcome = replay(Configuration::Brickyard, &machine, script, &options, ()).unwrap();
        Outcome {
            alloc_ns: None,
            free_ns: None,
            seconds: 0.0,
            ..outcome
        }
    }

    #[test]
    fn a_trace_read_piece_by_piece_makes_the_same_script() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../traces/dd.parquet");
        let (whole, source) = (file::read(&path).unwrap(), Source::open(&path).unwrap());
        for whose in [Whose::HOST, Whose::Other] {
            let goes_on = |_| ControlFlow::Continue(());
            let in_memory = Collecting::in_memory();
            let kept = Script::build(Passes::new(&whole, goes_on).unwrap(), whose, in_memory);
            let few = Collecting::keeping(500);
            let spooled = Script::build(Passes::new(&source, goes_on).unwrap(), whose, few);
            let (kept, spooled) = (kept.unwrap(), spooled.unwrap());
            assert_eq!((kept.steps().is_some(), spooled.steps()), (true, None));
            assert_eq!(kept.len(), spooled.len());
            assert!(all_steps(&kept) == all_steps(&spooled));
            assert_eq!(kept.names, spooled.names);
            assert_eq!(kept.initial_blocks, spooled.initial_blocks);
            assert_eq!((&kept.idle, &kept.types), (&spooled.idle, &spooled.types));
            assert_eq!(
                (kept.duration, kept.known),
                (spooled.duration, spooled.known)
            );
            assert_eq!(replayed(&kept), replayed(&spooled));
        }
    }

    #[test]
    fn reading_can_be_ended() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../traces/dd.parquet");
        let source = Source::open(&path).unwrap();
        let mut done = 0;
        let ended = Script::read(&source, Whose::Other, |events| {
            done += events;
            match done > source.count() {
                true => ControlFlow::Break(()),
                false => ControlFlow::Continue(()),
            }
        });
        assert_eq!(ended.unwrap_err(), ScriptError::Stopped);
    }
}
