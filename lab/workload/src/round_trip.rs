//! A replay recorded as a host is: what a trace cannot tell, measured.
//!
//! The end of a replay differs from the host's end for two reasons: the rules are not the host's,
//! or the trace does not show all that they were applied to. A trace that is made from a replay has
//! the second reason only: its rules are known. So the error of a replay of such a trace, by the
//! same rules and with a start inferred anew, is what the trace cannot tell.
//!
//! The trace shows what a recording without events of zones shows: blocks that are handed out and
//! freed, and when compaction and reclaim worked; which frames are in use at the start and at the
//! end, and the host's texts at the start. It does not show which page block has which type, what
//! lies in which list of which CPU, nor the places that compaction takes.

use brickyard::Order;
use brickyard_designs::classics::{Configuration, LabZone};
use brickyard_trace::{Event, PageState, PageUse, StateRun, Step, Trace, What};

use crate::build::BuildError;
use crate::kernel::{Became, Logged};
use crate::machine::Machine;
use crate::outcome::Outcome;
use crate::pages::Role;
use crate::replay::{Options, Watcher, replay};
use crate::script::{Action, Script, ScriptStep};
use crate::view::{FrameUse, View};

/// Replays `script`, which was made from `trace`, and records the replay. Returns its trace beside
/// its outcome. Costs as [`replay`], and 48 bytes an event.
///
/// # Errors
/// [`BuildError`] where the machine cannot be built.
pub fn record<W: Watcher>(
    configuration: Configuration,
    machine: &Machine,
    trace: &Trace,
    script: &Script,
    options: &Options,
    watcher: W,
) -> Result<(Trace, Outcome), BuildError> {
    let mut recorded = Trace {
        header: trace.header.clone(),
        names: trace.names.clone(),
        start: trace.start.clone(),
        ..Trace::default()
    };
    let recorder = Recorder {
        watcher,
        script,
        events: &trace.events,
        hidden: script.hidden_steps(),
        recorded: &mut recorded,
    };
    let outcome = replay(configuration, machine, script, options, recorder)?;
    if !outcome.interrupted {
        // Steps after the last event that a step of the script was made from.
        let is_step = |event: &&Event| matches!(event.what, What::Step { .. });
        let after = trace
            .events
            .iter()
            .rposition(|event| made_a_step(&event.what));
        let rest = &trace.events[after.map_or(0, |last| last + 1)..];
        recorded.events.extend(rest.iter().filter(is_step));
    }
    Ok((recorded, outcome))
}

/// Returns true if a script has a step for such an event.
const fn made_a_step(what: &What) -> bool {
    matches!(
        what,
        What::Alloc { .. }
            | What::Failure { .. }
            | What::Free
            | What::Step {
                step: Step::KswapdWakes,
                ..
            }
    )
}

/// A watcher that writes down what a recording of the replay would show.
struct Recorder<'a, W> {
    watcher: W,
    script: &'a Script,
    // The host's events that no step was made from yet.
    events: &'a [Event],
    // The steps to come that were made from no event.
    hidden: &'a [u32],
    recorded: &'a mut Trace,
}

impl<W> Recorder<'_, W> {
    /// Returns the event that this step was made from, after recording the steps of compaction and
    /// reclaim before it. `None` if it was made from no event.
    fn event(&mut self, place: usize, step: &ScriptStep) -> Option<Event> {
        if let Some((&next, rest)) = self.hidden.split_first()
            && next as usize == place
        {
            self.hidden = rest;
            return None;
        }
        let begins_or_ends = match self.script.action(step) {
            Action::Reclaim(begins) => Some(begins),
            Action::Take(_) | Action::Try(_) | Action::Give => None,
        };
        if begins_or_ends == Some(false) {
            // It is inferred from steps that are recorded.
            return None;
        }
        while let Some((event, rest)) = self.events.split_first() {
            self.events = rest;
            match event.what {
                What::Step { step, .. } => {
                    self.recorded.events.push(*event);
                    if step == Step::KswapdWakes && begins_or_ends.is_some() {
                        return None;
                    }
                }
                What::Alloc { .. } | What::Failure { .. } | What::Free => return Some(*event),
                What::Fallback { .. }
                | What::Taken { .. }
                | What::Drained { .. }
                | What::Batched => {}
            }
        }
        None
    }

    /// Records what a step did to a block. `cause` is the event that the step was made from, or the
    /// one before it.
    fn block(&mut self, cause: &Event, block: &Logged) {
        let event = Event {
            frame: block.frame.number() as u64,
            order: block.order,
            ..*cause
        };
        let compaction = |step| Event {
            what: What::Step {
                step,
                numbers: [0; 3],
            },
            ..event
        };
        let events = &mut self.recorded.events;
        match block.became {
            Became::Taken => {
                if let What::Alloc { mobility, flags } | What::Failure { mobility, flags } =
                    cause.what
                {
                    let what = What::Alloc { mobility, flags };
                    events.push(Event { what, ..event });
                }
            }
            Became::Freed => events.push(Event {
                what: What::Free,
                ..event
            }),
            Became::Moved => events.extend([
                compaction(Step::CompactionBegins),
                Event {
                    what: What::Free,
                    ..event
                },
                compaction(Step::CompactionEnds),
            ]),
        }
    }
}

impl<W: Watcher> Watcher for Recorder<'_, W> {
    const STEPS: bool = true;

    fn step(&mut self, place: usize, step: &ScriptStep, blocks: &[Logged]) {
        self.watcher.step(place, step, blocks);
        let event = self.event(place, step);
        // What no event shows is recorded only for what else it made happen.
        let cause = event.unwrap_or(Event {
            time: step.time,
            frame: 0,
            what: What::Free,
            pid: 0,
            name: step.name,
            cpu: step.cpu,
            order: Order::ZERO,
        });
        for block in blocks {
            self.block(&cause, block);
        }
        if let What::Alloc { mobility, flags } | What::Failure { mobility, flags } = cause.what
            && !blocks.iter().any(|block| block.became == Became::Taken)
        {
            self.recorded.events.push(Event {
                frame: 0,
                what: What::Failure { mobility, flags },
                ..cause
            });
        }
    }

    fn progress(&mut self, steps: u64) -> bool {
        self.watcher.progress(steps)
    }

    /// Takes the page states; those of the last sample are the end's.
    fn sample<Z: LabZone>(&mut self, view: &View<'_, '_, Z>) {
        self.watcher.sample(view);
        let runs = &mut self.recorded.end;
        runs.clear();
        view.blocks(|frame, frames, usage| {
            let (usage, order) = match usage {
                FrameUse::Absent => return,
                FrameUse::Free => (PageUse::Free, 0),
                FrameUse::Cached => (PageUse::Untold, 0),
                FrameUse::Used(role, _) => (usage_of(role), frames.ilog2() as u8),
            };
            let (frame, frames) = (frame.number() as u64, frames as u64);
            if let Some(last) = runs.last_mut()
                && last.frame + last.frames == frame
                && (last.state.usage, last.order) == (usage, order)
            {
                last.frames += frames;
                return;
            }
            runs.push(StateRun {
                time: view.time(),
                frame,
                frames,
                order,
                state: PageState::of(usage),
            });
        });
    }
}

/// Returns what a host reports of pages of this role.
const fn usage_of(role: Role) -> PageUse {
    match role {
        Role::Anonymous => PageUse::Anonymous,
        Role::File => PageUse::File,
        Role::PageTable => PageUse::PageTable,
        Role::SlabReclaimable | Role::Slab => PageUse::Slab,
        Role::None | Role::Kernel | Role::Pinned | Role::Held => PageUse::Untold,
    }
}
