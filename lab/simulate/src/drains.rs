//! What a global drain costs, and whom: the first reason that the mail of 2013 gives for magazines.
//!
//! All CPUs but one fault in pages and free them again, as processes that come and go. The last CPU
//! drains the caches of all of them every so often, as a failed direct compaction, memory
//! hot-remove or a contiguous allocation does, and is idle in between. Measured are the cycles of a
//! drain, the cycles that it costs the others (they do the same work on a second machine without
//! drains), and how long their allocations take at the worst.
//!
//! - Per-CPU lists are drained by an interrupt to each CPU that holds pages ([`current::run_on`]).
//!   The library asks one CPU after the other, where Linux interrupts all and waits for the last;
//!   so the duration of a drain is larger than Linux's, and what it costs the others is the same.
//!   On this machine such a call costs two task switches besides its work, where an interrupt's
//!   entry and exit cost less.
//! - Magazines are drained under their locks, and the zone's.
//! - The default design does as per-CPU lists with exclusive slots, or, where a CPU lends its slot
//!   ([`Slots::Shared`]), empties it from where the caller runs: it interrupts no CPU.

use core::cell::{Cell, RefCell};

use brickyard::node::{Node, Nodes};
use brickyard::sync::Shared;
use brickyard::{Frame, Mobility, Request};
use brickyard_designs::classics::LabZone;
use brickyard_machine::{Affinity, Ended, Failure, current};
use brickyard_workload::jobs::FREED_AT_ONCE;

use crate::barrier::Barrier;
use crate::build::{Job, MachineLock, SharedPages, Slots};
use crate::frames::FrameMemory;
use crate::platform::Simulated;
use crate::setting::{RunError, Setting};
use crate::storm::Latency;

/// Pages that a process faults in before it exits: about what a CPU's lists hold (186). Our choice.
const PROCESS_PAGES: usize = 128;

/// Cycles that a process computes between two faults, in which an interrupt comes at once. Our
/// choice: about as many as a fault takes on the machine of 2013.
const COMPUTES: u64 = 3_000;

/// Pages per CPU that may be in caches.
const CACHED_MOST: usize = 2048;

/// The experiment.
#[derive(Debug, Clone, Copy)]
pub struct Drains {
    /// Pages that each busy CPU faults in.
    pub pages: usize,
    /// Cycles between two drains.
    pub every: u64,
    /// Which CPUs may enter a CPU's slot.
    pub slots: Slots,
}

/// The result.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
#[non_exhaustive]
pub struct DrainRun {
    /// Drains.
    pub drains: u64,
    /// Pages that they gave back to the store.
    pub drained: u64,
    /// Mean cycles of a drain.
    pub drain_cycles: f64,
    /// Cycles that a drain costs all other CPUs together; below 0 if they are faster with drains.
    pub lost_cycles: f64,
    /// The allocations of the others.
    pub alloc: Latency,
    /// Their allocations on the machine without drains.
    pub alloc_undrained: Latency,
}

impl Drains {
    /// Returns the frames that a machine with `cpus` CPUs needs.
    #[must_use]
    pub const fn frames_needed(cpus: usize) -> usize {
        cpus.saturating_mul(PROCESS_PAGES + CACHED_MOST)
    }

    /// Runs it with `setting.cpus - 1` busy CPUs.
    ///
    /// # Errors
    /// [`RunError`] for an impossible machine, and where a run fails.
    pub fn run(&self, setting: &Setting) -> Result<DrainRun, RunError> {
        setting.check(Self::frames_needed(setting.cpus))?;
        let once = |drains| {
            let run = Run {
                drains: *self,
                setting: *setting,
                drainer: drains,
            };
            let blueprint = setting.blueprint();
            let output = match self.slots {
                Slots::Exclusive => blueprint.run(run),
                Slots::Shared => blueprint.with::<Shared, MachineLock, _>(run),
            };
            output.map_err(|failure| setting.failed(failure))
        };
        let (calm, drained) = (once(Drainer::Idle)?, once(Drainer::Drains)?);
        let drains = drained.drains.max(1) as f64;
        Ok(DrainRun {
            drains: drained.drains,
            drained: drained.drained,
            drain_cycles: drained.draining as f64 / drains,
            lost_cycles: lost(drained.busy, calm.busy) / drains,
            alloc: Latency::of(drained.alloc),
            alloc_undrained: Latency::of(calm.alloc),
        })
    }
}

/// Returns how many cycles more the busy CPUs take with drains than without. Signed: drains change
/// which CPU has which pages, and that may save more than the interruptions cost.
fn lost(drained: u64, calm: u64) -> f64 {
    drained as f64 - calm as f64
}

/// What the last CPU does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Drainer {
    Idle,
    Drains,
}

/// One run of one machine.
struct Run {
    drains: Drains,
    setting: Setting,
    drainer: Drainer,
}

/// Its output.
#[derive(Debug, Default)]
struct Output {
    /// Cycles in which the busy CPUs did their work, all together.
    busy: u64,
    /// The cycles of each of their allocations.
    alloc: Vec<u64>,
    drains: u64,
    drained: u64,
    /// Cycles of all drains.
    draining: u64,
}

impl Job for Run {
    type Output = Result<Output, Failure>;

    fn run<Z: LabZone<Platform = Simulated>>(
        self,
        node: &Node<'_, Z>,
        shared: &[SharedPages],
    ) -> Self::Output {
        let nodes = Nodes::new(core::slice::from_ref(node));
        let busy = self.setting.cpus - 1;
        let (barrier, left) = (Barrier::new(busy), Cell::new(busy));
        let output = RefCell::new(Output::default());
        let mut machine = SharedPages::machine(self.setting.machine(), shared);
        let memory = FrameMemory::new(&mut machine, self.setting.frames, node);
        let process = Process {
            nodes: &nodes,
            memory,
            trap: self.setting.profile.page_fault_cycles,
        };
        for cpu in 0..busy {
            let (process, barrier, left, output) = (&process, &barrier, &left, &output);
            let pages = self.drains.pages;
            machine.task(format!("faults on {cpu}"), Affinity::Cpu(cpu), move || {
                process.run(pages / 2);
                barrier.wait(|| ());
                let began = current::now();
                let alloc = process.run(pages);
                let mut output = output.borrow_mut();
                output.busy += current::now() - began;
                output.alloc.extend(alloc);
                left.set(left.get() - 1);
            });
        }
        if self.drainer == Drainer::Drains {
            let (nodes, left, output, every) = (&nodes, &left, &output, self.drains.every);
            machine.task("drains", Affinity::Cpu(busy), move || {
                current::sleep(every);
                while left.get() > 0 {
                    let began = current::now();
                    let frames = nodes.drain();
                    let mut output = output.borrow_mut();
                    output.drains += 1;
                    output.drained += frames as u64;
                    output.draining += current::now() - began;
                    drop(output);
                    current::sleep(every);
                }
            });
        }
        let _: Ended = machine.run()?;
        Ok(output.into_inner())
    }
}

/// The processes that come and go on a CPU.
struct Process<'a, 'z, Z: LabZone> {
    nodes: &'a Nodes<'z, Z>,
    memory: FrameMemory,
    trap: u64,
}

impl<Z: LabZone> Process<'_, '_, Z> {
    /// Runs processes until they have faulted in so many pages; returns how long each allocation
    /// took.
    fn run(&self, pages: usize) -> Vec<u64> {
        let mut cycles = Vec::with_capacity(pages);
        let mut held = Vec::with_capacity(PROCESS_PAGES);
        for number in 1..=pages {
            current::compute(COMPUTES);
            current::work(self.trap);
            let began = current::now();
            match self.nodes.alloc(0, &Request::page(Mobility::Movable)) {
                Ok(frame) => {
                    cycles.push(current::now() - began);
                    self.memory.map(frame);
                    held.push(frame);
                }
                Err(why) => current::fail(format!("no page: {why}")),
            }
            if held.len() == PROCESS_PAGES || number == pages {
                self.exit(&mut held);
            }
        }
        cycles
    }

    /// Ends a process: its pages come back in the order of their faults, in lists of
    /// [`FREED_AT_ONCE`](brickyard_workload::jobs::FREED_AT_ONCE), each with its last page first.
    fn exit(&self, held: &mut Vec<Frame>) {
        for list in lists_of_exit(held) {
            for &frame in list.iter().rev() {
                self.memory.unmap(frame);
            }
            if let Err(why) = self.nodes.free_bulk(list) {
                current::fail(format!("the free of a page was refused: {why}"));
            }
        }
        held.clear();
    }
}

/// Returns the lists in which an exit frees the pages of a process, which are in the order of their
/// faults. The kernel adds each page to the head of a list, so the last one is freed first.
fn lists_of_exit(held: &mut [Frame]) -> impl Iterator<Item = &[Frame]> {
    held.chunks_mut(FREED_AT_ONCE).map(|list| {
        list.reverse();
        &*list
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_list_of_an_exit_has_its_last_page_first() {
        let mut held: Vec<Frame> = (100..130).map(Frame::new).collect();
        let freed: Vec<Vec<usize>> = lists_of_exit(&mut held)
            .map(|list| list.iter().map(|frame| frame.number()).collect())
            .collect();
        let last_first = |from, to| (from..to).rev().collect::<Vec<usize>>();
        let expected = [
            last_first(100, 114),
            last_first(114, 128),
            last_first(128, 130),
        ];
        assert_eq!(freed, expected);
    }

    #[test]
    fn what_drains_save_is_a_negative_loss() {
        assert_eq!(lost(1_500, 1_000), 500.0);
        assert_eq!(lost(1_000, 1_500), -500.0);
    }
}
