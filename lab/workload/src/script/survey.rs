//! What two passes over the events of a trace tell, however the rest is drawn.

use core::ops::ControlFlow;

use brickyard::Order;
use brickyard_trace::{Event, Events, PageUse, StateRun, Step, Trace, What};

use super::{Beginning, Draw, MOST_PAGES, Script, ScriptError};
use crate::pages::Role;
use crate::passes::Passes;
use crate::roles;
use crate::start::{Inference, Inferring};
use crate::steps::Collecting;

/// What is known of a trace before anything is drawn: the ground of any number of scripts, which
/// are made of it in two passes more.
///
/// Takes memory of about 5 bytes a frame.
pub struct Survey<'a> {
    pub(super) trace: &'a Trace,
    pub(super) first: u64,
    pub(super) pages: usize,
    pub(super) slabs: Role,
    /// Whether scripts are for the recorded host.
    pub(super) is_hosts: bool,
    /// The roles of blocks that are in use at the end, by the events that took them.
    pub(super) kept: Vec<(u32, Role)>,
    /// When background reclaim ends.
    pub(super) ends: Vec<u64>,
    pub(super) duration: u64,
    pub(super) counts: Counts,
    /// By page: it is allocated before it is freed.
    free: Vec<bool>,
    inferring: Option<Inferring<'a>>,
}

/// How often the trace has which events.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Counts {
    /// Requests, with those that failed.
    pub requests: u64,
    /// Requests that failed.
    pub failures: u64,
    /// Fallbacks on another type's memory.
    pub fallbacks: u64,
    /// Those that took the page block over.
    pub claims: u64,
    /// Blocks taken off a zone's lists: 0 if events of zones were not recorded.
    pub taken: u64,
}

impl Counts {
    fn add(&mut self, what: &What) {
        match *what {
            What::Alloc { .. } => self.requests += 1,
            What::Failure { .. } => {
                self.requests += 1;
                self.failures += 1;
            }
            What::Fallback { claimed, .. } => {
                self.fallbacks += 1;
                self.claims += u64::from(claimed);
            }
            What::Taken { .. } => self.taken += 1,
            _ => {}
        }
    }
}

impl core::fmt::Debug for Survey<'_> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let mut out = f.debug_struct("Survey");
        out.field("pages", &self.pages);
        out.field("counts", &self.counts);
        out.finish_non_exhaustive()
    }
}

impl<'a> Survey<'a> {
    /// How often [`Survey::read`] goes through all events, and how often [`Survey::scripts`] does
    /// for every [`Survey::AT_ONCE`] draws.
    pub const PASSES: u64 = 2;

    /// So many draws get the events of the same passes.
    pub const AT_ONCE: usize = 4;

    /// Surveys a trace for its recorded host. `goes_on` is told how many events more are done, and
    /// can end it.
    ///
    /// # Errors
    /// [`ScriptError`] if it cannot be read or replayed.
    pub fn read(
        source: &'a impl Events,
        goes_on: impl FnMut(u64) -> ControlFlow<()>,
    ) -> Result<Self, ScriptError> {
        Self::of(&mut Passes::new(source, goes_on)?, true)
    }

    /// Surveys a trace: for its recorded host if `is_hosts`.
    pub(super) fn of<S: Events, G: FnMut(u64) -> ControlFlow<()>>(
        passes: &mut Passes<'a, S, G>,
        is_hosts: bool,
    ) -> Result<Self, ScriptError> {
        let trace = passes.outline();
        let extent = Extent::of(passes)?;
        let (first, pages) = extent.span()?;
        if extent.counts.requests == 0 {
            return Err(ScriptError::Empty);
        }
        let slabs = roles::slabs_by(&trace.header.start.zoneinfo);
        let mut takers = Takers::new(trace, first, pages);
        let mut mentions = Mentions::new(first, pages);
        let mut inferring = match is_hosts {
            true => Inferring::new(trace, first, pages),
            false => None,
        };
        passes.each(|place, event, names| {
            takers.event(place, event);
            mentions.event(event);
            if let Some(inferring) = &mut inferring {
                inferring.event(place, event, names);
            }
            Ok(())
        })?;
        Ok(Self {
            trace,
            first,
            pages,
            slabs,
            is_hosts,
            kept: takers.roles_at_end(trace, slabs),
            ends: extent.ends,
            duration: trace.header.duration.max(extent.last),
            counts: extent.counts,
            free: mentions.free_at_start(),
            inferring,
        })
    }

    /// Returns the state of memory before the first step, by this draw.
    #[must_use]
    pub fn begin(&self, draw: &Draw<'_>) -> Beginning {
        let inferred = self.inferring.as_ref();
        let inferred = inferred.map_or_else(Inference::default, |of| of.infer(draw));
        let span = (self.first, self.pages);
        Beginning::new(self.trace, span, self.slabs, self.free.clone(), inferred)
    }

    /// Makes a script for each of these draws, each as [`Script::read`] makes it: all from the same
    /// two passes over `source`, the trace that was surveyed; for more than [`Survey::AT_ONCE`],
    /// from two passes for every so many.
    ///
    /// # Errors
    /// [`ScriptError`] if the trace cannot be read or replayed.
    pub fn scripts(
        self,
        source: &impl Events,
        draws: &[Draw<'_>],
        goes_on: impl FnMut(u64) -> ControlFlow<()>,
    ) -> Result<Vec<Script>, ScriptError> {
        let mut passes = Passes::new(source, goes_on)?;
        self.make(&mut passes, draws, Collecting::in_bounds)
    }

    /// How long the trace is, in nanoseconds.
    #[must_use]
    pub const fn duration(&self) -> u64 {
        self.duration
    }

    /// How often it has which events.
    #[must_use]
    pub const fn counts(&self) -> Counts {
        self.counts
    }

    /// Drops what only draws need.
    pub(super) fn drop_ground(&mut self) {
        self.free = Vec::new();
        self.inferring = None;
    }
}

/// What is known of all events after a first pass.
struct Extent {
    /// The first frame and the one after the last, of events and states.
    frames: Option<(u64, u64)>,
    /// When background reclaim has ended, as far as the trace shows.
    ends: Vec<u64>,
    /// The time of the last event.
    last: u64,
    counts: Counts,
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
            last: 0,
            counts: Counts::default(),
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
            extent.counts.add(&event.what);
            match event.what {
                What::Step {
                    step: Step::KswapdWakes,
                    ..
                } => woken = Some(event.time),
                What::Step {
                    step: Step::KswapdSleeps,
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
    /// unknown (see [`PageUse::Untold`]): it is allocated before it is freed.
    fn free_at_start(self) -> Vec<bool> {
        self.free
    }
}
