//! How a script is made: all work that does not depend on the design is done here, once.
//!
//! It takes several passes over the events, since some of it depends on what comes later. Between
//! them there are only records of each frame and of what no event shows, so that memory grows with
//! that of the host, not with the events.

use core::iter::Peekable;
use core::ops::ControlFlow;
use std::collections::HashMap;
use std::vec;

use brickyard::{MigrateType, Mobility, Order, Request};
use brickyard_trace::{Event, Events, PageUse, StateRun, Step as HostStep, Trace, What};

use super::{
    FREE, InitialBlock, MOST_PAGES, REQUESTS_MOST, SLEEP, Script, ScriptError, Step, WAKE, Whose,
};
use crate::hidden::{self, Hidden};
use crate::pages::{PageId, Role};
use crate::passes::Passes;
use crate::roles::{self, Reader};
use crate::start::{self, Idle};
use crate::steps::Collecting;

impl Script {
    /// Makes the script, step by step, in several passes over the events.
    pub(super) fn build<S: Events, G: FnMut(u64) -> ControlFlow<()>>(
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
