//! How a script is made: all work that does not depend on the design is done here, once.
//!
//! It takes several passes over the events, since some of it depends on what comes later. Between
//! them there are only records of each frame and of what no event shows, so that memory grows with
//! that of the host, not with the events.
//!
//! The first two passes serve all draws (see [`Survey`]). In each of the others, every draw takes
//! every event in step, so that the file is read once for all of them.

use core::iter::Peekable;
use core::ops::ControlFlow;
use core::slice;
use std::collections::HashMap;
use std::vec;

use brickyard::{MigrateType, Mobility, Order, Request};
use brickyard_trace::{Event, Events, Step, What};

use super::{
    Beginning, Draw, FREE, InitialBlock, REQUESTS_MOST, SLEEP, Script, ScriptError, ScriptStep,
    Survey, WAKE,
};
use crate::pages::{PageId, Role};
use crate::passes::Passes;
use crate::roles::Reader;
use crate::steps::Collecting;
use crate::unrecorded::{self, Unrecorded};

impl Survey<'_> {
    /// Makes a script for each of these draws, step by step, in two passes over the events for
    /// every so many.
    pub(super) fn make<S: Events, G: FnMut(u64) -> ControlFlow<()>>(
        mut self,
        passes: &mut Passes<'_, S, G>,
        draws: &[Draw<'_>],
        steps: impl Fn() -> Collecting,
    ) -> Result<Vec<Script>, ScriptError> {
        let mut scripts = Vec::with_capacity(draws.len());
        let mut left = draws;
        while !left.is_empty() {
            let (some, others) = left.split_at(left.len().min(Self::AT_ONCE));
            left = others;
            let begun = some.iter().map(|draw| self.begin(draw)).collect();
            if left.is_empty() {
                self.drop_ground();
            }
            scripts.extend(self.make_some(passes, begun, &steps)?);
        }
        Ok(scripts)
    }

    /// Makes a script for each of these states of memory, all in the same passes.
    fn make_some<S: Events, G: FnMut(u64) -> ControlFlow<()>>(
        &self,
        passes: &mut Passes<'_, S, G>,
        begun: Vec<Beginning>,
        steps: impl Fn() -> Collecting,
    ) -> Result<Vec<Script>, ScriptError> {
        let used = |of: &Beginning| InUse::of(&of.initial_blocks, self.pages);
        let hidden = match self.is_hosts {
            true => {
                let in_use = begun.iter().map(|of| used(of).0).collect();
                unrecorded::find(passes, self.first, in_use, self.slabs)?
            }
            false => vec![Vec::new(); begun.len()],
        };
        let mut building: Vec<Building<'_>> = begun
            .iter()
            .zip(hidden)
            .map(|(of, hidden)| Building::new(self, hidden, used(of), steps()))
            .collect();
        let mut names = Vec::new();
        let mut last = None;
        passes.each(|place, event, so_far| {
            let new = so_far.get(names.len()..).unwrap_or_default();
            names.extend_from_slice(new);
            last = Some(*event);
            for own in &mut building {
                own.event(place, event)?;
            }
            Ok(())
        })?;
        let made = building.into_iter().zip(begun);
        made.map(|(mut own, beginning)| {
            if let Some(last) = &last {
                own.rest(last)?;
            }
            self.script(own, beginning, names.clone())
        })
        .collect()
    }

    fn script(
        &self,
        built: Building<'_>,
        beginning: Beginning,
        names: Vec<String>,
    ) -> Result<Script, ScriptError> {
        let header = &self.trace.header;
        let mut formats = header.formats.iter();
        Ok(Script {
            beginning,
            hidden: built.unshown,
            reports_free: false,
            steps: built.steps.finish()?,
            requests: built.requests.all,
            names,
            duration: self.duration,
            shows_reclaim: formats.any(|(name, _)| name == "mm_vmscan_kswapd_sleep"),
            compared_at: match header.end.time {
                0 => u64::MAX,
                time => time,
            },
            host_fallbacks: self.counts.fallbacks,
            host_failures: self.counts.failures,
        })
    }
}

/// What becomes steps, and what that needs.
struct Building<'s> {
    first: u64,
    reader: Reader,
    requests: Requests,
    in_use: InUse,
    /// The roles of blocks that are in use at the end, by the events that took them.
    kept: Peekable<slice::Iter<'s, (u32, Role)>>,
    hidden: Peekable<vec::IntoIter<Unrecorded>>,
    /// When background reclaim ends.
    ends: Peekable<slice::Iter<'s, u64>>,
    steps: Collecting,
    unshown: Vec<u32>,
}

impl<'s> Building<'s> {
    fn new(
        survey: &'s Survey<'_>,
        hidden: Vec<Unrecorded>,
        in_use: InUse,
        steps: Collecting,
    ) -> Self {
        Self {
            first: survey.first,
            reader: Reader::new(&survey.trace.header.flags),
            requests: Requests::default(),
            in_use,
            kept: survey.kept.iter().peekable(),
            hidden: hidden.into_iter().peekable(),
            ends: survey.ends.iter().peekable(),
            steps,
            unshown: Vec::new(),
        }
    }

    /// Makes the steps of an event, and of what is before it and not shown.
    fn event(&mut self, place: u32, event: &Event) -> Result<(), ScriptError> {
        while let Some(&time) = self.ends.next_if(|&&time| time <= event.time) {
            self.steps
                .push(ScriptStep::not_of_a_page(SLEEP, time, event))?;
        }
        while let Some(hidden) = self.hidden.next_if(|hidden| hidden.before <= place) {
            let step = self.unshown(&hidden, event)?;
            self.in_use.set(step.page, step.order, true);
        }
        let page = PageId(event.frame.saturating_sub(self.first) as u32);
        let step = |request, role, marks| ScriptStep {
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
                let seen = self.kept.next_if(|&&(taker, _)| taker == place);
                let role = corrected(role, mobility, seen.map(|&(_, role)| role));
                ScriptStep {
                    overlaps_used: self.in_use.set(page, event.order, true),
                    ..step(request, role, marks)
                }
            }
            What::Failure { mobility, flags } => {
                let request = self.reader.request(event.order, mobility, flags);
                let request = self.requests.place(request)?;
                let page = PageId::NONE;
                ScriptStep {
                    page,
                    ..step(request, Role::None, 0)
                }
            }
            What::Free => {
                self.in_use.set(page, event.order, false);
                step(FREE, Role::None, 0)
            }
            What::Step {
                step: Step::KswapdWakes,
                ..
            } => ScriptStep::not_of_a_page(WAKE, event.time, event),
            What::Fallback { .. }
            | What::Taken { .. }
            | What::Drained { .. }
            | What::Batched
            | What::Step { .. } => return Ok(()),
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
    fn unshown(&mut self, hidden: &Unrecorded, next: &Event) -> Result<ScriptStep, ScriptError> {
        let step = hidden_step(hidden, next, &mut self.requests)?;
        self.unshown.push(self.steps.len() as u32);
        self.steps.push(step)?;
        Ok(step)
    }
}

/// Returns the step that takes a page which was taken without an event, on the CPU of the event
/// after it.
fn hidden_step(
    hidden: &Unrecorded,
    next: &Event,
    requests: &mut Requests,
) -> Result<ScriptStep, ScriptError> {
    let request = Request::new(hidden.order, hidden.role.mobility());
    Ok(ScriptStep {
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
