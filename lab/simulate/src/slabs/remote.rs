//! Objects that one CPU allocates and another frees: every other CPU allocates, and the next one
//! frees, in bursts. Handing them over takes no simulated time.
//!
//! The CPU that allocates writes each line of an object, the one that frees it reads its first.

use core::cell::Cell;

use brickyard_machine::{Affinity, Failure, Traffic, current};
use brickyard_slab::Slabs;

use super::design::{Objects, Room, Simulates, SlabJob, Taken, machine};
use super::pages::read;
use super::{SlabFailed, SlabSetting};
use crate::SharedPages;
use crate::barrier::Barrier;
use crate::ring::Ring;

/// Bytes of an object.
pub const SIZE: usize = 256;

/// Objects that are handed over at a time.
const BURST: usize = 32;

/// The first is a warm-up, the last is counted.
const ROUNDS: usize = 2;

/// Pages of a machine, for each CPU.
const PAGES: usize = 1024;

/// The load.
#[derive(Debug, Clone, Copy)]
pub struct RemoteFrees {
    /// Objects of each pair of CPUs while they are counted. As many come before that.
    pub objects: usize,
}

/// The result.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct RemoteRun {
    /// Nanoseconds from one object to the next, of a pair of CPUs that work at the same time.
    pub object: f64,
    /// Cache lines that the two CPUs had to request for an object: moved to them, or made
    /// exclusive.
    pub lines: f64,
}

impl RemoteFrees {
    /// Runs it on pairs of CPUs.
    ///
    /// # Errors
    /// [`SlabFailed`].
    pub fn run(&self, setting: &SlabSetting) -> Result<RemoteRun, SlabFailed> {
        let room = Room {
            pages: PAGES * setting.cpus,
            nodes: 1,
            cpus: setting.cpus,
        };
        let run = RemoteJob {
            objects: self.objects,
            setting: *setting,
        };
        let output = setting.design.with(room, run);
        let (traffic, cycles) = output.map_err(|failure| setting.failed(failure))?;
        let objects = self.objects as f64;
        let pairs = (setting.cpus / 2) as f64;
        Ok(RemoteRun {
            object: setting.ns(cycles) / objects,
            lines: (traffic.moved() + traffic.upgrades) as f64 / (objects * pairs),
        })
    }
}

struct RemoteJob {
    objects: usize,
    setting: SlabSetting,
}

impl SlabJob for RemoteJob {
    /// The traffic of the counted round, and how long it took.
    type Output = Result<(Traffic, u64), Failure>;

    fn run<'m, D: Simulates<'m>>(
        self,
        slabs: &Slabs<'m, D>,
        shared: &[SharedPages],
    ) -> Self::Output {
        let cache = Objects::of(slabs, SIZE, self.setting.purpose);
        let cpus = self.setting.cpus / 2 * 2;
        let (ring, barrier) = (Ring::new(cpus), Barrier::new(cpus));
        let (before, began, ended) = (Cell::new(Traffic::default()), Cell::new(0), Cell::new(0));
        let mut machine = machine(self.setting.machine(), shared);
        for cpu in 0..cpus {
            let (cache, ring, barrier) = (&cache, &ring, &barrier);
            let (before, began, ended) = (&before, &began, &ended);
            let objects = self.objects;
            machine.task(format!("objects on {cpu}"), Affinity::Cpu(cpu), move || {
                for round in 1..=ROUNDS {
                    barrier.wait(|| {
                        before.set(current::traffic_of_all());
                        began.set(current::now());
                    });
                    if cpu % 2 == 0 {
                        allocate(cache, ring, cpu, objects);
                    } else {
                        free(cache, ring, cpu, round);
                    }
                    ended.set(ended.get().max(current::now()));
                }
            });
        }
        let done = machine.run()?;
        let traffic = done.all_traffic() - before.get();
        Ok((traffic, ended.get() - began.get()))
    }
}

/// Allocates so many objects and sends them to the next CPU.
fn allocate<'m, D: Simulates<'m>>(
    cache: &Objects<'_, 'm, D>,
    ring: &Ring<Taken>,
    cpu: usize,
    objects: usize,
) {
    let next = ring.after(cpu);
    let mut left = objects;
    while left > 0 {
        let many = left.min(BURST);
        left -= many;
        let burst = (0..many).map(|_| {
            let object = cache.take();
            object.fill();
            object
        });
        let burst = burst.collect();
        ring.wait(cpu, || !ring.is_full(next));
        ring.send(next, burst);
    }
    ring.finish(cpu);
}

/// Frees what the CPU before sends in a round.
fn free<'m, D: Simulates<'m>>(
    cache: &Objects<'_, 'm, D>,
    ring: &Ring<Taken>,
    cpu: usize,
    round: usize,
) {
    while !ring.is_over(cpu, round) {
        ring.wait(cpu, || ring.has_mail(cpu) || ring.is_over(cpu, round));
        while let Some(burst) = ring.receive(cpu) {
            for object in burst {
                read(object.start());
                cache.give(object);
            }
        }
    }
}
