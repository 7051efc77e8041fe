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
use brickyard_trace::{Event, Events, PageUse, Step, What, name_in};

use crate::pages::{PageId, Role};
use crate::passes::Passes;
use crate::roles;
use crate::script::ScriptError;

/// A page that is taken without an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Hidden {
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
/// are. `in_use` says which pages are in use at the start.
pub(crate) fn find<S: Events, G: FnMut(u64) -> ControlFlow<()>>(
    passes: &mut Passes<'_, S, G>,
    first: u64,
    in_use: Vec<bool>,
    slabs: Role,
) -> Result<Vec<Hidden>, ScriptError> {
    if passes.outline().start.is_empty() {
        // What was free is not known.
        return Ok(Vec::new());
    }
    let (mut windows, mut sources) = windows(passes, first, in_use, slabs)?;
    let events = passes.count();
    windows.sort_by_key(|window| (window.before, window.after, window.page));
    let mut hidden: Vec<Hidden> = windows
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
            Hidden {
                before,
                page: PageId(window.page),
                order: window.order,
                role,
            }
        })
        .collect();
    hidden.sort_by_key(|hidden| (hidden.before, hidden.page));
    Ok(hidden)
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

/// Returns the windows, and the events by which compaction frees the pages that it has moved.
fn windows<S: Events, G: FnMut(u64) -> ControlFlow<()>>(
    passes: &mut Passes<'_, S, G>,
    first: u64,
    mut in_use: Vec<bool>,
    slabs: Role,
) -> Result<(Vec<Window>, BTreeSet<u32>), ScriptError> {
    let pages = in_use.len();
    // By page, one more than the index of the last event that mentions it.
    let mut last = vec![0_u32; pages];
    let (mut windows, mut sources) = (Vec::new(), BTreeSet::new());
    let mut compacting = Compacting::default();
    passes.each(|place, event, names| {
        compacting.follow(event);
        let taken = match event.what {
            What::Alloc { .. } => true,
            What::Free => false,
            _ => return Ok(()),
        };
        let from = event.frame.saturating_sub(first).min(pages as u64) as usize;
        let end = (from + event.order.frames()).min(pages);
        if from == end {
            return Ok(());
        }
        if !taken {
            match (
                in_use[from..end].contains(&true),
                compacting.is_by(names, event),
            ) {
                (true, true) => {
                    sources.insert(place);
                }
                // A place that was not needed after all.
                (false, true) => return Ok(()),
                (false, false) if from.is_multiple_of(event.order.frames()) => {
                    windows.push(Window {
                        after: last[from],
                        before: place,
                        page: from as u32,
                        order: event.order,
                        role: Role::None,
                    });
                }
                (_, false) => {}
            }
        }
        in_use[from..end].fill(taken);
        last[from..end].fill(place + 1);
        Ok(())
    })?;
    for run in &passes.outline().end {
        let role = roles::of_usage(run.state.usage, slabs);
        let known = matches!(
            run.state.usage,
            PageUse::Anonymous | PageUse::File | PageUse::Slab | PageUse::PageTable
        );
        if !known || run.frame < first {
            continue;
        }
        let order = Order::try_new(run.order).unwrap_or_default();
        let end = (run.frame - first + run.frames).min(pages as u64) as usize;
        let mut page = (run.frame - first) as usize;
        while page + order.frames() <= end {
            let block = page..page + order.frames();
            if !in_use[block.clone()].contains(&true) {
                windows.push(Window {
                    after: last[block].iter().copied().max().unwrap_or(0),
                    before: passes.count(),
                    page: page as u32,
                    order,
                    role,
                });
            }
            page += order.frames();
        }
    }
    Ok((windows, sources))
}
