//! Pages that are taken without an event, so that a replay can take them too.
//!
//! Compaction takes the places that it moves pages to straight from the free lists, and so do bulk
//! requests. What shows it is a page that is freed, or in use at the end, although it was free by
//! all events before. When it was taken lies between those two. If compaction freed a page
//! meanwhile, the one that was moved, the two belong together; else it is taken just before it is
//! freed, or at the end.

use core::ops::ControlFlow;
use std::collections::{BTreeSet, HashSet};

use brickyard::Order;
use brickyard_trace::{Event, Events, PageUse, Step, Trace, What, name_in};

use crate::pages::{PageId, Role};
use crate::passes::Passes;
use crate::roles;
use crate::script::ScriptError;

/// A page that is taken without an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Unrecorded {
    /// The index of the event before which it is taken.
    pub(crate) before: u32,
    /// The page.
    pub(crate) page: PageId,
    /// Its order.
    pub(crate) order: Order,
    /// What it is used for.
    pub(crate) role: Role,
}

/// When a page must have been taken: after one event, and before another.
#[derive(Debug, Clone, Copy)]
struct Window {
    after: u32,
    before: u32,
    page: u32,
    order: Order,
    role: Role,
}

/// The name of the tasks that compact in the background begins so.
const COMPACTOR: &str = "kcompactd";

/// Finds the pages that are taken without an event, in the order of the events before which they
/// are: for each of `in_use`, which says which pages are in use at the start. One pass for all.
pub(crate) fn find<S: Events, G: FnMut(u64) -> ControlFlow<()>>(
    passes: &mut Passes<'_, S, G>,
    first: u64,
    in_use: Vec<Vec<bool>>,
    slabs: Role,
) -> Result<Vec<Vec<Unrecorded>>, ScriptError> {
    let trace = passes.outline();
    if trace.start.is_empty() {
        // What was free is not known.
        return Ok(vec![Vec::new(); in_use.len()]);
    }
    let own = in_use.into_iter();
    let mut finding: Vec<Finding> = own.map(|in_use| Finding::new(first, in_use)).collect();
    let mut compacting = Compacting::default();
    passes.each(|place, event, names| {
        compacting.follow(event);
        let taken = match event.what {
            What::Alloc { .. } => true,
            What::Free => false,
            _ => return Ok(()),
        };
        let moves = !taken && compacting.is_by(names, event);
        for own in &mut finding {
            own.event(place, event, taken, moves);
        }
        Ok(())
    })?;
    let events = passes.count();
    let found = finding.into_iter();
    Ok(found.map(|own| own.finish(trace, slabs, events)).collect())
}

/// Follows which tasks compact.
#[derive(Default)]
struct Compacting {
    tasks: HashSet<i32>,
    steps_are_recorded: bool,
}

impl Compacting {
    fn follow(&mut self, event: &Event) {
        match event.what {
            What::Step {
                step: Step::CompactionBegins,
                ..
            } => {
                self.tasks.insert(event.pid);
                self.steps_are_recorded = true;
            }
            What::Step {
                step: Step::CompactionEnds,
                ..
            } => {
                self.tasks.remove(&event.pid);
            }
            _ => {}
        }
    }

    /// Returns true if the task of the event compacts. Where steps are not recorded, its name says
    /// so.
    fn is_by(&self, names: &[String], event: &Event) -> bool {
        match self.steps_are_recorded {
            true => self.tasks.contains(&event.pid),
            false => name_in(names, event.name).starts_with(COMPACTOR),
        }
    }
}

/// Follows which pages are in use by all events.
struct Finding {
    first: u64,
    in_use: Vec<bool>,
    /// By page, one more than the index of the last event that mentions it.
    last: Vec<u32>,
    windows: Vec<Window>,
    /// The events by which compaction frees the pages that it has moved.
    sources: BTreeSet<u32>,
}

impl Finding {
    fn new(first: u64, in_use: Vec<bool>) -> Self {
        Self {
            first,
            last: vec![0; in_use.len()],
            in_use,
            windows: Vec::new(),
            sources: BTreeSet::new(),
        }
    }

    /// Takes the next event, which takes or frees a block; `moves` says whether it is a free by a
    /// task that compacts.
    fn event(&mut self, place: u32, event: &Event, taken: bool, moves: bool) {
        let pages = self.in_use.len();
        let from = event.frame.saturating_sub(self.first).min(pages as u64) as usize;
        let end = (from + event.order.frames()).min(pages);
        if from == end {
            return;
        }
        if !taken {
            match (self.in_use[from..end].contains(&true), moves) {
                (true, true) => {
                    self.sources.insert(place);
                }
                // A place that was not needed after all.
                (false, true) => return,
                (false, false) if from.is_multiple_of(event.order.frames()) => {
                    self.windows.push(Window {
                        after: self.last[from],
                        before: place,
                        page: from as u32,
                        order: event.order,
                        role: Role::None,
                    });
                }
                (_, false) => {}
            }
        }
        self.in_use[from..end].fill(taken);
        self.last[from..end].fill(place + 1);
    }

    /// Returns the pages, after the last of so many events.
    fn finish(mut self, trace: &Trace, slabs: Role, events: u32) -> Vec<Unrecorded> {
        self.look_at_end(trace, slabs, events);
        let (mut windows, mut sources) = (self.windows, self.sources);
        windows.sort_by_key(|window| (window.before, window.after, window.page));
        let mut unrecorded: Vec<Unrecorded> = windows
            .into_iter()
            .map(|window| {
                let source = sources.range(window.after..window.before).next().copied();
                let before = match source {
                    Some(source) => {
                        sources.remove(&source);
                        source
                    }
                    None => window.before.min(events),
                };
                let role = match (window.role, source) {
                    (Role::None, Some(_)) => Role::Anonymous,
                    (Role::None, None) => Role::Kernel,
                    (role, _) => role,
                };
                Unrecorded {
                    before,
                    page: PageId(window.page),
                    order: window.order,
                    role,
                }
            })
            .collect();
        unrecorded.sort_by_key(|unrecorded| (unrecorded.before, unrecorded.page));
        unrecorded
    }

    /// Adds the pages that are in use at the end, although they were free by all events.
    fn look_at_end(&mut self, trace: &Trace, slabs: Role, events: u32) {
        let pages = self.in_use.len();
        for run in &trace.end {
            let role = roles::of_usage(run.state.usage, slabs);
            let known = matches!(
                run.state.usage,
                PageUse::Anonymous | PageUse::File | PageUse::Slab | PageUse::PageTable
            );
            if !known || run.frame < self.first {
                continue;
            }
            let order = Order::try_new(run.order).unwrap_or_default();
            let end = (run.frame - self.first + run.frames).min(pages as u64) as usize;
            let mut page = (run.frame - self.first) as usize;
            while page + order.frames() <= end {
                let block = page..page + order.frames();
                if !self.in_use[block.clone()].contains(&true) {
                    self.windows.push(Window {
                        after: self.last[block].iter().copied().max().unwrap_or(0),
                        before: events,
                        page: page as u32,
                        order,
                        role,
                    });
                }
                page += order.frames();
            }
        }
    }
}
